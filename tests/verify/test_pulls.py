"""SCIN in a search of states: nothing is read that has been written, and flags follow what they stand for."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.papers.scin.control import Pattern, Role
from p4gen.papers.scin.spec import ScinSpec
from p4gen.papers.scin.verification import SMALL, small
from p4gen.papers.scin.verification.ladder import ladder
from p4gen.papers.scin.verification.monitor import Pulls
from p4gen.papers.scin.verification.operands import operand, operands, pieces, result, results
from p4gen.papers.scin.verification.searching import PullScope
from p4gen.ptf.family import conformance_of
from p4gen.rocev2.headers import BTH, RETH, UDP, Ethernet, ImmDt, IPv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.verification.findings.confirm import confirm
from p4gen.verification.findings.counterexample import play, save, story_of
from p4gen.verification.findings.scenario import write
from p4gen.verification.search.search import Search
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from p4gen.vocabulary.topology import load_topology

SEEDING = conformance_of(ScinSpec()).seeding(ScinSpec())

LOSS = Budget(losses=1)
MIXED = Pattern(0b011, 0b110)


def scope(name: str = "star-2", calls: tuple[int, ...] = (3, 1), budget: Budget = LOSS, **fields: Any) -> PullScope:
    spec = ScinSpec.model_validate(SMALL | fields)
    ranks = 3 if name == "star-3" else 2
    pattern = Pattern((1 << ranks) - 1, (1 << ranks) - 1)
    return PullScope(load_topology(name), spec, calls, pattern, budget=budget, engine="interp")


def search(of: PullScope) -> Search:
    return Search(System(of), reduce=True, workers=1)


def seeded(of: PullScope, fault: str) -> PullScope:
    (mutation,) = (each for each in SEEDING.mutations if each.name == fault)
    return of.with_fault(mutation)


@pytest.mark.parametrize("completion", ["strict", "ordered"])
@pytest.mark.parametrize("budget", [LOSS, Budget(duplicates=1), Budget(delays=1)], ids=str)
@pytest.mark.sample(2)
@pytest.mark.long
def test_all_calls_end_with_their_sums(completion: str, budget: Budget) -> None:
    result = search(scope(calls=(2, 1), budget=budget, completion=completion)).run()
    assert result.complete, result.sentence()


@pytest.mark.parametrize("completion", ["strict", "ordered"])
def test_masks_barriers_and_psns_that_wrap(completion: str) -> None:
    """A rank is read only, one is written only."""
    base = scope("star-3", (1, 0, 2), completion=completion)
    of = replace(base, pattern=MIXED, first_psn=0xFFFFFE, budget=Budget())
    result = search(of).run()
    assert result.complete, result.sentence()


def test_calls_that_choose() -> None:
    """An exact call, and a quantised one behind it."""
    result = search(scope(calls=(2, 1), dtype="mxint8", exact="int32", lanes=128)).run()
    assert result.complete, result.sentence()


@pytest.mark.long
def test_blocks_with_scales_in_place() -> None:
    """A WRITE of the last packet of a wave changes its scales, too, which nobody may read again."""
    blocks: dict[str, Any] = {"dtype": "int8_float16", "block": 32, "lanes": 64}
    fields: dict[str, Any] = {**small(ScinSpec.model_validate(blocks)), **blocks}
    of = scope(calls=(2, 1), budget=Budget(), **fields)
    result = search(of).run()
    assert result.complete, result.sentence()
    problem = search(seeded(of, "emax-is-last")).run(states=5_000).problem
    assert problem is not None
    assert "is not the sum" in problem.text


@pytest.mark.long
def test_steps_are_the_same_on_the_other_engine() -> None:
    searching = search(scope(calls=(1, 1)).with_engine("jit"))
    assert searching.run().complete
    assert not confirm(searching.knowledge, "interp").difference


@pytest.mark.long
def test_early_release_is_sound_without_losses_and_found_with_one(tmp_path: Path) -> None:
    of = scope(variant="early-release")
    assert search(replace(of, budget=Budget())).run().complete
    problem = search(of).run().problem
    assert problem is not None
    assert (problem.property, problem.text) == (
        "deadlock",
        "nothing is on its way, no timer runs, and not all calls have ended",
    )
    story = story_of(System(of), problem.events)
    files = save(story, problem, tmp_path)
    assert write(story_of(System(of), problem.events), problem.text, tmp_path) is not None
    (schedule,) = (path for path in files if path.suffix == ".yaml")
    again, _ = play(schedule)
    assert again.system.scope.as_data() == of.as_data()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("fault", "completion", "calls", "budget", "cause"),
    [
        ("fastest-frees", "strict", (5,), Budget(), "only a timer can go on"),
        ("flag-to-destinations-only", "strict", (1, 1), Budget(), "only a timer can go on"),
        ("full-slot-merges", "strict", (2,), Budget(duplicates=1), "is not the sum"),
        ("flag-before-results", "ordered", (2,), Budget(), "has its flag before 2 results have left"),
    ],
)
def test_what_breaks_the_rules_is_found(
    fault: str, completion: str, calls: tuple[int, ...], budget: Budget, cause: str
) -> None:
    """Of ranks with different parts, two packets a wave."""
    base = scope("star-3", calls, budget, completion=completion, wave=2)
    result = search(seeded(replace(base, pattern=MIXED), fault)).run(states=20_000)
    assert result.problem is not None
    assert cause in result.problem.text


# --- what a switch is held to ---

SPEC = ScinSpec.model_validate(SMALL)
NEAR, FAR = {16 + role: (0, role) for role in Role}, {32 + role: (0, role) for role in Role}
SUMS = tuple(result(number, 0b1, 32) for number in range(3))


def frame(role: Role, opcode: Opcode, psn: int, **parts: Any) -> bytes:
    return RocePacket(Ethernet(1, 2), IPv4(1, 2), UDP(50000), BTH(opcode, 32 + role, psn), **parts).sealed().to_bytes()


def judged(memory: tuple[int, tuple[int, ...]], sent: bytes, *, ordered: bool = False) -> str:
    rules = Pulls(5, SUMS, (2, 3), 0b1, ordered, NEAR, FAR)
    return rules.step(memory, 0, (), [(0, (sent,))])[1]


def write_of(number: int, payload: bytes, flag: int | None = None) -> bytes:
    immdt = None if flag is None else ImmDt(flag)
    opcode = Opcode.WRITE_ONLY if flag is None else Opcode.WRITE_ONLY_IMM
    return frame(Role.WRITE, opcode, 5 + number, reth=RETH(0, 0, 32), immdt=immdt, payload=payload)


def flag_of(number: int, status: int = 0) -> bytes:
    immdt = ImmDt(status << 24 | 5 + number)
    return frame(Role.SYNC, Opcode.WRITE_ONLY_IMM, 5, reth=RETH(0, 0, 8), immdt=immdt, payload=bytes(8))


def test_a_switch_reads_no_results() -> None:
    read = frame(Role.READ, Opcode.READ_REQUEST, 6, reth=RETH(0, 0, 32))
    assert judged((1, (0,)), read) == ""
    assert judged((2, (0,)), read) == "packet 2 of rank 0 is read when its result has been written"


def test_a_switch_reads_no_scales_of_results() -> None:
    rules = Pulls(5, SUMS, (2, 3), 0b1, False, NEAR, FAR, waves=(2, 3))
    read = frame(Role.SCALES, Opcode.READ_REQUEST, 5, reth=RETH(0, 0, 4))
    assert rules.step((1, (0,)), 0, (), [(0, (read,))])[1] == ""
    told = rules.step((2, (0,)), 0, (), [(0, (read,))])[1]
    assert told == "the scales of wave 1 of rank 0 are read when the result's have been written"


def test_a_switch_writes_the_sums() -> None:
    assert judged((0, (0,)), write_of(0, SUMS[0])) == ""
    assert "packet 2 of the result is not the sum" in judged((1, (0,)), write_of(1, SUMS[0]))
    assert "packet 4 of the result is not the sum" in judged((3, (0,)), write_of(3, SUMS[0]))
    assert judged((1, (0,)), write_of(1, SUMS[1], 5)) == ""
    assert "packet 1 of the result is a flag, and not the last" in judged((0, (0,)), write_of(0, SUMS[0], 5))
    assert "packet 2 of the result is a flag, and not the last" in judged((1, (0,)), write_of(1, SUMS[1], 6))


def test_flags_follow_what_they_stand_for() -> None:
    assert judged((2, (2,)), flag_of(0)) == ""
    assert judged((2, (1,)), flag_of(0)) == "rank 0 has its flag before rank 0 has all 2 results"
    assert judged((2, (1,)), flag_of(0, status=3)) == ""
    assert judged((2, (0,)), flag_of(0), ordered=True) == ""
    assert judged((1, (0,)), flag_of(0), ordered=True) == "rank 0 has its flag before 2 results have left"
    assert judged((3, (3,)), flag_of(2)) == "rank 0 has the flag of a call that nobody has made"


def test_operands_tell_ranks_calls_and_packets_apart() -> None:
    assert operand(2, 1, 32)[:4] == bytes([0, 0, 3, 0])
    assert result(2, 0b101, 32)[:4] == bytes([0, 3, 0, 3])


@pytest.mark.parametrize("dtype", ["mxint8", "int8_float16"])
def test_blocks_tell_ranks_and_packets_apart(dtype: str) -> None:
    spec = ScinSpec.model_validate({"dtype": dtype, "block": 32, "lanes": 64, "wave": 2})
    own = [operands(spec, range(3), rank) for rank in (0, 1)]
    total = results(spec, range(3), 0b11)
    size = 3 * 64 + 2 * spec.scale_bytes
    assert [len(memory) for memory in (*own, total)] == [size] * 3
    cut = pieces(spec, 3)
    assert (cut[0].start, cut[-1].stop) == (0, size)
    assert all(one.stop == other.start for one, other in pairwise(cut))
    assert len({memory[piece] for memory in (*own, total) for piece in cut}) == 9
    assert results(spec, range(3, 5), 0b11)[cut[0]] != total[cut[0]]


def test_scopes_have_names_and_can_be_written_down() -> None:
    scopes = dict(ladder(SPEC))
    for of in scopes.values():
        assert PullScope.from_data(of.as_data()) == replace(of, topology=PullScope.from_data(of.as_data()).topology)


def test_what_a_scope_refuses() -> None:
    with pytest.raises(InputError, match="star-4 has 4 ranks; a search of SCIN has 3 at most"):
        replace(scope(), topology=load_topology("star-4")).world()
    with pytest.raises(InputError, match="70 packets; a search has 60 at most"):
        scope(calls=(70,)).world()
    with pytest.raises(InputError, match="a search is of sums of whole numbers or of blocks"):
        scope(op="max").world()
