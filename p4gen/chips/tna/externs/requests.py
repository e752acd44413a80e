"""Requests of deparsers: mirrored copies, resubmission, digests; and marks of invalid fields of metadata.

An instance with a type (``Mirror(1)``) acts only where the metadata's ``mirror_type``, ``resubmit_type`` or
``digest_type`` is that type; for an instance without a type, the program's own condition decides. Neither acts where
the program has not assigned a type, although it then reads as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from p4gen.chips.tna.context import UNSET, Pass
from p4gen.model.codec import decoder
from p4gen.model.interp.build import Build, unsupported
from p4gen.model.interp.context import Eval, Frame, Reject
from p4gen.model.interp.extern_args import Compiler, argument, joined, leaves, parts_of_data
from p4gen.model.interp.lvalues import LValue
from p4gen.model.state import Digest
from p4gen.model.trace import show
from p4gen.p4 import ir
from p4gen.p4 import types as t


def _front(b: Build, call: ir.ExternCall, position: int) -> Callable[[Frame], bytes]:
    """The bytes of a header in front of a copy. Padding at its end completes the last byte."""
    expr = call.args[position].expr if len(call.args) > position else None
    if expr is None:
        return lambda f: b""
    return joined(parts_of_data(b, expr, valid_only=False))


def _mirror(b: Build, call: ir.ExternCall) -> Eval:
    session, front, pos, traced = argument(b, call, 0), _front(b, call, 1), call.pos, b.traced
    wanted = _type(call, "mirror_type")

    def emit(f: Frame) -> None:
        ctx = f[0]
        if not _is_requested(ctx, "mirror_type", wanted):
            return
        number = int(session(f))
        ctx.mirrors.append((number, front(f)))
        if traced:
            ctx.trace.add("request", f"mirror to session {number}", pos, request="mirror", session=number)

    return emit


def _resubmit(b: Build, call: ir.ExternCall) -> Eval:
    front, pos, traced, wanted = _front(b, call, 0), call.pos, b.traced, _type(call, "resubmit_type")

    def emit(f: Frame) -> None:
        ctx = f[0]
        if not _is_requested(ctx, "resubmit_type", wanted):
            return
        ctx.resubmits.append(front(f))
        if traced:
            ctx.trace.add("request", "resubmit", pos, request="resubmit")

    return emit


def _generate(b: Build, call: ir.ExternCall) -> Eval:
    context, pos, traced = _front(b, call, 0), call.pos, b.traced

    def emit(f: Frame) -> None:
        f[0].generates.append(context(f))
        if traced:
            f[0].trace.add("request", "start of the packet generator", pos, request="pktgen")

    return emit


def _digest(b: Build, call: ir.ExternCall) -> Eval:
    assert call.instance is not None
    data, expr, name = argument(b, call, 0), call.args[0].expr, call.instance.name
    assert expr is not None
    kind, pos, traced, wanted = t.strip(expr.type), call.pos, b.traced, _type(call, "digest_type")

    def pack(f: Frame) -> None:
        ctx = f[0]
        if not _is_requested(ctx, "digest_type", wanted):
            return
        digest = Digest(name, tuple(leaves("", data(f), kind)))
        ctx.digests.append(digest)
        if traced:
            ctx.trace.add("digest", f"digest {name} {dict(digest.fields)}", pos, name=name)

    return pack


def _is_requested(ctx: Pass, name: str, wanted: int | None) -> bool:
    """Whether the metadata's type requests the action of an instance."""
    found = ctx.types.get(name, UNSET)
    return found is not UNSET and wanted in (None, found)


def _type(call: ir.ExternCall, name: str) -> int | None:
    assert call.instance is not None
    found = call.instance.arguments.get(name)
    assert found is None or isinstance(found, int)
    return found


def _invalidate(b: Build, call: ir.ExternCall) -> Eval:
    """Treat a field as if nothing had been assigned to it: a field for the traffic manager then has no effect. A
    header's field becomes 0."""
    expr = call.args[0].expr
    if expr is None:
        raise unsupported(call.pos, "invalidate without a field")
    if isinstance(t.strip(expr.type), t.Header):
        header = b.expr(expr)

        def invalid(f: Frame) -> None:
            header(f).valid = False

        return invalid
    target = LValue(b, expr)
    return lambda f: target.set(f, UNSET)


def _is_validated(b: Build, call: ir.ExternCall) -> Eval:
    """Whether a field's header is valid or, for another field, whether it was assigned."""
    expr = call.args[0].expr
    if isinstance(expr, ir.FieldOf) and isinstance(t.strip(expr.base.type), t.Header):
        header = b.expr(expr.base)
        return lambda f: header(f).valid
    value = argument(b, call, 0)
    return lambda f: value(f) is not UNSET


def _port_metadata(b: Build, call: ir.ExternCall) -> Eval:
    """The metadata of the port, from its highest bits on. The parser goes on after all of it or, as p4c extracts it,
    after a header of that type."""
    try:
        width, decode = t.width_of(call.type), decoder(call.type)
    except TypeError as problem:
        raise unsupported(call.pos, f"port metadata of {call.type} ({problem})") from None
    pos, traced, header = call.pos, b.traced, isinstance(t.strip(call.type), t.Header)

    def unpack(f: Frame) -> Any:
        ctx = f[0]
        size = 8 * ctx.port_metadata
        if width > size or ctx.at + size > 8 * len(ctx.data):
            raise Reject("PacketTooShort")
        whole = int.from_bytes(ctx.data[ctx.at >> 3 : (ctx.at + size) >> 3])
        ctx.at += width if header else size
        found = decode(whole >> (size - width))
        if traced:
            ctx.trace.add("extract", f"port metadata {show(found, call.type)}", pos)
        return found

    return unpack


METHODS: Mapping[tuple[str, str], Compiler] = {
    ("Mirror", "emit"): _mirror,
    ("Resubmit", "emit"): _resubmit,
    ("Digest", "pack"): _digest,
    ("Pktgen", "emit"): _generate,
}
FUNCTIONS: Mapping[str, Compiler] = {
    "invalidate": _invalidate,
    "is_validated": _is_validated,
    "port_metadata_unpack": _port_metadata,
}
