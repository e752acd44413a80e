"""EPIC in labs: ranks of groups, and CommLib's collectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p4gen.errors import InputError
from p4gen.labs.arrays import COLLECTIVES, SIZED, ArrayPlan, samples
from p4gen.labs.calls import ROOT, Asked, LabMembers
from p4gen.labs.hosts.ranks import GroupRanks
from p4gen.labs.runs.groupsteps import GROUP_STEPS
from p4gen.net.collectives.config import Call
from p4gen.papers.epic.spec import EpicSpec
from p4gen.plan.placement.served import missing, served
from p4gen.vocabulary.message import Collective


def _plan(spec: EpicSpec, ranks: int, collective: str, size: int | None, options: Mapping[str, Any]) -> ArrayPlan:
    call, hosts = Call(Collective(collective), size or 0, options[ROOT]), _hosts(ranks)
    sync, collectives = served(spec, hosts)
    if call.collective not in collectives:
        raise InputError(*missing(spec, hosts, sync, [call.collective]))
    call.check(spec, ranks)
    return ArrayPlan(spec, call, ranks)


def _samples(spec: EpicSpec, ranks: int, size: int) -> list[Asked]:
    _, collectives = served(spec, _hosts(ranks))
    return [asked for asked in samples(ranks, size) if asked[0] in collectives]


def _hosts(ranks: int) -> tuple[str, ...]:
    return tuple(f"rank {rank}" for rank in range(ranks))


FACET: LabMembers[EpicSpec] = LabMembers(
    collectives=COLLECTIVES,
    sized=SIZED,
    example="run allreduce 1M; groups",
    plan=_plan,
    samples=_samples,
    ranks=GroupRanks,
    steps=GROUP_STEPS,
    aligning=Collective.BARRIER,
)
