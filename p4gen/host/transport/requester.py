"""The sending half of a reliable connection (InfiniBand volume 1, 9.7.2 and 9.7.5).

Packets have a number that never wraps (``seq``). The PSN on the wire is the initial PSN + seq modulo 2^24.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import ReactionPoint
from p4gen.host.transport.dcqcn_timed import TimedReactionPoint
from p4gen.host.transport.pacing import Pace
from p4gen.host.transport.parts import Pair
from p4gen.host.transport.roundtrips import RoundTrips
from p4gen.host.transport.verbs import Completion, Operation, QpConfig, Recovery, SendWr, Status
from p4gen.host.transport.wire import BODY_AT, OVERHEAD
from p4gen.rocev2.headers import AETH, RETH, AtomicETH, ImmDt
from p4gen.rocev2.opcodes import FIRST_NAK, Nak, NakCode, Opcode, RnrNak, decode_syndrome

_FATAL: Final = {
    NakCode.INVALID_REQUEST: Status.REMOTE_INVALID_REQUEST,
    NakCode.REMOTE_ACCESS_ERROR: Status.REMOTE_ACCESS_ERROR,
    NakCode.REMOTE_OPERATIONAL_ERROR: Status.REMOTE_OPERATION_ERROR,
}
_SELECTIVE: Final = Nak(NakCode.SELECTIVE).syndrome
_HALF: Final = 1 << 23
_MASK: Final = (1 << 24) - 1
_FIRST, _MIDDLE, _LAST, _ONLY = (
    int(opcode) for opcode in (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY)
)


_REQUESTS: Final = {
    Operation.READ: int(Opcode.READ_REQUEST),
    Operation.FETCH_ADD: int(Opcode.FETCH_ADD),
    Operation.COMPARE_SWAP: int(Opcode.COMPARE_SWAP),
}
_ATOMIC_ACKNOWLEDGE: Final = int(Opcode.ATOMIC_ACKNOWLEDGE)
_READ_RESPONSE_MIDDLE: Final = int(Opcode.READ_RESPONSE_MIDDLE)
_ICRC: Final = 4


class _Message(NamedTuple):
    """A posted work request: packets from ``first`` up to, not including, ``end``."""

    wr: SendWr
    data: memoryview
    first: int
    end: int


_NOTHING: Final = _Message(SendWr(0), memoryview(b""), 0, 0)


@dataclass
class SendStats:
    """Counters of one requester, in packets."""

    sent: int = 0
    resent: int = 0
    timeouts: int = 0
    naks: int = 0
    rnr_naks: int = 0
    ghosts: int = 0
    """Acknowledgements of packets that are not outstanding; they are ignored (9.7.5.1.1)."""
    cnps: int = 0
    bytes: int = 0
    """Sent, with the overhead on the wire."""


def rate_of(config: QpConfig) -> ReactionPoint | TimedReactionPoint | Pace | None:
    """The rate control of a connection; None if the line's rate is its only limit."""
    if config.dcqcn is not None:
        return config.dcqcn.point()
    return None if config.pace is None else Pace(config.pace)


