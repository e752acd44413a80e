"""NewFamily's conformance: scenarios of its own beside EPIC's, and faults that they must detect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from p4gen.papers.epic.conformance import FACET as EPIC
from p4gen.ptf.faults import seeding
from p4gen.resources import resource

SUITE = Path(__file__).parent / "suite"
OWN = "test_new_family"
"""The module of its scenarios."""

FACET = replace(
    EPIC,
    suite=SUITE,
    takes_over=(resource("ptf_tests"),),
    serves=lambda spec, module: module == OWN or EPIC.serves(spec, module),
    seeding=lambda spec: seeding([SUITE / "faults.toml"], "new_family", suite=[SUITE]),
)
