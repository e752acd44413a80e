"""Queue pairs of the reliable connection service: a requester, a responder, and what they share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple, Protocol

from p4gen.host.transport.clock import Clock
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.requester import Requester
from p4gen.host.transport.responder import Responder
from p4gen.host.transport.verbs import Completion, Peer, QpConfig, Recovery, RecvWr, SendWr, Status
from p4gen.host.transport.wire import MSN, OPCODE_AT, PSN, SYNDROME_AT, Writer
from p4gen.rocev2.layouts import AETH
from p4gen.rocev2.opcodes import FIRST_NAK, Opcode, is_response

_ACKNOWLEDGE: Final = int(Opcode.ACKNOWLEDGE)
_CNP: Final = int(Opcode.CNP)
_RESPONSES: Final = frozenset(int(opcode) for opcode in Opcode if is_response(opcode))
_SYNDROME_SHIFT: Final = AETH.word.ends("syndrome")[1]
"""The lowest bit of the syndrome in an AETH; the MSN is below it."""


class Port(Protocol):
    """The part of a NIC that its queue pairs use."""

    @property
    def mac(self) -> int:
        """The MAC address, 48 bits."""
        ...

    @property
    def ip(self) -> int:
        """The IPv4 address, 32 bits."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock that timers of the queue pair use."""
        ...

    @property
    def domain(self) -> ProtectionDomain:
        """The memory that peers may write."""
        ...

    def kick(self, pair: QueuePair) -> None:
        """``pair`` may have packets that are ready to be sent."""
        ...

    def list_answers(self, pair: QueuePair) -> None:
        """``pair`` has answers to send."""
        ...


class _Response(NamedTuple):
    """A response packet that waits to be sent; one without MSN has no AETH."""

    opcode: int
    psn: int
    msn: int | None
    data: memoryview | bytes


class _Answer(NamedTuple):
    """An ACK or NAK that waits to be sent; without an MSN it takes the current one when it is sent."""

    psn: int
    syndrome: int
    msn: int | None