class Requester:
    """Divides messages into packets, keeps them until they are acknowledged, and retransmits lost ones."""

    STATE: ClassVar = (
        "_room", "_messages", "una", "next", "high", "end", "_unsent", "_current", "_again", "_queued", "_named",
        "_sent_at", "_went_back", "_retries", "_rnr_retries", "_quiet_until", "_trips", "_timeout", "_deadline",
        "_timer_set", "free_at", "rate", "_responses", "stats",
    )  # fmt: skip

    def __init__(self, qp: Pair) -> None:
        self._qp = qp
        self._c = qp.config
        self._clock = qp.clock
        self._mtu, self._first_psn = qp.config.mtu, qp.config.initial_psn
        self._room = self._most = qp.config.max_outstanding
        """The number of packets that may be outstanding now, and its maximum."""
        self._write = qp.writer.frame
        self._messages: deque[_Message] = deque()
        self.una = 0
        """The oldest packet that is not acknowledged."""
        self.next = 0
        """The packet to send next; less than ``high`` while retransmitting."""
        self.high = 0
        """The number after that of the last packet ever sent."""
        self.end = 0
        """The number after that of the last packet posted."""
        self._unsent: deque[_Message] = deque()
        self._current = _NOTHING
        self._again: deque[int] = deque()
        self._queued: set[int] = set()
        self._named: dict[int, None] = {}
        """Packets that selective NAKs have named and no ACK has covered since, in order."""
        careful = self._c.selective_naks and self._c.recovery is Recovery.IDEAL
        self._sent_at: dict[int, int] | None = {} if careful else None
        """The time of the last transmission of each outstanding packet; kept if one loss may be reported several
        times."""
        self._went_back = False
        self._retries = 0
        self._rnr_retries = 0
        self._quiet_until = 0
        adaptive = qp.config.adaptive and qp.config.timeout_ps
        self._trips = RoundTrips(qp.config.timeout_ps) if adaptive else None
        self._timeout = qp.config.timeout_ps if self._trips is None else self._trips.timeout
        self._deadline = 0
        self._timer_set = False
        self.free_at = 0
        """The time at which the rate limiter allows the next packet."""
        self.rate = rate_of(self._c)
        self._responses = 0
        """READs and atomic operations that are posted and have not completed."""
        self.stats = SendStats()

    # --- the application's side ---

    def post(self, wr: SendWr) -> None:
        """Queue a work request. It completes when its last packet is acknowledged, or its last response is there."""
        data = memoryview(wr.data)
        if wr.operation is not None:
            if data.readonly or (wr.operation is not Operation.READ and len(data) != 8):
                raise ValueError(f"a response to {wr.operation} cannot be stored in what is given as data")
            self._responses += 1
        packets = max(1, -(-len(data) // self._c.mtu))
        message = _Message(wr, data, self.end, self.end + packets)
        self.end = message.end
        self._messages.append(message)
        self._unsent.append(message)

    @property
    def idle(self) -> bool:
        """Whether nothing is outstanding."""
        return not self._messages

    def psn(self, seq: int) -> int:
        """The PSN of a packet, from its number."""
        return (self._c.initial_psn + seq) & _MASK

    def move(self, psn: int) -> None:
        """Give the next packet the PSN ``psn``; see ``QueuePair.set_sq_psn``."""
        ahead = (psn - self.psn(self.end)) & _MASK
        if self._messages or ahead >= _HALF:
            raise ValueError(
                f"PSN {psn:#08x} cannot be set: " + ("sends are outstanding" if self._messages else "used")
            )
        self.una = self.next = self.high = self.end = self.end + ahead

    def outstanding(self, seq: int) -> bool:
        """Whether a packet is sent and not acknowledged."""
        return self.una <= seq < self.high

    # --- the NIC's side ---

    def ready(self, now: int) -> bool:
        """Whether there is a packet to send now, apart from the rate limiter."""
        if now < self._quiet_until:
            return False
        if self._again:
            return True
        if self.next >= self.end or self.next - self.una >= self._room:
            return False
        return not self._responses or self._may_execute()

    def _may_execute(self) -> bool:
        """Whether the next packet is allowed by ``max_rd_atomic``."""
        before = 0
        for message in self._messages:
            if message.first > self.next:
                break
            if message.wr.operation is not None:
                before += 1
                if message.end > self.next and before > self._c.max_rd_atomic:
                    return False
        return True

    def take(self, now: int) -> bytes:
        """The next packet to send; retransmissions come first. Call it only when ``ready``."""
        if self._again:
            seq = self._again.popleft()
            self._queued.discard(seq)
            message = self._find(seq)
        else:
            seq = self.next
            self.next += 1
            message = self._current
            if not message.first <= seq < message.end:
                begins = bool(self._unsent) and self._unsent[0].first == seq
                message = self._current = self._unsent.popleft() if begins else self._find(seq)
            if message.wr.operation is not None:
                self.next = message.end  # one request, whose PSNs are those of its responses
        if self._sent_at is not None:
            self._sent_at[seq] = now
        stats = self.stats
        stats.sent += 1
        again = seq < self.high
        if message.wr.operation is not None:
            seq = max(seq, self.una)
        trips = self._trips
        if again:
            stats.resent += 1
            if trips is not None and trips.seq == seq:
                trips.seq = -1
        else:
            self.high = seq + 1 if message.wr.operation is None else message.end
            if trips is not None and trips.seq < 0:
                trips.seq, trips.since = seq, now
        frame = self._frame(message, seq, again)
        stats.bytes += len(frame) + OVERHEAD
        if not self._timer_set:
            self._set_timer(now)
        if self.rate is not None:
            self.free_at = now + self.rate.pace(now, len(frame) + OVERHEAD)
        return frame

    def _frame(self, message: _Message, seq: int, again: bool) -> bytes:
        index = seq - message.first
        start = index * self._mtu
        part = message.data[start : start + self._mtu]
        last = seq + 1 == message.end
        wr = message.wr
        if wr.operation is not None:
            return self._request(message, start)
        opcode = (_FIRST if index == 0 else _MIDDLE) if not last else (_ONLY if index == 0 else _LAST)
        ack = last or again or (index + 1) % self._c.ack_every == 0 or self._fills_room()
        psn = (self._first_psn + seq) & _MASK
        if wr.rkey is None and (wr.immediate is None or not last):
            return self._write(opcode, psn, ack_request=ack, body=part, solicited=last and wr.solicited)
        body = b""
        if wr.rkey is not None:
            opcode += int(Opcode.WRITE_FIRST)
            if index == 0:
                body = RETH(wr.remote_address, wr.rkey, len(message.data)).pack()
        if last and wr.immediate is not None:
            opcode += 1
            body += ImmDt(wr.immediate).pack()
        body += bytes(part)
        return self._write(opcode, psn, ack_request=ack, body=body, solicited=last and wr.solicited)

    def _fills_room(self) -> bool:
        """Whether nothing more may be sent before an ACK, and none of the outstanding packets asks for one."""
        return self._room < self._c.ack_every and self.next - self.una >= self._room

    def _request(self, message: _Message, start: int) -> bytes:
        """The request of a READ, or of its missing part from byte ``start`` on; or of an atomic operation."""
        wr, psn = message.wr, self.psn(message.first + start // self._mtu)
        assert wr.operation is not None
        key = wr.rkey or 0
        if wr.operation is Operation.READ:
            body = RETH(wr.remote_address + start, key, len(message.data) - start).pack()
        else:
            body = AtomicETH(wr.remote_address, key, wr.swap_or_add, wr.compare).pack()
        return self._write(_REQUESTS[wr.operation], psn, ack_request=True, body=body)

    def _find(self, seq: int) -> _Message:
        for message in self._messages:
            if message.first <= seq < message.end:
                return message
        raise AssertionError(f"packet {seq} belongs to no message")

    # --- acknowledgements ---

    def on_ack(self, psn: int, syndrome: int, msn: int) -> None:
        """Handle an ACK or NAK (9.7.5.1 and 9.7.5.2)."""
        ahead = (psn - self._c.initial_psn - self.una) & _MASK
        if syndrome == _SELECTIVE and self._c.recovery is Recovery.IDEAL:
            self._missing(self.una + (ahead if ahead < _HALF else ahead - _MASK - 1), msn)
            return
        if ahead >= _HALF:
            self.stats.ghosts += 1  # older than everything outstanding: a duplicate, or reordered
            if self._sent_at is not None and ahead == _MASK:  # something has arrived, and the oldest has not
                self._resend_if_due(self.una)
            return
        seq = self.una + ahead
        if seq >= self.high:
            # Never sent. Accepting it could lose data silently, so the specification says to ignore it.
            self.stats.ghosts += 1
            return
        if syndrome < FIRST_NAK:
            self._acknowledge(seq + 1)
            return
        match decode_syndrome(syndrome):
            case RnrNak() as rnr:
                self._acknowledge(seq)
                self._not_ready(seq, rnr)
            case Nak(code=NakCode.PSN_SEQUENCE_ERROR):
                self.stats.naks += 1
                if self.rate is not None:
                    self.rate.on_nack(self._clock.now)
                self._acknowledge(seq)
                self._sequence_error(seq)
            case Nak(code=code) if code in _FATAL:
                self._acknowledge(seq)
                self._qp.fail(_FATAL[NakCode(code)])
            case _:
                self._qp.fail(Status.BAD_RESPONSE)

    def on_response(self, opcode: int, psn: int, frame: bytes) -> None:
        """Handle a response to a READ or an atomic operation: data in order is stored, a gap is requested again
        (9.7.5.1.3). A READ's responses may have any of its opcodes: what counts is the PSN."""
        seq = self.una + ((psn - self._c.initial_psn - self.una) & _MASK)
        if not self.outstanding(seq):
            self.stats.ghosts += 1
            return
        message = self._find(seq)
        atomic = opcode == _ATOMIC_ACKNOWLEDGE
        if message.wr.operation is None or (message.wr.operation is not Operation.READ) is not atomic:
            self.stats.ghosts += 1
            return
        self._acknowledge(seq)  # as an ACK of everything before it, up to the first missing response
        if self.una != seq or self._qp.broken is not None:
            return
        start = (seq - message.first) * self._mtu
        room = message.data[start : start + self._mtu]
        body = frame[BODY_AT + (0 if opcode == _READ_RESPONSE_MIDDLE else AETH.SIZE) : -_ICRC]
        if len(body) != len(room):
            self._qp.fail(Status.BAD_RESPONSE)
            return
        room[:] = int.from_bytes(body).to_bytes(8, "little") if atomic else body
        self._acknowledge(seq + 1, responded=True)

    def on_cnp(self) -> None:
        """Handle a CNP: reduce the rate."""
        self.stats.cnps += 1
        if self.rate is not None:
            self.rate.on_cnp(self._clock.now)

    def on_loss(self, psn: int) -> None:
        """The network has dropped a packet of this end (``oracle`` only)."""
        seq = self.una + ((psn - self._c.initial_psn - self.una) & _MASK)
        if self.outstanding(seq):
            if self.rate is not None:
                self.rate.on_nack(self._clock.now)
            self._resend(seq)
            self._qp.kick()

    def _acknowledge(self, upto: int, *, responded: bool = False) -> None:
        """All packets before ``upto`` are acknowledged. Only a response acknowledges a READ or an atomic operation: if
        ``upto`` passes one of them over, a response was lost (an implied NAK)."""
        if self._responses and not responded:
            passed = next((m for m in self._messages if m.wr.operation is not None and m.first < upto), None)
            missing = upto if passed is None else max(passed.first, self.una)
            if missing < upto:
                self._acknowledge(missing, responded=True)
                self._sequence_error(missing)
                return
        if upto <= self.una:
            return
        if self._sent_at is not None:
            for seq in range(self.una, upto):
                self._sent_at.pop(seq, None)
        self.una = upto
        self.next = max(self.next, upto)
        self._retries = self._rnr_retries = 0
        self._went_back = False
        if self._trips is not None:
            self._trips.acknowledged(upto, self._clock.now, self._clock.late)
            self._timeout = self._trips.timeout
            self._room = min(2 * self._room, self._most)
        if self._timeout:
            self._deadline = self._clock.now + self._timeout
        if self._again:
            self._again = deque(seq for seq in self._again if seq >= upto)
            self._queued = set(self._again)
        if self._named:
            self._named = {seq: None for seq in self._named if seq >= upto}
        if self._sent_at is not None and upto == self.high:
            self._qp.responder.await_rest()
        messages = self._messages
        while messages and messages[0].end <= upto:
            done = messages.popleft()
            self._responses -= done.wr.operation is not None
            self._qp.complete(Completion(done.wr.wr_id, Status.SUCCESS))

    def _missing(self, first: int, count: int) -> None:
        """Handle a selective NAK: ``count`` packets from ``first`` on are missing. It acknowledges nothing."""
        self.stats.naks += 1
        missing = range(max(first, self.una), min(first + count, self.high))
        for seq in missing:
            if seq in self._named:
                self._resend_if_due(seq)
            else:
                self._resend(seq)
            self._named[seq] = None
        if missing and self._timeout:
            self._deadline = self._clock.now + self._timeout

    def _sequence_error(self, seq: int) -> None:
        recovery = self._c.recovery
        if recovery is Recovery.GO_BACK_N:
            # One retransmission per gap: the same NAK would report packets sent since then again (Soft-RoCE).
            if not self._went_back:
                self._went_back = True
                self.next = self.una
            return
        self._resend(seq)

    def miss(self, seq: int) -> None:
        """The responder of this end lacks the result of ``seq``: send the contribution again (``ideal`` only)."""
        self._resend_if_due(seq)
        self._qp.kick()

    def _resend_if_due(self, seq: int) -> None:
        """Like ``_resend``. But if a loss can be reported several times, ignore reports while a retransmission is on
        its way."""
        if self._sent_at is None or self._clock.now - self._sent_at.get(seq, 0) >= self._c.timeout_ps * 2 // 5:
            self._resend(seq)

    def _resend(self, seq: int) -> None:
        if self._responses and self.outstanding(seq):
            message = self._find(seq)
            if message.wr.operation is not None:
                seq = max(message.first, self.una)  # one request asks for all missing responses
        if self.outstanding(seq) and seq not in self._queued:
            self._queued.add(seq)
            self._again.append(seq)

    def _not_ready(self, seq: int, rnr: RnrNak) -> None:
        self.stats.rnr_naks += 1
        if self._clock.now < self._quiet_until and self.next == seq:
            return  # packets under way are refused, too: they count as one refusal
        if self._c.rnr_retry is not None and self._rnr_retries >= self._c.rnr_retry:
            self._qp.fail(Status.RNR_RETRY_EXCEEDED)
            return
        self._rnr_retries += 1
        # With every recovery: all packets after the refused one were refused, too, so a later gap is a new one.
        self.next = seq
        self._went_back = False
        self._again.clear()
        self._queued.clear()
        if self._trips is not None:
            # Other ranks may take long, and whole windows would be refused repeatedly: one packet probes first.
            self._room = 1
        self._quiet_until = self._clock.now + rnr.delay_us * US
        self._deadline = self._quiet_until + self._timeout
        self._clock.at(self._quiet_until, self._after_quiet)

    def _after_quiet(self, _: object) -> None:
        self._qp.kick()

    # --- timers ---

    def _set_timer(self, now: int) -> None:
        if self._timeout:
            self._timer_set = True
            self._deadline = now + self._timeout
            self._clock.at(self._deadline, self._timer)

    def _timer(self, _: object) -> None:
        # Restarting a timer only moves its deadline; the pending event checks the deadline again.
        self._timer_set = False
        if self._qp.broken or self.una == self.high:
            return
        now = self._clock.now
        if now < self._deadline:
            self._timer_set = True
            self._clock.at(self._deadline, self._timer)
            return
        self.stats.timeouts += 1
        if self._c.retry_count is not None and self._retries >= self._c.retry_count:
            self._qp.fail(Status.RETRY_EXCEEDED)
            return
        self._retries += 1
        if self._trips is not None:
            self._trips.expired(self._clock.late)
            self._timeout = self._trips.timeout
        self._went_back = False
        if self._c.recovery is Recovery.GO_BACK_N:
            self.next = self.una
        elif self._c.recovery is Recovery.SELECTIVE_REPEAT:
            for seq in range(self.una, self.high):
                self._resend(seq)
        elif self._c.recovery is Recovery.ORACLE:
            self._resend(self.una)
        elif not self._qp.responder.misses or self._c.selective_naks:
            self._resend(self.una)
            # A retransmission may be lost, too, and with it the newest packet, which shows the other end every gap.
            for seq in (*self._named, self.high - 1) if self._c.selective_naks else ():
                self._resend(seq)
        self._set_timer(now)
        self._qp.kick()

    def forget_times(self) -> None:
        """Forget times and counts that nothing depends on, and set every deadline as if it were counted from now.

        States that differ only in those become equal. For searches of states, in which no time passes.
        """
        self.stats = SendStats()
        self._deadline = self._timeout if self._timer_set else 0
        self._quiet_until = max(0, self._quiet_until - self._clock.now)
        self._current = _NOTHING
        if self._c.retry_count is None:
            self._retries = 0
        if self._c.rnr_retry is None:
            self._rnr_retries = 0
        if self._sent_at is not None:
            self._sent_at = dict.fromkeys(self._sent_at, 0)

    def flush(self, status: Status) -> None:
        """End all requests: the oldest with ``status``, the others as flushed (11.6.2)."""
        while self._messages:
            message = self._messages.popleft()
            self._qp.complete(Completion(message.wr.wr_id, status))
            status = Status.FLUSHED
        self._responses = 0
        self._unsent.clear()
        self._again.clear()
        self._queued.clear()
        self._named.clear()
        self.next = self.una = self.high = self.end
