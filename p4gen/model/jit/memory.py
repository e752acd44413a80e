"""The block of memory that holds a switch's state, and the objects through which the control plane accesses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableSequence
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4gen.model.externs import Bucket, MeterConfig
from p4gen.model.jit.blocks import Item, StateLayout

Bytes = npt.NDArray[np.uint8]
_Key = TypeVar("_Key")
_Item = TypeVar("_Item")


class Block:
    """The memory block. It moves when the replication engine's part grows."""

    def __init__(self, layout: StateLayout) -> None:
        self.layout = layout
        self.array: Bytes
        self.address: int
        """The address of the block."""
        self._move(np.zeros(layout.fixed, np.uint8))

    def _move(self, array: Bytes) -> None:
        self.array, self.address = array, array.ctypes.data
        self._view = memoryview(array.data)

    def resize(self, size: int) -> None:
        """Resize the block: keep the first bytes, add zeros at the end."""
        if size != len(self.array):
            array = np.zeros(size, np.uint8)
            shared = min(size, len(self.array))
            array[:shared] = self.array[:shared]
            self._move(array)

    def get(self, at: int, size: int) -> int:
        """The little-endian number of ``size`` bytes at ``at``."""
        return int.from_bytes(self._view[at : at + size], "little")

    def put(self, at: int, size: int, value: int) -> None:
        """Store a number of ``size`` bytes."""
        self._view[at : at + size] = value.to_bytes(size, "little")


class Cells(MutableSequence[int]):
    """The numbers of an array in the block, as a list of fixed length."""

    def __init__(
        self, block: Block, item: Item, offset: int = 0, *, signed: bool = False, is_bool: bool = False
    ) -> None:
        self._block, self._item, self._offset = block, item, item.offset + offset
        self._size = min(item.bytes, 8) if item.kind != "register" else item.bytes
        self._signed, self._is_bool = signed, is_bool

    def __len__(self) -> int:
        return self._item.count

    def _at(self, index: int) -> int:
        count = self._item.count
        if not -count <= index < count:
            raise IndexError(index)
        return self._offset + (index % count) * self._item.step

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        value = self._block.get(self._at(int(index)), self._size)
        if self._is_bool:
            return bool(value)
        half = 1 << self._item.width >> 1
        return value - 2 * half if self._signed and value >= half else value

    @override
    def __iter__(self) -> Iterator[int]:
        """The numbers as they are now."""
        if self._signed or self._is_bool or self._size not in (1, 2, 4, 8):
            return super().__iter__()
        shape, kind = (self._item.count,), f"<u{self._size}"
        numbers = np.ndarray(shape, kind, self._block.array.data, self._offset, (self._item.step,))
        return iter(numbers.tolist())

    def __setitem__(self, index: Any, value: Any) -> None:
        """Store one number, or as many as the slice has."""
        if isinstance(index, slice):
            for i, v in zip(range(*index.indices(len(self))), value, strict=True):
                self[i] = v
            return
        width = self._item.width if self._item.kind == "register" else 64
        self._block.put(self._at(int(index)), self._size, int(value) & ((1 << width) - 1))

    def __delitem__(self, index: Any) -> None:
        raise TypeError("the cells of a switch cannot be removed")

    @override
    def insert(self, index: int, value: int) -> None:
        """Raises ``TypeError``: a switch's cells have a fixed number."""
        raise TypeError("a switch cannot get more cells")


_LAST, _COMMITTED, _PEAK = 40, 48, 64
_NO_LIMIT = (1 << 64) - 1
_MOST_TOKENS = (1 << 120) - 1


class NativeBucket(Bucket):
    """A meter's bucket in the block."""

    __slots__ = ("_at", "_block")

    def __init__(self, block: Block, at: int) -> None:
        self._block, self._at = block, at

    def _field(self, offset: int, size: int = 8) -> int:
        return self._block.get(self._at + offset, size)

    @property
    def config(self) -> MeterConfig | None:  # type: ignore[override]
        """Rates and bursts, None until configured."""
        if not self._field(0):
            return None
        return MeterConfig(self._field(8), self._field(16), self._field(24), self._field(32))

    def copy_from(self, other: Bucket) -> None:
        """Take over another bucket's state."""
        config = other.config
        numbers = (0,) * 5 if config is None else (1, config.cir, config.cburst, config.pir, config.pburst)
        for i, number in enumerate(numbers):
            self._block.put(self._at + 8 * i, 8, min(number, _NO_LIMIT))
        plain = other.plain() if isinstance(other, NativeBucket) else other
        self._block.put(self._at + _LAST, 8, plain._last)
        self._block.put(self._at + _COMMITTED, 16, min(plain._committed, _MOST_TOKENS))
        self._block.put(self._at + _PEAK, 16, min(plain._peak, _MOST_TOKENS))

    @override
    def numbers(self) -> tuple[MeterConfig | None, int, int, int]:
        return self.plain().numbers()

    def plain(self) -> Bucket:
        """A copy of its state, independent of the block."""
        bucket = Bucket()
        bucket.config = self.config
        bucket._committed, bucket._peak = self._field(_COMMITTED, 16), self._field(_PEAK, 16)
        bucket._last = self._field(_LAST)
        return bucket

    @override
    def configure(self, config: MeterConfig | None, now: int) -> None:
        bucket = Bucket()
        bucket.configure(config, now)
        self.copy_from(bucket)

    @override
    def mark(self, size: int, now: int) -> int:
        bucket = self.plain()
        color = bucket.mark(size, now)
        self.copy_from(bucket)
        return color


class Buckets(list[Bucket]):
    """A meter's buckets: replacing one copies the new one's state into the block."""

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            index, value = slice(index, index + 1), [value]
        for mine, other in zip(self[index], value, strict=True):
            assert isinstance(mine, NativeBucket)
            mine.copy_from(other)


class WatchedSet(set[int]):
    """A set that calls a function when it changes."""

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__()
        self._changed = changed

    @override
    def add(self, element: int) -> None:
        super().add(element)
        self._changed()

    @override
    def discard(self, element: object) -> None:
        super().discard(element)
        self._changed()


class Watched(dict[_Key, _Item]):
    """A dictionary that calls a function when it changes."""

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__()
        self._changed = changed

    def __setitem__(self, key: _Key, value: _Item) -> None:
        super().__setitem__(key, value)
        self._changed()

    @override
    def pop(self, *args: Any) -> Any:
        self._changed()
        return super().pop(*args)

    @override
    def clear(self) -> None:
        super().clear()
        self._changed()


class WatchedList(list[_Item]):
    """A list that calls a function when its slices are replaced or it is cleared."""

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__()
        self._changed = changed

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        self._changed()

    @override
    def clear(self) -> None:
        super().clear()
        self._changed()
