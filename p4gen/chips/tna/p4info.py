"""P4Info of TNA's externs, as p4c's Tofino back end writes it with ``--p4runtime-force-std-externs``.

Names have no pipe in programs with one pipe, but ids are computed from names that have it, except those of actions.
Registers' parameters, filters and algorithmic TCAMs are not in P4Info.
"""

from __future__ import annotations

from p4gen.p4 import ir
from p4gen.p4.info import ids
from p4gen.p4.info.rules import InfoRules
from p4gen.protos import p4info

KINDS = {
    "Counter": ids.COUNTER, "DirectCounter": ids.DIRECT_COUNTER, "Meter": ids.METER, "DirectMeter": ids.DIRECT_METER,
    "Register": ids.REGISTER, "ActionProfile": ids.ACTION_PROFILE, "ActionSelector": ids.ACTION_PROFILE,
}  # fmt: skip
DEFAULT_GROUP_SIZE = 120
"""The size of a selector's groups where its constructor does not say it."""


def _symbol(program: ir.Program, kind: int, name: str) -> str:
    """The name from which an object's id is computed."""
    if kind != ids.ACTION and len(program.pipes) == 1:
        return f"{next(iter(program.pipes.values()))}.{name}"
    return name


def _profile_of(implementation: ir.ExternInstance) -> ir.ExternInstance | None:
    """The action profile of a table's implementation: itself, or a selector's; None if it has none."""
    own = implementation.arguments.get("action_profile", implementation)
    return own if isinstance(own, ir.ExternInstance) and own.extern not in ("Alpm", "Atcam") else None


def _profile(out: p4info.ActionProfile, instance: ir.ExternInstance, program: ir.Program) -> None:
    """The fields of the message of a profile, or of a selector without one, besides its name."""
    size = instance.arguments["size"]
    assert isinstance(size, int)
    out.size = size
    for selector in program.externs:
        if selector.extern == "ActionSelector" and _profile_of(selector) is instance:
            largest = selector.arguments.get("max_group_size", DEFAULT_GROUP_SIZE)
            assert isinstance(largest, int)
            out.with_selector = True
            out.max_group_size = largest


FACET = InfoRules(
    KINDS,
    _profile,
    digests=lambda _program, _used, _actions, externs: [
        (e.name, e.type_args[0]) for e in externs if e.extern == "Digest"
    ],
    listed=lambda e: e.extern != "ActionSelector" or _profile_of(e) is e,
    profile_of=_profile_of,
    symbol=_symbol,
)
