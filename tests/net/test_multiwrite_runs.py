"""Runs of MultiWrite as ``p4gen sim run`` makes them: results, every byte of memory, and the bounds of windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p4gen.errors import InputError
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery
from p4gen.net.order import RunOrder
from p4gen.net.world.faults import Faults, Impairment, Outage, Script
from p4gen.net.world.watching import Passage
from p4gen.papers.multiwrite.ranks.calls import choose, memory_problem
from p4gen.papers.multiwrite.ranks.options import Choice
from p4gen.papers.multiwrite.ranks.planning import fitted
from p4gen.papers.multiwrite.running import WriteRun
from p4gen.papers.multiwrite.runs import FACET
from p4gen.papers.multiwrite.spec import MultiwriteSpec, Place
from p4gen.papers.multiwrite.words import RECEIVE, START
from p4gen.vocabulary.topology import TopologySpec, load_topology

TROUBLES = {
    "none": Faults(),
    "loss of 0.1 %": Faults((Impairment(loss=0.001),)),
    "loss of 10 %": Faults((Impairment(loss=0.1),)),
    "bursts": Faults((Impairment(loss=0.05, burst=4),)),
    "disorder": Faults((Impairment(reorder=0.1, duplicate=0.1),)),
    "corruption": Faults((Impairment(corrupt=0.05),)),
    "everything": Faults((Impairment(loss=0.02, reorder=0.05, duplicate=0.05, corrupt=0.02),)),
    "links down": Faults(outages=(Outage("h0", 2 * US, 22 * US), Outage("h5", 5 * US, 25 * US))),
}
ALLGATHER, DISPATCH, _ = FACET.collectives


def order(topology: str = "star-4", collective: str = DISPATCH, **fields: Any) -> RunOrder[MultiwriteSpec]:
    """A small run; ``spec`` are fields of the program, ``options`` those of the call."""
    spec = MultiwriteSpec.model_validate({"payload": 128, "slots": 8} | fields.pop("spec", {}))
    said = {"tokens": "6", "hidden": "200", "experts": "64", "top": "8"} | fields.pop("options", {})
    base = RunOrder(
        load_topology(topology),
        spec,
        collective,
        None,
        repeat=1,
        faults=Faults(),
        seed=1,
        recovery=None,
        timeout=None,
        retry_count=None,
        dcqcn=None,
        engine="jit",
        options={name: option.parse(said.get(name, option.default)) for name, option in FACET.options.items()},
    )
    return replace(base, **fields)


def passed(asked: RunOrder[MultiwriteSpec]) -> WriteRun:
    run = WriteRun(asked)
    result = run.run()
    assert (result.stuck, result.errors, result.silent) == ((), (), ())
    return run


@pytest.mark.parametrize("place", list(Place))
def test_calls_after_a_silence_have_their_losses_repaired(place: Place) -> None:
    """Between calls nothing is outstanding, and ticks stop. They have to come again: with few slots a whole window can
    be lost, and only a tick repairs that."""
    far = {"ends": ["h1", "s0"], "delay": "15us"}
    topology = TopologySpec.model_validate(
        {"name": "far", "switches": ["s0"], "hosts": ["h0", "h1"], "links": [["h0", "s0"], far]}
    )
    spec = {"payload": 64, "slots": 4, "repair": "hop", "edges": 6, "ports": 8, "contexts": 64, "place": place}
    run = order(spec=spec, options={"tokens": "12"}, repeat=2, faults=Faults((Impairment(loss=0.05),)))
    passed(replace(run, topology=topology))


@pytest.mark.sample(4)
@pytest.mark.parametrize("collective", [ALLGATHER, DISPATCH])
@pytest.mark.parametrize("repair", ["source", "hop"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_eight_ranks(collective: str, repair: str, trouble: str, seed: int) -> None:
    size = 8 * 128 * 4 if collective == ALLGATHER else None
    asked = order("leaf-spine", collective, size=size, spec={"repair": repair}, faults=TROUBLES[trouble], seed=seed)
    passed(replace(asked, repeat=2))


@pytest.mark.sample(2)
@pytest.mark.parametrize("choice", Choice)
@pytest.mark.parametrize("recovery", [Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT])
@pytest.mark.parametrize("place", ["symmetric", "append"])
def test_choices_of_experts(choice: Choice, recovery: Recovery, place: str, seed: int) -> None:
    passed(
        order(
            "star-8",
            spec={"place": place},
            options={"choice": str(choice)},
            faults=TROUBLES["everything"],
            recovery=recovery,
            seed=seed,
        )
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("topology", ["mesh-8", "two-servers", "fat-tree-k4", "clos:8x2x4", "clos:8x2x8"])
@pytest.mark.parametrize("collective", [ALLGATHER, DISPATCH])
@pytest.mark.long
def test_networks_of_8_to_64_ranks(topology: str, collective: str, seed: int) -> None:
    ranks = len(load_topology(topology).rank_hosts)
    size = ranks * 256 if collective == ALLGATHER else None
    wide = {"payload": 256}  # the fence has two bytes for each rank
    faults = TROUBLES["everything"] if ranks <= 16 else TROUBLES["loss of 0.1 %"]
    passed(order(topology, collective, size=size, spec=wide, options={"tokens": "4"}, faults=faults, seed=seed))


@pytest.mark.parametrize("repair", ["source", "hop"])
def test_windows_are_never_overrun(repair: str, seed: int) -> None:
    """At no time has a switch taken more than N packets of a source that are not acknowledged."""
    spec = {"repair": repair, "slots": 4}
    run = WriteRun(order("star-4", spec=spec, faults=TROUBLES["everything"], seed=seed, options={"tokens": "12"}))
    most = 0

    def watch(passage: Passage) -> None:
        nonlocal most
        for switch in run.network.switches.values():
            for context, first in enumerate(run.first_psns[0]):
                words = [
                    layout.unpack(switch.register(name, context))
                    for layout, name in ((RECEIVE, "check_order.receive"), (START, "check_range.psn_start"))
                ]
                taken, start = (word["psn"] if word["epoch"] else first for word in words)
                most = max(most, (taken - start) % (1 << 24))

    run.network.watch(watch)
    result = run.run()
    assert (result.stuck, result.errors) == ((), ())
    assert most == 4  # as many as there may be, and not one more


@pytest.mark.parametrize("kind", ["UP_DATA", "UP_ACK", "DOWN_DATA", "DOWN_ACK"])
def test_scripted_losses(kind: str) -> None:
    """Every kind of packet that a host sends or gets is lost twice."""
    faults = Faults(scripts=(Script.parse(f"drop 2-3 {kind} of rank 1"),))
    passed(order(faults=faults))


@pytest.mark.parametrize("icrc", ["recompute", "patch", "set", "ignore"])
def test_nics_check_the_icrc_that_programs_give(icrc: str) -> None:
    passed(order(spec={"icrc": icrc}))


@pytest.mark.parametrize("ip", ["6", "both"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_goes_wrong_over_ipv6_is_mended(ip: str, trouble: str, seed: int) -> None:
    passed(order("leaf-spine", spec={"ip": ip}, faults=TROUBLES[trouble], seed=seed))


def test_memory_that_differs_is_told() -> None:
    """One wrong byte anywhere in a window: in a token, in a fence, where nothing was ever written."""
    run = passed(order())
    for member in run.members:
        calls, psns = [call.layer(0) for call in run.calls], run.first_psns[0]
        assert memory_problem(member, calls, psns) == ""
        used = {at for at, byte in enumerate(member.memory) if byte}
        unused = next(at for at in range(len(member.memory)) if at not in used)
        for at in (min(used), max(used), unused):
            member.memory[at] ^= 1
            assert f"bytes of its window: {member.memory[at]} at {at:,}, not" in memory_problem(member, calls, psns)
            member.memory[at] ^= 1


def test_a_run_with_wrong_memory_fails() -> None:
    run = WriteRun(order())
    first = run.members[0]
    first.memory[5] = 1  # in its own area, in which nobody writes
    assert run.run().errors == ("rank 0: bytes of its window: 1 at 5, not 0; 1 are wrong",)


def test_a_run_that_cannot_end_says_why() -> None:
    result = WriteRun(order(faults=Faults(outages=(Outage("h2", 0, 1 << 62),)))).run()
    assert not result.ok
    assert "no packet has arrived since" in result.stuck[0]


def test_balanced_choices_give_all_experts_the_same() -> None:
    chosen = choose(Choice.BALANCED, 4, 10, 16, 6, np.random.default_rng(1))
    # 60 choices of a rank among 16 experts, 4 on each rank: three or four of each expert
    for row in chosen:
        counts = np.bincount(row.reshape(-1), minlength=4)
        assert counts.sum() == 60
        assert counts.min() >= 12
        assert counts.max() <= 16
    random = choose(Choice.RANDOM, 4, 10, 4, 3, np.random.default_rng(1))
    assert all(len(set(row)) == 3 for rows in random.tolist() for row in rows)


def test_the_program_is_fitted_to_the_run_unless_it_says_otherwise() -> None:
    topology = load_topology("clos:8x2x8")
    spec = fitted(MultiwriteSpec(), topology)
    assert (spec.receivers, spec.contexts, spec.edges) == (64, 64, 10)
    with pytest.raises(InputError, match="context 2: the program has 2, numbered from 0"):
        WriteRun(order(spec={"contexts": 2}))


@pytest.mark.parametrize(
    ("collective", "fields", "cause"),
    [
        (ALLGATHER, {"size": 100}, "allgather of 100 bytes: it has to be a positive multiple of 512"),
        (DISPATCH, {"size": 512}, "is for allgather; dispatch has --tokens and --hidden"),
        (DISPATCH, {"options": {"experts": "6"}}, "6 experts do not divide among 4 ranks"),
        (DISPATCH, {"options": {"experts": "4", "top": "5"}}, "a token cannot go to 5 of 4 experts"),
        (DISPATCH, {"options": {"tokens": "64K", "hidden": "1"}}, "a fence can tell of 65,535"),
    ],
)
def test_what_cannot_be_run(collective: str, fields: dict[str, Any], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        WriteRun(order("star-4", collective, **fields))
