"""Ranks that offer memory in a cluster: the whole of the cluster is the group ``g``."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from patience import PATIENCE_S

from p4gen.labs.calls import members_of
from p4gen.manager.ranks.calls import CallResult
from p4gen.manager.ranks.memory import MemoryMember

from .cluster import Cluster

PACKETS = 16
"""What memory has room for."""


def offer(cluster: Cluster) -> list[MemoryMember]:
    """All hosts have offered memory."""
    names = cluster.topology.hosts
    members = []
    for rank, name in enumerate(names):
        host = cluster.hosts[name]
        fields = {"rank": rank, "size": len(names), "packets": PACKETS, "timeout": PATIENCE_S}
        members_of(cluster.spec).ranks(cluster.spec, host, cluster.nics[name]).enter("g", fields)
        members.append(host.memory_member("g"))
    cluster.manager.memories = tuple(member.memory for member in members)
    return members


def activate(cluster: Cluster) -> list[MemoryMember]:
    """They have, and the group is active."""
    members = offer(cluster)
    cluster.manager.activate(g=tuple(cluster.topology.hosts))
    return members


def begin(members: Sequence[MemoryMember], call: Any, deadline: float | None = None) -> list[Future[CallResult]]:
    """These ranks make a drawn call."""
    return [m.begin(lambda rank: rank.make(call), lambda rank: rank.problem(call), 1, deadline) for m in members]


def right(futures: Sequence[Future[CallResult]]) -> list[CallResult]:
    """All of them have ended, with nothing wrong."""
    found = [future.result(PATIENCE_S) for future in futures]
    assert [result.value for result in found] == [""] * len(found)
    return found
