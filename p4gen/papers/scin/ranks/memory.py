"""Arrays in a rank's memory, as calls read and write them: in whole packets, and where elements have scales, those of
each wave behind it.

Numbers with scales are arrays of blocks here (``block_type``): what NumPy cuts and joins are whole blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import array_type, divide, dtype_of, from_wire, reduced, to_wire
from p4gen.papers.scin.ranks.blocks import Array
from p4gen.papers.scin.ranks.numbers import NUMBERS, BlockNumbers
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary import DType, Op

ELEMENTS: Final = "elements"
SCALE: Final = "scale"


def block_type(numbers: BlockNumbers, size: int) -> np.dtype[Any]:
    """NumPy's type of blocks: ``size`` elements and their scale."""
    return np.dtype([(ELEMENTS, np.int8, (size,)), (SCALE, numbers.scale)])


def joined(numbers: BlockNumbers, elements: Array, scales: Array) -> Array:
    """Blocks, of their elements and their scales."""
    found = np.empty(scales.shape, block_type(numbers, elements.shape[-1]))
    found[ELEMENTS], found[SCALE] = elements, scales
    return found


def quantised(numbers: BlockNumbers, values: Array, size: int) -> Array:
    """Values as blocks of ``size`` elements, the last one filled up with zeros."""
    flat = np.zeros(-(-values.size // size) * size)
    flat[: values.size] = values.reshape(-1)
    return joined(numbers, *numbers.quantise(flat.reshape(-1, size)))


def dequantised(numbers: BlockNumbers, blocks: Array) -> Array:
    """The values of blocks, in one row."""
    return numbers.dequantise(blocks[ELEMENTS], blocks[SCALE]).reshape(-1).astype(np.float32)


def summed(numbers: BlockNumbers, arrays: Sequence[Array]) -> Array:
    """The sum of arrays of blocks, as switches add them."""
    elements, scales = (np.stack([each[part] for each in arrays]) for part in (ELEMENTS, SCALE))
    return joined(numbers, *numbers.add(elements, scales))


@dataclass(frozen=True)
class Layout:
    """How arrays are in the memory of a program's ranks."""

    spec: ScinSpec

    @classmethod
    def of(cls, spec: ScinSpec, array: Array) -> Layout:
        """That of calls with an array: where calls may be exact, those of whole numbers are."""
        return cls(spec.exact_form if spec.exact and array.dtype == np.dtype(spec.exact) else spec)

    @property
    def type(self) -> np.dtype[Any]:
        """NumPy's type of arrays: of numbers, or of blocks."""
        return (
            block_type(self.numbers, self.spec.scale_block) if self.spec.scaled else array_type(DType(self.spec.dtype))
        )

    @property
    def numbers(self) -> BlockNumbers:
        """The arithmetic of elements with scales."""
        return NUMBERS[self.spec.dtype]

    def taken(self, array: Array, parts: int = 1) -> Array:
        """An array as one of this type; numbers are quantised, each part for itself. Raises ``InputError`` for what is
        neither."""
        if not array.size:
            return np.zeros(0, self.type)
        if array.dtype == self.type:
            return array
        if self.spec.scaled and np.issubdtype(array.dtype, np.floating):
            return np.concatenate(
                [quantised(self.numbers, part, self.spec.scale_block) for part in divide(array, parts)]
            )
        if self.spec.scaled or dtype_of(array) is not DType(self.spec.dtype):
            raise InputError(f"elements are {array.dtype}; {self.spec.program} reduces {self.spec.dtype}")
        return array

    def size(self, packets: int) -> int:
        """Bytes that so many packets take."""
        return packets * self.spec.payload + -(-packets // self.spec.wave) * self.spec.scale_bytes

    def packets(self, array: Array, parts: int) -> int:
        """Packets of a part of an array."""
        return -(-(array.size // parts) // self.spec.packet_units)

    def wire(self, array: Array, parts: int) -> bytes:
        """An array in parts of equal size. Raises ``InputError`` unless it has them."""
        return b"".join(self._part(part) for part in divide(array, parts))

    def _part(self, blocks: Array) -> bytes:
        spec = self.spec
        if not spec.scaled:
            return bytes(to_wire(blocks, spec.payload))
        count = self.packets(blocks, 1)
        if not count:
            return b""
        waves = -(-count // spec.wave)
        held = np.zeros(waves * spec.scales, self.type)
        held[: blocks.size] = blocks
        elements = held[ELEMENTS].reshape(waves, -1).view(np.uint8)
        scales = held[SCALE].astype(self.numbers.scale.newbyteorder(">")).view(np.uint8).reshape(waves, -1)
        whole = np.concatenate([elements, scales], axis=1)
        if count % spec.wave == 0:
            return bytes(whole.tobytes())
        last = elements[-1][: count % spec.wave * spec.payload]
        return bytes(whole[:-1].tobytes() + last.tobytes() + scales[-1].tobytes())

    def array(self, memory: bytes | bytearray | memoryview, parts: int, packets: int, count: int) -> Array:
        """The ``count`` numbers or blocks that memory has, in parts of so many packets."""
        size, each = self.size(packets), count // parts
        found = [self._read(memory[number * size : (number + 1) * size], packets, each) for number in range(parts)]
        return np.concatenate(found)

    def _read(self, memory: bytes | bytearray | memoryview, packets: int, count: int) -> Array:
        spec = self.spec
        if not spec.scaled:
            return from_wire(memoryview(memory), DType(spec.dtype), (packets * spec.lanes,))[:count]
        if not packets:
            return np.zeros(0, self.type)
        waves = -(-packets // spec.wave)
        short = (waves * spec.wave - packets) * spec.payload
        cut = len(memory) - spec.scale_bytes
        held = np.frombuffer(bytes(memory[:cut]) + bytes(short) + bytes(memory[cut:]), np.uint8)
        held = held.reshape(waves, spec.wave * spec.payload + spec.scale_bytes)
        elements, scales = np.split(held, [spec.wave * spec.payload], axis=1)
        blocks = np.ascontiguousarray(elements).view(np.int8).reshape(-1, spec.scale_block)
        codes = np.ascontiguousarray(scales).view(self.numbers.scale.newbyteorder(">")).reshape(-1)
        return joined(self.numbers, blocks, codes)[:count]

    def reduced(self, arrays: Sequence[Array]) -> Array:
        """The reduction of arrays, by NumPy."""
        if self.spec.scaled:
            return summed(self.numbers, arrays)
        return reduced(Op(self.spec.op), arrays, saturating=self.spec.overflow == "saturate")
