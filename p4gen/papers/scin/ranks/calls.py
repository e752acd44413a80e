"""Calls of collectives with drawn data, and what NumPy says of them: of every byte of a rank's operand and result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.host.collectives.arrays import Array, array_type
from p4gen.net.collectives.config import MAX_DATA
from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.ranks.collectives import Communicator, Operand
from p4gen.papers.scin.ranks.memory import Layout, joined, quantised
from p4gen.papers.scin.ranks.options import ALTERNATE, QUANTISE
from p4gen.papers.scin.ranks.orders import accepted
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary import DType
from p4gen.vocabulary.message import Collective

_UNREDUCED: Final = (Collective.BROADCAST, Collective.ALLGATHER)
_SCALES: Final = 8
"""Powers of two by which drawn numbers differ, up and down."""
_MOST_PACKETS: Final = 1 << 23
"""Of a call: PSNs of further ones could not be told from earlier ones."""
DIVIDED: Final = (Collective.REDUCE_SCATTER, Collective.ALLGATHER)
"""Collectives whose data have a part for each rank."""


@dataclass(frozen=True)
class PullCall:
    """What all ranks of a group call."""

    name: str
    ranks: int
    elements: int
    """Of an operand; of an AllGather, of the result."""
    root: int
    masks: Pattern
    """Of ``CALL``."""
    in_place: bool

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The contexts that it takes."""
        everybody = (1 << self.ranks) - 1
        match self.name:
            case Collective.REDUCE:
                return (Pattern(everybody, 1 << self.root),)
            case Collective.BROADCAST:
                return (Pattern(1 << self.root, everybody),)
            case Collective.REDUCE_SCATTER:
                return tuple(Pattern(everybody, 1 << rank) for rank in range(self.ranks))
            case Collective.ALLGATHER:
                return tuple(Pattern(1 << rank, everybody) for rank in range(self.ranks))
            case Collective.ALLREDUCE | Collective.BARRIER:
                return (Pattern(everybody, everybody),)
        return (self.masks,)

    def packets(self, spec: ScinSpec) -> int:
        """Packets of its part in each context."""
        parts = self.ranks if self.name in DIVIDED else 1
        return -(-(self.elements // parts) // spec.packet_units)

    @property
    def participants(self) -> list[int]:
        """The ranks that arrive in any context of the call, in their order."""
        all_of_them = 0
        for pattern in self.patterns:
            all_of_them |= pattern.participants
        return [rank for rank in range(self.ranks) if all_of_them >> rank & 1]

    @property
    def operand_parts(self) -> int:
        """The parts that an operand's memory has."""
        gathers = self.name == Collective.ALLGATHER and self.in_place
        return self.ranks if gathers or self.name == Collective.REDUCE_SCATTER else 1

    @property
    def result_parts(self) -> int:
        """The parts of a result that is apart."""
        return self.ranks if self.name == Collective.ALLGATHER else 1

    @property
    def operand_elements(self) -> int:
        """The elements of an operand's memory."""
        apart = self.name == Collective.ALLGATHER and not self.in_place
        return self.elements // self.ranks if apart else self.elements

    @property
    def result_elements(self) -> int:
        """The elements of a result that is apart."""
        return self.elements // self.ranks if self.name == Collective.REDUCE_SCATTER else self.elements

    def planned(self, packets: int, spec: ScinSpec) -> int:
        """Packets to ranks if nothing is lost: READs, WRITEs, flags that are no WRITEs of results, and ACKs of
        arrivals. A context's part of the call has ``packets``."""
        reads = (2 if spec.scaled else 1) * -(-packets // spec.wave)
        return sum(
            pattern.sources.bit_count() * reads
            + pattern.destinations.bit_count() * packets
            + 2 * pattern.participants.bit_count()
            - (pattern.destinations.bit_count() if spec.ordered and packets else 0)
            for pattern in self.patterns
        )

    def taken(self, rank: int, packets: int, spec: ScinSpec) -> int:
        """PSNs that a rank's connections take: of its operand's packets, of its result's, and of flags that are no
        WRITEs of results. A context's part of the call has ``packets``."""
        read = packets + (-(-packets // spec.wave) if spec.scaled else 0)
        total = 0
        for pattern in self.patterns:
            if pattern.participants >> rank & 1:
                written = pattern.destinations >> rank & 1
                total += read * (pattern.sources >> rank & 1) + packets * written
                total += not (spec.ordered and packets and written)
        return total

    def start(self, rank: Communicator, operand: Operand, result: Operand | None) -> None:
        """Have a rank begin its part of the call. ``result`` is None if the result goes where the operand is."""
        match self.name:
            case Collective.ALLREDUCE:
                rank.all_reduce(operand, result)
            case Collective.REDUCE:
                rank.reduce(self.root, operand, result)
            case Collective.BROADCAST:
                rank.broadcast(self.root, operand, result)
            case Collective.REDUCE_SCATTER:
                rank.reduce_scatter(operand, result)
            case Collective.ALLGATHER:
                rank.all_gather(operand, result)
            case Collective.BARRIER:
                rank.barrier()
            case _:
                rank.call(self.masks.sources, self.masks.destinations, operand, result)


@dataclass(frozen=True)
class Drawn:
    """A call with the arrays that ranks' operands hold before it."""

    call: PullCall
    spec: ScinSpec
    values: Sequence[Array]
    _told: dict[int, Array] = field(default_factory=dict)
    """Where the order of data matters: by part, the result of the rank that has told it first."""

    @cached_property
    def results(self) -> list[Array | None]:
        """Every rank's result by NumPy, where sums are exact; None for ranks that get none."""
        call, ranks, given = self.call, range(self.call.ranks), self.values
        match call.name:
            case Collective.BARRIER:
                return [None] * call.ranks
            case Collective.BROADCAST:
                return [self._reduced([given[call.root]])] * call.ranks
            case Collective.ALLGATHER:
                own = [np.split(given[rank], call.ranks)[rank] for rank in ranks] if call.in_place else given
                return [np.concatenate([self._reduced([part]) for part in own])] * call.ranks
            case Collective.REDUCE_SCATTER:
                return list(np.split(self._reduced(given), call.ranks))
        (pattern,) = call.patterns
        total = self._reduced([given[rank] for rank in ranks if pattern.sources >> rank & 1])
        return [total if pattern.destinations >> rank & 1 else None for rank in ranks]

    def _reduced(self, given: Sequence[Array]) -> Array:
        return Layout(self.spec).reduced(given)

    def _given(self, of: Sequence[bool]) -> list[Array]:
        """The operands of some ranks."""
        return [values for values, counts in zip(self.values, of, strict=True) if counts]

    def _result(self, rank: int, found: Array) -> Array | None:
        """A rank's result, of which it has ``found`` this; None for ranks that get none. Sums of floating-point numbers
        have an order, which must be the same for all ranks that get them."""
        result, call = self.results[rank], self.call
        if result is None or not self.spec.depends_on_order or call.name in _UNREDUCED:
            return result
        scatters = call.name == Collective.REDUCE_SCATTER
        part = rank if scatters else 0
        if part not in self._told:
            (pattern, *_) = call.patterns
            given = self._given([bool(pattern.sources >> each & 1) for each in range(call.ranks)])
            if scatters:
                given = [np.split(each, call.ranks)[rank] for each in given]
            self._told[part] = accepted(found, given, self.spec.lanes)
        return self._told[part]

    def _after(self, rank: int, found: Array) -> Array:
        """What a rank's operand holds after a call in place, of which it has ``found`` this."""
        if self.call.name == Collective.REDUCE_SCATTER:
            found = np.split(found, self.call.ranks)[rank]
        result = self._result(rank, found)
        if result is None:
            return self.values[rank]
        if self.call.name != Collective.REDUCE_SCATTER:
            return result
        held = self.values[rank].copy()
        np.split(held, self.call.ranks)[rank][:] = result
        return held

    def problem(self, rank: int, operand: Operand, result: Operand | None) -> str:
        """How a rank's memory differs from NumPy's; "" if it does not."""
        if result is None:
            return _difference("its operand", operand, self._after(rank, operand.array()))
        wanted = self._result(rank, result.array())
        if wanted is None:
            wanted = np.zeros(self.call.result_elements, result.layout.type)
        return _difference("its operand", operand, self.values[rank]) or _difference("its result", result, wanted)


def _difference(what: str, found: Operand, wanted: Array) -> str:
    right = np.frombuffer(found.layout.wire(wanted, found.parts), np.uint8)
    wrong = np.flatnonzero(np.frombuffer(found.region.buffer, np.uint8) != right)
    if not wrong.size:
        return ""
    at = int(wrong[0])
    return f"bytes of {what}: {found.region.buffer[at]} at {at:,}, not {right[at]}; {wrong.size:,} are wrong"


def draw(call: PullCall, spec: ScinSpec, chance: np.random.Generator) -> Drawn:
    """A call with random operands. Where sums saturate, half of them do not leave their range, and the operands of all
    others have one sign, so that the order of additions does not matter. Floating-point numbers are of different
    magnitudes, so that sums are rounded. Blocks with scales are numbers that have been quantised, or any elements with
    any scales."""
    if spec.scaled:
        return Drawn(call, spec, [_blocks(call.operand_elements, spec, chance) for _ in range(call.ranks)])
    form, dtype = DType(spec.dtype).number_format, array_type(DType(spec.dtype))
    shape = call.ranks, call.operand_elements
    if not form.integer:
        scales = 2.0 ** chance.integers(-_SCALES, _SCALES, shape, endpoint=True)
        return Drawn(call, spec, list((chance.standard_normal(shape) * scales).astype(np.float32).astype(dtype)))
    low, high = int(form.least), int(form.greatest)
    values = chance.integers(low, high, shape, dtype, endpoint=True)
    if spec.op == "sum" and spec.overflow == "saturate":
        signs = chance.integers(0, 2, shape[1]) * 2 - 1 if low < 0 else 1
        large = (chance.integers(0, high, shape) * signs).astype(dtype)
        values = np.where(chance.integers(0, 2, shape[1]), values // call.ranks, large).astype(dtype)
    return Drawn(call, spec, list(values))


def _blocks(count: int, spec: ScinSpec, chance: np.random.Generator) -> Array:
    numbers, size = Layout(spec).numbers, spec.scale_block
    values = chance.normal(size=(count, size)) * np.exp2(chance.integers(-20, 20, (count, 1)))
    usual = quantised(numbers, values, size)
    near = chance.integers(numbers.near.start, numbers.near.stop, count)
    wide = chance.integers(0, numbers.valid.stop * 9 // 8, count)  # some are no numbers
    scales = np.where(chance.integers(0, 8, count), near, np.minimum(wide, numbers.not_a_number)).astype(numbers.scale)
    odd = joined(numbers, chance.integers(-128, 128, (count, size), np.int8), scales)
    return np.where(chance.integers(0, 2, count), usual, odd)


def sized(call: PullCall, size: int, spec: ScinSpec, groups: int = 1) -> PullCall:
    """The call with ``size`` bytes at each rank, made by so many groups at once.

    Raises ``InputError`` if they are no whole elements, do not divide among ranks, or take too much memory or too many
    packets.
    """
    barrier, parts = call.name == Collective.BARRIER, call.ranks if call.name in DIVIDED else 1
    unit = spec.unit_bytes * parts
    call = replace(call, elements=size // spec.unit_bytes)
    packets = call.packets(spec)
    wrong = ""
    if barrier and size:
        wrong = "a barrier has no data"
    elif size % unit or not (size or barrier):
        wrong = f"{call.name} of {size} bytes: it has to be a positive multiple of {unit}"
    elif size * call.ranks * groups > MAX_DATA:
        wrong = f"{call.name} of {size} bytes: all ranks' data together have {MAX_DATA >> 20:,} MiB at most"
    elif packets >= _MOST_PACKETS:
        wrong = f"{packets:,} packets; a call has {_MOST_PACKETS - 1:,} at most"
    if wrong:
        raise InputError(Diagnostic(Option("size"), wrong))
    return call


def form(spec: ScinSpec, quantise: str, number: int = 0) -> ScinSpec:
    """The program as a call has it: whether it is quantised, by the option and by its number, from 0. Raises
    ``InputError``."""
    if quantise == "yes":
        return spec
    if not spec.exact:
        raise InputError(Diagnostic(Option(QUANTISE), f"the calls of {spec.program} are all alike (--exact)"))
    return spec if quantise == ALTERNATE and number % 2 == 0 else spec.exact_form
