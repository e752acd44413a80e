"""SCIN's random traffic: it reaches all modules and all ends of calls, and shows faults; BMv2 where it is installed."""

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
from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.conformance import small
from p4gen.papers.scin.headers import ANNOUNCED
from p4gen.papers.scin.spec import ScinSpec
from p4gen.program import compose, render
from p4gen.ptf.family import conformance_of
from p4gen.rocev2.headers import HeaderError
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse
from p4gen.switch.bmv2 import check_tools
from p4gen.switch.running import scratch

PROGRAMS: tuple[dict[str, Any], ...] = (
    {},
    {"op": "max", "dtype": "uint32"},
    {"waves": 8, "wave": 1, "overflow": "wrap"},
    {"dtype": "bfloat16"},
    {"dtype": "mxint8", "lanes": 32},
    {"dtype": "int8_float16", "lanes": 64},
    {"dtype": "mxint8", "lanes": 32, "exact": "int32"},
)

SEEDING = conformance_of(ScinSpec()).seeding(ScinSpec())
AMONG_THEM = {"arrival", "arrival again", "response", "ACK", "NAK", "refusal", "tick", "notification", "question"}


def missing() -> str:
    try:
        check_tools()
    except MissingToolError as error:
        return str(error)
    return ""


def events(spec: ScinSpec, seed: int, packets: int) -> list[Event]:
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


def switch(spec: ScinSpec, text: str | None = None) -> Model:
    return Model(compile_text(text or render(compose(spec)).text).program, engine="interp")


def ours(frame: bytes) -> RocePacket | None:
    """A frame of the switch's own endpoint."""
    try:
        packet = parse(frame)
    except HeaderError:
        return None
    return packet if packet.ip.src == 0x0AFE0001 else None


@pytest.mark.sample(1)
@pytest.mark.parametrize("fields", PROGRAMS, ids=str)
@pytest.mark.long
def test_traffic_reaches_every_module(fields: dict[str, Any]) -> None:
    """Every reason for a drop is given, calls end in every way, and all that ranks can be sent is sent, also again."""
    spec = small(patience=3, **fields)
    model, kinds, sent = switch(spec), Counter[str](), Counter[str]()
    written: set[tuple[int, int, int]] = set()
    seed = 4 if spec.exact else 3  # one with which there is a copy whose entry of `edges` is away
    for event in events(spec, seed, 4500):
        for _, frame in carried_out(model, event):
            packet = ours(frame)
            if packet is None:
                continue
            if packet.immdt is not None:
                sent[f"flag {Status(packet.immdt.value >> ANNOUNCED.ends('packets')[0] + 1)}"] += 1
            elif packet.bth.opcode == Opcode.WRITE_ONLY:
                key = packet.ip.dst, packet.bth.dst_qp, packet.bth.psn
                sent["write again" if key in written else "write"] += 1
                written.add(key)
            else:
                sent[Opcode(packet.bth.opcode).name] += 1
        if isinstance(event, Packet):
            kinds[event.kind] += 1
    dropped = {
        f"{drop.module.name}.{drop.drop.reason}": model.counter(
            f"Inc{drop.module.gress.capitalize()}.drops", drop.index
        ).packets
        for drop in compose(spec).drops
    }
    assert [name for name, packets in dropped.items() if not packets] == []
    assert set(kinds) >= AMONG_THEM | ({"scales", "scales out of turn"} if spec.scaled else set())
    assert sent["flag 0"] > 100
    assert min(sent[f"flag {status}"] for status in (1, 2, 3)) >= 3
    assert sent["write"] > 250
    assert sent["write again"] > 30
    assert sent["READ_REQUEST"] > 150


def test_a_seed_gives_the_same_events_every_time() -> None:
    assert events(small(), 7, 200) == events(small(), 7, 200)
    assert events(small(), 7, 200) != events(small(), 8, 200)


@pytest.mark.long
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "fault",
    ["holes-overtaken", "fastest-frees", "reread-once", "rewrite-to-all", "late-response-merges", "no-patience"],
)
def test_traffic_shows_faults(fault: str) -> None:
    spec = small()
    text = render(compose(spec)).text
    (mutation,) = (each for each in SEEDING.mutations if each.name == fault)
    sound, faulty = switch(spec, text), switch(spec, mutation.apply(text))
    differing = (carried_out(sound, event) != carried_out(faulty, event) for event in events(spec, 4, 3000))
    assert any(differing)


def test_a_program_without_room_is_refused() -> None:
    with pytest.raises(InputError, match="random traffic needs 3 edges"):
        traffic_of(small(edges=2)).source(small(edges=2), 1)


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("fields", PROGRAMS[:1], ids=str)
def test_bmv2_does_what_the_model_does(fields: dict[str, Any], tmp_path: Path) -> None:
    spec = small(**fields)
    with scratch() as place:
        result = Job(spec, render(compose(spec)).text, 3, 400, tmp_path, place, reduce=False).run()
    assert result.difference is None, result.difference
    assert result.tally.packets == 400
    assert result.tally.outputs > 100
