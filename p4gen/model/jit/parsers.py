"""Parsers and operations on the packet (P4_16 specification 1.2.5, sections 13 and 16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from p4gen.model.codec import HeaderCodec
from p4gen.model.interp.parsers import MAX_TRANSITIONS
from p4gen.model.jit.build import (
    EXCHANGE,
    FRAME,
    AddressHandler,
    ExprHandler,
    Gen,
    StmtHandler,
    is_memory,
    is_signed,
    members,
    part_at,
    unsupported,
)
from p4gen.model.jit.emit import TRUE, Address, Value, const
from p4gen.model.jit.exchange import OUT_AT, OUT_BASE
from p4gen.model.jit.expressions import header_valid, set_header_valid
from p4gen.model.jit.layout import AT, DATA, SIZE, container, scalar_width
from p4gen.model.jit.places import locate, only_valid
from p4gen.model.jit.statements import body, choose
from p4gen.model.jit.wire import (
    Piece,
    decode,
    decode_bits,
    encode,
    flatten,
    mark_valid,
    read_bits,
    varbit_of,
    write_bits,
)
from p4gen.p4 import ir
from p4gen.p4 import types as t


def parser_body(g: Gen, parser: ir.Parser) -> None:
    """Runs a parser to ``accept``, or leaves by the reject target."""
    fn = g.fn
    body(g, parser.locals)
    labels = {name: fn.label() for name in parser.states}
    accept, reject = fn.label(), fn.label()
    targets = {**labels, "accept": accept, "reject": reject}
    passed = None
    if _has_cycle(parser):
        passed = fn.local(32)
        fn.store(const(0, 32), passed)
    fn.br(labels["start"])
    for name, state in parser.states.items():
        fn.begin(labels[name])
        if passed is not None:
            count = fn.load(passed, 32)
            g.reject_if(fn.compare("uge", count, const(MAX_TRANSITIONS, 32)), "ParserTimeout")
            fn.store(fn.op("add", count, const(1, 32)), passed)
        g.loops += 1
        body(g, state.body)
        _transition(g, state.transition, targets)
        g.loops -= 1
    if fn.is_target(reject):
        fn.begin(reject)
        # An explicit reject sets no error of its own.
        g.reject("NoError")
    fn.begin(accept)


def _has_cycle(parser: ir.Parser) -> bool:
    state: dict[str, int] = {}

    def visit(name: str) -> bool:
        if name not in parser.states or state.get(name) == 2:
            return False
        if state.get(name) == 1:
            return True
        state[name] = 1
        found = any(visit(case.state) for case in parser.states[name].transition.cases)
        state[name] = 2
        return found

    return visit("start")


# --- transitions ---


def _transition(g: Gen, transition: ir.Transition, targets: Mapping[str, str]) -> None:
    fn = g.fn
    if not transition.subjects:
        fn.br(targets[transition.cases[0].state])
        return
    values = [g.address(s) if is_memory(s.type) else g.value(s) for s in transition.subjects]
    no_match = fn.label()
    if not _constants(g, transition, values, targets, no_match):
        for case in transition.cases:
            following = fn.label()
            types = [s.type for s in transition.subjects]
            for condition in _conditions(g, case, types, values):
                go_on = fn.label()
                fn.branch(condition, go_on, following)
                fn.begin(go_on)
            fn.br(targets[case.state])
            fn.begin(following)
        fn.br(no_match)
    if fn.is_target(no_match):
        fn.begin(no_match)
        g.reject("NoMatch")


def _constants(
    g: Gen, transition: ir.Transition, values: list[Address | Value], targets: Mapping[str, str], no_match: str
) -> bool:
    """Generate a switch for a transition with one subject and only constants before a final default. Returns whether it
    is one."""
    if len(values) != 1 or not isinstance(values[0], Value):
        return False
    cases: dict[int, str] = {}
    default = no_match
    for case in transition.cases:
        match case.keysets:
            case (ir.ExactSet(expr=ir.Literal() as literal),):
                number = g.fn.resize(g.value(literal), values[0].width, is_signed(literal.type)).constant
                if number is None:
                    return False
                cases.setdefault(number, targets[case.state])
            case (ir.AnySet(),):
                default = targets[case.state]
                break
            case _:
                return False
    choose(g, values[0], default, list(cases.items()))
    return True


def _conditions(g: Gen, case: ir.SelectCase, types: list[t.Type], values: list[Address | Value]) -> Iterator[Value]:
    """The conditions for a case to match, in order."""
    if len(case.keysets) == 1 and isinstance(case.keysets[0], ir.ValueSet):
        # A value set of a struct or tuple stands for all subjects together (spec 13.11).
        yield _in_value_set(g, case.keysets[0], _scalars(g, types, values))
        return
    for keyset, of, value in zip(case.keysets, types, values, strict=False):
        if isinstance(keyset, ir.ValueSet):
            yield _in_value_set(g, keyset, _scalars(g, [of], [value]))
        elif not isinstance(keyset, ir.AnySet):
            assert isinstance(value, Value)
            yield _matches(g, keyset, of, value)


def _scalars(g: Gen, types: list[t.Type], values: list[Address | Value]) -> list[Value]:
    found = []
    for of, value in zip(types, values, strict=True):
        if isinstance(value, Value):
            found.append(value)
        elif is_memory(of):
            parts = list(members(of))
            places: list[Address | Value] = [part_at(g, value, of, i) for i, _ in enumerate(parts)]
            found += _scalars(g, parts, places)
        else:
            found.append(g.load(value, of))
    return found


def _matches(g: Gen, keyset: ir.ExactSet | ir.MaskSet | ir.RangeSet, of: t.Type, value: Value) -> Value:
    fn, signed = g.fn, is_signed(of)

    def number(e: ir.Expr) -> Value:
        return fn.resize(g.value(e), value.width, is_signed(e.type))

    match keyset:
        case ir.ExactSet(expr=expr):
            return fn.compare("eq", value, number(expr))
        case ir.MaskSet(value=base, mask=mask):
            bits = number(mask)
            return fn.compare("eq", fn.op("and", value, bits), fn.op("and", number(base), bits))
    above = fn.compare("sle" if signed else "ule", number(keyset.low), value)
    return fn.op("and", above, fn.compare("sle" if signed else "ule", value, number(keyset.high)))


def _in_value_set(g: Gen, keyset: ir.ValueSet, fields: list[Value]) -> Value:
    """A scan over the members; each is (value, mask) for every field."""
    fn, place = g.fn, g.module.state.value_sets[keyset.name]
    found = fn.local(1)
    fn.store(const(0, 1), found)
    at = fn.local(64)
    fn.store(const(0, 64), at)
    count = fn.load(Address("%state", place.offset), 64, 8)
    first = fn.pointer(Address("%state", place.offset + 8))
    with fn.loop() as (_, after):
        index = fn.load(at, 64)
        more, following = fn.label(), fn.label()
        fn.branch(fn.compare("ult", index, count), more, after)
        fn.begin(more)
        member = fn.offset(first, index, place.member)
        matches = TRUE
        for (width, offset), field in zip(place.fields, fields, strict=True):
            wanted = g.load_container(Address(member, offset), width)
            mask = g.load_container(Address(member, offset + container(width)), width)
            same = fn.compare("eq", fn.op("and", fn.resize(field, width), mask), wanted)
            matches = fn.op("and", matches, same)
        fn.store(fn.op("add", index, const(1, 64)), at)
        hit = fn.label()
        fn.branch(matches, hit, following)
        fn.begin(hit)
        fn.store(TRUE, found)
        fn.br(after)
        fn.begin(following)
    return fn.load(found, 1)


# --- packet operations ---


def _room(g: Gen, at: Value, bits: Value) -> Value:
    """The position after ``bits`` more bits; rejects when the packet is shorter."""
    fn = g.fn
    end = fn.op("add", at, bits)
    limit = fn.op("shl", g.context(SIZE), const(3, 64))
    g.reject_if(fn.compare("ugt", end, limit), "PacketTooShort")
    return end


def _bytes_at(g: Gen, at: Value) -> str:
    fn = g.fn
    return fn.offset(fn.load_pointer(Address(FRAME, DATA)), fn.op("lshr", at, const(3, 64)))


def _extract(g: Gen, s: ir.Extract) -> None:
    fn = g.fn
    if s.header is None:
        if s.skip_type is None:
            raise unsupported(s.pos, "extract without a header or a type")
        g.set_context(AT, _room(g, g.context(AT), const(t.width_of(s.skip_type), 64)))
        return
    kind = t.strip(s.header.type)
    if not isinstance(kind, t.Header):
        raise unsupported(s.pos, f"extract of {kind}")
    codec, place, at = HeaderCodec(kind), locate(g, s.header), g.context(AT)
    varbits = const(0, 64)
    if s.varbit_bits is not None:
        varbits = fn.resize(g.value(s.varbit_bits), 64)
        part = fn.op("and", varbits, const(7, 64))
        g.reject_if(fn.compare("ne", part, const(0, 64)), "ParserInvalidArgument")
    whole = codec.width + (-codec.width % 8 if g.module.machine.pads else 0)
    end = _room(g, at, fn.op("add", const(whole, 64), varbits) if s.varbit_bits else const(whole, 64))
    if s.varbit_bits is not None:
        g.reject_if(fn.compare("ugt", varbits, const(codec.max_varbits, 64)), "HeaderTooShort")
    varbit = varbit_of(kind)
    pieces = flatten(g, kind, place.at)
    if varbit is None:
        _decode(g, pieces, codec.width, at)
    else:
        _decode_varbit(g, kind, place.at, varbit, varbits, at)
    set_header_valid(g, place.at, TRUE)
    g.set_context(AT, end)
    if place.union is not None:
        only_valid(g, place)
    stack = _advanced_stack(s.header)
    if stack is not None:
        base = g.address(stack)
        fn.store(fn.op("add", fn.load(base, 32, 4), const(1, 32)), base, 4)


def _decode(g: Gen, pieces: list[Piece], width: int, at: Value) -> None:
    if g.module.byte_aligned and width % 8 == 0:
        decode(g, pieces, Address(_bytes_at(g, at)))
    else:
        decode_bits(g, pieces, g.fn.load_pointer(Address(FRAME, DATA)), at)


def _decode_varbit(g: Gen, kind: t.Header, header: Address, varbit: int, bits: Value, at: Value) -> None:
    """The fields before the varbit, its bits, left-aligned, and the fields after it."""
    fn, parts = g.fn, list(enumerate(members(kind)))
    before = [p for i, m in parts[:varbit] for p in flatten(g, m, part_at(g, header, kind, i))]
    behind = [p for i, m in parts[varbit + 1 :] for p in flatten(g, m, part_at(g, header, kind, i))]
    _decode(g, before, sum(p.width for p in before), at)
    at = fn.op("add", at, const(sum(p.width for p in before), 64))
    place, of = part_at(g, header, kind, varbit), t.strip(members(kind)[varbit])
    g.clear(place, of)
    fn.store(fn.resize(bits, 32), place, 4)
    data = fn.load_pointer(Address(FRAME, DATA))
    name = g.module.need("copy_bits")
    arguments = f"ptr {fn.pointer(place.plus(4))}", "i64 0", f"ptr {data}", f"i64 {at.ref}", f"i64 {bits.ref}"
    fn.do(f"call void @{name}({', '.join(arguments)})")
    _decode(g, behind, sum(p.width for p in behind), fn.op("add", at, bits))


def _advanced_stack(header: ir.Expr) -> ir.Expr | None:
    """The stack whose ``next`` advances when extracting into ``next`` or a member of the union there (spec 8.18)."""
    if isinstance(header, ir.FieldOf) and isinstance(t.strip(header.base.type), t.HeaderUnion):
        header = header.base
    return header.base if isinstance(header, ir.StackMember) and header.name == "next" else None


def _advance(g: Gen, s: ir.Advance) -> None:
    fn, bits = g.fn, g.fn.resize(g.value(s.bits), 64)
    # As BMv2, and as core.p4 allows for what a target does not support.
    g.reject_if(fn.compare("ne", fn.op("and", bits, const(7, 64)), const(0, 64)), "ParserInvalidArgument")
    g.set_context(AT, _room(g, g.context(AT), bits))


def _verify(g: Gen, s: ir.Verify) -> None:
    # Arguments are evaluated in order, whether or not the condition holds.
    fn, holds, error = g.fn, g.value(s.condition), g.value(s.error)
    with fn.when(fn.op("xor", holds, TRUE), rare=True):
        g.reject(error)


def _look(g: Gen, e: ir.Lookahead) -> Value:
    at = g.context(AT)
    _room(g, at, const(t.width_of(e.type), 64))
    return read_bits(g, g.fn.load_pointer(Address(FRAME, DATA)), at, t.width_of(e.type))


def _lookahead_value(g: Gen, e: ir.Lookahead) -> Value:
    return g.fn.resize(_look(g, e), scalar_width(e.type))


def _lookahead_address(g: Gen, e: ir.Lookahead) -> Address:
    at, place = g.context(AT), g.temporary(e.type)
    _room(g, at, const(t.width_of(e.type), 64))
    g.clear(place, e.type)
    mark_valid(g, e.type, place)
    decode_bits(g, flatten(g, e.type, place), g.fn.load_pointer(Address(FRAME, DATA)), at)
    return place


def _packet_length(g: Gen, e: ir.PacketLength) -> Value:
    return g.fn.resize(g.context(SIZE), scalar_width(e.type))


# --- the deparser ---


def _emit(g: Gen, s: ir.Emit) -> None:
    _emit_value(g, s, g.address(s.value), s.value.type)


def _emit_value(g: Gen, s: ir.Emit, at: Address, of: t.Type) -> None:
    """The valid headers in a value, in order (spec 16.1)."""
    kind = t.strip(of)
    if isinstance(kind, t.Header):
        with g.fn.when(header_valid(g, at)):
            _emit_header(g, at, kind)
    elif is_memory(kind) and not isinstance(kind, t.Varbits):
        for i, member in enumerate(members(kind)):
            _emit_value(g, s, part_at(g, at, kind, i), member)
    else:
        raise unsupported(s.pos, f"emit of {s.value.type}")


def _emit_header(g: Gen, header: Address, kind: t.Header) -> None:
    fn, codec, parts = g.fn, HeaderCodec(kind), list(enumerate(members(kind)))
    room = -(-(codec.width + codec.max_varbits) // 8) + 16
    # The traffic manager has reserved room for everything that is emitted outside loops.
    if g.loops:
        fn.do(f"call void @{g.module.need('emit_room')}(ptr {EXCHANGE}, i64 {room})")
    to, at = fn.load_pointer(Address(EXCHANGE, OUT_BASE)), fn.load(Address(EXCHANGE, OUT_AT), 64, 8)
    varbit = varbit_of(kind)
    if varbit is None:
        at = _encode(g, flatten(g, kind, header), to, at)
    else:
        before = [p for i, m in parts[:varbit] for p in flatten(g, m, part_at(g, header, kind, i))]
        behind = [p for i, m in parts[varbit + 1 :] for p in flatten(g, m, part_at(g, header, kind, i))]
        at = _encode(g, before, to, at)
        place = part_at(g, header, kind, varbit)
        bits = fn.resize(fn.load(place, 32, 4), 64)
        name = g.module.need("copy_bits")
        arguments = f"ptr {to}", f"i64 {at.ref}", f"ptr {fn.pointer(place.plus(4))}", "i64 0", f"i64 {bits.ref}"
        fn.do(f"call void @{name}({', '.join(arguments)})")
        at = _encode(g, behind, to, fn.op("add", at, bits))
    if g.module.machine.pads and codec.width % 8:
        at = fn.op("and", fn.op("add", at, const(7, 64)), const(-8, 64))
    fn.store(at, Address(EXCHANGE, OUT_AT), 8)


def _encode(g: Gen, pieces: list[Piece], to: str, at: Value) -> Value:
    """Write pieces at bit ``at``. Returns the bit after them."""
    fn, width = g.fn, sum(p.width for p in pieces)
    if g.module.byte_emits:
        encode(g, pieces, Address(fn.offset(to, fn.op("lshr", at, const(3, 64)))))
        return fn.op("add", at, const(width, 64))
    for piece in pieces:
        write_bits(g, piece.load(g), piece.width, to, at)
        at = fn.op("add", at, const(piece.width, 64))
    return at


VALUES: Mapping[type[ir.Expr], ExprHandler] = {
    ir.Lookahead: _lookahead_value,
    ir.PacketLength: _packet_length,
}

ADDRESSES: Mapping[type[ir.Expr], AddressHandler] = {ir.Lookahead: _lookahead_address}

STATEMENTS: Mapping[type[ir.Stmt], StmtHandler] = {
    ir.Extract: _extract,
    ir.Advance: _advance,
    ir.Verify: _verify,
    ir.Emit: _emit,
}
