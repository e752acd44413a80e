"""An RNIC: queue pairs that share one line. Answers are sent first; then the queue pairs take turns."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, Protocol

from p4gen.host.transport.clock import Clock
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.requester import Requester
from p4gen.host.transport.verbs import Completion, Peer, QpConfig
from p4gen.host.transport.wire import ACK_REQUEST, ANSWER_SIZE, DEST_QP, DST_ADDR, MSN, SYNDROME_AT, Reader
from p4gen.rocev2.opcodes import Opcode, is_response
from p4gen.rocev2.psn import PSN_MASK

BURST: Final = 8
"""Number of packets given to the line at once, as a NIC's pipeline holds some. An ACK may have to wait for that
many."""

_ACKNOWLEDGE: Final = int(Opcode.ACKNOWLEDGE)
_CNP: Final = int(Opcode.CNP)
_RESPONSES: Final = frozenset(int(opcode) for opcode in Opcode if is_response(opcode))


class Line(Protocol):
    """The line on which a NIC sends."""

    def transmit(self, frame: bytes, at: int) -> int:
        """Send a frame at time ``at``, which is not before now. Returns when the line is free again."""
        ...


class Nic:
    """A NIC with one port. Set ``line`` before anything is sent."""

    STATE: ClassVar[tuple[str, ...]] = ("_turns", "_answering", "_free_at", "_pump_at")

    line: Line
    channels: Any = None
    """The class of channels on this NIC's queue pairs (``p4gen.host.collectives.channel``); None: the usual one."""

    def __init__(self, mac: int, ip: int, clock: Clock, *, burst: int = BURST) -> None:
        self.mac, self.ip, self.clock = mac, ip, clock
        self.domain = ProtectionDomain()
        self.pairs: dict[int, QueuePair] = {}
        self._reader = Reader(mac, ip)
        self._turns: deque[QueuePair] = deque()
        self._answering: deque[QueuePair] = deque()
        self._free_at = 0
        self._pump_at: int | None = None
        self._burst = burst

    @property
    def dropped(self) -> Counter[str]:
        """Number of received frames that were dropped, by reason."""
        return self._reader.dropped

    @property
    def checks_icrc(self) -> bool:
        """Whether frames with a wrong ICRC are dropped, as by default. Programs of ``icrc ignore`` change packets but
        not their ICRC, so NICs beside them must not check it; they then accept corrupt data."""
        return self._reader.checks_icrc

    @checks_icrc.setter
    def checks_icrc(self, value: bool) -> None:
        self._reader.checks_icrc = value

    def create_pair(
        self, number: int, peer: Peer, config: QpConfig, on_completion: Callable[[Completion], None]
    ) -> QueuePair:
        """Create a connected queue pair. ``number`` has 24 bits; raises ``ValueError`` when it is in use."""
        if number in self.pairs:
            raise ValueError(f"QP {number:#x} is in use")
        pair = self.pairs[number] = QueuePair(self, number, peer, config, on_completion)
        return pair

    def destroy_pair(self, pair: QueuePair) -> None:
        """Destroy a queue pair. Packets for it are dropped from now on."""
        del self.pairs[pair.number]
        for waiting in (self._turns, self._answering):
            if pair in waiting:
                waiting.remove(pair)

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        found: dict[str, object] = {"nic": self, "reader": self._reader, "memory": self.domain}
        for number, pair in self.pairs.items():
            found[f"qp {number:#x}"] = pair
            found[f"qp {number:#x} requester"] = pair.requester
            found[f"qp {number:#x} responder"] = pair.responder
            found[f"qp {number:#x} execution"] = pair.responder.execution
        return found

    def forget_times(self) -> None:
        """``Requester.forget_times`` for the NIC and all its queue pairs."""
        self._free_at = 0
        self._pump_at = None
        self.dropped.clear()
        for pair in self.pairs.values():
            pair.requester.forget_times()
            pair.responder.forget_times()

    # --- receiving ---

    def receive_all(self, frames: Iterable[bytes]) -> None:
        """Receive several frames, in order."""
        for frame in frames:
            self.receive(frame)

    def receive(self, frame: bytes) -> None:
        """Receive a frame: drop it, or give it to its queue pair."""
        read = self._reader.read(frame)
        if read is None:
            return
        (_, _, _, src, _, congested, opcode), number, word = read
        pair = self.pairs.get(number)
        if pair is None:
            self.dropped["unknown_qp"] += 1
            return
        if src != pair.peer.ip:
            self.dropped["unknown_source"] += 1
            return
        if pair.broken is not None:
            self.dropped["broken_qp"] += 1
            return
        if congested:
            pair.notify_congestion()
        if opcode == _ACKNOWLEDGE:
            if len(frame) != ANSWER_SIZE:
                self.dropped["bad_length"] += 1
                return
            pair.requester.on_ack(word & PSN_MASK, frame[SYNDROME_AT], int.from_bytes(frame[MSN]))
            self.kick(pair)
        elif opcode == _CNP:
            pair.requester.on_cnp()
        elif opcode in _RESPONSES:
            pair.requester.on_response(opcode, word & PSN_MASK, frame)
            self.kick(pair)
        else:
            pair.responder.on_request(opcode, word & PSN_MASK, word >= ACK_REQUEST, frame)

    def on_loss(self, frame: bytes) -> None:
        """The network has dropped a frame that this NIC has sent. Only simulations call this."""
        to, number = int.from_bytes(frame[DST_ADDR]), int.from_bytes(frame[DEST_QP])
        for pair in self.pairs.values():
            if pair.peer.qp == number and pair.peer.ip == to:
                pair.on_loss(frame)

    # --- sending ---

    def list_answers(self, pair: QueuePair) -> None:
        """``pair`` has answers to send; the NIC sends them before other packets."""
        self._answering.append(pair)

    def kick(self, pair: QueuePair) -> None:
        """``pair`` may have packets that are ready to be sent."""
        if not pair.in_turn:
            pair.in_turn = True
            self._turns.append(pair)
        at = max(self._free_at, self.clock.now)
        if self._pump_at is None or self._pump_at > at:
            self._pump_at = at
            self.clock.at(at, self._pump)

    def _pump(self, _: object) -> None:
        now = self.clock.now
        if self._pump_at is None or self._pump_at > now:
            return  # another pending call will handle it
        self._pump_at = None
        at = now
        left = self._burst
        while left:
            frame = self._next_frame(at)
            if frame is None:
                self._free_at = at
                self._wait_for_rate(at)  # the remaining pairs are limited only by their rates
                return
            at = self.line.transmit(frame, at)
            left -= 1
            if left and len(self._turns) == 1 and not self._answering:
                at, left = self._only_one(self._turns[0].requester, at, left)
        self._free_at = at
        self._pump_at = at
        self.clock.at(at, self._pump)

    def _only_one(self, requester: Requester, at: int, left: int) -> tuple[int, int]:
        """Send up to ``left`` packets of the only requester that has any, without checking the others for each packet.
        Returns when the line is free again, and how many more packets may be sent."""
        transmit = self.line.transmit
        while left and requester.free_at <= at and requester.ready(at):
            at = transmit(requester.take(at), at)
            left -= 1
        return at, left

    def _next_frame(self, at: int) -> bytes | None:
        while self._answering:
            answering = self._answering.popleft()
            frame = answering.take_answer()
            if frame is not None:
                self._answering.append(answering)  # behind the others: a READ's responses do not delay their ACKs
                return frame
        turns = self._turns
        for _ in range(len(turns)):
            pair = turns.popleft()
            requester = pair.requester
            if not requester.ready(at):
                pair.in_turn = False  # the pair calls kick when that changes
                continue
            turns.append(pair)
            if requester.free_at <= at:
                return requester.take(at)
        return None

    def _wait_for_rate(self, at: int) -> None:
        """No pair may send now: call ``_pump`` again when the first rate limiter allows it."""
        if self._turns:
            self._pump_at = max(at, min(pair.requester.free_at for pair in self._turns))
            self.clock.at(self._pump_at, self._pump)
