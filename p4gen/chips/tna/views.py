"""The control plane's view of the memories of all pipes: registers, sums of counters, meters, selectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, overload

from typing_extensions import override

from p4gen.chips.tna.words import Array
from p4gen.model.externs import Bucket, Counter, Meter, MeterConfig, Register
from p4gen.model.profiles import Profile
from p4gen.p4 import ir


class Shared(Register):
    """A register as the control plane sees it."""

    def __init__(self, instance: ir.ExternInstance, arrays: Sequence[Array]) -> None:
        word = arrays[0].word
        self.name, self.width, self.size = instance.name, word.width, len(arrays[0].cells)
        self.signed = self.is_bool = False
        self.fields = word.fields
        self._arrays = arrays
        self.cells = cast("list[int]", _Cells(arrays))

    @override
    def reset(self) -> None:
        """The cells of all pipes return to their initial values."""
        for array in self._arrays:
            array.reset()


class _Cells(MutableSequence[int]):
    """Cells as numbers: reads are of pipe 0, writes of all pipes."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        return len(self._arrays[0].cells)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | MutableSequence[int]:
        first = self._arrays[0]
        if isinstance(index, slice):
            return [first.word.number(each)[0] for each in first.cells[index]]
        return first.word.number(first.cells[index])[0]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        places = range(len(self))[index] if isinstance(index, slice) else [index]
        values: Iterable[int] = value if isinstance(index, slice) else [value]
        for at, number in zip(places, values, strict=True):
            for array in self._arrays:
                array.cells[at] = array.word.value(number)

    def __delitem__(self, index: int | slice) -> None:
        raise TypeError("a register keeps its size")

    @override
    def insert(self, index: int, value: int) -> None:
        raise TypeError("a register keeps its size")


class _Sums(MutableSequence[int]):
    """One number a cell, summed over the pipes; what is written stands in pipe 0."""

    def __init__(self, parts: Sequence[list[int]]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts[0])

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | MutableSequence[int]:
        if isinstance(index, slice):
            return [sum(each) for each in zip(*(part[index] for part in self._parts), strict=True)]
        return sum(part[index] for part in self._parts)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        for i, part in enumerate(self._parts):
            if isinstance(index, slice):
                part[index] = list(value) if i == 0 else [0] * len(part[index])
            else:
                part[index] = value if i == 0 else 0

    def __delitem__(self, index: int | slice) -> None:
        raise TypeError("a counter keeps its size")

    @override
    def insert(self, index: int, value: int) -> None:
        raise TypeError("a counter keeps its size")


class SumCounter(Counter):
    """A counter's sums over the pipes."""

    def __init__(self, parts: Sequence[Counter]) -> None:
        self.name, self.size = parts[0].name, parts[0].size
        self.packets = cast("list[int]", _Sums([part.packets for part in parts]))
        self.bytes = cast("list[int]", _Sums([part.bytes for part in parts]))


class EveryMeter(Meter):
    """A meter's buckets in all pipes, those of pipe 0 first; a configuration applies to each."""

    def __init__(self, parts: Sequence[Meter]) -> None:
        self.name, self.size, self.in_bytes = parts[0].name, parts[0].size, parts[0].in_bytes
        self.buckets = [Buckets(parts, i) for i in range(self.size)]

    @override
    def reset(self) -> None:
        for bucket in self.buckets:
            bucket.configure(None, 0)


class Buckets(Bucket):
    """A meter's cell in all pipes."""

    __slots__ = ("_at", "_parts")

    def __init__(self, parts: Sequence[Meter], at: int) -> None:
        self._parts, self._at = parts, at

    @property
    def config(self) -> MeterConfig | None:  # type: ignore[override]
        """The configuration in pipe 0, as in all pipes."""
        return self._parts[0].buckets[self._at].config

    @override
    def configure(self, config: MeterConfig | None, now: int) -> None:
        for part in self._parts:
            part.buckets[self._at].configure(config, now)


@dataclass(eq=False)
class Selector(Profile):
    """An action selector, with its own hash."""

    calculation: Callable[[int, int], int] = field(default=lambda key, _: key, repr=False)

    @override
    def hash(self, key: int, width: int) -> int:
        """The instance of ``Hash`` computes it."""
        return self.calculation(key, width)
