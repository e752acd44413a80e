"""The collectives of a rank: each is a call of the contexts that have its masks (section 3.4.2).

An AllReduce reads all ranks and writes to all, a Reduce writes to one, a Broadcast reads one. A ReduceScatter is as
many Reduces as there are ranks, an AllGather as many Broadcasts, of a part each, all at once; a Barrier has no data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array, check_root
from p4gen.host.transport.memory import Domain, MemoryRegion
from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.ranks.hosts import Buffer, Member
from p4gen.papers.scin.ranks.memory import Layout, dequantised
from p4gen.papers.scin.spec import ScinSpec


@dataclass(frozen=True)
class Operand:
    """An array in registered memory as the network has it: in network byte order, in ``parts`` of equal size, each in
    whole packets. If elements have scales, numbers are quantised when they come here."""

    region: MemoryRegion
    parts: int
    elements: int
    """Numbers of all parts."""
    packets: int
    """Packets of a part."""
    layout: Layout

    def part(self, number: int = 0) -> Buffer:
        """The memory of a part; parts are numbered from 0."""
        return Buffer(self.region, number * self.layout.size(self.packets))

    def put(self, array: Array) -> None:
        """Have it hold another array of the same size."""
        self.region.buffer[:] = self.layout.wire(self.layout.taken(array, self.parts), self.parts)

    def array(self) -> Array:
        """The numbers that it holds."""
        each, layout = self.elements // self.parts, self.layout
        if not layout.spec.scaled:
            return layout.array(self.region.buffer, self.parts, self.packets, self.elements)
        blocks = -(-each // layout.spec.scale_block) * self.parts
        numbers = dequantised(layout.numbers, layout.array(self.region.buffer, self.parts, self.packets, blocks))
        return numbers.reshape(self.parts, -1)[:, :each].reshape(-1)


class Communicator:
    """A rank of a group. A collective's method starts it, and memory holds the result once the rank is ``done``; until
    then operands must not be changed. Without ``result``, results go where the operand is: a ReduceScatter's into the
    rank's own part, and the operand of an AllGather is the rank's own part of it."""

    def __init__(
        self, rank: int, ranks: int, spec: ScinSpec, domain: Domain, members: Mapping[Pattern, Member]
    ) -> None:
        self.rank, self.ranks = rank, ranks
        self._spec, self._domain, self._members = spec, domain, members
        self._all = (1 << ranks) - 1

    @property
    def members(self) -> Sequence[Member]:
        """What the rank is in each of its contexts."""
        return list(self._members.values())

    @property
    def done(self) -> bool:
        """Whether it has the flags of all its calls."""
        return all(member.done for member in self._members.values())

    @property
    def status(self) -> Status:
        """How its newest calls have ended: if any was aborted, why."""
        return max((member.statuses[-1] for member in self.members if member.statuses), default=Status.SUCCESS)

    def register(self, array: Array, parts: int = 1) -> Operand:
        """Register a copy of an array, as calls read and write it; if elements have scales, an array of floating-point
        numbers, or of blocks (``memory.block_type``), and where calls may be exact, one of whole numbers, whose calls
        are. Raises ``InputError`` for another type, and unless it has parts of equal size."""
        layout = Layout.of(self._spec, array)
        held = layout.taken(array, parts)
        numbers = array.size * (layout.spec.scale_block if layout.spec.scaled and array.dtype == layout.type else 1)
        region = self._domain.register(bytearray(layout.wire(held, parts)))
        return Operand(region, parts, numbers, layout.packets(held, parts), layout)

    def all_reduce(self, operand: Operand, result: Operand | None = None) -> None:
        """Start an AllReduce of all ranks' operands, whose result all ranks get."""
        self.call(self._all, self._all, operand, result)

    def reduce(self, root: int, operand: Operand, result: Operand | None = None) -> None:
        """Start a Reduce, whose result only the root gets."""
        check_root(root, self.ranks)
        self.call(self._all, 1 << root, operand, result)

    def broadcast(self, root: int, operand: Operand, result: Operand | None = None) -> None:
        """Start a Broadcast of the root's operand."""
        check_root(root, self.ranks)
        self.call(1 << root, self._all, operand, result)

    def reduce_scatter(self, operand: Operand, result: Operand | None = None) -> None:
        """Start a ReduceScatter: the operand has a part for each rank, the result is of the size of one."""
        self._divided(operand)
        for rank in range(self.ranks):
            to = operand.part(rank) if result is None else result.part()
            self._arrive(Pattern(self._all, 1 << rank), operand, operand.part(rank), to)

    def all_gather(self, operand: Operand, result: Operand | None = None) -> None:
        """Start an AllGather: the result has a part for each rank, the operand is of the size of one."""
        held = operand if result is None else result
        self._divided(held)
        own = operand.part(self.rank) if result is None else operand.part()
        for rank in range(self.ranks):
            self._arrive(Pattern(1 << rank, self._all), held, own, held.part(rank))

    def barrier(self) -> None:
        """Start a Barrier, a call of all ranks without data."""
        self._arrive(Pattern(self._all, self._all), None, None, None)

    def call(self, sources: int, destinations: int, operand: Operand, result: Operand | None = None) -> None:
        """Start a call that reads these ranks and writes to those; a rank that is neither has no part in it."""
        held = operand if result is None else result
        if held.layout != operand.layout:
            raise InputError("an operand and a result of different elements")
        if held.packets != operand.packets:
            raise InputError(f"an operand of {operand.packets} packets, with room for a result of {held.packets}")
        self._arrive(Pattern(sources, destinations), operand, operand.part(), held.part())

    def _divided(self, operand: Operand) -> None:
        if operand.parts != self.ranks:
            raise InputError(f"an array of {operand.parts} parts; there are {self.ranks} ranks")

    def _arrive(self, pattern: Pattern, operand: Operand | None, source: Buffer | None, result: Buffer | None) -> None:
        if not pattern.participants >> self.rank & 1:
            return
        member = self._members.get(pattern)
        if member is None:
            masks = f"sources {pattern.sources:#x} and destinations {pattern.destinations:#x}"
            raise InputError(f"rank {self.rank} is in no context of {masks}")
        reads, writes = pattern.sources >> self.rank & 1, pattern.destinations >> self.rank & 1
        packets, numbers = (operand.packets, operand.layout.spec.dtype) if operand else (0, "")
        member.arrive(packets, source if reads else None, result if writes else None, numbers)
