"""Keys that are too wide, and actions with different addresses for their counters, meters or registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p4gen.chips.tna.lint.chips import ON_REGISTERS, Chip, controls
from p4gen.errors import Diagnostic
from p4gen.p4 import ir
from p4gen.p4.lint.values import PathState, Value, Values
from p4gen.p4.types import width_of
from p4gen.p4.walk import used_by, walk

_METER_BUS = frozenset({"Meter", "Lpf", "Wred"})
_TERNARY = frozenset({"ternary", "lpm", "range", "optional"})


def check(program: ir.Program, chip: Chip) -> Iterator[Diagnostic]:
    """Tables that no stage of the chip can hold, and actions that no table can have."""
    for _, _, control in controls(program):
        used = used_by(control)
        for table in used.tables:
            yield from _key(table, chip)
            yield from _all_or_none(table)
            yield from _default(table)
        for action in used.functions:
            if action.is_action:
                yield from _one_index(action)
                yield from _one_result(action)


def _key(table: ir.Table, chip: Chip) -> Iterator[Diagnostic]:
    kinds = {key.match_kind for key in table.keys}
    if "alpm" in table.properties or not kinds <= _TERNARY | {"exact"}:
        return
    for key in table.keys:
        wide = width_of(key.expr.type)
        if key.match_kind == "range" and wide > chip.range_bits:
            message = f"table '{table.name}' matches a range of {wide} bits; {chip.name} matches {chip.range_bits}"
            yield Diagnostic(table.pos, message)
    size = (sum(width_of(key.expr.type) for key in table.keys) + 7) // 8
    ternary = bool(kinds & _TERNARY)
    limit = chip.ternary_key_bytes if ternary else chip.exact_key_bytes
    if size > limit:
        kind = "a ternary" if ternary else "an exact"
        message = f"table '{table.name}' has {kind} key of {size} bytes; a stage of {chip.name} takes {limit}"
        yield Diagnostic(table.pos, message)


def _default(table: ir.Table) -> Iterator[Diagnostic]:
    """Report a default action of a table with keys that computes an index: only what matches goes through a hash (p4c:
    "it requires the hash distribution unit")."""
    if not table.keys:
        return
    for _, instance, call in _calls(table.default_action.ref.action):
        if isinstance(_index(call), ir.Binary):
            computed = f"computes an index of '{instance.name}', which takes an entry"
            yield Diagnostic(table.pos, f"the default action of table '{table.name}' {computed}")


def _calls(action: ir.Function) -> list[tuple[str, ir.ExternInstance, ir.ExternCall]]:
    """The calls by which an action, and callables that it reaches, count, meter, or access registers by index: the kind
    of addressed object, the instance, and the call."""
    found = []
    for node in walk(action.body):
        if isinstance(node, ir.FunctionCall):
            found += _calls(node.callee)
        if not isinstance(node, ir.ExternCall) or node.instance is None:
            continue
        extern, method = node.instance.extern, node.method
        register = node.instance.arguments.get("reg")
        if extern in ON_REGISTERS and method == "execute" and isinstance(register, ir.ExternInstance):
            if not extern.startswith("Direct"):
                found.append(("register or meter", register, node))
        elif extern in _METER_BUS and method == "execute":
            found.append(("register or meter", node.instance, node))
        elif extern == "Counter" and method == "count":
            found.append(("counter", node.instance, node))
    return found


def _index(call: ir.ExternCall) -> ir.Expr | None:
    """The index of a call that ``_calls`` gives: a filter's stands behind the value."""
    assert call.instance is not None
    at = 1 if call.instance.extern in ("Lpf", "Wred") else 0
    return call.args[at].expr if at < len(call.args) else None


def _one_index(action: ir.Function) -> Iterator[Diagnostic]:
    """Report stateful calls of different indices in one action: an action has one address for each kind."""
    assigned = {id(n.variable) for n in walk(action.body) if isinstance(n, ir.Declare)}
    values, state = Values(), PathState()
    first: dict[str, tuple[Value, ir.ExternInstance, ir.ExternCall]] = {}
    for kind, instance, call in _calls(action):
        index = _index(call)
        if index is None or any(isinstance(n, ir.Var) and id(n.variable) in assigned for n in walk(index)):
            continue  # What a local holds is not followed.
        now = values.of(index, state)
        before = first.setdefault(kind, (now, instance, call))
        if before[0] != now and not _unknown(now):
            message = (
                f"action '{action.name}' addresses '{before[1].name}' and '{instance.name}' by different indices;"
                f" an action has 1 for each {kind}"
            )
            yield Diagnostic(call.pos, message, notes=((before[2].pos, "the other one is addressed here"),))


def _one_result(action: ir.Function) -> Iterator[Diagnostic]:
    """An action stores what one stateful ALU gives, not what several do."""
    first: ir.ExternCall | None = None
    for node in walk(action.body):
        values = (node.value,) if isinstance(node, ir.Assign) else (node.init,) if isinstance(node, ir.Declare) else ()
        for call in (n for value in values for n in walk(value)):
            if not isinstance(call, ir.ExternCall) or call.instance is None or call.instance.extern not in ON_REGISTERS:
                continue
            if first is not None and first.instance is not call.instance:
                message = f"action '{action.name}' stores results of more than 1 access to registers"
                yield Diagnostic(call.pos, message, notes=((first.pos, "the other one is here"),))
                return
            first = call


def _unknown(value: Value) -> bool:
    """Whether a value contains a part that is equal to no other."""
    return value[:1] == ("fresh",) or any(isinstance(part, tuple) and _unknown(part) for part in value)


def _all_or_none(table: ir.Table) -> Iterator[Diagnostic]:
    """Report actions that use some, but not all, of the instances of a kind that other actions of the table use."""
    uses = [(ref, _calls(ref.action)) for ref in table.actions if not ref.default_only]
    for kind in ("register or meter", "counter"):
        every: dict[ir.ExternInstance, None] = {}
        for _, calls in uses:
            every.update((instance, None) for k, instance, _ in calls if k == kind)
        for ref, calls in uses:
            own = {instance for k, instance, _ in calls if k == kind}
            missing = _names([instance for instance in every if instance not in own])
            if own and missing:
                message = (
                    f"action '{ref.action.name}' of table '{table.name}' uses a {kind} but not {missing}, which other"
                    f" actions of the table use; an action uses all of them or none"
                )
                yield Diagnostic(ref.action.pos, message)


def _names(instances: Sequence[ir.ExternInstance]) -> str:
    return ", ".join(f"'{instance.name}'" for instance in instances)
