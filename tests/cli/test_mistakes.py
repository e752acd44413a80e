"""What is wrong with a command line is said in one style, in a line or two, and before anything is made."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from p4gen.cli.app import main

ECHO = Path(__file__).parents[1] / "switch" / "echo.p4"
STYLE = re.compile(r"^(\S+|p4gen( [a-z]+){1,2}|\S+:\d+:\d+): error: \S")


def p4gen(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4gen", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["biuld"], "p4gen: error: there is no command 'biuld'; did you mean 'build'?"),
        (["build", "--laness", "8"], "p4gen build: error: no such option '--laness'; did you mean '--lanes'?"),
        (["build", "--mode", "IIII"], "did you mean 'III'?"),
        (["build", "--op", "sun"], "did you mean 'sum'?"),
        (["sim", "star-4", "--engine", "jitt"], "--engine: error: 'jitt' is not one of 'interp', 'jit'; did you mean"),
        (["sim", "sweeep", "size", "star-4"], "p4gen sim: error: there is no command 'sweeep'; did you mean 'sweep'?"),
        (["ptf", "mutat"], "p4gen ptf: error: there is no command 'mutat'; did you mean 'mutate'?"),
        (["bench", "wires"], "p4gen bench: error: there is no command 'wires'; did you mean 'wire'?"),
        (["sim"], "p4gen sim run: error: missing argument 'TOPOLOGY'"),
        (
            ["sim", "sweep"],
            "p4gen sim sweep: error: missing argument 'size|loss|links'. Choose from: size, loss, links",
        ),
        (["sim", "sweep", "size", "star-4", "--ladder", "x.svg"], "sweep: error: no such option '--ladder'"),
        (["sim", "run", "star-4", "--values", "1"], "p4gen sim run: error: no such option '--values'"),
        (["ptf", "mutate", "--test", "test_order"], "p4gen ptf mutate: error: no such option '--test'"),
        (["bench", "net", "--packets", "9"], "p4gen bench net: error: no such option '--packets'"),
        (["topo", "star4"], "did you mean 'star-4'?"),
        (["topo", "--svg", "star.svg"], "--svg draws a topology: name one"),
        (["run"], "p4gen run: error: missing argument"),
        (["switch", "--ports", "4"], "p4gen switch: error: --ports counts the sockets that --unix makes"),
        (["switch", "--grpc-server-addr", "127.0.0.1:65536"], "a port is a number from 0 to 65535"),
        (["manager", "--listen", "127.0.0.1:99999"], "a port is a number from 0 to 65535"),
        (["manager", "--listen", "nowhere"], "--listen: error: address 'nowhere': say HOST:PORT"),
        (["manager", "--listen", "unix:/tmp/" + "x" * 200], "too long for a socket's address (107 bytes)"),
        (["manager", "--tick-interval", "nan"], "--tick-interval: error: 'nan' is not a finite number"),
        (["top", "--once", "--manager", "127.0.0.1:70000"], "a port is a number from 0 to 65535"),
        (["sim", "star-4", "--timeout", "1ps"], "--timeout: error: a retransmission timer must be at least 1us"),
        (["sim", "star-4", "--loss", "1%", "--burst", "nan"], "--burst: error: 'nan' is not a finite number"),
        (["sim", "star-4", "--loss", "1%", "--burst", "inf"], "--burst: error: "),
        (["sim", "star-4", "--burst", "3"], "--burst: error: is the length of bursts of loss"),
        (["sim", "star-4", "--size", "100G"], "so 2147483648 bytes are the limit"),
        (["sim", "star-4", "--size", "9" * 5000], "--size: error: '9999"),
        (["sim", "star-4", "--loss", "nan"], "--loss: error: 'nan' is not a share"),
        (["sim", "star-4", "--script", "drop 1 UP_DATA of rank 9"], "there is no rank 9; there are 0 to 3"),
        (["sim", "star-4", "--seed", "-1"], "--seed: error: "),
        (["build", "--lanes", "9" * 9000], "must be 8, 16, 32, 64, 128, 256, 512 or 1024"),
        (["build", "x" * 5000], "cannot read: File name too long"),
        (["topo", "x" * 5000], "neither a file nor a topology"),
        (["build", "--" + "x" * 9000], "no such option"),
        (["run", str(ECHO), "--packet", "70000:ff"], "--packet: error: 70000:ff: ports are numbered from 0 to "),
        (["run", str(ECHO), "--packet", "0:" + "ff" * 65536], "a packet has 65,535 bytes at most"),
        (["run", "/dev/zero", "--packet", "0:ff"], "/dev/zero: error: "),
        (["rerun", "."], "not the folder of a run"),
    ],
    ids=lambda value: " ".join(word[:20] for word in value) if isinstance(value, list) else "",
)
def test_a_mistake_and_what_is_said_of_it(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["p4gen", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    lines = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2, lines
    assert 1 <= len(lines) <= 2
    assert STYLE.match(lines[0]), lines[0]
    assert said in lines[0]
    assert max(map(len, lines)) < 1000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["manager --listen", "switch --grpc-server-addr"])
def test_an_address_that_is_taken_is_told_of_once(verb: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = p4gen(*verb.split(), address, folder=tmp_path)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if not line.startswith("[")]  # our own log's
    cause = "the address is in use, or does not belong to this machine"
    assert lines == [f"p4gen: error: cannot listen at {address}: {cause}"]


@pytest.mark.long
def test_a_script_that_never_matches_is_told(tmp_path: Path) -> None:
    script = "drop the 900th UP_DATA of rank 2"
    arguments = ["sim", "star-4", "--lanes", "16", "--size", "4K", "--seed", "1", "--engine", "interp"]
    done = p4gen(*arguments, "--script", script, folder=tmp_path)
    assert done.returncode == 1, done.stderr
    assert f"'{script}' dropped nothing: there were 64 packets of its kind" in done.stdout
    assert p4gen(*arguments, "--script", "drop the 64th UP_DATA of rank 2", folder=tmp_path).returncode == 0


def test_output_that_nobody_reads(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m p4gen schema | true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


HEAVY = {
    "numpy", "numba", "llvmlite", "grpc", "google.protobuf", "scapy", "jinja2", "rich", "yaml", "highspy", "networkx",
}  # fmt: skip
"""Packages that take long to load."""


def loaded(*arguments: str, folder: Path) -> set[str]:
    """The modules that are loaded when an input is refused."""
    script = "import atexit, sys; from p4gen.cli.app import main; atexit.register(lambda: print(*sys.modules)); main()"
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert STYLE.match(done.stderr), done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "line",
    [
        "build no.yaml",
        "check no.p4",
        "sim no.yaml --mode II",
        "lab star-4 no.yaml",
        "ptf run no.yaml",
        "verify no.yaml",
    ],
)
def test_a_missing_file_is_refused_before_anything_is_loaded(line: str, tmp_path: Path) -> None:
    found = loaded(*line.split(), folder=tmp_path)
    assert "p4gen.cli.app" in found
    assert not found & {"numpy", "pydantic", "p4gen.families", "p4gen.p4"}


@pytest.mark.parametrize(
    "line",
    [
        "build",
        "sim",
        "sim traffic",
        "sim sweep",
        "ptf",
        "ptf list",
        "ptf mutate",
        "verify",
        "verify faults",
        "difftest",
        "lab",
        "switch",
        "manager",
        "flow",
        "flow confirm",
        "route",
        "route tree",
        "route confirm",
        "bench program",
        "bench net",
        "bench wire",
        "bench flow",
        "bench route",
        "paper",
        "top",
        "topo",
    ],
)
def test_a_wrong_flag_is_refused_before_anything_is_loaded(line: str, tmp_path: Path) -> None:
    found = loaded(*line.split(), "--mdoe", "III", folder=tmp_path)
    assert not {
        name for name in found if name in HEAVY or name.startswith(("p4gen.p4.", "p4gen.program", "p4gen.model"))
    }


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("verify star-2 --mode themis --collective broadcast", "--collective"),
        ("sim star-4 --mode multiwrite --concurrent 2", "--concurrent"),
    ],
)
def test_errors_name_the_flag_that_was_given(line: str, flag: str, tmp_path: Path) -> None:
    done = p4gen(*line.split(), folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{flag}: error: ")


@pytest.mark.parametrize(
    "line",
    [
        "sim star-4 --loss 1%@h9",
        "sim star-4 --down h9-s0@1us-2us",
        "sim traffic clos:2x2x2 --loss 1%@h9",
        "sim star-4 --mode scin --loss 1%@h9",
        "sim star-4 --size 1T",
        "sim star-4 --size nan",
        "lab star-4 --ranks h0,h9",
    ],
)
def test_sizes_and_places_are_refused_before_a_program_is_built(line: str, tmp_path: Path) -> None:
    found = loaded(*line.split(), folder=tmp_path)
    assert "p4gen.program" in found
    assert "p4gen.model.jit" not in found
    assert not list(tmp_path.iterdir())
