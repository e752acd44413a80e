"""A rank's connections to the other ranks of its group: messages from one rank to another, and exchanges of all.

They are reliable connections between the hosts; switches only forward. ``Card`` is what ranks have to tell each other
before there can be connections.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

import numpy as np

from p4gen.errors import FailedError
from p4gen.host.collectives.arrays import Array
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.realtime import Station
from p4gen.host.transport.verbs import Completion, Peer, QpConfig, Recovery, RecvWr, SendWr, Status
from p4gen.manager.ranks.ranks import TIMEOUT

MTU: Final = 1024
_OUTSTANDING: Final = 64
"""Packets that a connection may have outstanding."""
_ACK_EVERY: Final = 16
_WORD, _SHIFTS = 0xFFFF_FFFF, range(0, 128, 32)
"""An IP address is four words of a card."""
_RNR_TIMER: Final = 14
"""1.28 ms: the other end may not have posted a receive yet."""


class Kind(IntEnum):
    """The connections between two ranks: each kind keeps the order of its own messages."""

    MESSAGE = 0
    EXCHANGE = 1


@dataclass(frozen=True)
class Card:
    """How others reach a rank: its IP address, the PSN from which it sends, and the numbers of its queue pairs."""

    rank: int
    ip: int
    psn: int
    owner: int
    """Whether the rank has created the group, and destroys it when all leave."""
    qps: tuple[int, ...]
    """By rank, from the right neighbour on, and kind."""

    @classmethod
    def drawn(cls, station: Station, rank: int, size: int, ip: int, *, owner: bool) -> Self:
        """A card with numbers that packets of earlier connections do not have, for a group of ``size`` ranks."""
        psn = random.SystemRandom().randrange(1 << 24)
        qps = station.loop.run_there(lambda: station.nic.own_numbers(len(Kind) * (size - 1)))
        return cls(rank, ip, psn, owner, qps)

    @property
    def array(self) -> Array:
        """The card as numbers of 32 bits."""
        ip = (self.ip >> shift & _WORD for shift in _SHIFTS)
        return np.array([self.rank, self.psn, self.owner, *ip, *self.qps], np.uint32)

    @classmethod
    def all_in(cls, numbers: Array, size: int) -> list[Self]:
        """The cards of ``size`` ranks in a row, as ``array`` writes each."""
        rows = (map(int, row) for row in numbers.reshape(size, -1))
        words = len(_SHIFTS)
        return [
            cls(
                rank,
                sum(word << shift for word, shift in zip(rest, _SHIFTS, strict=False)),
                psn,
                owner,
                tuple(rest[words:]),
            )
            for rank, psn, owner, *rest in rows
        ]

    def qp(self, rank: int, kind: Kind) -> int:
        """The number of the queue pair for ``rank``."""
        size = len(self.qps) // len(Kind) + 1
        return self.qps[len(Kind) * ((rank - self.rank) % size - 1) + kind]


@dataclass(frozen=True)
class _Receive:
    future: Future[None]
    room: memoryview
    tag: int


class _Connection:
    """One connection, on the loop. A message is a SEND with the tag as immediate data."""

    def __init__(self, nic: Station, near: int, peer: Peer, config: QpConfig, name: str) -> None:
        self._nic, self._name = nic, name
        self._sends: deque[tuple[Future[None], memoryview]] = deque()
        self._receives: deque[_Receive] = deque()
        self.pair: VerbsPair = nic.nic.create_pair(near, peer, config, self._completed)

    def send(self, data: memoryview, tag: int) -> Future[None]:
        future: Future[None] = Future()
        if self.pair.broken is not None:
            future.set_exception(self._failure(self.pair.broken))
            return future
        self._sends.append((future, data))
        self.pair.post_send(SendWr(0, data, immediate=tag))
        return future

    def receive(self, room: memoryview, tag: int) -> Future[None]:
        future: Future[None] = Future()
        if self.pair.broken is not None:
            future.set_exception(self._failure(self.pair.broken))
            return future
        self._receives.append(_Receive(future, room, tag))
        self.pair.post_recv(RecvWr(0, room))
        return future

    def end(self, reason: str) -> None:
        """Fail everything that waits, and destroy the queue pair."""
        waiting = [*(future for future, _ in self._sends), *(each.future for each in self._receives)]
        self._sends.clear()
        self._receives.clear()
        for future in waiting:
            future.set_exception(FailedError(reason))
        self._nic.nic.destroy_pair(self.pair)

    def _completed(self, completion: Completion) -> None:
        if completion.receive:
            self._received(completion)
        elif self._sends:
            self._settle(self._sends.popleft()[0], completion.status, "")

    def _received(self, completion: Completion) -> None:
        if not self._receives:
            return
        wanted = self._receives.popleft()
        problem = ""
        if completion.length != len(wanted.room):
            problem = f"a message of {completion.length:,} bytes has come; {len(wanted.room):,} are expected"
        elif completion.immediate != wanted.tag:
            problem = f"a message with tag {completion.immediate} has come; {wanted.tag} is expected"
        self._settle(wanted.future, completion.status, problem)

    def _settle(self, future: Future[None], status: Status, problem: str) -> None:
        if status is not Status.SUCCESS:
            cause = self.pair.broken if status is Status.FLUSHED and self.pair.broken is not None else status
            future.set_exception(self._failure(cause))
        elif problem:
            future.set_exception(FailedError(f"{self._name}: {problem}"))
        else:
            future.set_result(None)

    def _failure(self, status: Status) -> FailedError:
        return FailedError(f"{self._name}: the connection has failed: {status}")


class Peers:
    """The connections of ``rank``, whose group's ranks have these cards and names. Methods may be called from all
    threads but the loop's.

    Data and rooms are used until their future is done. Futures raise ``FailedError`` when a connection fails, when a
    message has another size or another tag than the receiver expects, and when ``close`` is called.
    """

    def __init__(self, nic: Station, rank: int, gateway: int, cards: Sequence[Card], names: Sequence[str]) -> None:
        self._nic, self._rank = nic, rank
        self._connections: dict[tuple[int, Kind], _Connection] = {}
        self._ended = ""

        def connect() -> None:
            mine = cards[rank]
            for other, card in enumerate(cards):
                for kind in Kind if other != rank else ():
                    peer = Peer(gateway, card.ip, card.qp(rank, kind))
                    name = f"{names[rank]} and {names[other]}"
                    config = _qp_config(mine.psn, card.psn)
                    self._connections[other, kind] = _Connection(nic, mine.qp(other, kind), peer, config, name)

        nic.loop.run_there(connect)

    def send(self, to: int, data: memoryview, tag: int = 0) -> Future[None]:
        """Send a message to a rank. The future is done when the rank has it."""
        return self._nic.loop.run_there(lambda: self._end_at(to).send(data, tag))

    def receive(self, source: int, room: memoryview, tag: int = 0) -> Future[None]:
        """Receive a rank's next message, which must fill ``room``."""
        return self._nic.loop.run_there(lambda: self._end_at(source).receive(room, tag))

    def exchange(self, send: Mapping[int, memoryview], receive: Mapping[int, memoryview]) -> Future[None]:
        """This rank's part of an exchange: what it sends to others and what it receives from them, by rank. Empty parts
        are left out at both ends. All ranks make the same exchanges in the same order."""

        def begin() -> Future[None]:
            ends = {rank: self._end_at(rank, Kind.EXCHANGE) for rank in {*send, *receive}}
            # Each rank begins with its right neighbour, so that no rank is everybody's first.
            order = sorted(send, key=lambda other: (other < self._rank, other))
            arriving = [ends[source].receive(room, 0) for source, room in receive.items() if room]
            return _all_of(arriving + [ends[to].send(send[to], 0) for to in order if send[to]])

        return self._nic.loop.run_there(begin)

    def end(self, reason: str) -> None:
        """End all connections, on the loop; what waits fails with this reason, and so does what is begun later."""
        self._ended = reason
        for connection in self._connections.values():
            connection.end(reason)
        self._connections.clear()

    def _end_at(self, rank: int, kind: Kind = Kind.MESSAGE) -> _Connection:
        if self._ended:
            raise FailedError(self._ended)
        return self._connections[rank, kind]


def _all_of(parts: Sequence[Future[None]]) -> Future[None]:
    """A future that is done when all parts are, with the first one's error; on the loop, where parts end, too."""
    whole: Future[None] = Future()

    def ended(_: object) -> None:
        if not whole.done() and all(part.done() for part in parts):
            error = next((error for part in parts if (error := part.exception()) is not None), None)
            whole.set_exception(error) if error is not None else whole.set_result(None)

    for part in parts:
        part.add_done_callback(ended)
    ended(None)
    return whole


def _qp_config(psn: int, expected: int) -> QpConfig:
    return QpConfig(
        mtu=MTU,
        initial_psn=psn,
        rq_psn=expected,
        recovery=Recovery.GO_BACK_N,  # a receiver that is not ready refuses a whole window
        max_outstanding=_OUTSTANDING,
        ack_every=_ACK_EVERY,
        timeout_ps=TIMEOUT,
        adaptive=True,
        retry_count=None,
        rnr_retry=None,
        rnr_timer=_RNR_TIMER,
    )
