"""However ``p4gen ptf`` is ended, it ends at once and leaves nothing: no process, no scratch folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import until

SMALL = [
    "--lanes", "8", "--window", "2", "--message", "2", "--groups", "2", "--fan-in", "4", "--ports", "8",
    "--seed", "1", "--out", "out",
]  # fmt: skip
VERBS = {
    "one program": ["run", *SMALL, "--fan-in", "32", "--ports", "32", "--test", "test_aggregation"],
    "programs side by side": ["run", "--matrix", "3", "--seed", "1", "--out", "out"],
    "faults": ["mutate", *SMALL],
}
TOLD = [
    ("one program", signal.SIGINT),
    ("programs side by side", signal.SIGTERM),
    ("programs side by side", signal.SIGHUP),
    ("faults", signal.SIGTERM),
    ("faults", signal.SIGINT),
]


@pytest.fixture
def place() -> Iterator[Path]:
    """The folder for temporary files, which makes what belongs to this test known by its environment."""
    with tempfile.TemporaryDirectory(prefix="e") as name:
        yield Path(name)


def start(verb: str, place: Path) -> subprocess.Popen[str]:
    """``p4gen ptf``, with scenarios under way."""
    (place / "tmp").mkdir()
    command = [sys.executable, "-m", "p4gen", "ptf", *VERBS[verb]]
    process = subprocess.Popen(
        command, cwd=place, env={**os.environ, "TMPDIR": str(place / "tmp")}, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    until(lambda: process.poll() is not None or workers(process, place), poll=0.1)
    assert process.poll() is None, process.communicate()[1]
    return process


def workers(process: subprocess.Popen[str], place: Path) -> list[int]:
    """The processes that carry scenarios out: PTF's, once it has ports; where faults are judged, forks of ours."""
    if running("mutate", place):
        return [worker for worker in running("mutate", place) if worker != process.pid]
    # Folders come and go meanwhile: os.walk passes over what is gone, Path.rglob raises.
    has_ports = any("ptf.pcap" in files for _, _, files in os.walk(place))
    return running("p4gen.ptf.child", place) if has_ports else []


def running(what: str, place: Path) -> list[int]:
    """The processes with the environment of this test that have ``what`` in their command."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (
                    f"TMPDIR={place}/tmp".encode() in (entry / "environ").read_bytes()
                    and what.encode() in (entry / "cmdline").read_bytes()
                ):
                    found.append(int(entry.name))
            except OSError:
                continue  # it has ended, or is nobody's of ours
    return found


def left(place: Path) -> list[object]:
    return [*running("", place), *(place / "tmp").iterdir()]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("verb", "number"), TOLD)
@pytest.mark.long
def test_told_to_end_it_does_not_wait_for_scenarios(verb: str, number: signal.Signals, place: Path) -> None:
    with start(verb, place) as process:
        for child in workers(process, place):
            os.kill(child, signal.SIGSTOP)  # none of its scenarios will come to an end
        process.send_signal(number)
        _, said = process.communicate()
    assert said == f"p4gen: ended by {number.name}\n"
    assert process.returncode == -number
    assert left(place) == []


@pytest.mark.long
def test_a_signal_while_it_forks_is_not_lost(place: Path) -> None:
    """Python loses exceptions that are raised in hooks of ``os.fork``, among others by handlers of signals."""
    told_in_hook = (
        "import os, signal\n"
        "from p4gen.cli import main\n"
        "os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGTERM))\n"
        "main()\n"
    )
    command = [sys.executable, "-c", told_in_hook, "ptf", "mutate", *SMALL]
    (place / "tmp").mkdir()
    ended = subprocess.run(
        command,
        cwd=place,
        env={**os.environ, "TMPDIR": str(place / "tmp")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == "p4gen: ended by SIGTERM\n"
    assert ended.returncode == -signal.SIGTERM
    assert left(place) == []


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.long
def test_killed_it_leaves_nothing_either(verb: str, place: Path) -> None:
    with start(verb, place) as process:
        process.kill()
    until(lambda: left(place) == [], poll=0.1)


@pytest.mark.long
def test_a_second_signal_waits_for_nothing(place: Path) -> None:
    with start("programs side by side", place) as process:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.wait()
    assert process.returncode in {-signal.SIGTERM, -signal.SIGINT}
    until(lambda: left(place) == [], poll=0.1)


@pytest.mark.parametrize("victim", ["p4gen.ptf.child", "\0switch\0"])
@pytest.mark.long
def test_a_run_goes_on_when_a_child_is_killed(victim: str, place: Path) -> None:
    """The run ends by itself, as failed: nothing waits for what will not come."""
    with start("one program", place) as process:
        (child,) = running(victim, place)
        os.kill(child, signal.SIGKILL)
        process.communicate()
    assert process.returncode == 1
    assert left(place) == []


@pytest.mark.long
def test_an_ignored_hangup_stays_ignored(place: Path) -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = start("one program", place)
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        process.send_signal(signal.SIGHUP)
        process.communicate()
    assert process.returncode == 0
