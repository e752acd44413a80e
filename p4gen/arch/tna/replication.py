"""The packet replication engine: groups, nodes, and what excludes copies.

A group's copies are those of its nodes. A node has a replication id, perhaps an exclusion id of level 1, and ports. All
copies of a node are left out whose exclusion id is the packet's ``level1_exclusion_id``; of a node whose replication id
is the packet's ``rid``, those to the ports are left out that the packet's ``level2_exclusion_id`` stands for. A packet
for which the program has not assigned an id excludes nothing by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from p4gen.arch.tna.context import UNSET
from p4gen.model.entries import CloneSession, MulticastGroup, Replica

Direction = Literal["ingress", "egress", "both"]


@dataclass(frozen=True)
class NodeReplica(Replica):
    """A copy that belongs to a node with an exclusion id of level 1."""

    exclusion: int | None = None


@dataclass(frozen=True)
class MirrorSession(CloneSession):
    """A mirror session that only copies of one direction may use."""

    direction: Direction = "both"


@dataclass(frozen=True)
class Copy:
    """A copy that the traffic manager makes."""

    port: int
    rid: int = 0
    first: bool = False
    """Whether it is the first one of its group."""


def copies(
    group: MulticastGroup, exclusions: Mapping[int, frozenset[int]], *, level1: int, rid: int, level2: int
) -> list[Copy]:
    """A group's copies for a packet with these ids."""
    barred = frozenset() if level2 is UNSET else exclusions.get(level2, frozenset())
    found: list[Copy] = []
    for replica in group.replicas:
        own = replica.exclusion if isinstance(replica, NodeReplica) else None
        if own is not None and level1 is not UNSET and own == level1:
            continue
        if rid is not UNSET and replica.rid == rid and replica.port in barred:
            continue
        found.append(Copy(replica.port, replica.rid, first=not found))
    return found


def copies_of_session(session: CloneSession, direction: str) -> list[Copy]:
    """A mirror session's copies for a direction."""
    if isinstance(session, MirrorSession) and session.direction not in ("both", direction):
        return []
    return [Copy(replica.port, replica.rid) for replica in session.replicas]
