"""Calls of collectives with drawn data, and what NumPy says of them: of each rank's result, and of every byte of its
window.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4gen.papers.multiwrite.ranks.hosts import DISPATCH, GATHER, Bytes, Member
from p4gen.papers.multiwrite.ranks.layout import RECORD, Layout, pieces_of
from p4gen.papers.multiwrite.ranks.options import Choice

Choices = npt.NDArray[np.int64]


def choose(choice: Choice, ranks: int, tokens: int, experts: int, top: int, chance: np.random.Generator) -> Choices:
    """The ranks of each token's experts, (source, token, expert); a rank comes as often as it has one of them."""
    each = experts // ranks
    match choice:
        case Choice.RANDOM:
            order = chance.permuted(np.broadcast_to(np.arange(experts), (ranks, tokens, experts)).copy(), axis=2)
            return order[:, :, :top] // each
        case Choice.BALANCED:
            return np.stack([_balanced(tokens, experts, top, chance) for _ in range(ranks)]) // each
        case Choice.ONE:
            return np.full((ranks, tokens, 1), ranks - 1)
        case Choice.ALL:
            return np.broadcast_to(np.arange(ranks), (ranks, tokens, ranks))
        case Choice.NEXT:
            return np.broadcast_to(((np.arange(ranks) + 1) % ranks)[:, None, None], (ranks, tokens, 1))


def _balanced(tokens: int, experts: int, top: int, chance: np.random.Generator) -> Choices:
    """Each token takes the experts that have the fewest tokens so far, of equal ones any."""
    loads = np.zeros(experts)
    rows = []
    for _ in range(tokens):
        row = np.argsort(loads + chance.random(experts))[:top]
        loads[row] += 1
        rows.append(row)
    return np.stack(rows)


@dataclass
class Window:
    """What a rank's window must hold: written as the calls say, packet by packet."""

    layout: Layout
    rank: int
    first_psns: Sequence[int]
    memory: Bytes = field(init=False)

    def __post_init__(self) -> None:
        self.memory = np.zeros(self.layout.size, np.uint8)
        self._come = [0] * self.layout.ranks

    def put(self, source: int, place: int, data: Bytes) -> None:
        """The next packet of a source, whose place in its area is ``place`` unless the area is a ring."""
        layout = self.layout
        if layout.spec.appends:
            place = (self.first_psns[source] + self._come[source]) % (1 << 24) % layout.slots
        self._come[source] += 1
        at = source * layout.area + place * layout.slot_bytes
        self.memory[at : at + len(data)] = data

    def fence(self, source: int, number: int, kind: int, counts: Sequence[int] | npt.NDArray[np.uint16]) -> None:
        """The fence of a call of a source, which tells how many packets each rank has got."""
        words = np.frombuffer(number.to_bytes(4) + kind.to_bytes(4), np.uint8)
        packet = np.zeros(self.layout.spec.payload, np.uint8)
        said = np.concatenate([words, np.array(counts, np.uint16).view(np.uint8)])
        packet[: len(said)] = said
        self.put(source, self.layout.packets, packet)


class SharedCall(Protocol):
    """A call that all ranks make."""

    @abstractmethod
    def start(self, member: Member) -> None:
        """Have a rank begin its part of the call."""

    @abstractmethod
    def problem(self, member: Member) -> str:
        """How a rank's result differs from NumPy's; "" if it does not."""
        ...

    @abstractmethod
    def fill(self, window: Window, number: int) -> None:
        """What a rank's window holds after this call, the ``number``-th one, from 1."""


