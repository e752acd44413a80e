"""Values of P4 types as P4Data messages (section 8.4), for registers and digests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from p4gen.p4rt import bytestrings
from p4gen.p4rt.status import Code, StatusError, invalid, unimplemented
from p4gen.p4rt.translation import Strings
from p4gen.protos.p4runtime import P4Data

_NO_STRINGS: Mapping[str, Strings] = {}


def resolve(spec: Any, types: Any) -> Any:
    """A type with its new types (``type`` declarations) resolved, as its values are encoded."""
    while spec.WhichOneof("type_spec") == "new_type":
        new = types.new_types[spec.new_type.name]
        if new.WhichOneof("representation") != "original_type":
            return spec
        spec = new.original_type
    return spec


def encode(spec: Any, types: Any, leaves: Iterator[Any], strings: Mapping[str, Strings] = _NO_STRINGS) -> P4Data:
    """A value as a message; ``leaves`` are its scalars (unsigned), in order. ``types`` is the P4Info's type_info,
    ``strings`` are the types whose values are translated to strings."""
    spec = resolve(spec, types)
    out = P4Data()
    match spec.WhichOneof("type_spec"):
        case "bitstring":
            out.bitstring = encode_bits(spec.bitstring, int(next(leaves)))
        case "bool":
            out.bool = bool(next(leaves))
        case "struct":
            for member in types.structs[spec.struct.name].members:
                out.struct.members.append(encode(member.type_spec, types, leaves, strings))
        case "header":
            out.header.is_valid = True
            for member in types.headers[spec.header.name].members:
                out.header.bitstrings.append(encode_bits(member.type_spec, int(next(leaves))))
        case "tuple":
            for element in spec.tuple.members:
                out.tuple.members.append(encode(element, types, leaves, strings))
        case "serializable_enum" | "new_type":
            number = int(next(leaves))
            named = strings.get(spec.new_type.name)
            value = named.text(number) if named is not None else bytestrings.encode(number)
            if spec.WhichOneof("type_spec") == "new_type":
                out.bitstring = value
            else:
                out.enum_value = value
        case "enum":
            out.enum = str(next(leaves))
        case "error":
            out.error = str(next(leaves))
        case other:
            raise unimplemented(f"values of type {other} cannot be sent")
    return out


def widths(spec: Any, types: Any) -> tuple[int, ...]:
    """The bits of each scalar of a type that consists of bits, in order; nothing for another type."""
    spec = resolve(spec, types)
    match spec.WhichOneof("type_spec"):
        case "bitstring":
            kind = spec.bitstring.WhichOneof("type_spec")
            return (int(getattr(spec.bitstring, kind).bitwidth),)
        case "struct":
            members = [widths(member.type_spec, types) for member in types.structs[spec.struct.name].members]
            return tuple(bits for member in members for bits in member) if all(members) else ()
    return ()


def scalars(number: int, bits: tuple[int, ...]) -> Iterator[int]:
    """The parts of a number that consists of scalars with these widths, the first in the highest bits."""
    rest = sum(bits)
    for width in bits:
        rest -= width
        yield number >> rest & (1 << width) - 1


def number_of(spec: Any, types: Any, data: P4Data) -> int:
    """The number that a value of scalars consists of, as ``scalars`` takes it apart."""
    number = 0
    spec = resolve(spec, types)
    if spec.WhichOneof("type_spec") != "struct":
        (width,) = widths(spec, types)
        return int.from_bytes(data.bitstring, signed=spec.bitstring.HasField("int")) & (1 << width) - 1
    for member, value in zip(types.structs[spec.struct.name].members, data.struct.members, strict=True):
        bits = sum(widths(member.type_spec, types))
        number = number << bits | number_of(member.type_spec, types, value)
    return number


def decode_number(spec: Any, types: Any, data: Any, what: str, strings: Mapping[str, Strings] = _NO_STRINGS) -> int:
    """The number in a P4Data of a type that consists of scalars, the first in the highest bits; INVALID_ARGUMENT for
    another type or value."""
    spec = resolve(spec, types)
    if spec.WhichOneof("type_spec") != "struct":
        return decode_scalar(spec, types, data, what, strings)
    members = types.structs[spec.struct.name].members
    if data.WhichOneof("data") != "struct" or len(data.struct.members) != len(members):
        raise invalid(f"{what}: its values are structs of {len(members)} members")
    number = 0
    for member, value in zip(members, data.struct.members, strict=True):
        bits = sum(widths(member.type_spec, types))
        number = number << bits | decode_number(member.type_spec, types, value, f"{what}.{member.name}", strings)
    return number


def encode_bits(bits: Any, value: int) -> bytes:
    """A number, encoded for its P4BitstringLikeTypeSpec."""
    if bits.WhichOneof("type_spec") == "int":
        return bytestrings.encode_signed(value & (1 << bits.int.bitwidth) - 1, bits.int.bitwidth)
    return bytestrings.encode(value)


def decode_scalar(spec: Any, types: Any, data: Any, what: str, strings: Mapping[str, Strings] = _NO_STRINGS) -> int:
    """The unsigned number in a P4Data of a scalar type; INVALID_ARGUMENT for another type or value (9.7)."""
    spec = resolve(spec, types)
    kind, given = spec.WhichOneof("type_spec"), data.WhichOneof("data")
    wanted = {"serializable_enum": "enum_value", "new_type": "bitstring"}.get(kind, kind)
    if given != wanted:
        raise invalid(f"{what}: its values are {wanted}, the request says {given or 'nothing'}")
    if kind == "new_type" and spec.new_type.name in strings:
        return strings[spec.new_type.name].number(data.bitstring, what)
    try:
        if kind == "bool":
            return int(data.bool)
        if kind == "serializable_enum":
            width = types.serializable_enums[spec.serializable_enum.name].underlying_type.bitwidth
            return bytestrings.decode(data.enum_value, width, what)
        if kind == "bitstring" and spec.bitstring.WhichOneof("type_spec") == "int":
            return bytestrings.decode_signed(data.bitstring, spec.bitstring.int.bitwidth, what)
        return bytestrings.decode(data.bitstring, spec.bitstring.bit.bitwidth, what)
    except StatusError as error:
        raise StatusError(Code.INVALID_ARGUMENT, error.message) from None
