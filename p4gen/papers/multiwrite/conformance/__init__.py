"""MultiWrite's conformance: scenarios, the programs that they run on, and the faults that they must detect."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from p4gen.papers.multiwrite.spec import MultiwriteSpec, Place, Repair, Replicate
from p4gen.ptf.family import Conformance, Mutated, SuiteRun
from p4gen.ptf.faults import seeding
from p4gen.ptf.mutations import Seeding
from p4gen.resources import resource
from p4gen.vocabulary import Icrc

_REPAIRS = (Repair.SOURCE, Icrc.RECOMPUTE), (Repair.SOURCE, Icrc.PATCH), (Repair.HOP, Icrc.RECOMPUTE)
"""Who repairs losses, and what becomes of ICRCs: who keeps packets does not patch them."""
_COMBINING = "GatherToken", "AddWord", "AddOutputs", "PlaceSum"
"""The modules that only programs that combine have, and controls in them."""
_SUITE = resource("ptf_tests") / "multiwrite"
SMALL: dict[str, Any] = {"payload": 64, "contexts": 4, "edges": 5, "slots": 8, "ports": 8}


def small(**fields: Any) -> MultiwriteSpec:
    """A small program with everything that scenarios need."""
    return MultiwriteSpec(**SMALL | fields)


def _runs(spec: MultiwriteSpec) -> tuple[SuiteRun[MultiwriteSpec], ...]:
    """All scenarios on ``spec``'s program, and on small ones that differ from it in one field."""
    own: dict[str, Any] = {
        "receivers": spec.receivers,
        "replicate": spec.replication,
        "place": spec.place,
        "icrc": spec.icrc,
        "repair": spec.repair,
        "ip": spec.ip,
        "combine": spec.combine,
    }
    other = Replicate.SUBSET if spec.prunes else Replicate.PRUNE
    place = Place.SYMMETRIC if spec.appends else Place.APPEND
    if spec.combine:
        halves = "float32" if spec.combine == "bfloat16" else "bfloat16"
        changes: tuple[dict[str, Any], ...] = ({"replicate": other}, {"place": place}, {"combine": halves})
        return (SuiteRun(spec), *(SuiteRun(small(**own | change)) for change in changes))
    widths = (1024, 64) if spec.receivers == 32 else (32,)
    other_icrc = Icrc.RECOMPUTE if spec.icrc.patched else Icrc.PATCH
    other_repair = {"repair": Repair.SOURCE} if spec.holds else {"repair": Repair.HOP, "icrc": Icrc.RECOMPUTE}
    return (
        SuiteRun(spec),
        SuiteRun(small(**own | {"replicate": other})),
        SuiteRun(small(**own | {"place": place})),
        SuiteRun(small(**own | other_repair)),
        SuiteRun(small(**own | {"repair": Repair.SOURCE, "icrc": other_icrc})),
        *(SuiteRun(small(**own | {"receivers": width})) for width in widths),
    )


def _every_program(spec: MultiwriteSpec) -> list[MultiwriteSpec]:
    made = partial(small, receivers=spec.receivers, combine=spec.combine)
    return [
        made(repair=repair, replicate=replicate, place=place, icrc=icrc)
        for repair, icrc in (_REPAIRS[-1:] if spec.combine else _REPAIRS)
        for replicate in Replicate
        for place in Place
    ]


def _mutated(spec: MultiwriteSpec) -> list[Mutated]:
    made = partial(small, receivers=spec.receivers, ip=spec.ip)
    if spec.combine:
        combining = made(repair=Repair.HOP, combine=spec.combine)
        return [Mutated(f"combine {spec.combine}", combining, _COMBINING.__contains__, ("test_mw_combine",))]
    choices = zip(_REPAIRS, (Replicate.SUBSET, Replicate.PRUNE, Replicate.PRUNE), (*Place, Place.APPEND), strict=True)
    return [
        Mutated(f"{repair} {icrc}", made(repair=repair, icrc=icrc, replicate=how, place=place))
        for (repair, icrc), how, place in choices
    ]


def _seeding(spec: MultiwriteSpec) -> Seeding:
    if spec.combine:
        return seeding([_SUITE / "faults_combine.toml"], "combine", suite=[_SUITE])
    return seeding([_SUITE / "faults.toml"], "multiwrite", suite=[_SUITE])


FACET: Conformance[MultiwriteSpec] = Conformance(
    serves=lambda spec, module: module != "test_mw_combine" or spec.combine is not None,
    runs=_runs,
    seeding=_seeding,
    axes={
        "repair": tuple(Repair),
        "icrc": (Icrc.RECOMPUTE, Icrc.PATCH),
        "replicate": tuple(Replicate),
        "place": tuple(Place),
    },
    kept=("receivers", "combine"),
    every_program=_every_program,
    mutated=lambda spec, _reliabilities, _pipelines: _mutated(spec),
    # A cursor passes once for each slot.
    passes=lambda spec: 1 + (spec.slots if spec.holds else 0),
    equivalents=Path(__file__).with_name("equivalents.yaml"),
    suite=_SUITE,
    takes_over=(resource("ptf_tests") / "ordinary",),
)
