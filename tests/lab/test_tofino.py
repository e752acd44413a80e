"""Labs of programs for Tofino: groups of what these serve, faults that they withstand, ports, traces, counters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .labs import lab
from .traces import Traces

SMALL = ("--lanes", "8", "--window", "8", "--message", "2")
SCRIPT = """\
run allreduce 16K repeat 2
run reduce 8K root 2
run reducescatter 16K
run barrier
net
counters s0
counters h1
h0 ping h3
trace s0 2 data
run allreduce 1K
trace s0 off
loss all 2%
run allreduce 32K
heal
drops
groups
top
"""


@pytest.mark.long
def test_a_session(tmp_path: Path, machine: Traces) -> None:
    done = lab(tmp_path, "star-4", "--arch", "t2na", *SMALL, "--seed", "5", script=SCRIPT)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert said.count("every rank's result equals NumPy's") == 6
    for text in (
        "0:h0  1:h1  3:h2  4:h3",  # Tofino 2's port 2 is the CPU's
        "contexts 5 of 5",
        "3 packets transmitted, 3 received",
        "ingress parser of pipe 0",
        "IncIngress.check_duplicate.owners[",
        "… 7 more lanes",
        "all: loss 0.02, each way",
    ):
        assert text in said, text
    (trace,) = tmp_path.rglob("trace.txt")
    assert "lane_7" in trace.read_text()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("arch", "faults"), [("t2na", "loss, duplication and reordering"), ("tna", "loss and duplication")]
)
@pytest.mark.long
def test_the_suite_has_what_the_program_serves_and_withstands(
    arch: str, faults: str, tmp_path: Path, machine: Traces
) -> None:
    done = lab(tmp_path, "tree-3-2", "--arch", arch, *SMALL, "--suite", "--json", "--seed", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    steps = json.loads(done.stdout)["steps"]
    assert next(step["name"] for step in steps if "under" in step["name"]) == f"all collectives under {faults}"
    assert not any(step["problem"] for step in steps)


@pytest.mark.long
def test_another_collective_is_refused_and_the_group_goes_on(tmp_path: Path, machine: Traces) -> None:
    script = "run allreduce 4K\nrun broadcast 4K\nrun allreduce 4K\n"
    done = lab(tmp_path, "star-4", "--arch", "t2na", *SMALL, "--seed", "5", script=script)
    assert done.returncode == 1
    assert done.stdout.count("every rank's result equals NumPy's") == 2
    assert "t2na programs lack broadcast: CombineAcks needs" in done.stdout + done.stderr
