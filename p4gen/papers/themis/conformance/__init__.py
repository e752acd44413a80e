"""Themis's conformance: scenarios, the programs that they run on, and the faults that they must detect."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from p4gen.papers.themis.spec import Blocked, Cm, Evidence, Mode, Spread, ThemisSpec
from p4gen.ptf.family import Conformance, Mutated, SuiteRun
from p4gen.ptf.faults import seeding
from p4gen.ptf.mutations import Seeding
from p4gen.resources import resource

_SUITE = resource("ptf_tests") / "themis"
SMALL: dict[str, Any] = {"paths": 4, "path_sets": 4, "connections": 4, "ports": 8}
QUEUE: dict[str, Any] = {"queue": 16, "queue_banks": 4}


def small(**fields: Any) -> ThemisSpec:
    """A small program with everything that scenarios need."""
    classes = fields.get("arch") and fields.get("evidence") is not Evidence.QUEUE
    queue = {} if fields.get("evidence") is Evidence.CLASSES or classes else QUEUE
    return ThemisSpec(**SMALL | queue | fields)


def _runs(spec: ThemisSpec) -> tuple[SuiteRun[ThemisSpec], ...]:
    """All scenarios on ``spec``'s program, then, on small programs, those that need something else."""
    runs, made = [SuiteRun(spec)], partial(small, ip=spec.ip)
    if spec.narrow:
        return (*runs, SuiteRun(small(mode=spec.mode, spread=spec.spread, arch=spec.arch), ("test_connections",)))
    nacks = ("test_psn_queue", "test_ends", "test_classes", "test_compensation")
    if spec.filters and spec.blocked is Blocked.DROP:
        runs.append(SuiteRun(made(mode=spec.mode, blocked=Blocked.ACK, evidence=spec.evidence), nacks))
    if spec.walks:
        runs.append(SuiteRun(made(mode=spec.mode, blocked=spec.blocked, evidence=Evidence.CLASSES), nacks))
    if spec.by_psn and spec.cm is Cm.IGNORE:
        runs.append(SuiteRun(made(mode=spec.mode, spread=spec.spread, cm=Cm.COPY), ("test_connections",)))
    if spec.by_psn and spec.tiers == 2:
        runs.append(SuiteRun(made(mode=spec.mode, spread=spec.spread, tiers=3), ("test_path_map",)))
    others = (spread for spread in (Spread.ECMP, Spread.RANDOM) if spread is not spec.spread)
    runs += [SuiteRun(made(mode=Mode.SOURCE, spread=spread), ("test_spread",)) for spread in others]
    return tuple(runs)


def _every_program(spec: ThemisSpec) -> list[ThemisSpec]:
    if spec.narrow:
        kinds = (Evidence.CLASSES, Evidence.QUEUE) if spec.filters else (spec.evidence,)
        return [small(mode=spec.mode, arch=spec.arch, evidence=evidence) for evidence in kinds]
    return [
        small(mode=spec.mode, blocked=blocked, evidence=evidence, ip=spec.ip)
        for blocked in Blocked
        for evidence in (Evidence if spec.filters else (Evidence.QUEUE,))
    ]


def _seeding(spec: ThemisSpec) -> Seeding:
    files = sorted(_SUITE.glob("faults*.toml"))
    if spec.narrow:
        return seeding(files, "tofino", suite=[_SUITE], spec={"arch": spec.arch})
    return seeding(files, "v1model", suite=[_SUITE])


FACET: Conformance[ThemisSpec] = Conformance(
    serves=lambda _spec, _module: True,
    runs=_runs,
    seeding=_seeding,
    axes={"spread": (), "blocked": tuple(Blocked), "evidence": tuple(Evidence)},
    kept=("mode", "arch", "ip"),
    every_program=_every_program,
    mutated=lambda spec, _reliabilities, _pipelines: [
        Mutated(f"{each.mode} {each.blocked} {each.evidence}", each) for each in _every_program(spec)
    ],
    # A NACK passes once for each row; what shows a loss comes round as a NACK.
    passes=lambda spec: 2 + (spec.queue // spec.queue_banks if spec.walks else 0),
    equivalents=Path(__file__).with_name("equivalents.yaml"),
    suite=_SUITE,
    takes_over=(resource("ptf_tests") / "ordinary",),
)
