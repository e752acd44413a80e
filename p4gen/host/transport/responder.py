"""The receiving half of a reliable connection (InfiniBand volume 1, 9.7.1, 9.7.4 and 9.7.5; Themis §2.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from p4gen.host.transport.execution import Execution
from p4gen.host.transport.parts import Pair
from p4gen.host.transport.verbs import Completion, Recovery, RecvWr, Status
from p4gen.host.transport.wire import BODY_AT
from p4gen.rocev2.headers import RETH, ImmDt
from p4gen.rocev2.opcodes import (
    Ack,
    Nak,
    NakCode,
    Opcode,
    RnrNak,
    ends_message,
    has_imm,
    has_reth,
    is_send,
    is_write,
    starts_message,
)

EXECUTED: Final = frozenset({int(Opcode.READ_REQUEST), int(Opcode.FETCH_ADD), int(Opcode.COMPARE_SWAP)})
_ICRC: Final = 4
_HALF: Final = 1 << 23
_MASK: Final = (1 << 24) - 1
_ACK: Final = Ack().syndrome
_SELECTIVE: Final = Nak(NakCode.SELECTIVE).syndrome

TRAITS: Final[dict[int, tuple[bool, bool, bool, bool, int]]] = {
    int(o): (
        starts_message(o),
        ends_message(o),
        is_send(o),
        has_imm(o),
        BODY_AT + RETH.SIZE * has_reth(o) + ImmDt.SIZE * has_imm(o),
    )
    for o in Opcode
    if is_send(o) or is_write(o)
}
"""By opcode: whether it starts and ends a message, is a SEND, has immediate data, and where the payload begins."""


@dataclass
class ReceiveStats:
    """Counters of one responder, in packets."""

    received: int = 0
    duplicates: int = 0
    out_of_order: int = 0
    naks: int = 0
    rnr_naks: int = 0
    cnps: int = 0


class Responder:
    """Accepts packets in order, stores their data, and reports missing ones."""

    STATE: ClassVar = (
        "_receives", "expected", "msn", "_nak_sent", "_kept", "_seen", "_holes", "_waits_since", "_inside", "_room",
        "_size", "_wr", "_filled", "execution", "stats",
    )  # fmt: skip

    def __init__(self, qp: Pair) -> None:
        self._qp = qp
        self._c = qp.config
        self._mtu = qp.config.mtu
        self._receives: deque[RecvWr] = deque()
        self.expected = 0
        """The next packet in order; its PSN is the ePSN."""
        self.msn = 0
        """Number of completed messages, modulo 2^24."""
        self._nak_sent = False
        self._kept: dict[int, tuple[int, bool, bytes]] = {}
        self._seen = 0
        self._holes: deque[tuple[int, int]] = deque()
        self._waits_since: int | None = None
        """Number of packets that had arrived when it began to wait for the last results."""
        self._inside: bool | None = None
        """Whether the message that is incomplete is a SEND; None between messages."""
        self._room: memoryview = memoryview(b"")
        self._size = 0
        self._wr: RecvWr | None = None
        self._filled = 0
        self.execution = Execution()
        self.stats = ReceiveStats()

    def post(self, wr: RecvWr) -> None:
        """Add a buffer for a message."""
        self._receives.append(wr)

    def psn(self, seq: int) -> int:
        """The PSN of a packet, from its number."""
        return (self._c.received_psn + seq) & _MASK

    def move(self, psn: int) -> None:
        """Expect ``psn`` next; see ``QueuePair.set_rq_psn``."""
        ahead = (psn - self.psn(self.expected)) & _MASK
        if self._inside is not None or ahead >= _HALF:
            why = "received" if self._inside is None else "inside a message"
            raise ValueError(f"PSN {psn:#08x} cannot be set: {why}")
        self.expected += ahead
        self._kept = {seq: kept for seq, kept in self._kept.items() if seq >= self.expected}
        self._nak_sent = False

    @property
    def posted(self) -> int:
        """Number of receives that are posted and not used."""
        return len(self._receives)

    @property
    def misses(self) -> bool:
        """Whether this end requests the missing result by sending its own contribution again (``ideal`` in Mode II).

        The ACK of that contribution covers everything before it. But a result beyond everything sent, such as that of
        the next collective's root, may be refused until an earlier contribution is acknowledged, and only the timer
        requests it.
        """
        return any(self._qp.requester.outstanding(seq) for _, seq in self._holes)

    @property
    def kept(self) -> list[int]:
        """Packets that arrived out of order and are kept, in order: NIC-SR's bitmap."""
        return sorted(self._kept)

    def on_request(self, opcode: int, psn: int, ack_request: bool, frame: bytes) -> None:
        """Handle a request packet of this connection."""
        ahead = (psn - self._c.received_psn - self.expected) & _MASK
        ack_request = ack_request and opcode not in EXECUTED  # its response takes the place of an ACK
        if ahead == 0:
            if self._accept(opcode, frame):
                self._nak_sent = False
                if self._kept:
                    ack_request |= self._take_kept()
                    if self._kept and self._c.recovery is Recovery.IDEAL and not self._c.selective_naks:
                        self._ask_for_oldest()
                if ack_request and not self._qp.broken:
                    self._qp.acknowledge()
        elif ahead >= _HALF:
            # A duplicate: the ACK may have been lost, so everything that has arrived is acknowledged again (9.7.4.2.1).
            self.stats.duplicates += 1
            if opcode in EXECUTED:
                # A READ or atomic operation has no ACK but its response (9.7.4.1.2).
                self.execution.repeat(self._qp, opcode, self.expected + ahead - _MASK - 1, frame, self.msn)
            else:
                self._qp.acknowledge()
        else:
            self._ahead_of_turn(self.expected + ahead, opcode, ack_request, frame)

    def _ahead_of_turn(self, seq: int, opcode: int, ack_request: bool, frame: bytes) -> None:
        self.stats.out_of_order += 1
        if self._c.recovery is not Recovery.GO_BACK_N:
            if seq - self.expected >= 1 << 16:
                return  # no NIC can keep that many
            self._kept.setdefault(seq, (opcode, ack_request, frame))
        if self._c.recovery is Recovery.IDEAL:
            missing = range(max(self._seen, self.expected), seq)
            self._ask_for(missing)
            for each in missing:
                self._watch(each)
            self._seen = max(self._seen, seq + 1)
        elif not self._nak_sent and self._c.recovery is not Recovery.ORACLE:
            self._nak_sent = True
            self._nak(self.expected)

    def _nak(self, seq: int) -> None:
        self.stats.naks += 1
        self._qp.answer(self.psn(seq), Nak().syndrome)

    def _ask_for(self, missing: Sequence[int], *, again: bool = False) -> None:
        """Request missing packets (``ideal`` only).

        In Mode II a rank's own contribution makes the switch send its result again, and the contribution is not
        acknowledged before that. A rank that has sent none requests the oldest packet, as NIC-SR does; switches that
        aggregate ACKs treat a NAK as an ACK of everything before it. In Mode III selective NAKs name all missing
        packets, one NAK per run of them. With ``again``, the packets may have been lost on the way out, together with
        the switch's notification.
        """
        if again or not self._c.selective_naks:
            for seq in missing:
                self._qp.requester.miss(seq)
        if not self._c.selective_naks:
            if self.expected in missing:
                self._ask_for_oldest()
            return
        start = 0
        for i, seq in enumerate(missing, 1):
            if i == len(missing) or missing[i] != seq + 1:
                self.stats.naks += 1
                self._qp.answer(self.psn(missing[start]), _SELECTIVE, i - start)
                start = i

    def _ask_for_oldest(self) -> None:
        if not self._qp.requester.outstanding(self.expected):
            self._nak(self.expected)

    def _watch(self, seq: int) -> None:
        """Request ``seq`` again after each timeout, until it arrives (``ideal`` only)."""
        if self._c.timeout_ps:
            self._holes.append((self._qp.clock.now + self._c.timeout_ps, seq))
            if len(self._holes) == 1:
                self._qp.clock.at(self._holes[0][0], self._still_missing)

    def _still_missing(self, _: object) -> None:
        now = self._qp.clock.now
        missing = []
        while self._holes and self._holes[0][0] <= now:
            _, seq = self._holes.popleft()
            if seq >= self.expected and seq not in self._kept and self._qp.broken is None:
                missing.append(seq)
        self._ask_for(missing, again=True)
        self._holes += [(now + self._c.timeout_ps, seq) for seq in missing]
        if self._holes:
            self._qp.clock.at(self._holes[0][0], self._still_missing)

    def await_rest(self) -> None:
        """Everything sent is acknowledged, so no later result will reveal which results are missing. If none arrives
        for a timeout, they are requested (``ideal`` in Mode III only)."""
        if self._waits_since is None and self._c.timeout_ps and self._lacks_rest():
            self._waits_since = self._arrived()
            self._qp.clock.at(self._qp.clock.now + self._c.timeout_ps, self._rest_overdue)

    def _rest_overdue(self, _: object) -> None:
        before, self._waits_since = self._waits_since, None
        if self._qp.broken is not None or not self._lacks_rest():
            return
        if self._arrived() == before:
            missing = range(max(self._seen, self.expected), self._qp.requester.high)
            self._ask_for(missing)
            for each in missing:
                self._watch(each)
            self._seen = self._qp.requester.high
        else:
            self.await_rest()

    def _lacks_rest(self) -> bool:
        """Whether receives are posted for packets after the last one that has arrived."""
        return bool(self._receives) and max(self._seen, self.expected) < self._qp.requester.high

    def _arrived(self) -> int:
        return self.stats.received + self.stats.out_of_order + self.stats.duplicates

    def _take_kept(self) -> bool:
        """Process the kept packets that are now in order. Returns whether one of them asked for an ACK."""
        asked = False
        while (kept := self._kept.pop(self.expected, None)) is not None:
            if not self._accept(kept[0], kept[2]):
                break
            asked |= kept[1]
        return asked

    # --- packets in order ---

    def _accept(self, opcode: int, frame: bytes) -> bool:
        """Process the expected packet. Returns False when it was refused and answered."""
        traits = TRAITS.get(opcode)
        if traits is None:
            return self._execute(opcode, frame)
        starts, ends, send, immediate, body = traits
        inside = self._inside
        # A first packet is valid only between messages; the others must continue the same kind of message.
        if starts != (inside is None) or (inside is not None and send is not inside):
            return self._refuse(NakCode.INVALID_REQUEST)
        size = len(frame) - body - _ICRC
        mtu = self._mtu
        # FIRST and MIDDLE fill the path MTU exactly; a LAST is not empty (9.7.4.1.6).
        if size < 0 or size > mtu or (not ends and size != mtu) or (ends and not starts and size == 0):
            return self._refuse(NakCode.INVALID_REQUEST)
        if starts and not self._start(opcode, frame, size):
            return False
        if ends and immediate and self._wr is None and self._take_receive() is None:
            return False
        if size:
            filled = self._filled
            upto = self._filled = filled + size
            if upto > self._size:
                return self._overrun()
            self._room[filled:upto] = frame[body:-_ICRC]
        self.stats.received += 1
        self.expected += 1
        if not ends:
            self._inside = send
        else:
            self._inside = None
            self._finish(int.from_bytes(frame[body - ImmDt.SIZE : body]) if immediate else None)
        return True

    def _execute(self, opcode: int, frame: bytes) -> bool:
        """A READ or an atomic operation: its responses are queued, and take as many PSNs."""
        if opcode not in EXECUTED or self._inside is not None:
            return self._refuse(NakCode.INVALID_REQUEST)
        packets = self.execution.execute(self._qp, opcode, self.expected, frame, (self.msn + 1) & _MASK)
        if isinstance(packets, NakCode):
            return self._refuse(packets)
        self.stats.received += 1
        self.expected += packets
        self.msn = (self.msn + 1) & _MASK
        return True

    def _start(self, opcode: int, frame: bytes, size: int) -> bool:
        self._filled = 0
        self._wr = None
        if is_send(opcode):
            wr = self._take_receive()
            if wr is None:
                return False
            self._room = memoryview(wr.buffer)
            self._size = len(self._room)
            return True
        reth = RETH.unpack(frame, BODY_AT)
        address, rkey, length = reth.address, reth.rkey, reth.dma_length
        if (opcode in (Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMM)) != (length <= self._c.mtu) or (
            length <= self._c.mtu and size != length
        ):
            return self._refuse(NakCode.INVALID_REQUEST)
        room = self._qp.domain.for_write(rkey, address, length) if length else memoryview(b"")
        if room is None:
            return self._refuse(NakCode.REMOTE_ACCESS_ERROR)
        self._room = room
        self._size = len(room)
        return True

    def _take_receive(self) -> RecvWr | None:
        """The posted receive for this message. If there is none, sends an RNR NAK and returns None (9.7.5.2.8)."""
        if self._receives:
            self._wr = self._receives.popleft()
            return self._wr
        self.stats.rnr_naks += 1
        self._nak_sent = True  # packets after the refused one are not a new gap
        self._qp.answer(self.psn(self.expected), RnrNak(self._c.rnr_timer).syndrome)
        return None

    def _finish(self, immediate: int | None) -> None:
        self.msn = (self.msn + 1) & _MASK
        if self._wr is not None:
            wr, self._wr = self._wr, None
            self._qp.complete(Completion(wr.wr_id, Status.SUCCESS, True, self._filled, immediate))

    def _overrun(self) -> bool:
        """The message is longer than its buffer: report an error at both ends (9.7.4.1.6)."""
        wr, self._wr = self._wr, None
        if wr is not None:
            self._qp.complete(Completion(wr.wr_id, Status.LOCAL_LENGTH_ERROR, True))
        return self._refuse(NakCode.INVALID_REQUEST)

    def _refuse(self, code: NakCode) -> bool:
        """Refuse a request that a retransmission cannot correct: send a NAK and break the queue pair (9.9.3)."""
        self.stats.naks += 1
        self._qp.answer(self.psn(self.expected), Nak(code).syndrome)
        self._qp.fail(Status.FLUSHED)
        return False

    def forget_times(self) -> None:
        """Forget times and counts that nothing depends on (``Requester.forget_times``)."""
        if self._waits_since is not None:
            self._waits_since = 0 if self._waits_since == self._arrived() else -1
        self._holes = deque((self._c.timeout_ps, seq) for _, seq in self._holes)
        self.stats = ReceiveStats()
        if self._inside is None:
            self._room, self._size, self._filled = memoryview(b""), 0, 0

    def flush(self) -> None:
        """Flush all posted receives."""
        if self._wr is not None:
            self._receives.appendleft(self._wr)
            self._wr = None
        while self._receives:
            self._qp.complete(Completion(self._receives.popleft().wr_id, Status.FLUSHED, True))
        self._kept.clear()

    def acknowledged(self) -> tuple[int, int]:
        """PSN and syndrome of an ACK for everything that has arrived in order."""
        return self.psn(self.expected - 1), _ACK
