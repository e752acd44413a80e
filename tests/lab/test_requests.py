"""Requests at the prompt that ask too much, or for what is not there now: they are refused, bounded, or done all the
same, and what is there stays."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from patience import PATIENCE_S

from .labs import SMALL, command, lab
from .traces import Traces

RIGHT = "every rank's result equals NumPy's"


@pytest.mark.long
def test_a_call_that_is_too_large_touches_nothing(tmp_path: Path, machine: Traces) -> None:
    script = "run allreduce 4K\nrun allreduce 100G\nrun barrier repeat 999999999999\ngroups\nrun allreduce 4K\n"
    done = lab(tmp_path, "star-4", *SMALL, script=script)
    assert done.returncode == 1
    assert done.stdout.count("error: ") == 2
    assert "so 268435456 bytes are the limit" in done.stdout
    assert "repeat must be a number of at most 5 digits" in done.stdout
    assert "all    active  1 " in done.stdout
    assert done.stdout.count(RIGHT) == 2
    assert "is destroyed" not in done.stdout


@pytest.mark.long
def test_runs_go_on_without_the_manager(tmp_path: Path, machine: Traces) -> None:
    script = "run allreduce 4K\nfail manager\nrun allreduce 64K repeat 2\nrun reduce 4K all root 1\nrun barrier h0 h1\n"
    done = lab(tmp_path, "tree-3-2", *SMALL, script=script + "restart manager\nrun barrier h0 h1\n")
    assert done.returncode == 1
    assert "groups stay as they are, and run works on them" in done.stdout
    assert done.stdout.count("error: ") == 1, done.stdout
    assert "error: the manager is dead, and a new group needs it; existing groups: all (h0 h1 h2 h3)" in done.stdout
    assert done.stdout.count(RIGHT) == 4


@pytest.mark.long
def test_mode_iii_needs_the_managers_ticks_and_says_so(tmp_path: Path, machine: Traces) -> None:
    script = "run allreduce 4K\nfail manager\nrun reduce 4K all root 1\nrestart manager\nrun reduce 4K all root 1\n"
    done = lab(tmp_path, "star-4", *SMALL, "--mode", "III", script=script)
    assert done.returncode == 1
    assert "get no ticks, which their calls need, so run has to wait" in done.stdout
    assert done.stdout.count("error: ") == 1, done.stdout
    assert (
        "error: the manager is dead, and its agents send the ticks that this mode needs: restart manager" in done.stdout
    )
    assert done.stdout.count(RIGHT) == 2
    assert "generation 2" not in done.stdout  # the group is the one that there was


@pytest.mark.long
def test_tracing_is_set_and_unset_and_everybody_is_told(tmp_path: Path, machine: Traces) -> None:
    script = (
        "run allreduce 4K\ntrace s0 1000 ticks\ntrace s0 1000 ticks\nnet\ngroups\ncounters s0\nrun allreduce 4K\n"
        "trace s0 1000 ticks\nloss h0 100%\nrun allreduce 4K\nheal\n"
        "trace s0 off\ntrace s0 off\nnet\nrun allreduce 4K\n"
    )
    done = lab(tmp_path, "star-4", *SMALL, "--deadline", "20", script=script)
    assert done.returncode == 1
    before, _, after = done.stdout.partition("lab> heal")
    told = "s0 is traced, packet by packet, which makes it many times slower: trace s0 off ends it"
    first, _, late = before.partition("lab> loss h0 100%")
    assert first.count(told) >= 3  # net, groups, counters
    assert "s0 is traced: the figures are those of a switch without batches" in first
    assert told in late  # when a call times out
    assert "group all is destroyed: its ranks are out of step" in late
    assert "s0 does not trace" in after
    assert "is traced" not in after
    assert after.count(RIGHT) == 1


@pytest.mark.long
def test_a_policy_is_the_managers(tmp_path: Path, machine: Traces) -> None:
    arguments = ["--collective", "barrier", "--policy", "lowest-common-switch", *SMALL]
    done = lab(tmp_path, "star-4", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    done = lab(tmp_path, "star-4", "--collective", "barrier", "--policy", "p4gen.plan.placement.policy:nothing", *SMALL)
    assert done.returncode == 2
    assert "placement policy 'p4gen.plan.placement.policy:nothing'" in done.stderr


class Terminal:
    """A lab at a terminal's prompt."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._said = descriptor, b""

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def until(self, text: str) -> str:
        """What is said up to ``text``, from where the last call has left off."""
        while text.encode() not in self._said:
            assert select.select([self._descriptor], [], [], 120)[0], self._said
            self._said += os.read(self._descriptor, 4096)
        before, _, self._said = self._said.partition(text.encode())
        return before.decode()


@contextmanager
def terminal(folder: Path) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *command(folder, "star-4", *SMALL)],
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Terminal(ours)
    finally:
        os.close(ours)
        process.wait(PATIENCE_S)


@pytest.mark.long
def test_at_a_terminal_pings_end_and_runs_show_how_far_they_are(tmp_path: Path, machine: Traces) -> None:
    with terminal(tmp_path) as ours:
        ours.until("lab> ")
        ours.type("h0 ping h3\n")
        assert "3 packets transmitted" in ours.until("packet loss")
        ours.until("lab> ")
        ours.type("h0 ping -c 100000 h3\n")
        ours.until("icmp_seq=2")
        ours.type("\x03")
        ours.until("packet loss")
        ours.until("lab> ")
        ours.type("run allreduce 256K repeat 20\n")
        shown = ours.until("equals NumPy's")
        assert "allreduce 0 of 20" in shown  # the rest may be over before it is drawn
        assert "%" in shown
