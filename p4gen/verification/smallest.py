"""The smallest program of a spec that a network needs: searches of its states are the shortest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from p4gen.families import load_collective
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.topology import TopologySpec

SMALL: Final = {"lanes": 8, "window": 3, "message": 1, "groups": 1}


def small_program(topology: TopologySpec, fields: Mapping[str, Any]) -> CollectiveSpec:
    """The smallest program for a topology that has the given fields. Raises ``InputError`` for wrong values."""
    degree = max(len(ports) for name, ports in topology.ports.items() if name in topology.switches)
    small = SMALL | {"fan_in": degree, "ports": max(4, degree)}
    given = {name: value for name, value in fields.items() if value is not None}
    known = type(load_collective(None, given)).model_fields
    return load_collective(None, {name: value for name, value in small.items() if name in known} | given)
