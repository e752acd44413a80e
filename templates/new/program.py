"""NewFamily's programs: EPIC's, with one module more."""

from __future__ import annotations

from p4gen.papers.epic.program import FACET as EPIC
from p4gen.program import Apply

FACET = EPIC.with_module(Apply("CountContributions", "hdr.payload, meta"), after="AggregateData")
