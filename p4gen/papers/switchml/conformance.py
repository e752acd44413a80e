"""SwitchML's conformance: scenarios, the programs that they run on, and the faults that they must detect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.ptf.family import Conformance, Mutated, SuiteRun
from p4gen.ptf.faults import seeding
from p4gen.ptf.mutations import Seeding
from p4gen.resources import resource
from p4gen.vocabulary.program import COMMON_ICRC

OFFSETS, TRANSPORTS = ("checked", "carried"), ("udp", "roce")
_SUITE = resource("ptf_tests") / "switchml"
SMALL: dict[str, Any] = {"lanes": 32, "fan_in": 4, "groups": 2, "slots": 12, "ports": 8}


def small(**fields: Any) -> SwitchmlSpec:
    """A small program with everything that scenarios need."""
    return SwitchmlSpec(**SMALL | fields)


def _like(spec: SwitchmlSpec) -> dict[str, Any]:
    return {"arch": spec.arch, "transport": spec.transport}


def _seeding(spec: SwitchmlSpec) -> Seeding:
    files = sorted(_SUITE.glob("faults*.toml"))
    return seeding(files, "tofino" if spec.tofino else spec.transport, suite=[_SUITE], spec={"arch": spec.arch})


FACET: Conformance[SwitchmlSpec] = Conformance(
    serves=lambda _spec, _module: True,
    runs=lambda spec: (
        SuiteRun(spec),
        SuiteRun(small(**_like(spec), offsets="carried" if spec.checks_offsets else "checked")),
        SuiteRun(small(**_like(spec), fan_in=32, ports=32, offsets=spec.offsets)),
        *(SuiteRun(small(transport="roce", icrc=icrc)) for icrc in COMMON_ICRC if spec.roce and icrc is not spec.icrc),
    ),
    seeding=_seeding,
    axes={"transport": TRANSPORTS, "offsets": OFFSETS},
    kept=("arch", "lanes"),
    every_program=lambda spec: [
        small(lanes=spec.lanes, arch=spec.arch, transport=transport, offsets=how)
        for transport in (TRANSPORTS[:1] if spec.tofino else TRANSPORTS)
        for how in OFFSETS
    ],
    mutated=lambda spec, _reliabilities, _pipelines: [
        Mutated(how, small(**_like(spec), offsets=how)) for how in OFFSETS
    ],
    passes=lambda _: 1,
    equivalents=Path(__file__).with_name("equivalents.yaml"),
    suite=_SUITE,
    takes_over=(resource("ptf_tests") / "ordinary",),
)
