"""Labs of ATP: calls of CommLib's kind, made of sums, every element as NumPy has it, whatever happens to packets but
damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from .labs import BMV2, lab
from .test_switchml import RIGHT, SCRIPT
from .traces import Traces

TARGETS = ["embedded", pytest.param("bmv2", marks=BMV2)]
RACKS = """\
loss h0 2%
loss h3 2%
run allreduce 64K repeat 2
heal
init pair h3 h1
run allreduce 8K repeat 3 pair
init local h2 h3 root s1
destroy pair
restart switch s1
run allreduce 64K
fail manager
run allreduce 64K
restart manager
run allreduce 64K
"""
SPINES = """\
fail link leaf3 spine0 after 50ms
run allreduce 256K repeat 3
restore link leaf3 spine0
run allreduce 64K
"""


def test_a_session(tmp_path: Path, machine: Traces, seed: int) -> None:
    done = lab(tmp_path, "star-4", "--mode", "atp", "--seed", str(seed), script=SCRIPT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(RIGHT) == 12, done.stdout


@pytest.mark.parametrize("target", TARGETS)
def test_two_racks(tmp_path: Path, machine: Traces, seed: int, target: str) -> None:
    done = lab(tmp_path, "tree-3-2", "--mode", "atp", "--seed", str(seed), "--target", target, script=RACKS)
    assert done.stdout.count(RIGHT) == 5, done.stdout + done.stderr
    assert "s1 is not the switch of h3, the last rank, which has the server: s2 is" in done.stdout + done.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_suite(machine: Traces, tmp_path: Path, target: str) -> None:
    done = lab(tmp_path, "star-4", "--mode", "atp", "--server", "worker", "--suite", "--target", target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss, duplication and reordering" in done.stdout


def test_groups_go_on_by_the_other_spine(machine: Traces, tmp_path: Path, seed: int) -> None:
    done = lab(tmp_path, "leaf-spine", "--mode", "atp", "--seed", str(seed), script=SPINES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(RIGHT) == 2, done.stdout


def test_jobs_share_few_aggregators(machine: Traces, tmp_path: Path, seed: int) -> None:
    groups = ("--ranks", "h0,h1,h2,h3", "--ranks", "h3,h2,h1,h0", "--ranks", "h1,h3,h0", "--aggregators", "8")
    calls = ("--collective", "allreduce", "--size", "16K", "--repeat", "4", "--loss", "1%", "--seed", str(seed))
    done = lab(tmp_path, "tree-3-2", "--mode", "atp", *groups, *calls)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(RIGHT) == 3, done.stdout


def test_what_is_refused(tmp_path: Path) -> None:
    for arguments, cause in (
        (("star-4", "--collective", "allreduce", "--corrupt", "1%"), "takes corrupt packets for right ones"),
        (("star-4", "--collective", "barrier", "--ranks", "h0"), "two ranks at least"),
    ):
        done = lab(tmp_path, *arguments, "--mode", "atp")
        assert done.returncode != 0, done.stdout
        assert cause in done.stdout + done.stderr
