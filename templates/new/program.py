"""NewFamily's programs: EPIC's, with one module more."""

from __future__ import annotations

from p4gen.papers.epic.program import FACET as EPIC
from p4gen.program import Apply, Module

COUNT_CONTRIBUTIONS = Module(
    name="CountContributions",
    folder="new_family",
    gress="ingress",
    paper="our own",
    purpose="how many packets each rank has contributed",
    needs=("hdr.payload", "edge", "slot_use"),
)

FACET = EPIC.with_module(Apply(COUNT_CONTRIBUTIONS, "hdr.payload, meta"), after="AggregateData")
