"""NewFamily's programs: EPIC's, with one module more."""

from __future__ import annotations

from p4gen.papers.epic.program import FACET as EPIC

FACET = EPIC.with_module("CountContributions", "hdr.payload, meta", after="AggregateData")
