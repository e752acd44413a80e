"""Arguments and effects that calls of externs have in common, whatever the architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from p4gen.model.codec import Flatten, flattener, to_bytes
from p4gen.model.interp.build import Build, unsupported, unsupported_extern
from p4gen.model.interp.context import Eval, Frame
from p4gen.model.interp.expressions import bits_of, field_index
from p4gen.model.interp.lvalues import LValue, Place
from p4gen.model.values import HeaderValue, StructValue
from p4gen.p4 import ir
from p4gen.p4 import types as t

Compiler = Callable[[Build, ir.ExternCall], Eval]
"""Compiles calls of an extern's method or of an extern function."""


@dataclass(frozen=True)
class Externs:
    """How an architecture's externs are compiled: methods by extern and name, and functions by name."""

    methods: Mapping[tuple[str, str], Compiler]
    functions: Mapping[str, Compiler]

    def compile(self, b: Build, call: ir.ExternCall) -> Eval:
        """Compile a call. Raises ``InputError`` for an extern that is not among these."""
        if call.instance is None:
            compiler, name = self.functions.get(call.method), call.method
        else:
            compiler = self.methods.get((call.instance.extern, call.method))
            name = f"{call.instance.extern}.{call.method}"
        if compiler is None:
            raise unsupported_extern(call, name)
        return compiler(b, call)


class Out:
    """An ``out`` argument: located in the order of arguments, stored when the call is done."""

    def __init__(self, b: Build, arg: ir.Arg) -> None:
        self._target = LValue(b, arg.expr) if arg.expr is not None else None
        bits = bits_of(arg.expr.type) if arg.expr is not None else None
        self.mask = (1 << bits.width) - 1 if bits is not None else 0

    def locate(self, f: Frame) -> Place | None:
        """The place of the argument, where finding it evaluates expressions."""
        target = self._target
        return target.locate(f) if target is not None and target.dynamic else None

    def store(self, f: Frame, place: Place | None, value: Any) -> None:
        """Copy out; ``place`` is what ``locate`` has returned."""
        if place is not None and self._target is not None:
            self._target.store(place, value)
        elif self._target is not None:
            self._target.set(f, value)


def argument(b: Build, call: ir.ExternCall, position: int) -> Eval:
    """An ``in`` argument that must be there."""
    expr = call.args[position].expr
    if expr is None:
        raise unsupported(call.pos, f"{call.method} without its argument {position + 1}")
    return b.expr(expr)


def constant(call: ir.ExternCall, position: int) -> int | bool | str:
    """An argument that must be a constant."""
    expr = call.args[position].expr
    if not isinstance(expr, ir.Literal):
        raise unsupported(call.pos, f"{call.method} with an argument {position + 1} that is not a constant")
    return expr.value


def trap(f: Frame, count: Callable[[Any, str], None], pos: Any, what: str) -> None:
    """Count undefined behaviour, and add it to the trace."""
    count(pos, what)
    if f[0].trace is not None:
        f[0].trace.add("trap", f"trap: {what}", pos)


# --- input of hashes and checksums ---

Parts = list[Callable[[Frame], tuple[int, int]]]
"""Pieces of a calculation's input, each as (bits as an integer, how many)."""


def parts_of_data(b: Build, data: ir.Expr, valid_only: bool) -> Parts:
    """The input of a calculation as BMv2 builds it: fields one after the other. Checksums skip those of invalid headers
    (``valid_only``; behavioral-model, calculations.cpp), hashes do not."""
    if isinstance(data, ir.Aggregate):
        return [part for e in data.elements for part in parts_of_data(b, e, valid_only)]
    value = b.expr(data)
    try:
        flatten: Flatten = flattener(data.type, valid_only)
    except TypeError as problem:
        raise unsupported(data.pos, f"a calculation over {data.type} ({problem})") from None
    kind = bits_of(data.type)
    width = kind.width if kind is not None and not kind.signed else None
    if valid_only and isinstance(data, ir.FieldOf) and isinstance(t.strip(data.base.type), t.Header):
        header, index = b.expr(data.base), field_index(data.base.type, data.name)

        def field(f: Frame) -> tuple[int, int]:
            owner: HeaderValue = header(f)
            if not owner.valid:
                return 0, 0
            return (owner.fields[index], width) if width is not None else flatten(owner.fields[index])

        return [field]
    if width is not None:
        return [lambda f: (value(f), width)]
    return [lambda f: flatten(value(f))]


_CHUNK = 256
"""Bits after which a long input is converted to bytes, because shifting ever longer numbers takes quadratic time."""


def joined(parts: Parts) -> Callable[[Frame], bytes]:
    """The pieces one after the other, as bytes."""
    if len(parts) == 1:
        only = parts[0]
        return lambda f: to_bytes(*only(f))

    def join(f: Frame) -> bytes:
        done: list[bytes] = []
        bits = width = 0
        for part in parts:
            more, by = part(f)
            bits = (bits << by) | more
            width += by
            if width >= _CHUNK and not width & 7:
                done.append(bits.to_bytes(width >> 3))
                bits = width = 0
        done.append(to_bytes(bits, width))
        return b"".join(done)

    return join


def leaves(prefix: str, value: Any, of: t.Type) -> list[tuple[str, int | bool | str]]:
    """The scalars of a digest with their dotted names (tuples: their positions)."""
    of = t.strip(of)
    if isinstance(value, (StructValue, HeaderValue)):
        if isinstance(of, t.Fields):
            members = [(f.name, f.type) for f in of.fields]
        else:
            assert isinstance(of, t.Tuple)
            members = [(f"f{i}", e) for i, e in enumerate(of.elements)]
        return [
            leaf
            for (name, kind), part in zip(members, value.fields, strict=True)
            for leaf in leaves(f"{prefix}{name}.", part, kind)
        ]
    return [(prefix[:-1] or "value", value)]
