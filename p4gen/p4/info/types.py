"""P4Info's ``type_info``: the types that objects of the control plane are made of."""

from __future__ import annotations

from typing import Any

from p4gen.p4.types import (
    Annotation,
    Bits,
    Bool,
    Enum,
    Error,
    Fields,
    Header,
    HeaderUnion,
    NewType,
    SerEnum,
    Stack,
    Struct,
    Tuple,
    Type,
    Varbits,
    strip,
    translation,
    width_of,
)
from p4gen.protos import p4info as pb

_SKIPPED = frozenset({"name", "id", "brief", "description"})


def annotate(message: Any, annotations: tuple[Annotation, ...], skip: frozenset[str] = frozenset()) -> None:
    """Copy the annotations that have no field of their own into ``message``."""
    for a in annotations:
        if a.structured:
            _structured(message.structured_annotations.add(), a)
        elif a.name not in _SKIPPED and a.name not in skip:
            message.annotations.append(f"@{a.name}({a.body})" if a.body else f"@{a.name}")


def _structured(message: Any, a: Annotation) -> None:
    message.name = a.name
    for key, value in a.pairs:
        pair = message.kv_pair_list.kv_pairs.add()
        pair.key = key
        _value(pair.value, value)
    for value in a.args:
        _value(message.expression_list.expressions.add(), value)


def _value(message: Any, value: int | str | bool) -> None:
    if isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        message.int64_value = value
    else:
        message.string_value = value


def document(message: Any, annotations: tuple[Annotation, ...]) -> None:
    """``@brief`` and ``@description`` into the message's documentation."""
    for a in annotations:
        if a.name in ("brief", "description") and a.args:
            setattr(message.doc, a.name, str(a.args[0]))


def external_name(name: str, annotations: tuple[Annotation, ...]) -> str:
    """The control plane's name for a field, parameter or type."""
    for a in annotations:
        if a.name == "name" and a.args:
            return str(a.args[0]).removeprefix(".")
    return name


def control_width(type_: Type) -> int:
    """Bits of a value as the control plane writes it; 0 for strings and errors."""
    found = translation(type_)
    if found is not None:
        return found[1] or 0
    try:
        return width_of(type_)
    except TypeError:
        return 0


class TypeInfo:
    """Fills ``type_info``, each type once."""

    def __init__(self, message: Any, errors: tuple[str, ...]) -> None:
        self.message = message
        self.errors = errors
        self.translated: dict[str, int] = {}
        """The bits of each type with ``@p4runtime_translation``."""

    def spec(self, type_: Type) -> Any:
        """``type_`` as a ``P4DataTypeSpec``; named types are entered in ``type_info``."""
        out = pb.P4DataTypeSpec()
        match type_:
            case Bits(width=width, signed=signed):
                (out.bitstring.int if signed else out.bitstring.bit).bitwidth = width
            case Varbits(max_width=width):
                out.bitstring.varbit.max_bitwidth = width
            case Bool():
                out.bool.SetInParent()
            case Tuple(elements=elements):
                out.tuple.SetInParent()
                for element in elements:
                    out.tuple.members.add().CopyFrom(self.spec(element))
            case Stack(element=element, size=size):
                self._stack(out, element, size)
            case Error():
                out.error.SetInParent()
                if not self.message.HasField("error"):
                    self.message.error.members.extend(self.errors)
            case _:
                self._named(out, type_)
        return out

    def _stack(self, out: Any, element: Type, size: int) -> None:
        inner = self.spec(element)
        if isinstance(element, HeaderUnion):
            out.header_union_stack.header_union.CopyFrom(inner.header_union)
            out.header_union_stack.size = size
        else:
            out.header_stack.header.CopyFrom(inner.header)
            out.header_stack.size = size

    def _named(self, out: Any, type_: Type) -> None:
        match type_:
            case NewType(name=name):
                out.new_type.name = name
                self._new_type(type_)
            case SerEnum(name=name):
                out.serializable_enum.name = name
                self._ser_enum(type_)
            case Enum(name=name, members=members):
                out.enum.name = name
                if name not in self.message.enums:
                    self.message.enums[name].SetInParent()
                    for member in members:
                        self.message.enums[name].members.add().name = member
            case Header():
                out.header.name = name = external_name(type_.name, type_.annotations)
                self._header(name, type_)
            case HeaderUnion():
                out.header_union.name = name = external_name(type_.name, type_.annotations)
                if name not in self.message.header_unions:
                    self.message.header_unions[name].SetInParent()
                    for f in type_.fields:
                        member = self.message.header_unions[name].members.add()
                        member.name = external_name(f.name, f.annotations)
                        member.header.CopyFrom(self.spec(f.type).header)
            case Struct():
                out.struct.name = name = external_name(type_.name, type_.annotations)
                if name not in self.message.structs:
                    self.message.structs[name].SetInParent()
                    for f in type_.fields:
                        spec = self.spec(f.type)
                        field = self.message.structs[name].members.add()
                        field.name = external_name(f.name, f.annotations)
                        field.type_spec.CopyFrom(spec)

    def _header(self, name: str, type_: Fields) -> None:
        if name in self.message.headers:
            return
        self.message.headers[name].SetInParent()
        for path, leaf, _ in flattened(type_):
            spec = self.spec(leaf)
            member = self.message.headers[name].members.add()
            member.name = path
            member.type_spec.CopyFrom(spec.bitstring)

    def _new_type(self, type_: NewType) -> None:
        if type_.name in self.message.new_types:
            return
        message = self.message.new_types[type_.name]
        found = translation(type_)
        if found is not None:
            self.translated[type_.name] = width_of(type_)
            message.translated_type.uri = found[0]
            if found[1] is None:
                message.translated_type.sdn_string.SetInParent()
            else:
                message.translated_type.sdn_bitwidth = found[1]
        else:
            message.original_type.CopyFrom(self.spec(strip(type_)))
        annotate(message, type_.annotations, frozenset({"p4runtime_translation"}))

    def _ser_enum(self, type_: SerEnum) -> None:
        if type_.name in self.message.serializable_enums:
            return
        message = self.message.serializable_enums[type_.name]
        message.underlying_type.bitwidth = type_.base.width
        for name, value in type_.members:
            member = message.members.add()
            member.name = name
            member.value = to_bytes(value, type_.base.width)


def to_bytes(value: int, width: int) -> bytes:
    """A value as P4Runtime writes it: big-endian, padded to its width."""
    return (value & ((1 << width) - 1)).to_bytes((width + 7) // 8, "big")


def flattened(type_: Fields) -> list[tuple[str, Type, tuple[Annotation, ...]]]:
    """The leaves of a header with structs in it: dotted name, type, annotations."""
    found: list[tuple[str, Type, tuple[Annotation, ...]]] = []
    for f in type_.fields:
        name = external_name(f.name, f.annotations)
        if isinstance(f.type, Struct):
            for path, leaf, annotations in flattened(f.type):
                inner = {a.name for a in annotations}
                merged = annotations + tuple(a for a in f.annotations if a.name not in inner)
                found.append((f"{name}.{path}", leaf, merged))
        else:
            found.append((name, f.type, f.annotations))
    return found
