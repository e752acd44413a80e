"""Labs whose hosts are virtual machines with Linux Soft-RoCE: they need QEMU and images (``p4gen softroce build``)."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
from patience import until

from .labs import BMV2, lab, start, wait_until_up
from .traces import MARK, Traces

ROOT = Path(__file__).parents[2]
PROGRAM = """
import numpy as np, p4gen
with p4gen.join(timeout=300) as group:
    print(group.all_reduce(np.full(3, group.rank + 1, np.int32)))
"""
RIGHT = "every rank's result equals NumPy's"


@pytest.mark.long
@pytest.mark.parametrize("target", ["embedded", pytest.param("bmv2", marks=BMV2)])
@pytest.mark.parametrize("mode", ["I", "II", "III", "scin", "multiwrite"])
def test_the_suite_passes_between_guests(tmp_path: Path, guests: Traces, mode: str, target: str) -> None:
    words = ("--mode", mode, "--target", target, "--hosts", "softroce", "--suite", "--seed", "1")
    done = lab(tmp_path, "star-2", *words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_the_suite_passes_over_connections_of_guests(tmp_path: Path, guests: Traces) -> None:
    words = ("--mode", "themis", "--hosts", "softroce", "--suite", "--seed", "1")
    done = lab(tmp_path, "clos:2x2x2", *words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("ip", ["4", "6", "both"])
def test_a_guest_and_a_host_of_p4gen_are_ranks_of_one_group(tmp_path: Path, guests: Traces, ip: str) -> None:
    script = (
        "run allreduce 16K repeat 2\nloss all 1%\nrun reduce 16K root 1\nheal\nrun broadcast 16K root 1\ncounters h0\n"
    )
    done = lab(tmp_path, "star-2", "--mode", "III", "--ip", ip, "--hosts", "h0=softroce", script=script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(RIGHT) == 3
    assert re.search(r"^device: .*sent_pkts [\d,]+", done.stdout, re.MULTILINE)


@pytest.mark.long
def test_commands_run_in_the_guest(tmp_path: Path, guests: Traces) -> None:
    script = "h0 uname -n\nh0 ibv_devinfo -d rxe0\nh1 cat /proc/1/comm\nh0 ping h1\nh1 sh -c 'exit 7'\n"
    done = lab(tmp_path, "star-2", "--mode", "III", "--hosts", "softroce", script=script)
    assert done.returncode == 1
    said = done.stdout
    assert "\nh0\n" in said
    assert "state:\t\t\tPORT_ACTIVE" in said
    assert "\nsh\n" in said
    assert "3 packets transmitted, 3 received, 0% packet loss" in said
    assert said.count("exit status") == 1
    assert "h1: exit status 7" in said


@pytest.mark.long
def test_programs_run_in_guests_and_beside_them(
    tmp_path: Path, guests: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    words = ("--hosts", "h0=softroce", "--loss", "1%@h0", "--seed", "1", "--deadline", "1000")
    measure = "p4gen host --group more -b 4K -e 8K --repeat 2 --timeout 300"
    command = f"test -f pyproject.toml && python -c '{PROGRAM}' && {measure}"  # in the working directory
    done = lab(tmp_path, "star-2", "--mode", "III", *words, "--exec", command)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in (0, 1):
        assert f"[{rank}] [3 3 3]\n" in done.stdout
    assert "[1] rank 1 (h1): 0 wrong results" in done.stdout


@pytest.mark.long
def test_a_guest_that_is_killed_in_a_call_is_told_of_with_its_console(tmp_path: Path, guests: Traces) -> None:
    process = start(tmp_path, "star-2", "--mode", "III", "--hosts", "softroce")
    wait_until_up(tmp_path, process)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("run allreduce 4K\nrun allreduce 8M\n")
    process.stdin.flush()
    while RIGHT not in (line := process.stdout.readline()):
        assert line, "the lab has ended"
    time.sleep(2)  # the second call takes many times that
    os.kill(_qemu(guests, "h1"), signal.SIGKILL)
    process.stdin.write("run allreduce 4K h0\nh0 true\nexit\n")
    said = process.communicate()[0]
    assert process.returncode == 1
    assert "host h1 has ended" in said
    assert "QEMU has ended with status -9; the guest's console" in said
    assert "p4gen: Linux 6.12" in said.partition("QEMU has ended")[2]
    assert "h0: exit status" not in said


@pytest.mark.long
def test_labs_with_guests_leave_nothing(tmp_path: Path, guests: Traces) -> None:
    for _ in range(3):
        done = lab(tmp_path, "star-2", "--mode", "II", "--hosts", "softroce", script="run barrier\n")
        assert done.returncode == 0, done.stdout + done.stderr
        guests.check()
    process = start(tmp_path, "star-2", "--mode", "II", "--hosts", "softroce")
    until(lambda: _qemu(guests, "h0"))
    process.send_signal(signal.SIGTERM)  # while its guests start
    process.communicate()
    guests.check()


def _qemu(guests: Traces, host: str) -> int:
    """The process of a host's guest, as this machine sees it; 0 if there is none."""
    mark, name = f"{MARK}={guests.mark}".encode(), f"p4gen.name={host} ".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if name in (entry / "cmdline").read_bytes() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    return int(entry.name)
            except OSError:
                continue
    return 0
