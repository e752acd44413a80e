"""P4Info of v1model's externs, as p4c writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from p4gen.p4 import ir
from p4gen.p4.info import ids
from p4gen.p4.info.rules import OF_PROFILES, InfoRules
from p4gen.p4.info.types import external_name
from p4gen.p4.live import Live
from p4gen.p4.types import Header, Struct, Type
from p4gen.p4.walk import walk

KINDS = {
    "counter": ids.COUNTER, "direct_counter": ids.DIRECT_COUNTER, "meter": ids.METER, "direct_meter": ids.DIRECT_METER,
    "register": ids.REGISTER, "action_profile": ids.ACTION_PROFILE, "action_selector": ids.ACTION_PROFILE,
}  # fmt: skip


def _profile(out: Any, instance: ir.ExternInstance, _program: ir.Program) -> None:
    out.with_selector = instance.extern == "action_selector"
    out.size = int(instance.args[1 if out.with_selector else 0])
    given = {a.name: a.args[0] for a in instance.annotations if a.name in OF_PROFILES and a.args}
    if out.with_selector and "max_group_size" in given:
        out.max_group_size = int(given["max_group_size"])
    semantics = str(given.get("selector_size_semantics", "")).lower()
    if out.with_selector and semantics == "sum_of_weights":
        out.sum_of_weights.SetInParent()
    elif out.with_selector and semantics == "sum_of_members":
        out.sum_of_members.SetInParent()
        if "max_member_weight" in given:
            out.sum_of_members.max_member_weight = int(given["max_member_weight"])


def _digests(
    program: ir.Program, used: Sequence[Live], actions: Sequence[ir.Function], _externs: Sequence[ir.ExternInstance]
) -> list[tuple[str, Type]]:
    """The types that calls of ``digest`` send; those without a name are numbered."""
    found: dict[str, Type] = {}
    for block, live in zip(program.blocks.values(), used, strict=True):
        if not isinstance(block, ir.Control) or not any(c.method == "digest" for c in live.calls):
            continue
        bodies = [(a.body, True) for a in actions if a in live.functions]
        for body, of_action in (*bodies, (block.body, False)):
            for call in _digest_calls(live, body, of_action):
                type_ = call.type_args[0]
                named = isinstance(type_, Struct | Header) and type_.name
                name = external_name(type_.name, type_.annotations) if named else f"digest_{len(found)}"  # type: ignore[attr-defined]
                found.setdefault(name, type_)
    return list(found.items())


def _digest_calls(live: Live, body: ir.Stmt, of_action: bool) -> Iterator[ir.ExternCall]:
    """Digests sent by ``body`` and by the callables that p4c inlines into it: blocks, functions and, into an action,
    other actions."""
    for node in walk(live.code(body)):
        match node:
            case ir.ExternCall(instance=None, method="digest", type_args=(_, *_)):
                yield node
            case ir.ApplyBlock(block=ir.Control(body=inner)):
                yield from _digest_calls(live, inner, of_action)
            case ir.FunctionCall(callee=callee) if of_action or not callee.is_action:
                yield from _digest_calls(live, callee.body, of_action)


FACET = InfoRules(KINDS, _profile, _digests)