@dataclass(frozen=True)
class Gather(SharedCall):
    """An AllGather; ``blocks`` has a row of bytes for each rank, which goes to its ``peers``: all others, or some."""

    blocks: Bytes
    peers: Callable[[int], Sequence[int]] | None = None

    @override
    def start(self, member: Member) -> None:
        member.all_gather(self.blocks[member.rank].tobytes())

    @override
    def problem(self, member: Member) -> str:
        return different("bytes", np.frombuffer(member.gathered(), np.uint8), self.blocks.reshape(-1))

    @override
    def fill(self, window: Window, number: int) -> None:
        size = window.layout.spec.payload
        packets = self.blocks.shape[1] // size
        for source in self._peers(window.rank):
            for place in range(packets):
                window.put(source, place, self.blocks[source, place * size : (place + 1) * size])
            counts = np.zeros(len(self.blocks), np.uint16)
            counts[list(self._peers(source))] = packets
            window.fence(source, number, GATHER, counts)

    def _peers(self, rank: int) -> Sequence[int]:
        return self.peers(rank) if self.peers is not None else list(_others(len(self.blocks), rank))


@dataclass(frozen=True)
class Dispatch(SharedCall):
    """A dispatch of tokens, (source, token, byte), to the ranks in ``topk``, (source, token, choice)."""

    tokens: Bytes
    topk: Choices

    @override
    def start(self, member: Member) -> None:
        member.dispatch(self.tokens[member.rank], self.topk[member.rank])

    @override
    def problem(self, member: Member) -> str:
        received = member.received(self.tokens.shape[2])
        source, index = np.nonzero((self.topk == member.rank).any(axis=2))
        for what, got, right in (
            ("sources of tokens", received.source, source),
            ("numbers of tokens", received.index, index),
            ("bytes of tokens", received.tokens.reshape(-1), self.tokens[source, index].reshape(-1)),
        ):
            if problem := different(what, got, right):
                return problem
        return ""

    @override
    def fill(self, window: Window, number: int) -> None:
        layout, (ranks, tokens, size) = window.layout, self.tokens.shape
        pieces, room = pieces_of(layout.spec, size), layout.spec.payload - RECORD
        named = np.stack([(self.topk == rank).any(axis=2) for rank in range(ranks)])
        for source in _others(ranks, window.rank):
            for token in range(tokens):
                if not named[window.rank, source, token]:
                    continue
                for piece in range(pieces):
                    place = token * pieces + piece
                    packet = np.zeros(layout.spec.payload, np.uint8)
                    packet[:RECORD] = np.frombuffer(number.to_bytes(4) + place.to_bytes(4), np.uint8)
                    data = self.tokens[source, token, piece * room : (piece + 1) * room]
                    packet[RECORD : RECORD + len(data)] = data
                    window.put(source, place, packet)
            counts = [0 if rank == source else int(named[rank, source].sum()) * pieces for rank in range(ranks)]
            window.fence(source, number, DISPATCH, counts)


def _others(ranks: int, rank: int) -> Iterator[int]:
    return (other for other in range(ranks) if other != rank)


def different(what: str, got: npt.NDArray[np.generic], right: npt.NDArray[np.generic]) -> str:
    """How what was got differs from what is right, in words; "" if it does not."""
    if got.shape != right.shape:
        return f"{got.size:,} {what}, not {right.size:,}"
    wrong = np.flatnonzero(got != right)
    return (
        f"{what}: {got[wrong[0]]} at {wrong[0]:,}, not {right[wrong[0]]}; {wrong.size:,} are wrong"
        if wrong.size
        else ""
    )


def memory_problem(member: Member, calls: Sequence[SharedCall], first_psns: Sequence[int]) -> str:
    """How the bytes of a rank's window differ from what all calls, one after the other, put there; "" if they do
    not."""
    window = Window(member.layout, member.rank, first_psns)
    for number, call in enumerate(calls, 1):
        call.fill(window, number)
    return window_problem(member, window)


def window_problem(member: Member, window: Window) -> str:
    """How the bytes of a rank's window differ from those that it must hold; "" if they do not."""
    return different("bytes of its window", np.frombuffer(member.memory, np.uint8)[: window.memory.size], window.memory)
