"""Jobs of all ranks of a topology."""

from __future__ import annotations

from p4gen.errors import InputError
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.nic import Nic
from p4gen.papers.atp.hosts import AtpMember
from p4gen.papers.atp.spec import MOST_WORKERS, AtpSpec
from p4gen.plan.placement.network import Placement, place
from p4gen.plan.placement.placed import GroupRequest, PlacedGroup
from p4gen.vocabulary.topology import TopologySpec


def fitted(spec: AtpSpec, topology: TopologySpec, jobs: int = 1) -> AtpSpec:
    """The program with as many workers, ports and jobs as there are, unless the spec says how many."""
    ranks = len(topology.rank_hosts)
    if not 2 <= ranks <= MOST_WORKERS:
        raise InputError(f"{topology.name} has {ranks} ranks; a job has 2 to {MOST_WORKERS} workers")
    degree = max(len(topology.ports[switch]) for switch in topology.switches)
    wanted = {"fan_in": max(ranks, spec.fan_in), "ports": max(degree, spec.ports), "groups": max(jobs, spec.groups)}
    return AtpSpec.model_validate(wanted | spec.model_dump(mode="json", exclude_unset=True))


def placed(topology: TopologySpec, spec: AtpSpec, jobs: int = 1) -> Placement:
    """A network whose switches serve so many jobs of all ranks. The first one has its server on the last rank's host,
    the second one on that of the rank before."""
    ranks = topology.rank_hosts
    asked = []
    for server in range(len(ranks) - 1, len(ranks) - 1 - jobs, -1):
        hosts = (*ranks[: server % len(ranks)], *ranks[server % len(ranks) + 1 :], ranks[server % len(ranks)])
        asked.append(GroupRequest(hosts, sync=PsnSync.REFINED))
    return place(topology, spec, asked)


def member(spec: AtpSpec, group: PlacedGroup, number: int, nic: Nic, timeout: int, window: int) -> AtpMember:
    """A rank of a job on its host's NIC. ``timeout`` is in ps."""
    (channel,) = group.channels
    context = channel.contexts[group.tree.root.key]
    job, peer = (context.context, context.epoch), channel.ends[number].peer
    return AtpMember(spec, job, number, len(group.tree.ranks), peer, nic, timeout, window)
