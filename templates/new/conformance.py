"""NewFamily's conformance: scenarios of its own beside EPIC's, and a fault that they must detect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from p4gen.papers.epic.conformance import FACET as EPIC
from p4gen.ptf.mutations import Mutation, Seeding
from p4gen.resources import resource

OWN = "test_new_family"
"""The module of its scenarios in ``suite``."""
SMALL = {"lanes": 8, "window": 2, "message": 2, "groups": 4, "fan_in": 4, "ports": 8}

SEEDING = Seeding(
    mutations=(
        Mutation(
            "repeats-counted",
            "CountContributions",
            "if (meta.buffer.slot_use != slot_use_t.REPEAT) {",
            "if (true) {",
        ),
    ),
    programs={"plain": SMALL},
    tests={"plain": (OWN,)},
)

FACET = replace(
    EPIC,
    suite=Path(__file__).parent / "suite",
    takes_over=(resource("ptf_tests"),),
    serves=lambda spec, module: module == OWN or EPIC.serves(spec, module),
    seeding=lambda spec: SEEDING,
)
