"""Cursors that a new generation of their context overtakes, between two of their passes.

Scenarios cannot show this: on a target that recirculates in no time, nothing comes between passes. Here the packet that
goes round is held, as in a network whose ``recirculation_delay`` is more than 0.
"""

from __future__ import annotations

import pytest

from p4gen.model import Model
from p4gen.model.passes import HELD
from p4gen.p4.compile import compile_text
from p4gen.papers.multiwrite.conformance import small
from p4gen.papers.multiwrite.control import WriteContext
from p4gen.papers.multiwrite.spec import Repair
from p4gen.papers.multiwrite.traffic.frames import Star, answer, write
from p4gen.program import compose, render
from p4gen.ptf.mutations import Mutation
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Nak, NakCode
from p4gen.rocev2.packet import parse

SPEC = small(repair=Repair.HOP)
STAR = Star(SPEC)
FIRST = 0x500
NAK = Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome
FAULTS = {
    fault.name: fault
    for fault in (
        Mutation("epoch-of-slot-ignored", "HoldPacket", "} else if (word[130:123] == meta.source.epoch) {", "} else {"),
        Mutation(
            "psn-of-slot-ignored",
            "HoldPacket",
            "if (word[122:99] == psn) { meta.held.complete = lacks; }",
            "meta.held.complete = lacks;",
        ),
    )
}


class Switch:
    """A switch whose packets that go round wait."""

    def __init__(self, fault: str = "") -> None:
        text = render(compose(SPEC)).text
        self.model = Model(compile_text(FAULTS[fault].apply(text) if fault else text).program)
        self.model.hold_recirculated()
        self.waiting: list[bytes] = []
        self.context = STAR.context(0, 1, 1, FIRST)
        STAR.config([self.context]).install(self.model)

    def renew(self, first_psn: int) -> None:
        """The context begins anew."""
        self.context = STAR.context(0, 1, 2, first_psn)
        entries = STAR.config([self.context]).entries
        self.model.modify(*(entry for entry in entries if entry.table == "contexts"))

    def post(self, psn: int, edge: int) -> list[tuple[int, bytes]]:
        """The source's ``psn``-th write, to the destination behind an edge."""
        data = bytes([psn + 1, self.context.epoch]) * (SPEC.payload // 2)
        return self.take(0, write(SPEC, self.context, psn, 1 << edge - 1, data).sealed().to_bytes())

    def nak(self, context: WriteContext, edge: int, psn: int) -> list[tuple[int, bytes]]:
        """The destination behind an edge lacks its ``psn``-th copy."""
        ends = next(each for each in context.edges if each.edge == edge)
        return self.take(edge - 1, answer(context, ends, psn, NAK).sealed().to_bytes())

    def again(self) -> list[tuple[int, bytes]]:
        """A pass of the cursor."""
        return self.take(HELD, self.waiting.pop())

    def take(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        sent = self.model.process(port, frame)
        self.waiting += [packet for out, packet in sent if out == HELD]
        return [(out, packet) for out, packet in sent if out != HELD]

    def ended(self) -> int:
        """Cursors that have found nothing to send."""
        (drop,) = (
            each for each in compose(SPEC).drops if (each.module.name, each.drop.reason) == ("Retransmission", "done")
        )
        return self.model.counter("IncIngress.drops", drop.index).packets


def cursor(fault: str = "") -> Switch:
    """Three copies are at edge 2; the cursor of a NAK has sent the first one again, and waits before the second."""
    switch = Switch(fault)
    for psn in range(3):
        assert len(switch.post(psn, 2)) == 1
    assert switch.nak(switch.context, 2, 0) == []
    ((port, packet),) = switch.again()
    assert (port, parse(packet).bth.psn) == (1, FIRST)
    return switch


def test_a_cursor_goes_on_after_a_wait() -> None:
    switch = cursor()
    switch.post(3, 3)
    assert [parse(packet).bth.psn for _ in range(2) for _, packet in switch.again()] == [FIRST + 1, FIRST + 2]
    assert switch.waiting == []
    assert switch.ended() == 0


def of_an_old_generation(fault: str = "") -> Switch:
    """The slot under the cursor has the PSN that it looks for, but of the generation before."""
    switch = cursor(fault)
    switch.renew(FIRST + 1)
    return switch


def of_another_packet(fault: str = "") -> Switch:
    """The slot under the cursor has a packet of the new generation, which went to another edge, under another PSN."""
    switch = cursor(fault)
    switch.renew(serial.add(FIRST, 1 - SPEC.slots))
    assert [port for port, _ in switch.post(0, 3)] == [2]
    return switch


def test_a_cursor_ends_at_a_slot_of_an_old_generation() -> None:
    switch = of_an_old_generation()
    assert switch.again() == []
    assert switch.waiting == []
    assert switch.ended() == 1


def test_a_cursor_ends_at_a_slot_with_another_packet() -> None:
    switch = of_another_packet()
    assert switch.again() == []
    assert switch.waiting == []
    assert switch.ended() == 1


@pytest.mark.parametrize(
    ("fault", "overtaken"),
    [("epoch-of-slot-ignored", of_an_old_generation), ("psn-of-slot-ignored", of_another_packet)],
)
def test_without_the_check_it_sends_what_is_not_its_edges(fault: str, overtaken: object) -> None:
    assert callable(overtaken)
    assert len(overtaken(fault).again()) == 1
