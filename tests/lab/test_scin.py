"""Labs of SCIN: collectives that the switch starts, every byte as NumPy has it, whatever happens to packets."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.labs.calls import CallOrder, members_of
from p4gen.papers.scin.ranks.calls import Drawn
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary.topology import load_topology

from .labs import BMV2, lab
from .traces import Traces

RIGHT = "every rank's result equals NumPy's"
SCRIPT = """\
run allreduce 64K repeat 2
run reduce 64K root 3 in_place no
run broadcast 64K root 1
run barrier
run reducescatter 64K
run allgather 64K in_place no
loss h1 5%
duplicate h2 2%
reorder h3 2%
corrupt h0 2%
run allreduce 64K
run allgather 64K
counters h1
heal
init pair h2 h0
run reduce 8K root 1 pair
move pair s0
run allreduce 8K pair
destroy pair
fail link h1 s0
restore link h1 s0
run barrier
fail link s0 h2 after 1ms for 300ms
run allreduce 64K repeat 20
groups
h0 ping h3
"""


@pytest.mark.long
def test_a_session(tmp_path: Path, machine: Traces, seed: int) -> None:
    done = lab(tmp_path, "star-4", "--mode", "scin", "--seed", str(seed), script=SCRIPT)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert said.count(RIGHT) == 12
    for text in (
        "type                   run allreduce 64K; run reduce 64K root 2",
        "allreduce of 65,536 bytes, 4 ranks, group all: s0 (root)",
        "barrier, 4 ranks, group all: s0 (root)",
        "out loss",
        "pair: s0 (root), 2 ranks",
        "pair: s0 (root), generation 2",
        "pair is gone",
        "group all is broken, generation 1: no path between h1 and s0: link h1-s0 is down",
        "group all is active, generation 2: s0 (root)",
        "s0-h2 is up",
        "3 packets transmitted, 3 received",
    ):
        assert text in said, text


PROGRAMS = [
    (),
    ("--dtype", "mxint8"),
    ("--dtype", "mxint8", "--exact", "int32", "--lanes", "32"),
    ("--dtype", "float32", "--completion", "ordered"),
    pytest.param(("--target", "bmv2"), marks=BMV2),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: "-".join(program) or "default")
@pytest.mark.long
def test_suite(program: tuple[str, ...], tmp_path: Path, machine: Traces, seed: int) -> None:
    done = lab(tmp_path, "star-4", "--mode", "scin", *program, "--suite", "--seed", str(seed), "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], len(report["steps"])) == (0, True, 7), done.stdout
    notes = {step["name"]: step["note"] for step in report["steps"]}
    assert "generation 2" in notes["a link cut under a collective, and restored"]


@pytest.mark.long
def test_scenarios(tmp_path: Path, machine: Traces, seed: int) -> None:
    asked = ("--collective", "reduce", "--root", "2", "--size", "60K", "--set", "in_place=no")
    faults = ("--loss", "5%@h0", "--ranks", "h3,h0,h2", "--repeat", "3")
    done = lab(tmp_path, "star-4", "--mode", "scin", *asked, *faults, "--seed", str(seed), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["passed"]
    assert {(call["collective"], call["size"], call["root"]) for call in report["calls"]} == {("reduce", 60 << 10, 2)}


@pytest.mark.long
def test_groups_over_a_tree_have_one_switch(tmp_path: Path, machine: Traces, seed: int) -> None:
    """Of three leaves' ranks the switch is above the leaves, which only forward; two ranks at one leaf need two."""
    script = "run allreduce 16K h0 h2 h4\nrun allreduce 16K h0 h1\nrun barrier h0 h1 h2 h3\nrun barrier h0 h1\n"
    done = lab(tmp_path, "leaf-spine", "--mode", "scin", "--seed", str(seed), script=script)
    assert done.returncode == 1
    assert done.stdout.count(RIGHT) == 3
    assert "switches between the ranks; programs of scin serve groups around one" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.long
def test_mistakes_are_told(tmp_path: Path, machine: Traces) -> None:
    script = """\
run alltoall 4K
run allreduce
run allreduce 10
run reducescatter 20
run reduce 4K root 7
run reduce 4K root x
run reduce 4K in_place perhaps
run barrier root 1
run allreduce 4K h1
resize all 16
fail switch s0
run allreduce 4K
restart switch s0
run allreduce 4K
"""
    done = lab(tmp_path, "star-4", "--mode", "scin", script=script)
    assert done.returncode == 1
    for text in (
        "'alltoall' is not a collective; there are allreduce, reduce, broadcast, barrier, reducescatter, allgather",
        "usage: run allreduce SIZE [in_place …] [HOST …|GROUP] [repeat N]",
        "allreduce of 10 bytes: it has to be a positive multiple of 4",
        "reducescatter of 20 bytes: it has to be a positive multiple of 16",
        "root: a rank such as 2, not 'x'",
        "in_place: must be one of yes, no, not 'perhaps'",
        "there is no host 'root'",
        "allreduce: at least two hosts are needed",
    ):
        assert text in done.stdout, text
    assert done.stdout.count(RIGHT) == 1
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ("--collective dispatch", "--collective dispatch goes with --mode multiwrite; scin_sum_int32_x64"),
        ("--collective allreduce --size 10", "it has to be a positive multiple of 4"),
        ("--lanes 8 --collective allreduce --size 256M", "8,388,608 packets; a call has 8,388,607 at most"),
        ("--collective allreduce --root 1", "allreduce has no option root; it has in_place"),
        ("--collective reduce --root 4", "root 4 is not a rank of this group of 4"),
        ("--collective allreduce --set in_place=maybe", "in_place: must be one of yes, no, not 'maybe'"),
        ("--waves 32 --suite", "NICs answer their 16 newest READs again: with losses 16 at most"),
        ("--measure", "--measure goes with programs that take part"),
    ],
)
def test_command_lines_that_are_refused(arguments: str, cause: str, tmp_path: Path) -> None:
    asked = ["lab", "star-4", "--mode", "scin", *arguments.split(), "--out", str(tmp_path)]
    done = CliRunner().invoke(cli, asked, standalone_mode=False)
    assert isinstance(done.exception, InputError | click.UsageError)
    assert cause in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_calls_are_the_familys() -> None:
    spec = ScinSpec(dtype="mxint8")
    call = CallOrder.of(spec, 4, "reduce", 4096, {"root": "3", "in_place": "no"})
    plan = call.plan(spec, 4)
    assert (call.size, call.root, plan.packets, plan.title) == (4096, 3, 0, "reduce of 4,096 bytes, 4 ranks")
    drawn = plan.draw(np.random.default_rng(1))
    assert isinstance(drawn, Drawn)
    assert (drawn.call.root, drawn.call.in_place, drawn.values[0].size * spec.unit_bytes) == (3, False, 4096)
    facet = members_of(spec)
    for asked in facet.samples(spec, 5, 10_000):
        assert CallOrder.of(spec, 5, *asked).plan(spec, 5).size <= 10_000
    fitted = facet.fitted(ScinSpec(), load_topology("star-8"))
    assert (fitted.contexts, fitted.edges) == (2 * 17, 8)  # two groups of all ranks
    assert facet.fitted(ScinSpec(contexts=7), load_topology("star-8")).contexts == 7
