"""A job of all ranks around one switch."""

from __future__ import annotations

from p4gen.errors import InputError
from p4gen.host.collectives.plan import PsnSync
from p4gen.papers.switchml.control import MlJob, job_of
from p4gen.papers.switchml.spec import MOST_WORKERS, SwitchmlSpec
from p4gen.plan.placement.network import Placement, place
from p4gen.plan.placement.placed import GroupRequest
from p4gen.vocabulary.topology import TopologySpec


def fitted(spec: SwitchmlSpec, topology: TopologySpec) -> SwitchmlSpec:
    """The program with as many workers and ports as the topology has, unless the spec says how many. Raises
    ``InputError`` unless that has one switch."""
    if len(topology.switches) != 1:
        raise InputError(f"{topology.name} has {len(topology.switches)} switches; SwitchML's jobs are around one")
    workers = len(topology.rank_hosts)
    if workers > MOST_WORKERS:
        raise InputError(f"{topology.name} has {workers} ranks; a job has {MOST_WORKERS} workers at most")
    degree = len(topology.ports[topology.switches[0]])
    wanted = {"fan_in": max(workers, spec.fan_in), "ports": max(degree, spec.ports)}
    return SwitchmlSpec.model_validate(wanted | spec.model_dump(mode="json", exclude_unset=True))


def placed(topology: TopologySpec, spec: SwitchmlSpec, epoch: int = 1) -> tuple[Placement, MlJob]:
    """A network whose switch serves a job of all ranks, which has all slots, down to a power of two."""
    slots = 1 << (spec.slots.bit_length() - 1)
    asked = GroupRequest(topology.rank_hosts, sync=PsnSync.REFINED, epoch=epoch, slots=slots)
    placement = place(topology, spec, [asked])
    return placement, job_of(placement.group)
