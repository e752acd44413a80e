"""BMv2 as a target. These tests need simple_switch_grpc and p4c-bm2-ss on PATH, and are skipped without."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError, MissingToolError
from p4gen.model import ControlError
from p4gen.model.entries import Action, CloneSession, Entry, MulticastGroup, Replica
from p4gen.p4 import p4c
from p4gen.switch import bmv2
from p4gen.switch.bm_thrift import ThriftRegisters
from p4gen.switch.dataplane import Dataplane, open_dataplane
from p4gen.switch.running import Program

MISSING = [tool for tool in (bmv2.SWITCH, p4c.COMPILER) if shutil.which(tool) is None]
needs_bmv2 = pytest.mark.skipif(bool(MISSING), reason=f"not on PATH: {', '.join(MISSING)}")
FRAME = bytes(64)


@pytest.fixture
def program(echo: Path, tmp_path: Path) -> Program:
    made = Program.of_text(echo.read_text(), tmp_path)
    output = p4c.compile_for_bmv2(p4c.find() or "", made.p4, tmp_path)
    return Program(made.p4, made.p4info, output.json)


@needs_bmv2
def test_control_plane_registers_and_frames(program: Program, place: Path) -> None:
    received: list[tuple[int, bytes]] = []
    with (
        bmv2.running_bmv2(program, place, range(4)) as running,
        running.connect() as client,
        Dataplane(str(running.platform_args["address"]), lambda port, data: received.append((port, data))) as ports,
    ):
        for number in range(100):
            ports.send(number % 4, b"\1\0" + FRAME)
        ports.settle()
        assert received == [(1, b"\1\1" + FRAME)] * 100
        if running.thrift_port:
            assert client.registers("seen") == [100]
            thrift = ThriftRegisters(running.thrift_port)
            thrift.write("I.seen", 0, 7)
            assert client.registers("seen") == [7]
            thrift.reset("I.seen")
            assert client.registers("seen") == [0]
            for wrong in (thrift.registers, thrift.reset, lambda name: thrift.write(name, 0, 1)):
                with pytest.raises(ControlError, match="BMv2 does not provide it through Thrift"):
                    wrong("nix")
        one, two = (Entry("deny", {"port": port}, Action("drop")) for port in (1, 2))
        client.insert(two)
        with pytest.raises(ControlError, match=r"insert 2 of 2, table deny .*ALREADY_EXISTS"):
            client.insert(one, two)
        assert len(client.entries("deny")) == 1  # all or none, though BMv2 has no atomic batches
        with pytest.raises(ControlError, match="delete 2 of 2"):
            client.delete(two, one)
        assert len(client.entries("deny")) == 1
        client.set_multicast_group(MulticastGroup(3, (Replica(1), Replica(2, 5))))
        client.set_multicast_group(MulticastGroup(3, (Replica(2),)))
        client.set_clone_session(CloneSession(4, (Replica(1),)))
        client.reset()
        assert client.entries("deny") == []
        client.set_multicast_group(MulticastGroup(3, ()))
    assert not [p for p in place.iterdir() if stat.S_ISSOCK(p.stat().st_mode)]


@needs_bmv2
def test_ports_on_veths_where_the_build_has_no_interface_of_its_own(program: Program, place: Path) -> None:
    received: list[tuple[int, bytes]] = []
    try:
        with (
            bmv2.running_bmv2(program, place, range(2), veths=True) as running,
            open_dataplane(running.platform_args, lambda port, data: received.append((port, data))) as ports,
        ):
            ports.send(0, b"\1\0" + FRAME)
            ports.send(1, b"\0\0" + FRAME)
            ports.settle()
    except FailedError as error:
        pytest.skip(f"veth interfaces cannot be made: {error}")
    assert sorted(received) == [(0, b"\0\1" + FRAME), (1, b"\1\1" + FRAME)]
    assert "p4g" not in " ".join(os.listdir("/sys/class/net"))


@needs_bmv2
def test_a_start_that_fails_tells_command_status_log_and_cause(
    program: Program, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / bmv2.SWITCH
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho error while loading shared libraries: libpi.so.0; exit 127\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
    with pytest.raises(FailedError) as caught, bmv2.running_bmv2(program, place, range(4)):
        pass
    story = str(caught.value)
    assert "simple_switch_grpc did not start: its installation is incomplete" in story
    assert "--grpc-server-addr unix:" in story
    assert "exit status 127; its log ends:\n    error while loading" in story


@needs_bmv2
def test_nothing_is_left_when_the_block_fails_or_its_process_is_killed(program: Program, place: Path) -> None:
    with pytest.raises(ZeroDivisionError), bmv2.running_bmv2(program, place, range(4)):
        raise ZeroDivisionError
    assert processes(place) == []
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from p4gen.switch.bmv2 import running_bmv2\n"
        "from p4gen.switch.running import Program\n"
        "with running_bmv2(Program(*map(Path, sys.argv[2:])), Path(sys.argv[1]), range(2)):\n"
        "    print('up', flush=True)\n"
        "    time.sleep(3600)\n"
    )
    files = [str(program.p4), str(program.p4info), str(program.json)]
    with subprocess.Popen([sys.executable, "-c", code, str(place), *files], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        parent.kill()
    until(lambda: processes(place) == [])


def processes(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if str(folder).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@needs_bmv2
def test_difftest_agrees_and_finds_a_fault_in_either_side(tmp_path: Path) -> None:
    small = ["--lanes", "8", "--window", "2", "--message", "2", "--groups", "2", "--fan-in", "4", "--ports", "8"]
    for more, passes in (([], True), (["--fault", "ttl-kept@bmv2"], True), (["--fault", "ttl-kept@embedded"], True)):
        command = [
            sys.executable,
            "-m",
            "p4gen",
            "difftest",
            *small,
            "--packets",
            "500",
            "--seed",
            "4",
            "--json",
            *more,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, timeout=4 * PATIENCE_S, check=False
        )
        assert done.returncode == (0 if passes else 1), done.stderr
        report = json.loads(done.stdout)
        assert (report["difference"] is None) == (not more)
        if more:
            assert len(report["reduced"]) == 1
            assert [Path(f).suffix for f in report["files"]] == [".pcap", ".stf", ".txt"]
    command = [sys.executable, "-m", "p4gen", "rerun", report["folder"]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "difftest" in done.stderr


# --- without BMv2 ---


@pytest.fixture
def no_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.usefixtures("no_tools")
def test_missing_tools_are_named() -> None:
    with pytest.raises(MissingToolError, match=r"target bmv2: simple_switch_grpc and p4c-bm2-ss are not on PATH"):
        bmv2.check_tools()
    assert bmv2.version() == "missing"


@pytest.mark.usefixtures("no_tools")
@pytest.mark.parametrize("verb", [["ptf", "--mode", "II", "--target", "bmv2"], ["difftest", "--mode", "II"]])
@pytest.mark.long
def test_both_verbs_say_in_one_line_what_is_missing(verb: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "p4gen", *verb]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE_S, check=False)
    assert done.returncode == 3
    assert done.stderr.strip().count("\n") == 0
    assert "not on PATH" in done.stderr


def test_a_packet_that_outgrew_its_room_is_told(tmp_path: Path) -> None:
    """BMv2 has ended, and its log says why; else the error is gRPC's."""
    for log, why in (("", "UNAVAILABLE"), (_ASSERTION, "a packet grew by more than the 512 bytes")):
        (tmp_path / "switch.log").write_text(log, encoding="utf-8")
        with Dataplane(f"unix:{tmp_path}/dp.sock", lambda _port, _frame: None) as ports:
            ports.send(0, bytes(64))
            with pytest.raises(FailedError, match=why):
                ports.settle()


_ASSERTION = "packet_buffer.h:82: char* bm::PacketBuffer::push(size_t): Assertion `data_size + bytes <= size' failed.\n"
