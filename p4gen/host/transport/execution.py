"""READs and atomic operations of a responder (InfiniBand volume 1, 9.4.4, 9.4.5, 9.7.5.1.6).

Each takes as many PSNs as it has response packets. The newest ``max_dest_rd_atomic`` are remembered. If one of them is
requested again, a READ is read again; an atomic operation is not executed again but answered with its first result.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final, NamedTuple, Protocol

from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.verbs import QpConfig, Resumption
from p4gen.rocev2.headers import RETH, AtomicETH
from p4gen.rocev2.opcodes import NakCode, Opcode
from p4gen.rocev2.places import Places

_ICRC: Final = 4
_MASK: Final = (1 << 24) - 1
_WORD: Final = (1 << 64) - 1
_LONGEST: Final = 1 << 31
"""The most bytes of a message (9.7.8)."""
_READ: Final = int(Opcode.READ_REQUEST)
_FETCH_ADD: Final = int(Opcode.FETCH_ADD)
_FIRST, _MIDDLE, _LAST, _ONLY = (
    int(opcode)
    for opcode in (
        Opcode.READ_RESPONSE_FIRST,
        Opcode.READ_RESPONSE_MIDDLE,
        Opcode.READ_RESPONSE_LAST,
        Opcode.READ_RESPONSE_ONLY,
    )
)


class Pair(Protocol):
    """The part of a queue pair that this module uses."""

    config: QpConfig
    places: Places
    domain: ProtectionDomain

    def respond(self, opcode: int, psn: int, msn: int | None, data: memoryview | bytes) -> None:
        """Queue a response packet of a READ or an atomic operation; one without MSN has no AETH."""
        ...


class _Executed(NamedTuple):
    """A READ: packets ``first`` up to ``end`` of ``length`` bytes from ``address`` on; or an atomic operation."""

    first: int
    end: int
    msn: int
    address: int
    rkey: int
    length: int
    original: int | None
    """The value that an atomic operation found; None for a READ."""


class Execution:
    """The requests that a responder has executed last."""

    STATE: ClassVar = ("_remembered",)

    def __init__(self) -> None:
        self._remembered: deque[_Executed] = deque()

    def execute(self, qp: Pair, opcode: int, seq: int, frame: bytes, msn: int) -> int | NakCode:
        """Execute a request in its turn, packet ``seq``, and queue its responses. Returns the number of its PSNs, or
        why it is refused."""
        done = self._read(qp, seq, frame, msn) if opcode == _READ else self._change(qp, opcode, seq, frame, msn)
        if isinstance(done, NakCode):
            return done
        self._remembered.append(done)
        while len(self._remembered) > qp.config.max_dest_rd_atomic:
            self._remembered.popleft()
        return done.end - done.first

    def repeat(self, qp: Pair, opcode: int, seq: int, frame: bytes, msn: int) -> None:
        """Answer a request that has arrived before. It is dropped in silence if it is not remembered, or was another
        one (9.7.5.1.6)."""
        for i, done in enumerate(self._remembered):
            if not done.first <= seq < done.end or (done.original is None) is not (opcode == _READ):
                continue
            if done.original is not None:
                _answer(qp, done)
                return
            reth = RETH.unpack(frame, qp.places.body)
            skipped = (seq - done.first) * qp.config.mtu
            same = (reth.rkey, reth.address) == (done.rkey, done.address + skipped)
            if len(frame) == qp.places.body + RETH.SIZE + _ICRC and same and skipped + reth.dma_length <= done.length:
                rxe = qp.config.resumption is Resumption.RXE
                part = done._replace(first=seq, address=reth.address, length=reth.dma_length)
                if rxe:
                    self._remembered[i] = part._replace(length=done.length - skipped)
                _send(qp, part, resumed=rxe and skipped > 0)
            return

    def _read(self, qp: Pair, seq: int, frame: bytes, msn: int) -> _Executed | NakCode:
        if len(frame) != qp.places.body + RETH.SIZE + _ICRC:
            return NakCode.INVALID_REQUEST
        reth = RETH.unpack(frame, qp.places.body)
        if reth.dma_length > _LONGEST:
            return NakCode.INVALID_REQUEST
        if reth.dma_length and qp.domain.for_read(reth.rkey, reth.address, reth.dma_length) is None:
            return NakCode.REMOTE_ACCESS_ERROR
        packets = max(1, -(-reth.dma_length // qp.config.mtu))
        done = _Executed(seq, seq + packets, msn, reth.address, reth.rkey, reth.dma_length, None)
        _send(qp, done, resumed=False)
        return done

    def _change(self, qp: Pair, opcode: int, seq: int, frame: bytes, msn: int) -> _Executed | NakCode:
        if len(frame) != qp.places.body + AtomicETH.SIZE + _ICRC:
            return NakCode.INVALID_REQUEST
        atomic = AtomicETH.unpack(frame, qp.places.body)
        if atomic.address % 8:
            return NakCode.INVALID_REQUEST
        room = qp.domain.for_atomic(atomic.rkey, atomic.address)
        if room is None:
            return NakCode.REMOTE_ACCESS_ERROR
        original = int.from_bytes(room, "little")
        if opcode == _FETCH_ADD:
            room[:] = ((original + atomic.swap_or_add) & _WORD).to_bytes(8, "little")
        elif original == atomic.compare:
            room[:] = atomic.swap_or_add.to_bytes(8, "little")
        done = _Executed(seq, seq + 1, msn, atomic.address, atomic.rkey, 8, original)
        _answer(qp, done)
        return done


def _answer(qp: Pair, done: _Executed) -> None:
    assert done.original is not None
    qp.respond(int(Opcode.ATOMIC_ACKNOWLEDGE), _psn(qp, done.first), done.msn, done.original.to_bytes(8))


def _send(qp: Pair, done: _Executed, *, resumed: bool) -> None:
    """Queue the response packets of a READ. They take the data as it is when they are sent."""
    data = qp.domain.for_read(done.rkey, done.address, done.length) if done.length else memoryview(b"")
    if data is None:
        return
    mtu = qp.config.mtu
    count = max(1, -(-done.length // mtu))
    for i in range(count):
        first, last = i == 0 and not resumed, i == count - 1
        opcode = (_ONLY if last else _FIRST) if first else (_LAST if last else _MIDDLE)
        msn = None if opcode == _MIDDLE else done.msn
        qp.respond(opcode, _psn(qp, done.first + i), msn, data[i * mtu : (i + 1) * mtu])


def _psn(qp: Pair, seq: int) -> int:
    return (qp.config.received_psn + seq) & _MASK
