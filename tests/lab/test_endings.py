"""However a lab ends, nothing of it is left (the ``machine`` fixture looks), and whoever waits is told why."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from .labs import SMALL, children, command, inner_process, lab, start, wait_until_up
from .traces import Traces

LONG = ("star-4", *SMALL, "--collective", "allreduce", "--size", "4M", "--repeat", "1000")


@pytest.mark.long
def test_a_prompt_that_ends(tmp_path: Path, machine: Traces) -> None:
    done = lab(tmp_path, "star-4", *SMALL, script="groups\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no groups" in done.stdout
    assert list((tmp_path / "lab").iterdir()) == []


@pytest.mark.long
def test_no_standard_input_at_all(tmp_path: Path, machine: Traces) -> None:
    words = [*command(tmp_path, "star-4", *SMALL)]
    done = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "star-4 is up" in done.stdout


@pytest.mark.long
def test_a_full_disk(tmp_path: Path, machine: Traces) -> None:
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", full], check=True)
    try:
        done = lab(full, "star-4", *SMALL, "--collective", "barrier")
    finally:
        subprocess.run(["umount", "-l", full], check=True)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
@pytest.mark.long
def test_signals_in_the_middle_of_a_run(number: signal.Signals, status: int, tmp_path: Path, machine: Traces) -> None:
    process = start(tmp_path, *LONG)
    wait_until_up(tmp_path, process)
    time.sleep(0.5)
    os.killpg(process.pid, number)  # as a terminal does
    said = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == status, said
    assert "Traceback" not in said


def test_the_launcher_is_killed(tmp_path: Path, machine: Traces) -> None:
    process = start(tmp_path, *LONG)
    wait_until_up(tmp_path, process)
    assert machine.found()  # or the fixture would see nothing whatever happened
    process.kill()
    process.wait()
    machine.check()
    assert not (tmp_path / "lab" / "manager").exists()


@pytest.mark.long
def test_the_inner_process_is_killed(tmp_path: Path, machine: Traces) -> None:
    process = start(tmp_path, *LONG)
    wait_until_up(tmp_path, process)
    os.kill(inner_process(process), signal.SIGKILL)
    said = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 1
    assert "the lab's first process was killed" in said


@pytest.mark.long
def test_both_are_killed_and_the_next_lab_tidies_up(tmp_path: Path, machine: Traces) -> None:
    process = start(tmp_path, *LONG)
    wait_until_up(tmp_path, process)
    inner = inner_process(process)
    process.send_signal(signal.SIGSTOP)
    os.kill(inner, signal.SIGKILL)
    process.kill()
    process.wait()
    done = lab(tmp_path, "star-4", *SMALL, script="")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_a_closed_terminal(tmp_path: Path, machine: Traces) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *command(tmp_path, "star-4", *SMALL)],
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    said = _read_until(ours, b"lab> ")
    assert b"p4gen top" in said
    os.write(ours, b"h0 pong\n")
    # Python's prompt does not notice a Ctrl-C that comes between its last look and its wait for a key.
    _read_until(ours, b"exit or Ctrl-D", typed=b"\x03")
    os.close(ours)
    process.wait(PATIENCE_S)


def _read_until(terminal: int, text: bytes, typed: bytes = b"") -> bytes:
    """What a terminal shows, to the end of ``text``. ``typed`` is typed first, and again whenever nothing follows."""
    said = b""
    deadline = time.monotonic() + PATIENCE_S
    while text not in said:
        os.write(terminal, typed)
        while text not in said and select.select([terminal], [], [], 5)[0]:
            said += os.read(terminal, 4096)
        assert time.monotonic() < deadline, said
    return said


@pytest.mark.long
def test_a_switch_that_does_not_start_is_named_with_its_cause(
    tmp_path: Path, machine: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    lines = [
        "import sys",
        "if any('/s1.sock' in word for word in sys.orig_argv):",
        "    sys.exit('Cannot allocate memory')",
    ]
    (broken / "sitecustomize.py").write_text("\n".join(lines))
    monkeypatch.setenv("PYTHONPATH", str(broken))
    done = lab(tmp_path, "tree-3-2", *SMALL)
    assert done.returncode == 1
    for said in ("switch s1 did not start: there is not enough memory", "command: ", "exit status 1; its log ends:"):
        assert said in done.stderr
    assert "s2" not in done.stderr.partition("command")[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("which", ["the manager", "host h1", "switch s0"])
@pytest.mark.long
def test_a_run_does_not_wait_for_the_dead(which: str, tmp_path: Path, machine: Traces) -> None:
    process = start(tmp_path, *LONG, "--deadline", str(10 * PATIENCE_S))
    wait_until_up(tmp_path, process)
    (log,) = tmp_path.glob("runs/*/manager.log")
    while "InitGroup all: done" not in log.read_text():
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(_part(inner_process(process), which), signal.SIGKILL)
    said = process.communicate(timeout=PATIENCE_S)[0]  # its deadline is far off
    assert process.returncode == 1
    assert f"error: {which} has ended" in said
    assert "killed by SIGKILL" in said
    assert "  log: " in said


def _part(inner: int, which: str) -> int:
    """The process of a lab that is its manager, or one of its nodes: its errors go to a log of its own."""
    place = "/manager.log" if which == "the manager" else f"/{which.split()[1]}/"
    found: list[int] = []

    def looked() -> bool:
        for each in children(inner):
            with contextlib.suppress(FileNotFoundError):  # it has just ended
                if place in str(Path(f"/proc/{each}/fd/2").readlink()):
                    found.append(each)
        return bool(found)

    until(looked)
    (process,) = found
    return process


@pytest.mark.long
def test_a_manager_that_comes_back_knows_its_groups(tmp_path: Path, machine: Traces) -> None:
    script = "run allreduce 4K\nfail manager\ngroups\nrestart manager\ngroups\nrun allreduce 4K\nmove all\n"
    done = lab(tmp_path, "star-4", *SMALL, script=script + "run reduce 4K\n")
    assert done.returncode == 1  # since groups had nobody to ask
    assert done.stdout.count("error: ") == 1, done.stdout
    assert "error: the manager has ended" in done.stdout
    assert done.stdout.count("every rank's result equals NumPy's") == 3
    assert "generation 2" in done.stdout  # not 1: it is the same group


@pytest.mark.long
def test_the_rest_of_a_lab_whose_switch_dies_goes_on(tmp_path: Path, machine: Traces) -> None:
    script = "run allreduce 4K\nfail switch s0\nnet\nrestart switch s0\nrun allreduce 4K\n"
    done = lab(tmp_path, "star-4", *SMALL, script=script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "dead" in done.stdout
    assert done.stdout.count("every rank's result equals NumPy's") == 2
