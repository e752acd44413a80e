"""Labs of MultiWrite: AllGather and dispatch at the prompt, every byte as NumPy has it, whatever happens to packets."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import numpy as np
import pytest
from click.testing import CliRunner
from patience import until

from p4gen.cli.app import cli
from p4gen.errors import FailedError, InputError
from p4gen.labs.calls import CallOrder, members_of
from p4gen.labs.network.impairments import check_withstood
from p4gen.labs.parties import Party
from p4gen.labs.prompt.prompt import Prompt
from p4gen.labs.prompt.terminal import Session
from p4gen.labs.runs.run import Run
from p4gen.labs.session import Lab
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary.program import Icrc
from p4gen.vocabulary.topology import load_topology

from .labs import BMV2, lab
from .traces import Traces

RIGHT = "every rank's result equals NumPy's"
SCRIPT = """\
run allgather 64K repeat 2
run dispatch tokens 16
loss h1 5%
duplicate h2 2%
reorder h3 2%
corrupt h0 2%
run allgather 64K
run dispatch tokens 16 hidden 1500 choice all
counters h1
heal
init pair h2 h0
run dispatch tokens 8 experts 4 top 2 pair
move pair s0
run allgather 8K pair
destroy pair
run allgather 2M
fail link h1 s0
restore link h1 s0
run dispatch tokens 4
fail link s0 h2 after 1ms for 300ms
run allgather 64K repeat 20
groups
h0 ping h3
"""


LAYERS = """\
run moe tokens 8 hidden 1000 experts 16 top 4 repeat 2
loss h1 3%
duplicate h2 2%
run moe tokens 8 hidden 1000 experts 16 top 4 repeat 2
run dispatch tokens 8
heal
move all {root}
run moe tokens 8 choice all
"""
COMBINE = "--mode", "multiwrite", "--repair", "hop", "--combine", "int32", "--payload", "256", "--slots", "64"


@pytest.mark.long
@pytest.mark.parametrize(("topology", "root"), [("star-4", "s0"), ("tree-3-2", "s0")])
def test_layers_of_experts(topology: str, root: str, tmp_path: Path, machine: Traces, seed: int) -> None:
    done = lab(tmp_path, topology, *COMBINE, "--seed", str(seed), script=LAYERS.format(root=root))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(RIGHT) == 4
    assert "group all: s0 (root)" in done.stdout


@BMV2
def test_layers_of_experts_on_bmv2(tmp_path: Path, machine: Traces, seed: int) -> None:
    script = "run moe tokens 4 hidden 1000 experts 16 top 4\n"
    done = lab(tmp_path, "star-4", *COMBINE, "--target", "bmv2", "--seed", str(seed), script=script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert RIGHT in done.stdout


@pytest.mark.long
def test_a_session(tmp_path: Path, machine: Traces, seed: int) -> None:
    done = lab(tmp_path, "star-4", "--mode", "multiwrite", "--seed", str(seed), script=SCRIPT)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert said.count(RIGHT) == 9
    for text in (
        "type                   run allgather 64K; run dispatch tokens 32",
        "allgather of 65,536 bytes, 4 ranks, group all: s0 (root)",
        "dispatch of 16 tokens of 1,500 bytes by each of 4 ranks, to 8 of 64 experts (all)",
        "out loss",
        "CheckOrder.gap",
        "pair: s0 (root), 2 ranks",
        "pair: s0 (root), generation 2",
        "pair is gone",
        "2,097,152 bytes, 4 ranks, group allx",  # for which the memory of "all" is too small
        "group all is broken, generation 1: no path between h1 and s0: link h1-s0 is down",
        "group all is active, generation 2: s0 (root)",
        "s0-h2 is up",
        "3 packets transmitted, 3 received",
    ):
        assert text in said, text


PROGRAMS = [
    ("--repair", "hop"),
    ("--place", "append"),
    ("--receivers", "64", "--replicate", "prune", "--icrc", "patch"),
]
OVER_A_TREE = """\
run allgather 64K
loss all 2%
run dispatch tokens 8 choice all
heal
fail link leaf0 spine0 after 20ms
run allgather 128K h0 h2 h4 h7 repeat 5
run dispatch tokens 8 hidden 3000 h0 h2 h4 h7
groups
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[1])
@pytest.mark.long
def test_over_a_tree_of_which_a_link_fails(
    program: tuple[str, ...], tmp_path: Path, machine: Traces, seed: int
) -> None:
    done = lab(tmp_path, "leaf-spine", "--mode", "multiwrite", *program, "--seed", str(seed), script=OVER_A_TREE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(RIGHT) == 4
    assert "leaf0-spine0 is down" in done.stdout
    assert "spine1 (root)" in done.stdout.partition("lab> groups")[2]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("topology", "program"), [("star-4", ()), ("star-4", ("--place", "append")), ("leaf-spine", ("--repair", "hop"))]
)
@pytest.mark.long
def test_suite(topology: str, program: tuple[str, ...], tmp_path: Path, machine: Traces, seed: int) -> None:
    done = lab(tmp_path, topology, "--mode", "multiwrite", *program, "--suite", "--seed", str(seed), "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], len(report["steps"])) == (0, True, 7), done.stdout
    notes = {step["name"]: step["note"] for step in report["steps"]}
    assert "generation 2" in notes["a link cut under a collective, and restored"]


@pytest.mark.long
def test_scenarios(tmp_path: Path, machine: Traces, seed: int) -> None:
    asked = ("--collective", "dispatch", "--set", "tokens=16", "--set", "experts=6", "--set", "top=2")
    faults = ("--loss", "5%@h0", "--ranks", "h3,h0,h2", "--repeat", "3")
    done = lab(tmp_path, "star-4", "--mode", "multiwrite", *asked, *faults, "--seed", str(seed))
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("dispatch of 16 tokens of 1,024 bytes by each of 3 ranks, to 2 of 6 experts", "3 times", RIGHT):
        assert text in done.stdout


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ("--mode multiwrite --collective allreduce", "multiwrite_r32_x8_subset_p1024 has allgather, dispatch"),
        ("--mode multiwrite --collective allgather --size 100", "it has to be a positive multiple of 4096"),
        ("--mode multiwrite --collective allgather --set tokens=4", "allgather has no option tokens; it has none"),
        ("--mode multiwrite --collective dispatch --size 4K", "--size does not go with dispatch"),
        ("--mode multiwrite --collective dispatch --set tokens", "--set tokens: it has to be NAME=VALUE"),
        ("--mode multiwrite --collective dispatch --set experts=6", "6 experts do not divide among 4 ranks"),
        ("--mode multiwrite --measure", "--measure goes with programs that take part"),
        ("--mode multiwrite --icrc patch --suite --corrupt 1%", "takes corrupt packets for right ones"),
        ("--mode III --collective dispatch", "--collective dispatch goes with --mode multiwrite"),
        ("--mode themis --collective allreduce --set tokens=4", "allreduce has no option tokens; it has root"),
    ],
)
def test_command_lines_that_are_refused(arguments: str, cause: str, tmp_path: Path) -> None:
    asked = ["lab", "star-4", *arguments.split(), "--out", str(tmp_path)]
    done = CliRunner().invoke(cli, asked, standalone_mode=False)
    assert isinstance(done.exception, InputError | click.UsageError)
    assert cause in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_mistakes_are_told(tmp_path: Path, machine: Traces) -> None:
    script = """\
run allreduce 4K
run allgather
run allgather 100
run allgather 64K h0 h9
run allgather 64K h0 h0
run dispatch tokens
run dispatch choice some
run dispatch experts 6
run dispatch tokens 64K hidden 7168
run dispatch repeat 0
init g h0 h1
init g h2 h3
run allgather 2M g
resize g 64
spray on
run allgather 4K h1
corrupt h1 5%
run allgather 8K g
"""
    done = lab(tmp_path, "star-4", "--mode", "multiwrite", "--icrc", "patch", script=script)
    assert done.returncode == 1
    for text in (
        "'allreduce' is not a collective; there are allgather, dispatch",
        "usage: run allgather SIZE [HOST …|GROUP] [repeat N]",
        "allgather of 100 bytes: it has to be a positive multiple of 4096",
        "there is no host 'h9'; there are h0, h1, h2, h3",
        "a host can be only one rank",
        "tokens must be followed by a value",
        "choice: must be one of random, balanced, one, all, next, not 'some'",
        "6 experts do not divide among 4 ranks",
        "fence can tell of 65,535",
        "repeat must be at least 1",
        "allgather: at least two hosts are needed",
        "there is a group g already",
        "the call takes 1,024 packets of each rank; the memory of group g has room for 255",
        "64 slots; each context of the program has 16",
        "takes corrupt packets for right ones",
    ):
        assert text in done.stdout, text
    assert done.stdout.count(RIGHT) == 1  # of the last call: nothing of this has harmed the group
    assert "Traceback" not in done.stdout + done.stderr


