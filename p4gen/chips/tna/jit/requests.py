"""Requests of deparsers, and marks of fields, as ``p4gen.chips.tna.externs.requests`` runs them."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.chips.tna.jit.module import Request, tofino
from p4gen.chips.tna.jit.registers import instance_of
from p4gen.model.codec import decoder
from p4gen.model.jit.build import FRAME, Compiler, Gen, Site, is_memory, unsupported
from p4gen.model.jit.calculations import grouped, parts
from p4gen.model.jit.emit import TRUE, Address, Value, const
from p4gen.model.jit.expressions import header_valid, set_header_valid
from p4gen.model.jit.externs import part, part_type
from p4gen.model.jit.layout import AT, DATA, SIZE, scalar_width
from p4gen.model.jit.outputs import argument, expression
from p4gen.model.jit.places import locate, mark_of, store
from p4gen.model.jit.wire import decode_bits, encode, flatten, mark_valid, read_bits
from p4gen.p4 import ir
from p4gen.p4 import types as t
from p4gen.p4.walk import used_by


def _front(g: Gen, call: ir.ExternCall, position: int) -> tuple[Address, int]:
    """A header in front of a copy: its address, and the number of bytes. Padding at its end completes the last byte."""
    expr = call.args[position].expr if len(call.args) > position else None
    if expr is None:
        return g.room(8), 0
    found = grouped(parts(g, expr, valid_only=False))
    if any(group.varbit is not None for group in found):
        raise unsupported(expr.pos, f"a varbit in front of a copy ({expr.type}) in the native engine")
    pieces = [piece for group in found for piece in group.pieces]
    size = -(-sum(piece.width for piece in pieces) // 8)
    buffer = g.room(size + 16)
    if pieces:
        encode(g, pieces, buffer)
    return buffer, size


def _of_type(g: Gen, call: ir.ExternCall, name: str) -> Value:
    """Whether the program has assigned the metadata's type, and it is that of the instance, if the instance has one."""
    wanted, gress = instance_of(call).arguments.get(name), tofino(g).gress
    role = gress.parts.role("for_dprsr")
    assigned = gress.assigned(g, role, name)
    if wanted is None:
        return assigned
    assert isinstance(wanted, int)
    return g.fn.op("and", assigned, g.fn.compare("eq", gress.get(g, role, name), const(wanted, 64)))


def _emit(g: Gen, call: ir.ExternCall) -> None:
    mirror = instance_of(call).extern == "Mirror"
    if g.loops:
        raise unsupported(call.pos, f"{instance_of(call).extern}.emit in a loop, in the native engine,")
    module = tofino(g)
    number = len(module.gress.requests)
    asked, session = module.slot(("asked", number)), module.slot(("session", number))
    with g.fn.when(_of_type(g, call, "mirror_type" if mirror else "resubmit_type")):
        if mirror:
            g.fn.store(g.fn.resize(argument(g, call, 0), 64), session, 8)
        front, size = _front(g, call, 1 if mirror else 0)
        g.fn.store(const(1, 64), asked, 8)
    kind = "mirror" if mirror else "resubmit"
    module.gress.requests.append(Request("mirror" if kind == "mirror" else "resubmit", asked, session, front, size))


def _digest(g: Gen, call: ir.ExternCall) -> None:
    expr = expression(call, 0)
    with g.fn.when(_of_type(g, call, "digest_type")):
        value = part(g, expr)
        # Only ingress sends them, see machine._Run.
        if g.phase == "ingress":
            g.event(Site("digest", call.pos, instance_of(call).name, (part_type(expr, value),)), value)


def _invalidate(g: Gen, call: ir.ExternCall) -> None:
    """Treat a field as if nothing had been assigned to it; a header's field becomes 0."""
    expr = expression(call, 0)
    if isinstance(t.strip(expr.type), t.Header):
        set_header_valid(g, g.address(expr), const(0, 1))
        return
    place = locate(g, expr)
    store(g, place, const(0, scalar_width(expr.type)))
    if place.mark is not None:
        g.fn.store(const(1, 8), place.mark)


def _is_validated(g: Gen, call: ir.ExternCall) -> Value:
    """Whether a field's header is valid or, for another field, whether it was assigned."""
    expr = expression(call, 0)
    if isinstance(expr, ir.FieldOf) and isinstance(t.strip(expr.base.type), t.Header):
        return header_valid(g, g.address(expr.base))
    mark = mark_of(g, expr)
    if mark is not None:
        return g.fn.compare("eq", g.fn.load(mark, 8), const(0, 8))
    for block in tofino(g).gress.parts.blocks.values():
        if any(c.method == "invalidate" and not _is_header_field(c) for c in used_by(block).calls):
            what = "is_validated of what is neither a header's field nor the architecture's, in the native engine,"
            raise unsupported(call.pos, what)
    return TRUE


def _is_header_field(call: ir.ExternCall) -> bool:
    expr = call.args[0].expr
    return isinstance(expr, ir.FieldOf) and isinstance(t.strip(expr.base.type), t.Header)


def _port_metadata(g: Gen, call: ir.ExternCall) -> Value | Address:
    """The metadata of the port, from its highest bits on. The parser goes on after all of it, or after a header."""
    try:
        width, _ = t.width_of(call.type), decoder(call.type)
    except TypeError as problem:
        raise unsupported(call.pos, f"port metadata of {call.type} ({problem})") from None
    fn, room = g.fn, 8 * tofino(g).chip.port_metadata
    at = g.context(AT)
    end = fn.op("add", at, const(width if isinstance(t.strip(call.type), t.Header) else room, 64))
    short = fn.compare("ugt", end, fn.op("shl", g.context(SIZE), const(3, 64)))
    g.reject_if(TRUE if width > room else short, "PacketTooShort")
    data = fn.load_pointer(Address(FRAME, DATA))
    place = g.storage(call.type)
    if is_memory(call.type):
        g.clear(place, call.type)
        mark_valid(g, call.type, place)
        decode_bits(g, flatten(g, call.type, place), data, at)
    else:
        g.store(fn.resize(read_bits(g, data, at, width), scalar_width(call.type)), place, call.type)
    g.set_context(AT, end)
    return place if is_memory(call.type) else g.load(place, call.type)


METHODS: Mapping[tuple[str, str], Compiler] = {
    ("Mirror", "emit"): _emit,
    ("Resubmit", "emit"): _emit,
    ("Digest", "pack"): _digest,
}
FUNCTIONS: Mapping[str, Compiler] = {
    "invalidate": _invalidate,
    "is_validated": _is_validated,
    "port_metadata_unpack": _port_metadata,
}
