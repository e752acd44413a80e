"""MultiWrite's random traffic: it reaches all modules, and shows faults; BMv2 where it is installed."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from p4gen.difftest.events import Event, Packet, Replication, Request
from p4gen.difftest.family import traffic_of
from p4gen.difftest.run import Job
from p4gen.errors import InputError, MissingToolError
from p4gen.model import Model
from p4gen.model.errors import ControlError
from p4gen.p4.compile import compile_text
from p4gen.papers.multiwrite.conformance import small
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.program import compose, render
from p4gen.program.compilation import compile_spec
from p4gen.ptf.family import conformance_of
from p4gen.rocev2 import icrc
from p4gen.rocev2.headers import HeaderError
from p4gen.rocev2.packet import parse
from p4gen.switch.bmv2 import check_tools
from p4gen.switch.running import scratch
from p4gen.vocabulary import Icrc

PROGRAMS: tuple[dict[str, Any], ...] = (
    {},
    {"receivers": 64, "place": "append", "replicate": "prune"},
    {"repair": "hop"},
    {"repair": "hop", "receivers": 64, "place": "append"},
    {"icrc": "patch", "receivers": 64},
    {"repair": "hop", "combine": "int32"},
    {"repair": "hop", "combine": "bfloat16", "replicate": "prune", "place": "append"},
)

SEEDING = conformance_of(MultiwriteSpec()).seeding(MultiwriteSpec())
UNREACHED = {"Retransmission.done"}
"""A cursor is overtaken only by packets that come between its passes; here each goes all its way first."""


def missing() -> str:
    try:
        check_tools()
    except MissingToolError as error:
        return str(error)
    return ""


def events(spec: MultiwriteSpec, seed: int, packets: int) -> list[Event]:
    source = traffic_of(spec).source(spec, seed)
    found, left = source.setup(), packets
    for event in source.packets():
        found.append(event)
        left -= isinstance(event, Packet)
        if not left:
            return found
    raise AssertionError


def carried_out(model: Model, event: Event) -> list[tuple[int, bytes]]:
    if isinstance(event, Packet):
        return model.process(event.port, event.frame)
    with suppress(ControlError):  # an entry may be restored twice
        if isinstance(event, Request):
            getattr(model, event.verb)(event.entry)
        elif isinstance(event, Replication):
            model.set_multicast_group(event.group)
        else:
            model.set_clone_session(event.session)
    return []


def switch(spec: MultiwriteSpec, text: str | None = None) -> Model:
    return Model(compile_text(text or render(compose(spec)).text).program, engine="interp")


@pytest.mark.sample(2)
@pytest.mark.parametrize("fields", PROGRAMS, ids=str)
def test_traffic_reaches_every_module(fields: dict[str, Any]) -> None:
    """Every reason for a drop is given, most writes are taken, and each edge sends and hears something."""
    spec = small(**fields)
    model, copies, kinds = switch(spec), Counter[int](), Counter[str]()
    for event in events(spec, 3, 3000):
        copies.update(port for port, _ in carried_out(model, event))
        if isinstance(event, Packet):
            kinds[event.kind] += 1
    dropped = {
        f"{drop.module.name}.{drop.drop.reason}": model.counter(
            f"Inc{drop.module.gress.capitalize()}.drops", drop.index
        ).packets
        for drop in compose(spec).drops
    }
    assert {name for name, packets in dropped.items() if not packets} <= UNREACHED
    assert dropped["CheckOrder.gap"] < 0.6 * (kinds["write"] + kinds["output"])
    assert set(copies) >= set(range(spec.edges))
    assert {"write", "write again", "ACK", "NAK", "notification", "question"} <= set(kinds)
    assert ("tick" in kinds) == spec.holds


def sound(frame: bytes) -> bool:
    """Whether a frame is no datagram with a wrong ICRC."""
    try:
        parse(frame)
    except HeaderError:
        return True
    return icrc.check(frame)


@pytest.mark.parametrize("fields", [{}, {"receivers": 64, "place": "append", "replicate": "prune"}], ids=str)
@pytest.mark.long
def test_patched_icrcs_are_those_that_are_recomputed(fields: dict[str, Any]) -> None:
    """Packets whose ICRC is right cause the same frames, whether their ICRC is patched or computed again."""
    patching, computing = small(icrc=Icrc.PATCH, **fields), small(**fields)
    one, other = (Model(compile_spec(spec).program) for spec in (patching, computing))
    copies = 0
    for event in events(patching, 5, 3000):
        if isinstance(event, Packet) and not sound(event.frame):
            continue
        outputs = carried_out(one, event)
        assert outputs == carried_out(other, event)
        copies += len(outputs)
    assert copies > 1000


def test_a_seed_gives_the_same_events_every_time() -> None:
    assert events(small(), 7, 200) == events(small(), 7, 200)
    assert events(small(), 7, 200) != events(small(), 8, 200)


@pytest.mark.parametrize(
    ("fault", "fields"),
    [
        ("bitmap-not-rewritten", {}),
        ("ring-off-by-one", {}),
        ("nak-acknowledges-its-own", {}),
        ("repeat-gets-new-psn", {}),
        ("cursor-psn-of-source", {"repair": "hop"}),
    ],
)
@pytest.mark.sample(2)
def test_traffic_shows_faults(fault: str, fields: dict[str, Any]) -> None:
    spec = small(**fields)
    text = render(compose(spec)).text
    (mutation,) = (each for each in SEEDING.mutations if each.name == fault)
    sound, faulty = switch(spec, text), switch(spec, mutation.apply(text))
    differing = (carried_out(sound, event) != carried_out(faulty, event) for event in events(spec, 3, 3000))
    assert any(differing)


def test_a_program_without_room_is_refused() -> None:
    with pytest.raises(InputError, match="random traffic needs 3 edges"):
        traffic_of(small(edges=2)).source(small(edges=2), 1)


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("fields", PROGRAMS[::2], ids=str)
def test_bmv2_does_what_the_model_does(fields: dict[str, Any], tmp_path: Path) -> None:
    spec = small(**fields)
    with scratch() as place:
        result = Job(spec, render(compose(spec)).text, 3, 400, tmp_path, place, reduce=False).run()
    assert result.difference is None, result.difference
    assert result.tally.packets == 400
    assert result.tally.outputs > 100
