"""Themis beside another family, for the connections that this one only routes."""

from __future__ import annotations

from collections.abc import Iterator

from p4gen.papers.themis.spec import Cm, ThemisSpec
from p4gen.program.beside import Beside


def _problems(spec: ThemisSpec) -> Iterator[str]:
    if not spec.by_psn:
        yield f"spread {spec.spread} applies to all requests, also to those of other families that pass through"
    if spec.cm is Cm.COPY:
        yield "cm copy needs headers that the parsers of other families do not know"


FACET: Beside[ThemisSpec] = Beside(
    problems=_problems,
    flows={"ingress": "themis/arriving.p4.j2", "egress": "themis/leaving.p4.j2"},
    preamble=("themis/preamble.p4.j2",),
)