class QueuePair:
    """One end of a connection, ready to send.

    ``on_completion`` is called for every completion, in order. After a fatal error the pair is ``broken``: all work
    requests are flushed, and so are those posted later.
    """

    STATE: ClassVar[tuple[str, ...]] = ("broken", "in_turn", "_answers", "_ack_due", "_listed", "_cnp_due", "_next_cnp")

    def __init__(
        self,
        nic: Port,
        number: int,
        peer: Peer,
        config: QpConfig,
        on_completion: Callable[[Completion], None],
    ) -> None:
        self.number = number
        self.peer = peer
        self.config = config
        self.clock: Clock = nic.clock
        self.domain: ProtectionDomain = nic.domain
        self.writer = Writer(nic.mac, nic.ip, peer, ecn=config.dcqcn is not None)
        self.broken: Status | None = None
        """The error that broke the pair; None while it works."""
        self.in_turn = False
        """Set by the NIC: it will check this pair when it sends."""
        self._nic = nic
        self._on_completion = on_completion
        self._answers: deque[_Answer | _Response] = deque()
        self._ack_due = False
        self._listed = False
        self._cnp_due = False
        self._next_cnp = 0
        self.requester = Requester(self)
        self.responder = Responder(self)

    # --- the application's side ---

    def post_send(self, wr: SendWr) -> None:
        """Post a SEND, a WRITE, a READ or an atomic operation. It completes when it is acknowledged, or its response is
        there. Raises ``ValueError`` for data that a response cannot fill."""
        if self.broken is not None:
            self.complete(Completion(wr.wr_id, Status.FLUSHED))
            return
        self.requester.post(wr)
        self._nic.kick(self)

    def post_recv(self, wr: RecvWr) -> None:
        """Post a buffer for a message."""
        if self.broken is not None:
            self.complete(Completion(wr.wr_id, Status.FLUSHED, True))
            return
        self.responder.post(wr)

    def set_sq_psn(self, psn: int) -> None:
        """Give the next packet the PSN ``psn`` (``sq_psn`` of ``ibv_modify_qp``; EPIC §4.3, RoCE-refined).

        Raises ``ValueError`` while anything is outstanding, or when ``psn`` is older than what was sent.
        """
        self.requester.move(psn)

    def set_rq_psn(self, psn: int) -> None:
        """Expect ``psn`` next (``rq_psn``). Everything before it counts as received.

        Raises ``ValueError`` inside a message, or when ``psn`` is older than what was received.
        """
        self.responder.move(psn)

    # --- the halves' side ---

    def complete(self, completion: Completion) -> None:
        """Give a completion to the application."""
        self._on_completion(completion)

    def fail(self, status: Status) -> None:
        """Break the pair: its oldest send ends with ``status``, everything else is flushed."""
        if self.broken is None:
            self.broken = status
            self.requester.flush(status)
            self.responder.flush()

    def acknowledge(self) -> None:
        """Queue an ACK for everything that has arrived in order. Several queued ACKs become one."""
        self._ack_due = True
        self._list()

    def answer(self, psn: int, syndrome: int, msn: int | None = None) -> None:
        """Queue a NAK, after a queued ACK. Unless given, its MSN is the one current when it is sent."""
        if self._ack_due:
            self._ack_due = False
            self._answers.append(_Answer(*self.responder.acknowledged(), None))
        self._answers.append(_Answer(psn, syndrome, msn))
        self._list()

    def respond(self, opcode: int, psn: int, msn: int | None, data: memoryview | bytes) -> None:
        """Queue a response packet of a READ or an atomic operation. It has an AETH if it has an MSN."""
        self._answers.append(_Response(opcode, psn, msn, data))
        self._list()

    def kick(self) -> None:
        """There may be packets to send."""
        self._nic.kick(self)

    # --- the NIC's side ---

    def on_loss(self, frame: bytes) -> None:
        """The network has dropped a frame that this end has sent: with recovery ``oracle`` it is sent again."""
        if self.config.recovery is not Recovery.ORACLE or self.broken is not None:
            return
        opcode, psn = frame[OPCODE_AT], int.from_bytes(frame[PSN])
        if opcode == _CNP:
            return
        if opcode in _RESPONSES:
            return  # the NIC that waits for the response requests it again
        if opcode != _ACKNOWLEDGE:
            self.requester.on_loss(psn)
        elif frame[SYNDROME_AT] < FIRST_NAK:
            self.acknowledge()
        else:
            self.answer(psn, frame[SYNDROME_AT], int.from_bytes(frame[MSN]))

    def notify_congestion(self) -> None:
        """Handle a marked packet: send a CNP, unless one was sent a moment ago (DCQCN's notification point)."""
        dcqcn = self.config.dcqcn
        if dcqcn is not None and self.clock.now >= self._next_cnp:
            self._next_cnp = self.clock.now + dcqcn.cnp_interval
            self._cnp_due = True
            self._list()

    def take_answer(self) -> bytes | None:
        """The next ACK, NAK or CNP to send; None when there is none."""
        if self._cnp_due:
            self._cnp_due = False
            self.responder.stats.cnps += 1
            return self.writer.cnp()
        msn = None
        if self._answers:
            answer = self._answers.popleft()
            if isinstance(answer, _Response):
                return self._response(answer)
            psn, syndrome, msn = answer
        elif self._ack_due:
            self._ack_due = False
            psn, syndrome = self.responder.acknowledged()
        else:
            self._listed = False
            return None
        aeth = syndrome << _SYNDROME_SHIFT | (self.responder.msn if msn is None else msn)
        return self.writer.frame(_ACKNOWLEDGE, psn, body=aeth.to_bytes(AETH.size))

    def _response(self, packet: _Response) -> bytes:
        head = b""
        if packet.msn is not None:
            head = (self.responder.acknowledged()[1] << _SYNDROME_SHIFT | packet.msn).to_bytes(AETH.size)
        return self.writer.frame(packet.opcode, packet.psn, body=head + bytes(packet.data))

    def _list(self) -> None:
        if not self._listed:
            self._listed = True
            self._nic.list_answers(self)
        self._nic.kick(self)
