"""The duties of switches that end connections toward the other end, packet by packet, with any recovery: answers and
retransmissions. Timers repair what breaks these rules, so no result would show it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Final

from typing_extensions import override

from p4gen.host.transport.verbs import Recovery
from p4gen.layout import Word
from p4gen.rocev2.layouts import ROCE, ROCE_ANSWER
from p4gen.rocev2.opcodes import FIRST_NAK, Nak, NakCode, Opcode
from p4gen.rocev2.psn import add, diff
from p4gen.verification.parts.monitors import Monitor, Sent, is_data

_OPCODE_AT: Final = ROCE.at("bth.opcode")
_PSN: Final = ROCE.bytes("bth.psn")
_DEST_QP: Final = ROCE.bytes("bth.dest_qp")
_ASKS_AT: Final = ROCE.at("bth.ack_request")
_ASKS: Final = 0x80
_SYNDROME_AT: Final = ROCE_ANSWER.at("aeth.syndrome")
_MSN: Final = ROCE_ANSWER.bytes("aeth.msn")
_NAK: Final = Nak().syndrome
_SELECTIVE: Final = Nak(NakCode.SELECTIVE).syndrome

Answer = tuple[int, int, int]
"""Syndrome, PSN, MSN."""


@dataclass(frozen=True)
class _Order:
    """The state of a receiver for one connection."""

    port: int
    qp: int
    next: int
    """The PSN after the newest one."""
    announced: int
    """The last PSN that a control message has announced."""
    missing: tuple[int, ...] = ()
    reported: bool = False
    """Whether a NAK has asked for the oldest missing PSN since it became the oldest."""

    @property
    def oldest(self) -> int:
        return self.missing[0] if self.missing else self.next


class Receiver(Monitor):
    """A receiver reports a gap when a packet shows it: the oldest missing PSN in a NAK (InfiniBand 9.7.5.2.8), or each
    gap in a selective NAK. It answers packets that ask for an ACK or close a gap, and acknowledges no other new packet.

    It takes packets in order; or else data that is announced in any order, and control messages in order
    (docs/modes.md).
    """

    first: Hashable = ()
    excused = False

    def __init__(
        self, first_psn: Callable[[int], int], ports: dict[int, int], recovery: Recovery, announces: Word
    ) -> None:
        self._first_psn = first_psn
        """The first PSN that a QP receives."""
        self._announces = announces
        self._ports = ports
        """The outgoing link of each port."""
        self._recovery = recovery

    @override
    def step(
        self, record: tuple[tuple[Any, ...], ...], port: int, arrived: Sequence[bytes], sent: Sent
    ) -> tuple[Hashable, str]:
        known = {entry[:2]: _Order(*entry) for entry in record}
        problem = ""
        for frame in filter(is_data, arrived):
            key = port, int.from_bytes(frame[_DEST_QP])
            first = self._first_psn(key[1])
            order = known.get(key) or _Order(*key, first, add(first, -1))
            answers = [
                _answer(frame)
                for link, out in sent
                if link == self._ports.get(port)
                for frame in out
                if _is_answer(frame)
            ]
            known[key], wrong = self._take(order, frame, answers)
            problem = problem or wrong
        return tuple(sorted(astuple(order) for order in known.values())), problem

    @override
    def waits(self, record: Any) -> bool:
        return False

    def _take(self, before: _Order, frame: bytes, answers: Sequence[Answer]) -> tuple[_Order, str]:
        psn, control = int.from_bytes(frame[_PSN]), frame[_OPCODE_AT] == Opcode.SEND_ONLY_IMM
        if diff(psn, before.next) < 0 and psn not in before.missing:
            return before, ""  # a duplicate
        if any(
            syndrome >= FIRST_NAK and (syndrome not in (_NAK, _SELECTIVE) or at == psn) for syndrome, at, _ in answers
        ):
            return replace(before, reported=True), ""  # refused for now
        in_order = self._recovery is Recovery.GO_BACK_N
        if not (psn == before.oldest if in_order or control else diff(psn, before.announced) <= 0):
            return _reported(before, answers)
        late, opened = psn in before.missing, max(0, diff(psn, before.next))
        after = replace(
            before,
            next=before.next if late else add(psn, 1),
            announced=add(psn, self._announces.unpack(int.from_bytes(frame[_PSN.stop :][:4]))["packets"])
            if control
            else before.announced,
            missing=tuple(each for each in before.missing if each != psn)
            + tuple(add(before.next, offset) for offset in range(opened)),
        )
        after = replace(after, reported=before.reported and after.oldest == before.oldest)
        asks = frame[_ASKS_AT] & _ASKS
        if (asks or late) and not answers:
            return after, f"PSN {psn:#x} {'asks for an ACK' if asks else 'closes a gap'}, and is not answered"
        if not (asks or late) and any(syndrome < FIRST_NAK for syndrome, *_ in answers):
            return after, f"PSN {psn:#x} does not ask for an ACK, and is acknowledged"
        if self._recovery is Recovery.SELECTIVE_REPEAT and after.missing:
            return _reported(after, answers)
        if self._recovery is Recovery.IDEAL and opened and (_SELECTIVE, before.next, opened) not in answers:
            return after, f"{opened} packets from PSN {before.next:#x} on are missing, and no selective NAK says so"
        return after, ""


class Resends(Monitor):
    """A sender retransmits what is asked for, and asks for an ACK of it, as the ACK may be what was lost.
    Retransmissions of a timer leave over one edge.

    With selective repeat an ACK asks for the packet after it, if its edge has sent a NAK before: the next hole is
    repaired when the oldest is closed (RepairHoles in docs/modes.md). ``record`` has the edges that have sent one.
    """

    first: Hashable = ()
    excused = False

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery

    @override
    def step(
        self, record: tuple[tuple[int, int], ...], port: int, arrived: Sequence[bytes], sent: Sent
    ) -> tuple[Hashable, str]:
        again = [frame for _, frames in sent for frame in frames if is_data(frame)]
        if not arrived and sum(any(map(is_data, frames)) for _, frames in sent) > 1:
            return record, "what a timer makes it send again leaves over more than one edge"
        for cause in arrived:
            if is_data(cause):
                continue
            edge = port, int.from_bytes(cause[_DEST_QP])
            reported = edge in record
            if self._recovery is Recovery.SELECTIVE_REPEAT and _is_answer(cause) and _answer(cause)[0] == _NAK:
                record = tuple(sorted({*record, edge}))
            for frame in again:
                psn = int.from_bytes(frame[_PSN])
                if _is_answer(cause) and not self._is_requested_by(_answer(cause), psn, reported=reported):
                    return record, f"PSN {psn:#x} is sent again, and the answer does not ask for it"
                if not frame[_ASKS_AT] & _ASKS:
                    return record, f"PSN {psn:#x} is sent again, and does not ask for an ACK"
        return record, ""

    @override
    def waits(self, record: Any) -> bool:
        return False

    def _is_requested_by(self, answer: Answer, psn: int, *, reported: bool) -> bool:
        syndrome, first, count = answer
        ahead = diff(psn, first)
        if syndrome == _SELECTIVE:
            return 0 <= ahead < count
        if syndrome < FIRST_NAK:
            return reported and ahead == 1
        return syndrome == _NAK and (ahead >= 0 if self._recovery is Recovery.GO_BACK_N else ahead == 0)


def _reported(order: _Order, answers: Sequence[Answer]) -> tuple[_Order, str]:
    """Check that missing packets have been reported before, or are reported now."""
    if order.reported or any(answer[:2] == (_NAK, order.oldest) for answer in answers):
        return replace(order, reported=True), ""
    return order, f"PSN {order.oldest:#x} is missing, and no NAK says so"


def _is_answer(frame: bytes) -> bool:
    return frame[_OPCODE_AT] == Opcode.ACKNOWLEDGE


def _answer(frame: bytes) -> Answer:
    return frame[_SYNDROME_AT], int.from_bytes(frame[_PSN]), int.from_bytes(frame[_MSN])
