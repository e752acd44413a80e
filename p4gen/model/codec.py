"""Values on the wire: most significant bit first, fields in declaration order, no padding (spec 8.17)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from p4gen.model.values import HeaderValue, StackValue, StructValue, UnionValue, Varbit
from p4gen.p4 import types as t

_STRUCT_CODES = {8: "B", 16: "H", 32: "I", 64: "Q"}


def read_bits(data: bytes, at: int, width: int) -> int:
    """``width`` bits of ``data`` from bit ``at``; the caller has checked that they exist."""
    end = at + width
    if not (at | width) & 7:
        return int.from_bytes(data[at >> 3 : end >> 3])
    last = (end + 7) >> 3
    return (int.from_bytes(data[at >> 3 : last]) >> (last * 8 - end)) & ((1 << width) - 1)


def decoder(of: t.Type) -> Callable[[int], Any]:
    """A function from ``width_of(of)`` bits, as an integer, to a fresh value (headers are valid)."""
    of = t.strip(of)
    match of:
        case t.Bits(width=width, signed=True):
            half, full = 1 << (width - 1), 1 << width
            return lambda bits: bits - full if bits & half else bits
        case t.Bits() | t.SerEnum(base=t.Bits(signed=False)):
            return lambda bits: bits
        case t.SerEnum(base=base):
            return decoder(base)
        case t.Bool():
            return bool
        case t.Varbits():
            return lambda _: Varbit(0, 0)
        case t.Struct() | t.Tuple() | t.Header():
            parts = _layout(of)
            decode = _decode_parts(parts)
            if isinstance(of, t.Header):
                # A header inside another type is rare (lookahead of a struct of headers).
                return lambda bits: HeaderValue(decode(bits), True)
            return lambda bits: StructValue(decode(bits))
        case t.Stack(element=element, size=size):
            width = t.width_of(element)
            slots = _decode_parts([((size - 1 - i) * width, width, element) for i in range(size)])
            return lambda bits: StackValue(slots(bits))
    raise TypeError(f"a value of type {of} cannot be read from a packet")


def _members(of: t.Type) -> list[t.Type]:
    if isinstance(of, t.Fields):
        return [f.type for f in of.fields]
    assert isinstance(of, t.Tuple)
    return list(of.elements)


def _fixed_width(of: t.Type) -> int:
    """Bits on the wire, without the contents of varbits."""
    stripped = t.strip(of)
    if isinstance(stripped, t.Varbits):
        return 0
    if isinstance(stripped, (t.Struct, t.Header, t.Tuple)):
        return sum(map(_fixed_width, _members(stripped)))
    return t.width_of(stripped)


def _layout(of: t.Type) -> list[tuple[int, int, t.Type]]:
    """(shift, width, type) of each member, for a value of ``_fixed_width(of)`` bits."""
    result, shift = [], _fixed_width(of)
    for member in _members(of):
        width = _fixed_width(member)
        shift -= width
        result.append((shift, width, member))
    return result


def _decode_parts(parts: list[tuple[int, int, t.Type]]) -> Callable[[int], list[Any]]:
    if all(isinstance(k := t.strip(m), t.Bits) and not k.signed for _, _, m in parts):
        masks = [(shift, (1 << width) - 1) for shift, width, _ in parts]
        return lambda bits: [(bits >> shift) & mask for shift, mask in masks]
    steps = [(shift, (1 << width) - 1, decoder(m)) for shift, width, m in parts]
    return lambda bits: [decode((bits >> shift) & mask) for shift, mask, decode in steps]


class HeaderCodec:
    """Reads and writes the fields of one header type.

    ``width`` counts the bits without the varbit's contents; ``varbit`` is the index of the one varbit field, or None.
    """

    def __init__(self, header: t.Header) -> None:
        kinds = [t.strip(f.type) for f in header.fields]
        self.width = _fixed_width(header)
        self.varbit = next((i for i, k in enumerate(kinds) if isinstance(k, t.Varbits)), None)
        self.max_varbits = 0 if self.varbit is None else t.width_of(kinds[self.varbit])
        self._parts = _layout(header)
        self._decode = _decode_parts(self._parts)
        self._flatten = flattener(header, valid_only=False)
        self._struct: struct.Struct | None = None
        if kinds and all(isinstance(k, t.Bits) and not k.signed and k.width in _STRUCT_CODES for k in kinds):
            # The usual payload header: decoded entirely in C.
            self._struct = struct.Struct(">" + "".join(_STRUCT_CODES[t.width_of(k)] for k in kinds))

    def decode(self, data: bytes, at: int, varbits: int = 0) -> list[Any]:
        """The fields at bit ``at`` of ``data``, of which ``width + varbits`` bits exist."""
        if self._struct is not None and not at & 7:
            return list(self._struct.unpack_from(data, at >> 3))
        if self.varbit is None:
            return self._decode(read_bits(data, at, self.width))
        after = self._parts[self.varbit][0]  # the shift of a varbit is the width of the fields after it
        bits = read_bits(data, at, self.width + varbits)
        head = bits >> (after + varbits)
        tail = bits & ((1 << after) - 1)
        fields = self._decode((head << after) | tail)
        fields[self.varbit] = Varbit(varbits, (bits >> after) & ((1 << varbits) - 1))
        return fields

    def encode(self, fields: list[Any]) -> tuple[int, int]:
        """(bits as an integer, how many bits)."""
        if self._struct is not None:
            return int.from_bytes(self._struct.pack(*fields)), self.width
        return self._flatten(HeaderValue(fields, True))


Flatten = Callable[[Any], tuple[int, int]]


def flattener(of: t.Type, valid_only: bool = True) -> Flatten:
    """A function from a value to (bits as an integer, how many), fields one after the other.

    With ``valid_only`` invalid headers take no bits, which is how BMv2 builds the input of hashes and
    checksums. Raises ``TypeError`` for types without bits.
    """
    of = t.strip(of)
    match of:
        case t.Bits(width=width) | t.SerEnum(base=t.Bits(width=width)):
            mask = (1 << width) - 1
            return lambda value: (value & mask, width)
        case t.Bool():
            return lambda value: (int(value), 1)
        case t.Varbits():
            return lambda value: (value.value, value.width)
        case t.Struct() | t.Header() | t.HeaderUnion() | t.Tuple():
            parts = [flattener(m, valid_only) for m in _members(of)]
            return lambda value: _join(value, parts, valid_only)
        case t.Stack(element=element, size=size):
            parts = [flattener(element, valid_only)] * size
            return lambda value: _join(value, parts, valid_only)
    raise TypeError(f"a value of type {of} has no bits")


def _join(
    value: StructValue | HeaderValue | StackValue | UnionValue, parts: list[Flatten], valid_only: bool
) -> tuple[int, int]:
    if valid_only and isinstance(value, HeaderValue) and not value.valid:
        return 0, 0
    bits = width = 0
    for part, flatten in zip(value.fields, parts, strict=True):
        more, by = flatten(part)
        bits = (bits << by) | more
        width += by
    return bits, width


def header_width(value: HeaderValue | UnionValue, fixed: int) -> int:
    """Bits that a header of ``fixed`` bits takes with its varbit's present contents."""
    return fixed + sum(f.width for f in value.fields if isinstance(f, Varbit))


def to_bytes(bits: int, width: int) -> bytes:
    """Bits as bytes, zeros filling the last one, as BMv2 pads the input of its calculations."""
    pad = -width & 7
    return (bits << pad).to_bytes((width + pad) >> 3)


def packed(parts: list[tuple[int, int]]) -> bytes:
    """Pieces, each as (bits as an integer, how many), one after the other, as bytes."""
    if all(width & 7 == 0 for _, width in parts):
        return b"".join([bits.to_bytes(width >> 3) for bits, width in parts])
    bits = width = 0
    for more, by in parts:
        bits, width = (bits << by) | more, width + by
    return to_bytes(bits, width)
