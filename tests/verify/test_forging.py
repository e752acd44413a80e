"""A host that sends in another's name: it changes nothing, unless a program takes packets from any port."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.families import load_spec
from p4gen.papers.multiwrite.verification.searching import TOPOLOGY as STAR
from p4gen.papers.multiwrite.verification.searching import WriteScope
from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.verification.searching import PullScope
from p4gen.rocev2.opcodes import Ack, Nak, Opcode, RnrNak
from p4gen.rocev2.packet import parse
from p4gen.verification.findings.counterexample import play, save, story_of
from p4gen.verification.search.kernel import ARRIVE
from p4gen.verification.search.search import Search
from p4gen.verification.seeding.hunt import seeding_of
from p4gen.verification.system import System
from p4gen.verification.world import Budget, Scope
from p4gen.vocabulary import ticks
from p4gen.vocabulary.topology import load_topology
from verify.scopes import scope

ONE = Budget(forgeries=1)
TICK, CURSOR = ticks.OPCODE, ticks.OPCODE + 1
Kind = tuple[int, int]
"""An opcode, and the syndrome of an answer, or -1."""


def of_groups(mode: str, **fields: Any) -> Scope:
    return scope(mode, budget=ONE, **fields)


def of_writes(**fields: Any) -> Scope:
    spec = load_spec(
        None, {"mode": "multiwrite", "payload": 64, "contexts": 4, "edges": 4, "slots": 4, "ports": 4, **fields}
    )
    return WriteScope(load_topology(STAR), spec, 2, budget=ONE)  # type: ignore[arg-type]


def of_pulls(**fields: Any) -> Scope:
    small = {"lanes": 8, "waves": 2, "wave": 1, "contexts": 1, "edges": 3, "ports": 4}
    spec = load_spec(None, {"mode": "scin", **small, **fields})
    return PullScope(load_topology("star-2"), spec, (2,), Pattern(3, 3), budget=ONE)  # type: ignore[arg-type]


SCOPES: dict[str, Callable[[], Scope]] = {
    "I": lambda: of_groups("I", fan_in=4),
    "II": lambda: of_groups("II"),
    "II, Go-Back-N": lambda: of_groups("II", reliability="gbn"),
    "II, tree": lambda: of_groups("II", topology="tree-3-2", packets=2),
    "II, tna": lambda: of_groups("II", arch="tna"),
    "II, t2na": lambda: of_groups("II", arch="t2na"),
    "III": lambda: of_groups("III"),
    "III, sack": lambda: of_groups("III", reliability="sack"),
    "III, t2na": lambda: of_groups("III", arch="t2na"),
    "MultiWrite": of_writes,
    "MultiWrite, hop": lambda: of_writes(repair="hop"),
    "SCIN": of_pulls,
    "SCIN, ordered": lambda: of_pulls(completion="ordered"),
}
ANSWERS = {(Opcode.ACKNOWLEDGE, Ack().syndrome), (Opcode.ACKNOWLEDGE, Nak().syndrome)}
CALLS = {(Opcode.SEND_ONLY, -1), (Opcode.SEND_ONLY_IMM, -1)}
"""Contributions and announcements."""
PULLS = {(Opcode.SEND_ONLY_IMM, -1), (Opcode.READ_RESPONSE_ONLY, Ack().syndrome)}
"""Arrivals, and data that was read."""
BELIEVED: dict[str, set[Kind]] = {
    "I": {*CALLS, *ANSWERS},
    "II": {*CALLS, *ANSWERS},
    "III": {*CALLS, *ANSWERS, (Opcode.ACKNOWLEDGE, RnrNak(1).syndrome)},
    "III, t2na": {*CALLS, *ANSWERS},
    "MultiWrite": {(Opcode.WRITE_ONLY_IMM, -1), *ANSWERS},
    "MultiWrite, hop": {(Opcode.WRITE_ONLY_IMM, -1), *ANSWERS},
    "SCIN": {*PULLS, *ANSWERS},
}
"""What programs that look at no port believe of it."""


def seeded(of: Scope, fault: str) -> Scope:
    (mutation,) = (each for each in seeding_of(of.program).mutations if each.name == fault)
    return of.with_fault(mutation)


@pytest.mark.parametrize("name", SCOPES)
@pytest.mark.sample(4)
@pytest.mark.long
def test_nothing_in_anothers_name_has_an_effect(name: str) -> None:
    system = System(SCOPES[name]())
    result = Search(system).run()
    assert result.complete, result.sentence()
    sent = {parse(system.frames[frame]).bth.opcode for frame in system.forged}
    assert Opcode.ACKNOWLEDGE in sent
    assert {TICK, CURSOR} <= sent or not system.ticks


@pytest.mark.parametrize("name", BELIEVED)
@pytest.mark.sample(3)
@pytest.mark.long
def test_a_program_that_looks_at_no_port_is_taken_in_by_every_kind(name: str) -> None:
    system = System(seeded(SCOPES[name](), "any-port"))
    search = Search(system, heed=False)
    search.run()
    kinds: set[Kind] = set()
    for asked, effect in search.knowledge.steps:
        if asked.kind == ARRIVE and asked.who == system.forging and asked.frame in system.forged and effect.problem:
            packet = parse(system.frames[asked.frame])
            kinds.add((packet.bth.opcode, -1 if packet.aeth is None else packet.aeth.syndrome))
    assert BELIEVED[name] <= kinds


@pytest.mark.parametrize(
    ("name", "fault"), [("III", "ticks-from-anywhere"), ("SCIN", "forged-cursors"), ("SCIN", "forged-ticks")]
)
def test_ticks_and_cursors_of_hosts_are_found_too(name: str, fault: str) -> None:
    result = Search(System(seeded(SCOPES[name](), fault))).run()
    assert result.problem is not None
    assert result.problem.property == "forgeries"


def test_a_forgery_is_played_again(tmp_path: Path) -> None:
    of = seeded(SCOPES["II"](), "any-port")
    problem = Search(System(of)).run().problem
    assert problem is not None
    story = story_of(System(of), problem.events)
    assert "in another's name arrives" in story.text()
    list(save(story, problem, tmp_path))
    again, violated = play(tmp_path / "schedule.yaml")
    assert (violated, again.violations()) == ("forgeries", {"forgeries"})
    assert again.text() == story.text()


def test_a_wrong_sum_is_what_it_leads_to() -> None:
    """Where the effect alone is not heeded: the call ends with a sum that is none of what ranks gave."""
    system = System(seeded(SCOPES["II"](), "any-port"))
    search = Search(system, heed=False)
    search.run()
    assert any("call 1" in effect.problem for _, effect in search.knowledge.steps)


def test_a_forger_has_no_equal() -> None:
    with pytest.raises(InputError, match="no reduction by symmetry"):
        Search(System(SCOPES["II"]()), symmetry=True)


def test_a_forgery_excuses_nothing() -> None:
    """What must hold without a fault must hold beside it: no timer is needed, nothing else is dropped."""
    plain = replace(scope("III"), budget=Budget())
    assert Search(System(replace(plain, budget=ONE))).run().complete
    assert ONE.sentence() == "at most 1 forgery"
    assert Budget(losses=2, forgeries=3).sentence() == "at most 2 losses, 3 forgeries"


def test_the_command_line_has_a_forger() -> None:
    result = CliRunner().invoke(cli, ["verify", "star-2", "--mode", "II", "--forge", "1"])
    assert result.exit_code == 0, result.output
    assert "at most 1 forgery" in result.output
    result = CliRunner().invoke(cli, ["verify", "star-2", "--mode", "II", "--fault", "any-port", "--forge", "1"])
    assert result.exit_code == 1
    assert "violated: forgeries: what somebody sends in another's name has an effect" in result.output
