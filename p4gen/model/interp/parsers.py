"""Parsers and operations on the packet (P4_16 specification 1.2.5, sections 13 and 16)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from p4gen.model.codec import HeaderCodec
from p4gen.model.interp.build import Build, StmtHandler, unsupported
from p4gen.model.interp.context import Eval, Exec, Frame, Reject
from p4gen.model.interp.lvalues import LValue, only_valid
from p4gen.model.trace import fields
from p4gen.model.values import HeaderValue, StackValue, StructValue
from p4gen.p4 import ir
from p4gen.p4 import types as t
from p4gen.p4.show import text

MAX_TRANSITIONS = 10_000
"""Number of states after which a parser is assumed to be endless; it then rejects with ``ParserTimeout`` (spec
13.9)."""


def parser_body(b: Build, parser: ir.Parser) -> Exec:
    """Runs a parser to ``accept``; raises ``Reject`` otherwise. Compiled once."""
    if parser not in b.compiled:
        b.compiled[parser] = _parser_body(b, parser)
    body: Exec = b.compiled[parser]
    return body


def _parser_body(b: Build, parser: ir.Parser) -> Exec:
    prologue = b.body(parser.locals)
    states = {name: (b.body(s.body), _transition(b, s.transition)) for name, s in parser.states.items()}
    positions = {name: s.pos for name, s in parser.states.items()}
    traced = b.traced

    def run(f: Frame) -> None:
        prologue(f)
        name = "start"
        for _ in range(MAX_TRANSITIONS):
            if traced:
                f[0].trace.add("state", f"state {parser.name}.{name}", positions[name], parser=parser.name, state=name)
            body, transition = states[name]
            body(f)
            name = transition(f)
            if name == "accept":
                return
            if name == "reject":
                # An explicit reject sets no error of its own.
                raise Reject("NoError")
        raise Reject("ParserTimeout")

    return run


# --- transitions ---

Matcher = Callable[[Frame, tuple[Any, ...]], bool]


def _transition(b: Build, transition: ir.Transition) -> Callable[[Frame], str]:
    if not transition.subjects:
        only = transition.cases[0].state
        return lambda f: only
    subjects = tuple(map(b.expr, transition.subjects))
    table = _constant_cases(transition)
    if table is not None:
        by_value, default = table
        subject = subjects[0]

        def choose(f: Frame) -> str:
            state = by_value.get(subject(f), default)
            if state is None:
                raise Reject("NoMatch")
            return state

        return choose
    cases = tuple((_case_matcher(b, case), case.state) for case in transition.cases)

    def search(f: Frame) -> str:
        values = tuple([s(f) for s in subjects])
        for matches, state in cases:
            if matches(f, values):
                return state
        raise Reject("NoMatch")

    return search


def _constant_cases(transition: ir.Transition) -> tuple[dict[Any, str], str | None] | None:
    """For a transition with one subject and only constants before a final default: a dictionary; None for others."""
    if len(transition.subjects) != 1:
        return None
    by_value: dict[Any, str] = {}
    for case in transition.cases:
        match case.keysets:
            case (ir.ExactSet(expr=ir.Literal(value=value)),):
                by_value.setdefault(value, case.state)
            case (ir.AnySet(),):
                return by_value, case.state
            case _:
                return None
    return by_value, None


def _case_matcher(b: Build, case: ir.SelectCase) -> Matcher:
    if len(case.keysets) == 1:
        only = case.keysets[0]
        if isinstance(only, ir.AnySet):
            return lambda f, values: True
        if isinstance(only, ir.ValueSet):
            # A value set of a struct or tuple stands for all subjects together (spec 13.11).
            members = b.state.value_sets[only.name]
            return lambda f, values: any(_in_member(values, m) for m in members)
    parts = tuple((i, _keyset(b, k)) for i, k in enumerate(case.keysets) if not isinstance(k, ir.AnySet))
    return lambda f, values: all(part(f, values[i]) for i, part in parts)


def _keyset(b: Build, keyset: ir.Keyset) -> Callable[[Frame, Any], bool]:
    match keyset:
        case ir.ExactSet(expr=expr):
            wanted = b.expr(expr)
            return lambda f, value: bool(value == wanted(f))
        case ir.MaskSet(value=value_expr, mask=mask_expr):
            base, mask = b.expr(value_expr), b.expr(mask_expr)

            def masked(f: Frame, value: Any) -> bool:
                bits = mask(f)
                return bool(value & bits == base(f) & bits)

            return masked
        case ir.RangeSet(low=low_expr, high=high_expr):
            low, high = b.expr(low_expr), b.expr(high_expr)
            return lambda f, value: bool(low(f) <= value <= high(f))
        case ir.ValueSet(name=name):
            members = b.state.value_sets[name]
            return lambda f, value: any(_in_member((value,), m) for m in members)
    return lambda f, value: True


def _in_member(values: Iterable[Any], member: tuple[tuple[int, int], ...]) -> bool:
    return all(int(v) & mask == wanted for v, (wanted, mask) in zip(_scalars(values), member, strict=True))


def _scalars(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, StructValue):
            yield from _scalars(value.fields)
        else:
            yield value


# --- packet operations ---


def _extract(b: Build, s: ir.Extract) -> Exec:
    if s.header is None:
        if s.skip_type is None:
            raise unsupported(s.pos, "extract without a header or a type")
        width = t.width_of(s.skip_type)
        return lambda f: _skip(f, width)
    kind = t.strip(s.header.type)
    if not isinstance(kind, t.Header):
        raise unsupported(s.pos, f"extract of {kind}")
    place, codec = LValue(b, s.header), HeaderCodec(kind)
    locate, in_union = place.locate, place.in_union
    varbit_bits = b.expr(s.varbit_bits) if s.varbit_bits is not None else None
    stack = _advanced_stack(b, s.header)
    fixed, decode = codec.width, codec.decode
    padding = -fixed % 8 if b.state.PADS_HEADERS else 0

    def extract(f: Frame) -> None:
        ctx = f[0]
        container, key = locate(f)
        at = ctx.at
        varbits = 0 if varbit_bits is None else varbit_bits(f)
        if varbits & 7:
            raise Reject("ParserInvalidArgument")
        end = at + fixed + varbits
        if end + padding > 8 * len(ctx.data):
            raise Reject("PacketTooShort")
        if varbits > codec.max_varbits:
            raise Reject("HeaderTooShort")
        header: HeaderValue = container[key]
        header.fields[:] = decode(ctx.data, at, varbits)
        header.valid = True
        ctx.at = end + padding
        if in_union:
            only_valid(container, key)
        if stack is not None:
            owner: StackValue = stack(f)
            owner.next += 1

    if not b.traced:
        return extract
    return _traced_extract(s, kind, extract, place)


def _advanced_stack(b: Build, header: ir.Expr) -> Eval | None:
    """The stack whose ``next`` advances when extracting into ``next`` or a member of the union there (spec 8.18)."""
    if isinstance(header, ir.FieldOf) and isinstance(t.strip(header.base.type), t.HeaderUnion):
        header = header.base
    return b.expr(header.base) if isinstance(header, ir.StackMember) and header.name == "next" else None


def _skip(f: Frame, width: int) -> None:
    ctx = f[0]
    if ctx.at + width > 8 * len(ctx.data):
        raise Reject("PacketTooShort")
    ctx.at += width


def _traced_extract(s: ir.Extract, kind: t.Header, extract: Exec, place: LValue) -> Exec:
    assert s.header is not None
    name, pos, names = text(s.header), s.pos, [f.name for f in kind.fields]

    def traced(f: Frame) -> None:
        container, key = place.locate(f)
        extract(f)
        header = container[key]
        values = dict(zip(names, header.fields, strict=True))
        f[0].trace.add("extract", f"extract {name}: {fields(header, kind)}", pos, header=name, fields=values)

    return traced


def _advance(b: Build, s: ir.Advance) -> Exec:
    bits = b.expr(s.bits)

    def advance(f: Frame) -> None:
        by = bits(f)
        if by & 7:  # as BMv2, and as core.p4 allows for what a target does not support
            raise Reject("ParserInvalidArgument")
        _skip(f, by)

    return advance


def _verify(b: Build, s: ir.Verify) -> Exec:
    condition, error = b.expr(s.condition), b.expr(s.error)

    def verify(f: Frame) -> None:
        # Arguments are evaluated in order, whether or not the condition holds.
        holds, name = condition(f), error(f)
        if not holds:
            raise Reject(name)

    return verify


# --- the deparser ---


def _emit(b: Build, s: ir.Emit) -> Exec:
    value, emit = b.expr(s.value), _emitter(s.value.type)
    if emit is None:
        raise unsupported(s.pos, f"emit of {s.value.type}")
    put = emit
    if not b.traced:
        return lambda f: put(value(f), f[0].emitted)
    name, pos = text(s.value), s.pos

    def traced(f: Frame) -> None:
        emitted = f[0].emitted
        before = sum(width for _, width in emitted)
        put(value(f), emitted)
        size = sum(width for _, width in emitted) - before
        if size:
            f[0].trace.add("emit", f"emit {name}: {size // 8} bytes", pos, header=name, bits=size)

    return traced


Emitter = Callable[[Any, list[tuple[int, int]]], None]


def _emitter(of: t.Type) -> Emitter | None:
    """Appends the valid headers in a value, in order (spec 16.1)."""
    of = t.strip(of)
    match of:
        case t.Header():
            encode = HeaderCodec(of).encode

            def emit_header(value: HeaderValue, out: list[tuple[int, int]]) -> None:
                if value.valid:
                    out.append(encode(value.fields))

            return emit_header
        case t.Stack(element=element):
            each = _emitter(element)
            return None if each is None else lambda value, out: _emit_all([each] * len(value.fields), value, out)
        case t.Fields(fields=fields):
            parts = [_emitter(f.type) for f in fields]
        case t.Tuple(elements=elements):
            parts = [_emitter(e) for e in elements]
        case _:
            return None
    known = [p for p in parts if p is not None]
    return (lambda value, out: _emit_all(known, value, out)) if len(known) == len(parts) else None


def _emit_all(parts: list[Emitter], value: StructValue | StackValue, out: list[tuple[int, int]]) -> None:
    for part, member in zip(parts, value.fields, strict=True):
        part(member, out)


HANDLERS: Mapping[type[ir.Stmt], StmtHandler] = {
    ir.Extract: _extract,
    ir.Advance: _advance,
    ir.Verify: _verify,
    ir.Emit: _emit,
}
