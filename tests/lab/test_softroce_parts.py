"""The parts of Soft-RoCE hosts that need no virtual machine: who is a guest, what stands between it and the lab."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S, until

from p4gen import packages
from p4gen.errors import FailedError, InputError, MissingToolError
from p4gen.families import load_collective
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.clock import MS, SECOND
from p4gen.labs.calls import CallOrder
from p4gen.labs.job import Wanted
from p4gen.labs.softroce import asked, execute, guest, images, layer, proxy
from p4gen.labs.softroce.guest import Machine
from p4gen.plan.placement.served import ANY_SYNC
from p4gen.vocabulary.topology import load_topology

STAR = load_topology(Path("star-2"))


# --- who is a guest ---


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("", {}),
        ("softroce", {"h0": "6.12", "h1": "6.12"}),
        ("softroce:6.1", {"h0": "6.1", "h1": "6.1"}),
        ("h1=softroce", {"h1": "6.12"}),
        ("h0=softroce,h1=softroce:6.1", {"h0": "6.12", "h1": "6.1"}),
        ("softroce,h0=softroce:6.1", {"h0": "6.1", "h1": "6.12"}),
    ],
)
def test_hosts_that_are_guests(text: str, versions: dict[str, str]) -> None:
    assert asked.parse(text, STAR) == versions


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mellanox", "'mellanox' is no kind of hosts; there are softroce, softroce:6.12, softroce:6.1"),
        ("h0=softroce:5", "'softroce:5' is no kind of hosts; there are softroce, softroce:6.12, softroce:6.1"),
        ("h0=softroce:", "'softroce:' is no kind of hosts; there are softroce, softroce:6.12, softroce:6.1"),
        ("h7=softroce", "there is no host 'h7'; there are h0, h1"),
    ],
)
def test_hosts_that_cannot_be_guests_are_refused(text: str, told: str) -> None:
    with pytest.raises(InputError) as refused:
        asked.parse(text, STAR)
    assert refused.value.reason == f"--hosts: {told}"


def test_a_guest_among_the_ranks_leaves_one_synchronisation() -> None:
    assert asked.syncs(["h0", "h1"], {"h1": "6.12"}) == (PsnSync.SUBGROUPS,)
    assert asked.syncs(["h0", "h1"], {"h2": "6.12"}) == ANY_SYNC


def test_a_call_must_fit_into_a_guest() -> None:
    spec = load_collective(None, {"mode": "III"})
    wanted = Wanted("scenario", size=8 << 20, room=guest.ROOM)
    assert CallOrder.wanted(spec, wanted, 4).size == 8 << 20
    with pytest.raises(InputError, match=r"that takes 128 MiB; 64 MiB are free for it, so 8,192K is the limit here$"):
        CallOrder.wanted(spec, replace(wanted, size=16 << 20), 4)
    assert (wanted.ahead(5), Wanted().ahead(5)) == (0, 5)


@pytest.mark.parametrize(("path", "told"), [("/nowhere", "apt-get install qemu-system-x86"), ("", "softroce build")])
def test_without_qemu_or_images_a_lab_says_so_in_one_line(tmp_path: Path, path: str, told: str) -> None:
    """The rest of a lab's requirements are checked first, so the parts that find this out are called here."""
    if not path:
        for tool in packages.SOFTROCE:
            (tmp_path / tool).symlink_to("/bin/true")
        path = str(tmp_path)
    script = (
        "from p4gen.cli.app import main; import p4gen.labs.prerequisites as p; p.check = lambda target: None; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "lab", "star-2", "--mode", "III", "--hosts", "softroce"],
        env=os.environ | {"PATH": path, "XDG_CACHE_HOME": str(tmp_path)}, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert told in line
    assert not (tmp_path / "build").exists()


# --- QEMU ---

IMAGES = images.Images(Path("/images/vmlinux"), Path("/images/initramfs"), Path("/images/root.sqfs"))


@pytest.mark.parametrize("way", [guest.TCG, guest.KVM])
def test_a_guest_has_two_cards_two_disks_and_a_port(way: str) -> None:
    command = guest.command(Machine(IMAGES, Path("/images/p4gen.sqfs"), way), "h3", 9, Path("/lab/h3/console.log"))
    devices = [word.partition(",")[0] for before, word in pairwise(command) if before == "-device"]
    assert devices == ["virtio-blk-device"] * 2 + ["virtio-serial-device", "virtserialport"] + ["virtio-net-device"] * 2
    assert "socket,id=requests,fd=9" in command
    assert "file:/lab/h3/console.log" in command
    assert command[command.index("-accel") + 1].startswith(way)
    (line,) = (word for word in command if word.startswith("console="))
    assert "p4gen.name=h3 " in line
    assert ("tsc=reliable" in line) == (way == guest.TCG)


def test_without_qemu_no_guest_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert not guest.starts(IMAGES, guest.TCG)
    with pytest.raises(MissingToolError, match="Soft-RoCE hosts need qemu-system-x86_64, mksquashfs: apt-get install"):
        guest.check()


def test_a_guest_that_does_not_come_to_its_init_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = tmp_path / "qemu-system-x86_64"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for said, starts in (("Kernel panic", False), ("p4gen: there is no root", True)):
        machine.write_text(f"#!/bin/sh\necho '{said}'\n")
        machine.chmod(0o755)
        assert guest.starts(IMAGES, guest.TCG) is starts
    monkeypatch.setitem(guest._PROBE_S, guest.KVM, 0.2)
    machine.write_text("#!/bin/sh\necho 'p4gen: there is'\nexec sleep 100\n")
    assert not guest.starts(IMAGES, guest.KVM)


def test_kvm_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/kvm").exists():
        pytest.skip("there is no /dev/kvm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tried: list[str] = []

    def starts(_: images.Images, way: str) -> bool:
        tried.append(way)
        return False

    monkeypatch.setattr(guest, "starts", starts)
    assert [guest.accelerator(IMAGES) for _ in range(3)] == [guest.TCG] * 3
    assert tried == [guest.KVM]


def test_the_last_words_of_a_console(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    assert list(guest.last_words(console)) == []
    console.write_bytes(b"one\ntwo\n\xff\nfour\n")
    assert list(guest.last_words(console, 2)) == ["\N{REPLACEMENT CHARACTER}", "four"]
    console.write_text("one\n[ 2.0] Kernel panic - not syncing: why\nthree\nfour\n")
    assert list(guest.last_words(console, 1)) == ["[ 2.0] Kernel panic - not syncing: why", "four"]


# --- between lab and guest ---


class Answering:
    """A guest's program at the other end of a socket: it answers each request as ``answers`` says."""

    def __init__(self, answers: dict[str, Callable[[dict[str, Any]], Any]]) -> None:
        ours, self._theirs = socket.socketpair()
        self.guest = proxy.Guest("h0", ours)
        self.heard: list[dict[str, Any]] = []
        self._answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = answers
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.guest.listen()

    def _run(self) -> None:
        with self._theirs, self._theirs.makefile("rwb") as stream:
            for line in stream:
                request = json.loads(line)
                self.heard.append(request)
                if request.get("do") == "end":
                    return
                answer = self._answers.get(request.get("do", ""))
                said = answer(request) if answer is not None else {}
                stream.write(json.dumps({"id": request.get("id")} | said).encode() + b"\n")
                stream.flush()


class NoLink(proxy.Link):
    """A link without interfaces."""

    def __init__(self) -> None:
        self._lost = {"loss": 3}  # type: ignore[assignment]


def test_requests_go_on_to_the_guest_and_times_come_back_by_our_clock() -> None:
    behind = 70 * SECOND
    answers: dict[str, Callable[[dict[str, Any]], Any]] = {
        "clock": lambda _: {"result": {"now": time.monotonic_ns() - behind // 1000}},
        "run": lambda _: {"result": {"answers": [{"started": 5, "finished": 9, "problem": ""}]}},
        "counters": lambda _: {"result": {"groups": {}, "faults": {}, "undelivered": 0}},
        "join": lambda request: {"error": f"no group {request['group']}"},
    }
    there = Answering(answers)
    verbs = proxy.Proxy(there.guest, NoLink()).verbs
    (answer,) = verbs["run"]({"id": 4, "do": "run", "group": "all"})["answers"]
    assert answer["finished"] - answer["started"] == 4
    assert abs(answer["started"] - behind) < 1000 * MS
    assert there.heard[0] == {"id": 1, "do": "run", "group": "all"}
    assert verbs["counters"]({"id": 5, "do": "counters"}) == {"groups": {}, "faults": {"loss": 3}, "undelivered": 0}
    with pytest.raises(FailedError) as refused:
        verbs["join"]({"id": 6, "do": "join", "group": "g"})
    assert refused.value.reason == "no group g"


def test_requests_to_a_guest_that_ends_fail() -> None:
    there = Answering({})
    with pytest.raises(FailedError, match="its guest has ended"):
        there.guest.call("end", PATIENCE_S)
    with pytest.raises(FailedError, match="its guest has ended"):
        there.guest.call("run", PATIENCE_S)


def test_the_job_comes_first(tmp_path: Path) -> None:
    there = Answering({"prepare": lambda _: {"result": {}}})
    there.guest.tell(json.dumps({"name": "h0"}))
    there.guest.call("prepare", PATIENCE_S)
    assert there.heard == [{"name": "h0"}, {"id": 1, "do": "prepare"}]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def test_the_managers_socket_is_a_port_also_while_it_restarts(tmp_path: Path) -> None:
    path, port = tmp_path / "manager.sock", free_port()
    proxy.relay(port, path)
    for word in (b"one", b"two"):
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as early:
            assert early.recv(1) == b""  # nobody listens yet
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as near:
                near.sendall(word)
                far, _ = listener.accept()
                with far:
                    assert far.recv(3) == word
                    far.sendall(b"back")
                assert near.recv(4) == b"back"
                assert near.recv(1) == b""
        path.unlink()


# --- commands ---


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """The port at which this process takes commands as a guest does."""
    found = free_port()
    monkeypatch.setattr(execute, "COMMANDS_PORT", found)
    monkeypatch.setattr(execute, "ADDRESS", "127.0.0.1")
    threading.Thread(target=execute.serve_commands, daemon=True).start()
    until(lambda: _listens(found))
    return found


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


_EXECUTE = """
import sys
from p4gen.labs.softroce import execute
execute.COMMANDS_PORT = int(sys.argv[1])
sys.exit(execute.main(sys.argv[2:]))
"""


def executed(port: int, words: list[str], text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", _EXECUTE, str(port), *words]
    return subprocess.run(command, input=text, capture_output=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize(
    ("words", "text", "status", "out", "error"),
    [
        (["echo", "one", "two words"], b"", 0, b"one two words\n", b""),
        (["sh", "-c", "cat; echo bad >&2; exit 3"], b"some\ninput", 3, b"some\ninput", b"bad\n"),
        (["sh", "-c", "kill -9 $$"], b"", 137, b"", b""),
        (["no-such-command"], b"", 127, b"", b"no-such-command: No such file or directory\n"),
        ([sys.executable, "-c", "print(6 * 7)"], b"", 0, b"42\n", b""),
    ],
)
def test_a_command_has_its_streams_and_its_status(
    port: int, words: list[str], text: bytes, status: int, out: bytes, error: bytes
) -> None:
    done = executed(port, words, text)
    assert (done.returncode, done.stdout, done.stderr) == (status, out, error)


def test_a_command_ends_when_nobody_waits_for_it(port: int, tmp_path: Path) -> None:
    file = tmp_path / "process"
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
        words = ["sh", "-c", f"echo $$ >{file}; exec sleep 1000"]
        connection.sendall(json.dumps(words).encode() + b"\n")
        until(lambda: file.exists() and file.read_text().endswith("\n"))
    process = int(file.read_text())
    until(lambda: not Path(f"/proc/{process}").exists())


def test_a_command_of_a_terminal_has_one(port: int) -> None:
    near, far = pty.openpty()
    command = [sys.executable, "-c", _EXECUTE, str(port), "sh", "-c", "tty && exit 5"]
    done = subprocess.run(command, stdin=far, capture_output=True, timeout=PATIENCE_S, check=False)
    os.close(near)
    os.close(far)
    assert done.returncode == 5
    assert done.stdout.startswith(b"/dev/pts/")


def test_without_a_guest_a_command_fails() -> None:
    done = executed(free_port(), ["true"])
    assert done.returncode == 1
    assert done.stderr.startswith(b"p4gen: error: the guest takes no commands: ")


# --- p4gen in a guest ---

_IN_A_GUEST = """
import json, sys, types
import numpy as np
sys.modules["p4gen.host.device.verbs"] = types.SimpleNamespace(VerbsStation=object)  # Debian has pyverbs
import p4gen.labs.softroce.inside
from p4gen.families import load_spec
from p4gen.labs.calls import CallOrder, members_of
for mode in ("I", "II", "III", "scin", "multiwrite", "themis"):
    spec = load_spec(None, {"mode": mode})
    for asked in members_of(spec).samples(spec, 2, 4096):
        CallOrder.of(spec, 2, *asked).plan(spec, 2).draw(np.random.default_rng(1))
print(json.dumps({name: str(getattr(module, "__file__", "")) for name, module in sys.modules.items()}))
"""


def test_a_guest_loads_no_more_than_its_image_has() -> None:
    done = subprocess.run([sys.executable, "-c", _IN_A_GUEST], capture_output=True, text=True, check=True)
    files = [file for file in json.loads(done.stdout).values() if "site-packages" in file]
    loaded = {Path(file.rpartition("site-packages/")[2]).parts[0].removesuffix(".py") for file in files}
    listed = {
        Path(file).parts[0].removesuffix(".py") for name in layer.DISTRIBUTIONS for file in metadata.files(name) or ()
    }
    assert {"grpc", "numpy", "pydantic"} <= loaded
    assert loaded - listed - {"_distutils_hack", "p4gen"} == set()
