"""Traffic, reduction and the files of a difference, without BMv2: two embedded switches stand against each other."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from p4gen.difftest.compare import Comparison
from p4gen.difftest.events import Event, Packet, Replication, Request
from p4gen.difftest.reduce import minimise, shortest_tail
from p4gen.difftest.save import save
from p4gen.difftest.sides import checked, embedded_side
from p4gen.difftest.traffic import Traffic
from p4gen.inc import compose
from p4gen.p4.compile import compile_file
from p4gen.ptf.mutations import MODE_II
from p4gen.render import render
from p4gen.spec import ProgramSpec
from p4gen.stf import parse_file, run
from p4gen.switch.running import scratch

SPEC = ProgramSpec(lanes=8, window=2, message=2, groups=2, fan_in=4, ports=8)
TEXT = render(compose(SPEC)).text


def events(seed: int, count: int) -> list[Event]:
    traffic = Traffic(SPEC, seed)
    return [*traffic.setup(), *itertools.islice(traffic.packets(), count)]


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


def comparison(stack: ExitStack, place: Path, fault: str, seed: int) -> tuple[Comparison, Traffic]:
    """A sound switch on the left, one with a fault on the right."""
    mutation = next((m for m in MODE_II if m.name == fault), None)
    sides = []
    for name, text in (("sound", TEXT), ("faulty", mutation.apply(TEXT) if mutation else TEXT)):
        program = checked(text, "program", place / name, for_bmv2=False, faulty=False)
        side = stack.enter_context(embedded_side(program, place / name, SPEC.ports))
        side.name = name
        sides.append(side)
    traffic = Traffic(SPEC, seed)
    made = Comparison(sides[0], sides[1], traffic.setup())
    made.restart()
    return made, traffic


def test_a_seed_gives_the_same_events_every_time() -> None:
    assert events(7, 300) == events(7, 300)
    assert events(7, 300) != events(8, 300)


def test_traffic_has_everything_that_was_asked_for() -> None:
    found = events(3, 4000)
    kinds = Counter(event.kind for event in found if isinstance(event, Packet))
    assert kinds.keys() == {
        "contribution", "repeated", "stale", "acknowledgement", "spoilt", "other opcode", "malformed", "foreign",
        "ordinary", "noise",
    }  # fmt: skip
    assert {e.verb for e in found if isinstance(e, Request)} == {"insert", "modify", "delete"}
    assert any(isinstance(e, Replication) for e in found)
    assert len({e.frame[42] for e in found if isinstance(e, Packet) and e.kind == "other opcode"}) > 25


def test_the_same_program_twice_shows_no_difference(place: Path) -> None:
    with ExitStack() as stack:
        compared, traffic = comparison(stack, place, "none", 1)
        assert compared.run(traffic.packets(), 600) is None
        assert compared.tally.packets == 600
        assert compared.tally.states >= 2


@pytest.mark.parametrize("fault", ["epoch-ignored", "overflow-uncounted", "ttl-kept"])
def test_a_fault_is_found_reduced_and_saved(place: Path, fault: str) -> None:
    with ExitStack() as stack:
        compared, traffic = comparison(stack, place, fault, 2)
        found = compared.run(traffic.packets(), 2000)
        assert found is not None
        setup = traffic.setup()

        def fails(candidate: object) -> bool:
            assert isinstance(candidate, list | tuple)
            return compared.replay(candidate, setup) is not None

        shown = minimise(shortest_tail(found.events, fails), fails)
        needed = minimise(setup, lambda candidate: compared.replay(shown, candidate) is not None)
        difference = compared.replay(shown, needed)
        assert difference is not None
        assert len(shown) <= 6
        files = save(place, compared, compared.left, difference, needed, shown, "a test")
    assert [f.name for f in files] == ["difference.pcap", "difference.stf", "difference.txt"]
    assert difference.what in files[2].read_text()
    statements = parse_file(files[1])
    sound = compile_file(place / "sound" / "program.p4").program
    assert run(sound, statements).passed
    assert not run(compile_file(place / "faulty" / "program.p4").program, statements).passed


def test_reduction_leaves_nothing_that_is_not_needed() -> None:
    asked = 0

    def fails(items: object) -> bool:
        nonlocal asked
        asked += 1
        assert isinstance(items, list)
        return {3, 71, 99} <= set(items)

    assert minimise(list(range(100)), fails) == [3, 71, 99]
    assert asked < 200
    assert shortest_tail(list(range(100)), lambda items: 95 in items) == list(range(92, 100))