@pytest.fixture
def prompt() -> Prompt:
    topology = load_topology("star-4")
    job = SimpleNamespace(spec=MultiwriteSpec())
    return Prompt(cast(Session, SimpleNamespace(lab=SimpleNamespace(job=job, topology=topology), console=None)))


@pytest.mark.parametrize(
    ("line", "text", "words"),
    [
        ("run ", "", ["allgather", "dispatch", "moe"]),
        ("run d", "d", ["dispatch"]),
        ("run dispatch t", "t", ["tokens", "top"]),
        ("run dispatch choice ", "", ["random", "balanced", "one", "all", "next"]),
        ("run dispatch choice b", "b", ["balanced"]),
        ("run allgather 64K h", "h", ["h0", "h1", "h2", "h3"]),
        ("run allgather 64K r", "r", ["repeat"]),
    ],
)
def test_what_the_prompt_completes(prompt: Prompt, line: str, text: str, words: list[str]) -> None:
    assert prompt.completedefault(text, line) == words


def test_calls_are_the_familys() -> None:
    spec = MultiwriteSpec(payload=128)
    call = CallOrder.of(spec, 4, "dispatch", None, {"tokens": "3", "hidden": "100"})
    assert (call.size, call.plan(spec, 4).packets) == (300, 3)
    drawn = call.plan(spec, 4).draw(np.random.default_rng(1))
    assert drawn.tokens.shape == (4, 3, 100)
    assert CallOrder.of(spec, 4, "allgather", 1024, {}).plan(spec, 4).packets == 2
    with pytest.raises(InputError, match="allgather has no option tokens; it has none"):
        CallOrder.of(spec, 4, "allgather", 1024, {"tokens": "3"})
    with pytest.raises(InputError, match="top: 'x' is not a size"):
        CallOrder.of(spec, 4, "dispatch", None, {"top": "x"})
    assert list(members_of(spec).collectives) == ["allgather", "dispatch", "moe"]


