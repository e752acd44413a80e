"""The packet replication engine: groups, nodes, and the exclusion of copies.

A group's copies are those of its nodes. A node has a replication id, perhaps an exclusion id of level 1, and ports. All
copies of a node whose exclusion id is the packet's ``level1_exclusion_id`` are left out. For a node whose replication
id is the packet's ``rid``, and for all nodes if that is the global one, the copies to the ports of the packet's
``level2_exclusion_id`` are left out. An id that the program has not assigned excludes nothing.

A node may have LAGs besides ports; ``level2_mcast_hash`` chooses a member of each. A group may have a set of nodes in
place of one node; ``level1_mcast_hash`` chooses one of the set (ECMP). Both choices are as open-p4studio's tests
(``tna_multicast``) predict them. Backup ports, for those that went down, are not modelled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from p4gen.chips.tna.context import UNSET
from p4gen.model.entries import CloneSession, MulticastGroup, Replica

Direction = Literal["ingress", "egress", "both"]


@dataclass(frozen=True)
class NodeReplica(Replica):
    """A copy that belongs to a node with an exclusion id of level 1."""

    exclusion: int | None = None


@dataclass(frozen=True)
class Node:
    """A replication id with ports and LAGs."""

    rid: int
    ports: tuple[int, ...] = ()
    lags: tuple[int, ...] = ()


PLACES = 32
"""The number of places that an ``Ecmp`` has for its nodes."""


@dataclass(frozen=True)
class Ecmp:
    """Nodes of which one makes copies; None is a free place."""

    members: tuple[Node | None, ...]

    def choose(self, number: int) -> Node | None:
        """The node in the place that the hash selects; if that place is free, one of the nodes in other places."""
        at = number % PLACES
        own = self.members[at] if at < len(self.members) else None
        there = [node for node in self.members if node is not None]
        return own or (there[number % len(there)] if there else None)


@dataclass(frozen=True)
class Branch:
    """A node of a group, or a set of them, and its exclusion id of level 1."""

    to: Node | Ecmp
    exclusion: int | None = None


@dataclass(frozen=True)
class Tree(MulticastGroup):
    """A group with LAGs or ECMP, in addition to its replicas."""

    branches: tuple[Branch, ...] = ()


@dataclass(frozen=True)
class Lag:
    """A link aggregation group; members of it in other switches come before or behind its ports."""

    ports: tuple[int, ...]
    below: int = 0
    """Members elsewhere in front of the first port (``$MULTICAST_LAG_REMOTE_LSB_COUNT``)."""
    above: int = 0

    def choose(self, number: int, down: Collection[int]) -> int | None:
        """The port for a hash; None if the member is elsewhere. A port that is down stands for one that is up."""
        ports = sorted(self.ports)
        whole = self.below + len(ports) + self.above
        at = (number % whole if whole else 0) - self.below
        if not 0 <= at < len(ports):
            return None
        alive = [port for port in ports if port not in down]
        return ports[at] if ports[at] in alive or not alive else alive[number % len(alive)]


@dataclass(frozen=True)
class Request:
    """A packet's metadata about its copies; ``UNSET`` for fields that the program has not assigned."""

    rid: int
    level1: int
    level2: int
    hash1: int = 0
    hash2: int = 0


@dataclass
class Pruning:
    """The settings that decide about copies."""

    exclusions: Mapping[int, frozenset[int]]
    """The ports of each exclusion id of level 2."""
    lags: Mapping[int, Lag]
    down: Collection[int]
    """Ports without a link."""
    global_rid: int | None
    hashes_nodes: bool


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


def copies(group: MulticastGroup, request: Request, pruning: Pruning) -> list[Copy]:
    """A group's copies for a packet."""
    barred = frozenset() if request.level2 is UNSET else pruning.exclusions.get(request.level2, frozenset())

    def pruned(rid: int, port: int) -> bool:
        own = request.rid is not UNSET and request.rid in (rid, pruning.global_rid)
        return own and port in barred

    def excluded(own: int | None) -> bool:
        return own is not None and request.level1 is not UNSET and own == request.level1

    found: list[tuple[int, int]] = []
    for replica in group.replicas:
        own = replica.exclusion if isinstance(replica, NodeReplica) else None
        if not excluded(own) and not pruned(replica.rid, replica.port):
            found.append((replica.port, replica.rid))
    for branch in group.branches if isinstance(group, Tree) else ():
        node = branch.to if isinstance(branch.to, Node) else branch.to.choose(request.hash1)
        if node is None or excluded(branch.exclusion):
            continue
        number = (request.hash2 ^ (node.rid if pruning.hashes_nodes else 0)) & HASH
        members = [pruning.lags[lag].choose(number, pruning.down) for lag in node.lags if lag in pruning.lags]
        ports = [*node.ports, *(port for port in members if port is not None)]
        found += [(port, node.rid) for port in ports if not pruned(node.rid, port)]
    return [Copy(port, rid, first=not at) for at, (port, rid) in enumerate(found)]


HASH = (1 << 13) - 1
"""The bits of ``level2_mcast_hash``."""


def copies_of_session(session: CloneSession, direction: str) -> list[Copy]:
    """A mirror session's copies for a direction."""
    if isinstance(session, MirrorSession) and session.direction not in ("both", direction):
        return []
    return [Copy(replica.port, replica.rid) for replica in session.replicas]
