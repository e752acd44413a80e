"""Small scopes for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p4gen.families import load_collective
from p4gen.verification.scope import GroupScope
from p4gen.verification.world import Budget
from p4gen.vocabulary.topology import load_topology

SMALL: Mapping[str, Any] = {"lanes": 8, "window": 3, "message": 1, "groups": 1, "fan_in": 4, "ports": 4}


def scope(mode: str, topology: str = "star-2", *, budget: Budget | None = None, **fields: Any) -> GroupScope:
    """A scope: fields of ``GroupScope`` by name, all others are of the spec."""
    own = {name: fields.pop(name) for name in tuple(fields) if name in GroupScope.__dataclass_fields__}
    spec = load_collective(None, {**SMALL, "mode": mode, **fields})
    return GroupScope(load_topology(topology), spec, budget=budget or Budget(), **own)
