"""Traffic, reduction and the files of a difference, without BMv2: two embedded switches stand against each other."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.difftest.compare import Comparison, canonical_order
from p4gen.difftest.events import Event, Mirroring, Packet, Replication, Request
from p4gen.difftest.family import Source, traffic_of
from p4gen.difftest.reduce import minimise, shortest_tail
from p4gen.difftest.save import save
from p4gen.difftest.sides import Readout, checked, embedded_side
from p4gen.model import Model
from p4gen.model.errors import ControlError
from p4gen.p4.compile import compile_file, compile_text
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.epic.traffic.source import RandomTraffic
from p4gen.program import compose, render
from p4gen.ptf.mutations import Mutation
from p4gen.rocev2.packet import parse
from p4gen.stf import parse_file, run
from p4gen.switch.running import scratch
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.ticks import PORT

SMALL = {"lanes": 8, "window": 2, "message": 2, "groups": 16, "fan_in": 6, "ports": 8}
FAULTS = {
    fault.name: fault
    for fault in (
        Mutation(
            "stale-starts-afresh", "RecycleBuffer", "slot_use = slot_use_t.STALE;", "slot_use = slot_use_t.FRESH;"
        ),
        Mutation("overflow-uncounted", "AggregateData", "overflows.count((bit<32>)meta.lookup.context);", ""),
        Mutation("ttl-kept", "Forward", "hdr.ipv4.ttl = hdr.ipv4.ttl - 1;", ""),
        Mutation("nothing-recirculates", "IncEgress", "if (meta.path.goes_round == 1) {", "if (false) {"),
        Mutation("never-new", "EmitMessage", "next + (psn_t)turn;", "next;"),
        Mutation("cursor-skips", "AdvanceCursor", "hdr.bth.psn = hdr.bth.psn + 1;", "hdr.bth.psn = hdr.bth.psn + 2;"),
    )
}


def spec(mode: Mode = Mode.II, pipelines: int = 1, **fields: object) -> EpicSpec:
    return EpicSpec.model_validate(SMALL | {"mode": mode, "pipelines": pipelines} | fields)


def text(of: EpicSpec) -> str:
    return render(compose(of)).text


def events(of: EpicSpec, seed: int, count: int) -> list[Event]:
    traffic = traffic_of(of).source(of, seed)
    return [*traffic.setup(), *itertools.islice(traffic.packets(), count)]


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


def comparison(stack: ExitStack, place: Path, of: EpicSpec, fault: str, seed: int) -> tuple[Comparison, Source]:
    """A sound switch on the left, one with a fault on the right."""
    sound, sides = text(of), []
    for name in ("sound", "faulty"):
        wrong = FAULTS[fault].apply(sound) if name == "faulty" and fault in FAULTS else sound
        program = checked(wrong, "program", place / name, for_bmv2=False, faulty=False)
        side = stack.enter_context(embedded_side(program, place / name, of.ports))
        side.name = name
        sides.append(side)
    traffic = traffic_of(of).source(of, seed)
    made = Comparison(sides[0], sides[1], traffic.setup())
    made.restart()
    return made, traffic


def carried_out(model: Model, found: list[Event]) -> Iterator[tuple[Packet, int, bytes]]:
    """What a switch sends in the course of events: because of which packet, the port, the frame."""
    for event in found:
        if isinstance(event, Packet):
            yield from ((event, port, frame) for port, frame in model.process(event.port, event.frame))
            continue
        with suppress(ControlError):  # some requests are wrong on purpose
            match event:
                case Request(verb=verb, entry=entry):
                    getattr(model, verb)(entry)
                case Replication(group=group):
                    model.set_multicast_group(group)
                case Mirroring(session=session):
                    model.set_clone_session(session)


BOTH = pytest.mark.parametrize("mode", Mode)
PIPELINES = pytest.mark.parametrize("pipelines", [1, 2, 4])


@BOTH
def test_a_seed_gives_the_same_events_every_time(mode: Mode) -> None:
    of = spec(mode, 2)
    assert events(of, 7, 300) == events(of, 7, 300)
    assert events(of, 7, 300) != events(of, 8, 300)


@BOTH
def test_traffic_has_everything_that_was_asked_for(mode: Mode) -> None:
    found = events(spec(mode), 3, 4000)
    kinds = Counter(event.kind for event in found if isinstance(event, Packet))
    expected = {
        "announcement", "contribution", "acknowledgement", "NAK", "repeated", "stale", "gap", "beyond", "unrequested",
        "notification", "odd control", "spoilt", "other opcode", "malformed", "foreign", "ordinary", "noise",
        "question",
    }  # fmt: skip
    assert kinds.keys() == expected | ({"tick", "forged"} if mode.augmented else set())
    assert {e.verb for e in found if isinstance(e, Request)} == {"insert", "modify", "delete"}
    assert any(isinstance(e, Replication) for e in found)
    assert any(isinstance(e, Mirroring) for e in found) == mode.augmented
    assert len({e.frame[42] for e in found if isinstance(e, Packet) and e.kind == "other opcode"}) > 20
    assert all(e.port == PORT for e in found if isinstance(e, Packet) and e.kind == "tick")


def test_groups_have_every_role_and_pattern() -> None:
    """Over a few seeds: at the root of AllReduce and below it, refined and not, over several pipelines."""
    roots, patterns, contexts = set(), set(), set()
    for seed in range(8):
        for stream in RandomTraffic(spec(Mode.III, 4), seed).streams:
            contexts.add(len(stream.served.contexts))
            patterns.add(len(stream.served.patterns))
            for pattern in stream.served.patterns:
                roots.add((pattern.collective, pattern.toward is None))
    assert roots == {
        (Collective.ALLREDUCE, True), (Collective.ALLREDUCE, False), (Collective.REDUCE, False),
        (Collective.BROADCAST, False),
    }  # fmt: skip
    assert {1, 5} <= patterns
    assert {1, 2, 3} <= contexts


UNREACHED = {
    # Taking an entry away makes these, which chance may not do in so few packets.
    "FindContext_not_served", "ClassifyTraffic_no_pattern", "Forward_no_route", "TranslateHeader_unknown_edge",
    # A range of exactly N keeps a slot's next PSN out; only what an epoch left behind could come too late.
    "CheckDuplicate_stale",
}  # fmt: skip


@pytest.mark.sample(4)
@BOTH
@PIPELINES
def test_traffic_reaches_what_there_is_to_reach(mode: Mode, pipelines: int) -> None:
    """Every reason to drop, results over every edge, and in Mode III answers of all kinds."""
    of = spec(mode, pipelines)
    model = Model(compile_text(text(of), "program.p4").program, engine="jit", cache="")
    answers: Counter[int] = Counter()
    results = tagged = arp = 0
    for event, _, frame in carried_out(model, events(of, 1, 5000)):
        arp += frame[12:14] == b"\x08\x06"
        if frame[12:14] == b"\x81\x00":
            tagged += 1
            frame = frame[:12] + frame[16:]  # noqa: PLW2901 - the rest is as without
        if frame[36:38] == (4791).to_bytes(2) and len(frame) > 54 and event.kind != "ordinary":
            results += frame[42] < 5
            if frame[42] == 0x11:
                answers[frame[54]] += 1
            if frame[42] == 0x81:
                answers[0x81] += 1
    never = [
        drop.symbol
        for drop in compose(of).drops
        if model.counter(f"Inc{drop.module.gress.capitalize()}.drops", drop.index).packets == 0
    ]
    assert set(never) <= UNREACHED
    assert results > (300 if mode.stores else 800)  # messages of Mode I have to be whole at every source
    assert tagged > 100
    assert arp > 10
    if mode.augmented:
        assert min(answers[0x1F], answers[0x60], answers[0x21], answers[0x81]) > 5


@BOTH
@PIPELINES
def test_what_may_go_round_is_told_from_the_frame(mode: Mode, pipelines: int) -> None:
    of = spec(mode, pipelines)
    goes_round = partial(traffic_of(of).goes_round, of)
    for event in events(of, 5, 600):
        if isinstance(event, Packet) and event.kind in {"contribution", "tick", "ordinary", "NAK", "noise"}:
            round_ = pipelines > 1 or mode.stores or event.kind in ("tick", "NAK")
            inc = event.kind in ("contribution", "tick", "NAK")
            if inc:
                assert goes_round(event.frame) == (round_ and (mode.augmented or pipelines > 1))
            elif event.frame[36:38] != (4791).to_bytes(2):
                assert not goes_round(event.frame)


def test_ticks_are_addressed_to_edges() -> None:
    traffic = RandomTraffic(spec(Mode.III, 2), 4)
    edges = {(e.remote.ip, e.local.ip, e.local.qp): pipeline for s in traffic.streams for pipeline, e in s.served.edges}
    ticks = [e for e in itertools.islice(traffic.packets(), 2000) if isinstance(e, Packet) and e.kind == "tick"]
    assert len(ticks) > 50
    for tick in ticks:
        packet = parse(tick.frame)
        assert edges[packet.ip.src, packet.ip.dst, packet.bth.dst_qp] == packet.payload[0]  # the AETH's syndrome
        assert packet.sealed().to_bytes() == tick.frame  # checksums and ICRC are right


@pytest.mark.sample(1)
@pytest.mark.parametrize(("mode", "pipelines"), [(Mode.I, 2), (Mode.II, 1), (Mode.III, 2)])
@pytest.mark.long
def test_the_same_program_twice_shows_no_difference(place: Path, mode: Mode, pipelines: int) -> None:
    with ExitStack() as stack:
        compared, traffic = comparison(stack, place, spec(mode, pipelines), "none", 1)
        assert compared.run(traffic.packets(), 600) is None
        assert compared.tally.packets == 600
        assert compared.tally.states >= 2


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("fault", "mode", "pipelines"),
    [
        ("stale-starts-afresh", Mode.II, 1),
        ("overflow-uncounted", Mode.II, 1),
        ("ttl-kept", Mode.III, 1),
        ("never-new", Mode.I, 1),
        ("nothing-recirculates", Mode.II, 2),
    ],
)
@pytest.mark.long
def test_a_fault_is_found_reduced_and_saved(place: Path, fault: str, mode: Mode, pipelines: int) -> None:
    with ExitStack() as stack:
        compared, traffic = comparison(stack, place, spec(mode, pipelines, groups=pipelines, fan_in=4), fault, 2)
        found = compared.run(traffic.packets(), 2000)
        assert found is not None
        setup = traffic.setup()

        def fails(candidate: object) -> bool:
            assert isinstance(candidate, list | tuple)
            return compared.replay(candidate, setup) is not None

        shown = minimise(shortest_tail(found.events, fails), fails, PATIENCE_S)
        needed = minimise(setup, lambda candidate: compared.replay(shown, candidate) is not None, seconds=2.0)
        difference = compared.replay(shown, needed)
        assert difference is not None
        assert len(shown) <= 16
        files = save(place, compared, compared.left, difference, needed, shown, "a test")
    assert [f.name for f in files] == ["difference.pcap", "difference.stf", "difference.txt"]
    assert difference.what in files[2].read_text()
    statements = parse_file(files[1])
    sound = compile_file(place / "sound" / "program.p4").program
    assert run(sound, statements).passed
    assert not run(compile_file(place / "faulty" / "program.p4").program, statements).passed


def test_a_cursor_that_skips_a_slot_is_found(place: Path) -> None:
    with ExitStack() as stack:
        compared, traffic = comparison(stack, place, spec(Mode.III), "cursor-skips", 2)
        assert compared.run(traffic.packets(), 2000) is not None


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


def test_a_clone_of_an_ack_may_leave_later_than_what_came_after() -> None:
    """BMv2's egress clones wait behind what is queued for their port by then; all else keeps its order."""
    of = spec(Mode.III)
    model = Model(compile_text(text(of), "program.p4").program, engine="jit", cache="")
    frames: dict[int, list[bytes]] = {}
    for _, port, frame in carried_out(model, events(of, 1, 3000)):
        frames.setdefault(port, []).append(frame)
    late = 0
    for port, sent in frames.items():
        for ack, cnp, after in zip(sent, sent[1:], sent[2:], strict=False):
            cloned = ack[42:43] == b"\x11" and cnp[42:43] == b"\x81" and ack[18:20] == cnp[18:20]
            if not cloned or after[42:43] == b"\x81":
                continue
            late += 1
            assert canonical_order({port: [ack, cnp, after]}) == canonical_order({port: [ack, after, cnp]})
            for wrong in ([cnp, ack, after], [after, ack, cnp], [ack, after]):
                assert canonical_order({port: [ack, cnp, after]}) != canonical_order({port: wrong})
            assert canonical_order({port: [cnp, after]}) != canonical_order({port: [after, cnp]})
    assert late > 5


@pytest.mark.parametrize("limit", [None, (1 << 31) - 1])
def test_registers_that_differ_are_shown_by_their_fields(place: Path, limit: int | None) -> None:
    """Unless a side cuts off large values: those have no fields."""
    of = spec()
    program = checked(text(of), "program", place / "sound", for_bmv2=False, faulty=False)
    with ExitStack() as stack:
        left, right = (stack.enter_context(embedded_side(program, place / n, of.ports)) for n in ("left", "right"))
        compared = Comparison(left, right, [], compose(of).words)
        psn, epoch = 0x123456, 3
        cell = Readout({}, {"IncIngress.check_duplicate.slots": [epoch << 64 | psn << 40 | 5]})
        right.register_limit = limit
        for side, state in zip((left, right), (cell, Readout({}, {name: [0] for name in cell.registers})), strict=True):
            side.state = lambda state=state: state  # type: ignore[method-assign, misc]
        difference = compared.replay([])
    assert difference is not None
    (detail,) = difference.details
    assert ("(epoch=3 psn=0x123456 ack_request=0 ecn=0 opcode=0 bitmap=5)" in detail) == (limit is None)
