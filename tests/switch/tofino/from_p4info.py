"""A program's tables as p4c's back end for Tofino describes them in bfrt.json, made from p4gen's P4Info.

``test_against_p4c`` compares the result with p4c's own; all ids but those of tables and actions are numbered here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .described import action, data, key, parameter, table

_KINDS = {2: "Exact", 3: "LPM", 4: "Ternary", 5: "Range", 6: "Optional"}
_RANKED = ("Ternary", "Range", "Optional")
_REGISTER = {"annotations": [{"name": "$bfrt_field_class", "value": "register_data"}], "mandatory": True}


def bfrt(p4info: Any) -> dict[str, Any]:
    """The tables of the program that the control plane writes and reads."""
    actions = {found.preamble.id: found for found in p4info.actions}
    numbered = ((1 << 31) + n for n in range(1 << 20))
    tables = [_table(found, actions) for found in p4info.tables]
    tables += [_counter(next(numbered), found) for found in p4info.counters]
    tables += [_register(next(numbered), found, p4info.type_info) for found in p4info.registers]
    return {"schema_version": "1.0.0", "tables": tables, "learn_filters": []}


def _table(found: Any, actions: Mapping[int, Any]) -> dict[str, Any]:
    kinds = [_KINDS[field.match_type] for field in found.match_fields]
    keys = [key(f.id, f.name, f.bitwidth, kind) for f, kind in zip(found.match_fields, kinds, strict=True)]
    if any(kind in _RANKED for kind in kinds):
        keys.append(key(65537, "$MATCH_PRIORITY", "uint32"))
    specs = []
    for reference in found.action_refs:
        meant = actions[reference.id]
        made = action(reference.id, meant.preamble.name, *(parameter(p.id, p.name, p.bitwidth) for p in meant.params))
        specs.append({**made, "action_scope": ("TableAndDefault", "TableOnly", "DefaultOnly")[reference.scope]})
    return table(
        found.preamble.id,
        f"pipe.{found.preamble.name}",
        "MatchAction_Direct",
        found.size,
        keys,
        action_specs=specs,
        has_const_default_action=bool(found.const_default_action_id),
        attributes=["EntryScope", *(["ConstTable"] if found.is_const_table else [])],
    )


def _counter(number: int, found: Any) -> dict[str, Any]:
    units = {1: ["BYTES"], 2: ["PKTS"], 3: ["BYTES", "PKTS"]}[found.spec.unit]
    fields = [data({"BYTES": 65553, "PKTS": 65554}[u], f"$COUNTER_SPEC_{u}", "uint64") for u in units]
    index = key(65556, "$COUNTER_INDEX", "uint32", mandatory=True)
    name = f"pipe.{found.preamble.name}"
    return table(number, name, "Counter", found.size, [index], data=fields, supported_operations=["Sync"])


def _register(number: int, found: Any, types: Any) -> dict[str, Any]:
    name = found.preamble.name
    if found.type_spec.HasField("struct"):
        members = types.structs[found.type_spec.struct.name].members
        words = [(f"{name}.{member.name}", _width(member.type_spec)) for member in members]
    else:
        words = [(f"{name}.f1", _width(found.type_spec))]
    fields = [data(n, word, width, **_REGISTER) for n, (word, width) in enumerate(words, 1)]
    index = key(65557, "$REGISTER_INDEX", "uint32", mandatory=True)
    return table(number, f"pipe.{name}", "Register", found.size, [index], data=fields, supported_operations=["Sync"])


def _width(spec: Any) -> int:
    kind = spec.bitstring.WhichOneof("type_spec")
    return int(getattr(spec.bitstring, kind).bitwidth)
