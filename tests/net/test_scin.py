"""Calls of SCIN on the virtual network: results beside NumPy's, whatever is lost, repeated, overtaken or late."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from p4gen.errors import InputError
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery, Resumption
from p4gen.net.world.faults import Faults, Impairment, Outage
from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.simulation import PullConfig, PullSimulation
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary.topology import load_topology, packaged

SPEC = ScinSpec(lanes=8, waves=4, wave=4, contexts=4, edges=4, patience=200)
STAR = load_topology(packaged("star-4"))
ALL = Pattern(0b1111, 0b1111)
LOSSY = Faults((Impairment(loss=0.02, duplicate=0.02, corrupt=0.01),))


def operands(seed: int, packets: int, lanes: int = 8) -> list[npt.NDArray[Any]]:
    chance = np.random.default_rng(seed)
    return [chance.integers(-(1 << 28), 1 << 28, packets * lanes, np.int32) for _ in range(4)]


def simulation(*patterns: Pattern, **fields: Any) -> PullSimulation:
    return PullSimulation(PullConfig(STAR, SPEC, patterns, **{"engine": "jit"} | fields))


def check(found: list[npt.NDArray[Any] | None], given: list[npt.NDArray[Any]], pattern: Pattern) -> None:
    total = sum(given[rank] for rank in range(4) if pattern.sources >> rank & 1)
    for rank, got in enumerate(found):
        if pattern.destinations >> rank & 1:
            assert got is not None
            np.testing.assert_array_equal(got, total)
        else:
            assert got is None


@pytest.mark.parametrize(
    "pattern",
    [ALL, Pattern(0b1111, 0b0100), Pattern(0b0001, 0b1111), Pattern(0b0110, 0b1001), Pattern(0b0010, 0b0010)],
)
def test_masks_make_collectives(pattern: Pattern, seed: int) -> None:
    run = simulation(pattern, seed=seed)
    for number, packets in enumerate((1, 37, 4)):
        given = operands(seed + number, packets)
        check(run.call(0, given), given, pattern)


@pytest.mark.parametrize("recovery", [Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT])
@pytest.mark.parametrize("resumption", list(Resumption))
def test_losses_are_mended_in_place(recovery: Recovery, resumption: Resumption, seed: int) -> None:
    run = simulation(ALL, faults=LOSSY, recovery=recovery, resumption=resumption, seed=seed)
    for number in range(6):
        given = operands(seed + number, 21)
        check(run.call(0, given, in_place=True), given, ALL)
    assert run.drops()


@pytest.mark.parametrize(
    "fault",
    [
        Impairment(loss=0.1),
        Impairment(loss=0.02, burst=3),
        Impairment(reorder=0.1),
        Impairment(loss=0.05, where="h2"),
    ],
)
def test_faults_of_other_kinds(fault: Impairment, seed: int) -> None:
    run = simulation(ALL, faults=Faults((fault,)), seed=seed)
    for number in range(2):
        given = operands(seed + number, 18)
        check(run.call(0, given, in_place=True), given, ALL)


def test_late_ranks_are_waited_for(seed: int) -> None:
    run = simulation(ALL, seed=seed)
    given = operands(seed, 9)
    check(run.call(0, given, late={1: 500 * US, 3: 40 * US}), given, ALL)


def test_a_link_that_goes_down_for_a_while(seed: int) -> None:
    run = simulation(ALL, faults=Faults(outages=(Outage("h1", 5 * US, 25 * US),)), seed=seed)
    given = operands(seed, 80)
    check(run.call(0, given, in_place=True), given, ALL)


def test_barriers_and_contexts_at_once(seed: int) -> None:
    patterns = (ALL, Pattern(0b1111, 0b0001), Pattern(0b1000, 0b1111), Pattern(0b0011, 0b0011))
    run = simulation(*patterns, faults=LOSSY, seed=seed)
    given = [operands(seed + context, 16) for context in range(4)]
    held = [[array.astype(">i4") for array in arrays] for arrays in given]
    for context in range(4):
        buffers = {rank: run.register(rank, held[context][rank]) for rank in range(4)}
        run.start(context, 16, buffers, buffers)
    run.settle()
    for context, pattern in enumerate(patterns):
        found = [held[context][rank] if pattern.destinations >> rank & 1 else None for rank in range(4)]
        check(found, given[context], pattern)
        run.start(context, 0, {}, {})
    run.settle()
    assert all(status is Status.SUCCESS for members in run.members for m in members.values() for status in m.statuses)


def test_a_dead_rank_ends_the_call_with_a_status(seed: int) -> None:
    spec = SPEC.model_copy(update={"patience": 5})
    faults = Faults(outages=(Outage("h2", 20 * US, 10_000_000 * US),))
    run = PullSimulation(PullConfig(STAR, spec, (ALL,), faults=faults, engine="jit", seed=seed))
    given = operands(seed, 400)
    held = [run.register(rank, array.astype(">i4")) for rank, array in enumerate(given)]
    run.start(0, 400, dict(enumerate(held)), dict(enumerate(held)))
    others = [run.members[0][rank] for rank in (0, 1, 3)]
    run.settle(lambda: all(member.done for member in others))
    assert [member.statuses for member in others] == [[Status.SILENCE]] * 3


def test_disagreement_is_reported(seed: int) -> None:
    run = simulation(ALL, seed=seed)
    for rank, member in run.members[0].items():
        member.arrive(2 if rank == 3 else 1)
    with pytest.raises(InputError, match="remote invalid request"):
        run.settle()


def test_what_is_no_whole_packet_is_refused() -> None:
    run = simulation(ALL)
    with pytest.raises(InputError, match="no whole packets of 32"):
        run.call(0, operands(1, 1, lanes=9))
    with pytest.raises(InputError, match="SCIN's groups are around one"):
        PullSimulation(PullConfig(load_topology(packaged("tree-3-2")), SPEC, (ALL,)))
