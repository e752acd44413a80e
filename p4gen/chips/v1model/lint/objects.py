"""Registers, tables, direct counters and meters, and headers that BMv2 does not support."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from p4gen.errors import Pos
from p4gen.p4 import ir
from p4gen.p4.simplify import same
from p4gen.p4.types import Bits, Error, Fields, Header, HeaderUnion, SerEnum, Stack, Struct, Type, strip
from p4gen.p4.walk import Used, used_by, walk

Found = Iterator[tuple[Pos, str]]


def unsupported(program: ir.Program, places: Mapping[str, Pos]) -> Found:
    """The objects of the program that BMv2 does not support; ``places`` are the positions of declarations."""
    for instance in program.externs:
        if instance.extern == "register" and not isinstance(strip(instance.type_args[0]), Bits | SerEnum):
            yield instance.pos, f"registers hold bit strings on BMv2, not {instance.type_args[0]}"
    for table in program.tables:
        if sum(k.match_kind == "lpm" for k in table.keys) > 1:
            yield table.pos, f"table '{table.name}' has more than one lpm key, which BMv2 does not support"
        for i, key in enumerate(table.keys):
            if isinstance(strip(key.expr.type), Error):
                for entry in table.entries:
                    if not isinstance(entry.keys[i], ir.Anything):
                        yield entry.pos, "entries of the program cannot have a key of type error on BMv2"
    used = [used_by(b) for b in program.blocks.values() if isinstance(b, ir.Control)]
    yield from _direct(list(dict.fromkeys(t for u in used for t in u.tables)), used)
    headers = program.type_args[0] if program.type_args else None
    if headers is not None:
        yield from _headers(headers, places)


def _direct(tables: list[ir.Table], used: Iterable[Used]) -> Found:
    """Direct counters and meters: each of one table, each meter read by an action of it, always into one place."""
    of_table: dict[ir.ExternInstance, ir.Table] = {}
    for table in tables:
        for instance in table.direct:
            first = of_table.setdefault(instance, table)
            if first is not table:
                yield instance.pos, f"'{instance.name}' belongs to two tables, {first.name} and {table.name}"
    read: dict[ir.ExternInstance, ir.Expr | None] = {}
    for call in (c for u in used for c in u.calls):
        meter = call.instance
        if meter is None or meter.extern != "direct_meter":
            continue
        if meter not in of_table:
            yield meter.pos, f"'{meter.name}' is the meter of no table: none has it as 'meters'"
        place = call.args[0].expr
        if meter in read and not same(read[meter], place):
            yield call.pos, f"'{meter.name}' is read into two places, for which BMv2 has no instruction"
        read.setdefault(meter, place)
    for meter, table in of_table.items():
        if meter.extern == "direct_meter" and meter not in read:
            yield table.pos, f"no action of table '{table.name}' reads its meter '{meter.name}'"


def _headers(type_: Type, places: Mapping[str, Pos]) -> Found:
    """The headers of the program are a struct of headers, stacks, unions, and structs of these."""
    name = str(type_)
    where = places.get(name)
    if where is None:
        return
    if not isinstance(type_, Struct):
        yield where, f"the headers that a parser fills are a struct of headers on BMv2, not '{name}' alone"
        return
    for field in _wrong_fields(type_):
        yield where, f"'{name}' is the struct of all headers, in which BMv2 has no field such as '{field}'"


def _wrong_fields(type_: Fields) -> Iterator[str]:
    for field in type_.fields:
        if isinstance(field.type, Struct):
            yield from (f"{field.name}.{inner}" for inner in _wrong_fields(field.type))
        elif not isinstance(field.type, Header | HeaderUnion | Stack):
            yield field.name


def next_elsewhere(state: ir.ParserState) -> Found:
    """``next`` of a stack anywhere but in ``extract``, before which BMv2 does not know the element."""
    nodes = list(walk((state.body, state.transition)))
    extracted = {id(inner) for n in nodes if isinstance(n, ir.Extract) for inner in walk(n.header)}
    for node in nodes:
        if isinstance(node, ir.StackMember) and node.name == "next" and id(node) not in extracted:
            yield node.pos, "'next' of a stack has no value yet; BMv2 can only extract into it"