def test_ctrl_c_ends_the_group_because_a_call_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    answer: Future[dict[str, Any]] = Future()
    ended: list[Party] = []

    def give_up(party: Party) -> list[str]:
        ended.append(party)
        answer.set_exception(FailedError("the group is destroyed"))
        return []

    counters: dict[str, Any] = {"groups": {}, "faults": {}, "refused": {}, "undelivered": 0, "kernel_drops": 0}
    host = SimpleNamespace(ask=lambda *_, **__: answer, call=lambda _: counters)
    lab = SimpleNamespace(hosts={"h0": host}, parties=SimpleNamespace(give_up=give_up), check_running=lambda _: None)
    lab.traced, lab.switch_drops, lab.job = list, dict, SimpleNamespace(spec=MultiwriteSpec())
    party = Party("g", ("h0",), "")
    run = Run(cast(Lab, lab), party, [CallOrder.of(MultiwriteSpec(), 2, "allgather", 8192, {})], seed=1)
    monkeypatch.setattr(run._outcome, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.result()
    until(run._outcome.done)
    assert ended == [party]  # once: the run knows why the host has failed


def test_patched_icrcs_hide_corruption() -> None:
    check_withstood(MultiwriteSpec(), "corrupt")
    with pytest.raises(InputError, match="takes corrupt packets for right ones"):
        check_withstood(MultiwriteSpec(icrc=Icrc.PATCH), "corrupt")
