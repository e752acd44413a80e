"""What a rank does with MultiWrite: writes to several ranks at once, fences, and the collectives made of them.

A rank has one connection that it writes over, and one from each other rank. Packets are messages of their own, of the
program's length. A window has an area for each source, and in it room for the source's fence behind its data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from p4gen.errors import InputError
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import QueuePair, VerbsPair
from p4gen.host.transport.verbs import Completion, QpConfig, RecvWr, Status
from p4gen.papers.multiwrite.headers import mtu
from p4gen.papers.multiwrite.placing import End
from p4gen.papers.multiwrite.ranks.layout import RECORD, Layout, pieces_of, write_request

Bytes = npt.NDArray[np.uint8]
GATHER, DISPATCH = 1, 2
"""What a fence says that its call is."""
_FENCE: Final = 1 << 62


@dataclass(frozen=True)
class Received:
    """The tokens that a rank has got, in the order of their sources, and of these in that of their places."""

    tokens: Bytes
    source: npt.NDArray[np.int64]
    index: npt.NDArray[np.int64]


class Member:
    """A rank of a group. Errors of its connections are in ``problems``."""

    _writer: VerbsPair
    """The connection to write over, once it is connected."""

    def __init__(self, nic: VerbsNic, rank: int, layout: Layout, changed: Callable[[], None] | None = None) -> None:
        """``changed`` is called whenever a call may have ended. Raises ``InputError`` for a program that appends, whose
        ranks must know how many packets have come, on a NIC that does not say."""
        if layout.spec.appends and not nic.compiled:
            raise InputError(f"{layout.spec.program} appends: verbs do not say how many packets have come")
        self.rank, self.layout = rank, layout
        self.memory = bytearray(layout.memory)
        self.region = nic.domain.register(self.memory)
        self._nic, self._spec, self._changed = nic, layout.spec, changed
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        """Be a rank that has made no call."""
        self.problems: list[str] = []
        self._call = 0
        self._fences = dict.fromkeys(range(self.layout.ranks), 0)
        """The fences of each source so far."""
        self._found: dict[tuple[int, int], list[bytes]] = {}
        """The packets of calls, by call and source. Others may be a call ahead of this rank."""
        self._consumed = dict.fromkeys(range(self.layout.ranks), 0)
        """The PSN of the first packet of each source that no fence has been behind yet."""
        self._mine: list[bytes] = []
        self._sent = True
        self._pairs: dict[int, VerbsPair] = {}
        """The connections from other ranks."""
        self.fenced = 0
        """When the last fence came, ps."""
        self.ended = 0
        """When this rank was done with its last call, ps."""

    def connect(
        self, source: End, destinations: Mapping[int, End], first_psns: Mapping[int, int], **qp: object
    ) -> None:
        """Create the connections: the one to write over, and those from other ranks, which are also those that
        collectives write to. ``qp`` are more attributes."""

        def config(rank: int) -> QpConfig:
            return QpConfig(
                mtu=mtu(self._spec),
                initial_psn=first_psns[rank],
                max_outstanding=self._spec.slots,
                **qp,  # type: ignore[arg-type]
            )

        self._writer = self._nic.create_pair(source.qp, source.peer, config(self.rank), self._on_sent)
        for rank, end in destinations.items():
            pair = self._nic.create_pair(end.qp, end.peer, config(rank), partial(self._on_fence, rank))
            pair.post_recv(RecvWr(0))
            self._consumed[rank] = first_psns[rank]
            self._pairs[rank] = pair

    @property
    def pairs(self) -> list[VerbsPair]:
        """All connections, the one to write over first; none before ``connect``."""
        return [self._writer, *self._pairs.values()] if self._pairs else []

    def disconnect(self) -> None:
        """Destroy the connections and forget all calls; the window is empty again. ``connect`` creates new ones."""
        for pair in self.pairs:
            pair.fail(Status.FLUSHED)
            self._nic.destroy_pair(pair)
        self.memory[:] = bytes(len(self.memory))
        self._begin_afresh()

    def close(self) -> None:
        """Nobody can write to the window any more."""
        self._nic.domain.deregister(self.region)

    # --- writes ---

    def multi_write(self, data: bytes, ranks: Iterable[int], offset: int) -> None:
        """Write ``data``, a whole number of packets, to the same offset in the windows of these ranks.

        Raises ``ValueError`` for other lengths, and if it names nobody or this rank itself.
        """
        bitmap = self._bitmap(ranks)
        if len(data) % self._spec.payload:
            raise ValueError(f"{len(data)} bytes are no whole number of packets of {self._spec.payload}")
        for start in range(0, len(data), self._spec.payload):
            self._post(0, data[start : start + self._spec.payload], bitmap, offset + start, fence=False)

    def fence(self, counts: Mapping[int, int], kind: int = DISPATCH, *, apart: bool = False) -> None:
        """Tell all other ranks that this rank's writes of the call are done, and how many packets each of them got;
        ``apart``: each by a write of its own.

        Raises ``ValueError`` if a number has more than 16 bits, or they do not fit a packet.
        """
        layout = self.layout
        numbers = np.zeros(layout.ranks, np.uint16)
        for rank, count in counts.items():
            if not 0 <= count < 1 << 16:
                raise ValueError(f"{count} packets for rank {rank} are not in 0 to 65,535")
            numbers[rank] = count
        body = self._call.to_bytes(4) + kind.to_bytes(4) + numbers.tobytes()
        if len(body) > self._spec.payload:
            raise ValueError(f"the numbers of {layout.ranks} ranks do not fit a packet of {self._spec.payload} bytes")
        place = self.rank * layout.area + layout.packets * layout.slot_bytes
        *first, last = self._targets(apart)
        for ranks, wr_id in (*((ranks, 0) for ranks in first), (last, _FENCE)):
            self._post(wr_id, body.ljust(self._spec.payload, b"\0"), self._bitmap(ranks), place, fence=True)

    def _targets(self, apart: bool) -> list[tuple[int, ...]]:
        """The ranks that a collective's write to all others names, or those that as many writes name."""
        return [(rank,) for rank in self._pairs] if apart else [tuple(self._pairs)]

    def _bitmap(self, ranks: Iterable[int]) -> int:
        bitmap = 0
        for rank in ranks:
            bitmap |= 1 << rank
        if not bitmap or bitmap >> self.rank & 1 or bitmap >> self.layout.ranks:
            raise ValueError(f"rank {self.rank} cannot write to the ranks {bitmap:#x}")
        return bitmap

    def _post(self, wr_id: int, data: bytes, bitmap: int, offset: int, *, fence: bool) -> None:
        self._writer.post_send(write_request(self._spec, self.rank, wr_id, data, bitmap, offset, fence=fence))

    # --- collectives ---

    def all_gather(self, block: bytes, *, apart: bool = False) -> None:
        """Start an AllGather of a block, a whole number of packets, the same at all ranks; ``gathered`` has the result
        once ``done``. ``apart`` writes to each rank by itself.

        Raises ``ValueError`` if it takes more packets than windows have room for.
        """
        self.begin_gather(block)
        self.write_block(block, 0, apart=apart)
        self.end_gather(len(block) // self._spec.payload, apart=apart)

    def begin_gather(self, block: bytes) -> None:
        """Start an AllGather whose writes are yet to be made: those of ``block``, or of what comes from elsewhere.

        Raises ``ValueError`` if it takes more packets than windows have room for.
        """
        if len(block) > self.layout.packets * self._spec.payload:
            raise ValueError(
                f"{len(block)} bytes take more packets than the {self.layout.packets} that windows have room for"
            )
        self._begin([block[at : at + self._spec.payload] for at in range(0, len(block), self._spec.payload)])

    def write_block(self, data: bytes, place: int, *, apart: bool = False) -> None:
        """Write some packets of an AllGather's block to all others, from packet ``place`` of the block on."""
        size, layout = self._spec.payload, self.layout
        for at in range(0, len(data), size):
            offset = self.rank * layout.area + (place + at // size) * layout.slot_bytes
            for ranks in self._targets(apart):
                self.multi_write(data[at : at + size], ranks, offset)

    def end_gather(self, packets: int, *, apart: bool = False) -> None:
        """Tell all others that the writes of an AllGather are done, and that they were so many."""
        self.fence(dict.fromkeys(self._pairs, packets), GATHER, apart=apart)

    def gathered(self) -> bytes:
        """The blocks of this rank and of those that write to it, in their order."""
        return b"".join(map(self.block, sorted({self.rank, *self._pairs})))

    def block(self, source: int) -> bytes:
        """The block of a source: this rank, or one that writes to it."""
        return b"".join(self._of(source))

    def arrived(self, source: int, first: int) -> list[bytes]:
        """The packets of a source in this call that have come so far, from the one with this number on, whether or not
        its fence has come."""
        if self._fences[source] >= self._call:
            return self._found[self._call, source][first:]
        return [self._packet(source, number) for number in range(first, self._count(source))]

    def dispatch(self, tokens: Bytes, topk: npt.NDArray[np.int64], *, apart: bool = False) -> None:
        """Start sending each token (a row of ``tokens``) to the ranks in its row of ``topk``, once each; ``received``
        has the result once ``done``. ``apart`` writes to each rank by itself.

        Raises ``ValueError`` if the tokens take more packets than windows have room for.
        """
        pieces = pieces_of(self._spec, tokens.shape[1])
        if len(tokens) * pieces > self.layout.packets:
            raise ValueError(
                f"{len(tokens)} tokens of {tokens.shape[1]} bytes take {len(tokens) * pieces} packets; windows have "
                f"room for {self.layout.packets}"
            )
        self._begin([])
        counts: dict[int, int] = {}
        for index, (token, chosen) in enumerate(zip(tokens, topk, strict=True)):
            records = self._records(index, token.tobytes())
            ranks = {int(rank) for rank in chosen}
            if self.rank in ranks:
                self._mine += records
            if others := ranks - {self.rank}:
                for named in [{rank} for rank in others] if apart else [others]:
                    self._write_records(index, records, named)
            for rank in others:
                counts[rank] = counts.get(rank, 0) + pieces
        self.fence(counts)

    def _records(self, index: int, data: bytes) -> list[bytes]:
        """The packets of a token of this call with this number."""
        room, pieces = self._spec.payload - RECORD, pieces_of(self._spec, len(data))
        return [
            (self._call.to_bytes(4) + (index * pieces + i).to_bytes(4) + data[i * room : (i + 1) * room])
            .ljust(self._spec.payload, b"\0")
            for i in range(pieces)
        ]  # fmt: skip

    def _write_records(self, index: int, records: Sequence[bytes], ranks: Iterable[int]) -> None:
        """Write a token's packets to their places at these ranks."""
        place = self.rank * self.layout.area + index * len(records) * self.layout.slot_bytes
        for i, record in enumerate(records):
            self.multi_write(record, ranks, place + i * self.layout.slot_bytes)

    def received(self, token_bytes: int) -> Received:
        """The tokens of a dispatch, each of this many bytes."""
        pieces = pieces_of(self._spec, token_bytes)
        found: list[tuple[int, int, bytes]] = []
        for source in range(self.layout.ranks):
            packets = self._of(source)
            for first in range(0, len(packets), pieces):
                token = b"".join(packet[RECORD:] for packet in packets[first : first + pieces])
                index = int.from_bytes(packets[first][4:RECORD]) // pieces
                found.append((source, index, token[:token_bytes]))
        return Received(
            np.frombuffer(b"".join(token for _, _, token in found), np.uint8).reshape(-1, token_bytes),
            np.array([source for source, _, _ in found], np.int64),
            np.array([index for _, index, _ in found], np.int64),
        )

    @property
    def done(self) -> bool:
        """Whether all ranks have what this one sent, and this one has the fences of all others."""
        return self._sent and min(self._fences[rank] for rank in self._pairs) >= self._call

    @property
    def progress(self) -> float:
        """The part of the other ranks whose fences of the last call have come."""
        came = [self._fences[rank] >= self._call for rank in list(self._pairs)]
        return sum(came) / len(came) if came else 0.0

    def _of(self, source: int) -> list[bytes]:
        """The packets of a source in this call."""
        return self._mine if source == self.rank else self._found[self._call, source]

    def _begin(self, mine: list[bytes]) -> None:
        for source in self._pairs:
            self._found.pop((self._call, source), None)
        self._call += 1
        self._mine, self._sent = mine, False

    # --- completions ---

    def _on_sent(self, completion: Completion) -> None:
        if completion.status is not Status.SUCCESS:
            self._note(f"rank {self.rank}: {completion.status}")
        elif completion.wr_id == _FENCE:
            self._sent = True
            self._note_end()

    def _on_fence(self, source: int, completion: Completion) -> None:
        """A source's fence: what it has sent in this call is taken out of the window, and must be as much as it
        says."""
        if completion.status is not Status.SUCCESS:
            self._note(f"rank {self.rank}, from rank {source}: {completion.status}")
            return
        if completion.immediate != source:
            self.problems.append(f"rank {self.rank}: a fence of rank {source} says {completion.immediate}")
        self._pairs[source].post_recv(RecvWr(0))
        self.fenced = self._nic.clock.now
        self._fences[source] += 1
        self._found[self._fences[source], source] = self._take(source, self._fences[source])
        self._note_end()

    def _note_end(self) -> None:
        if self.done:
            self.ended = self._nic.clock.now
        if self._changed is not None and (self.done or self.problems):
            self._changed()

    def _note(self, problem: str) -> None:
        self.problems.append(problem)
        self._note_end()

    def _take(self, source: int, call: int) -> list[bytes]:
        layout = self.layout
        if self._spec.appends:
            *packets, fence = (self._packet(source, number) for number in range(self._count(source)))
        else:
            packets = [self._packet(source, number) for number in range(layout.packets)]
            fence = self._packet(source, layout.packets)
        if self._nic.compiled:
            self._consumed[source] = self._awaited(source)
        said, kind = int.from_bytes(fence[:4]), int.from_bytes(fence[4:RECORD])
        wanted = int(np.frombuffer(fence[RECORD:], np.uint16)[self.rank])
        if not self._spec.appends:
            of_call = call.to_bytes(4)
            packets = packets[:wanted] if kind == GATHER else [p for p in packets if p[:4] == of_call]
        if (said, len(packets)) != (call, wanted):
            self.problems.append(
                f"rank {self.rank}: {len(packets)} packets of rank {source} in call {call}; its fence of call {said} "
                f"says {wanted}"
            )
        return packets

    def _count(self, source: int) -> int:
        """Packets of a source that have come since its last fence."""
        return (self._awaited(source) - self._consumed[source]) % (1 << 24)

    def _awaited(self, source: int) -> int:
        """The PSN of the next packet of a source, which our NIC knows."""
        responder = cast("QueuePair", self._pairs[source]).responder
        return responder.psn(responder.expected)

    def _packet(self, source: int, number: int) -> bytes:
        """A packet in a source's area: of its ring, counted from its last fence on; else in its place."""
        layout = self.layout
        slot = (self._consumed[source] + number) % layout.slots if self._spec.appends else number
        at = source * layout.area + slot * layout.slot_bytes
        return bytes(self.memory[at : at + self._spec.payload])
