"""ATP's conformance: scenarios, the programs that they run on, and the faults that they must detect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from p4gen.papers.atp.spec import AtpSpec
from p4gen.ptf.family import Conformance, Mutated, SuiteRun
from p4gen.ptf.faults import seeding
from p4gen.resources import resource

_SUITE = resource("ptf_tests") / "atp"
SMALL: dict[str, Any] = {"lanes": 32, "fan_in": 5, "groups": 2, "aggregators": 8, "patience": 3, "ports": 8}


def small(**fields: Any) -> AtpSpec:
    """A small program with everything that scenarios need."""
    return AtpSpec(**SMALL | fields)


FACET: Conformance[AtpSpec] = Conformance(
    serves=lambda _spec, _module: True,
    runs=lambda spec: (SuiteRun(spec), SuiteRun(small()), SuiteRun(small(fan_in=32, aggregators=2))),
    seeding=lambda _: seeding([_SUITE / "faults.toml"], "atp", suite=[_SUITE]),
    axes={},
    kept=("lanes",),
    every_program=lambda spec: [small(lanes=spec.lanes)],
    mutated=lambda _spec, _reliabilities, _pipelines: [Mutated("small", small())],
    passes=lambda _: 1,
    equivalents=Path(__file__).with_name("equivalents.yaml"),
    suite=_SUITE,
    takes_over=(resource("ptf_tests") / "ordinary",),
)
