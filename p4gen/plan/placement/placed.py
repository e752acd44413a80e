"""Requested groups, and groups placed on their trees."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from p4gen.errors import InputError
from p4gen.groups.group import GroupContext, Memory
from p4gen.host.collectives.plan import SYMMETRIC, ChannelKey, PsnSync
from p4gen.host.transport.verbs import Peer
from p4gen.plan.placement.numbers import Ring
from p4gen.plan.placement.request import GroupSpec
from p4gen.plan.placement.tree import IncTree, NodeKey
from p4gen.rocev2.headers import ip_from, ipv4, is_ipv6
from p4gen.vocabulary import ServingSpec
from p4gen.vocabulary.message import ROOTS, Collective

_TREE_NETWORK = ipv4("10.255.0.0")
"""The root's switch of tree number g answers to 10.255.g.1, the others to 10.255.g.2 and so on. A tree of more than
``ADDRESSES`` has those of the next numbers, too."""
_IPV6_TREE_NETWORK = ip_from("fd00:0:0:2::")
"""Over IPv6 to fd00:0:0:2:0:g:0:1 and so on."""
TREES = 256
"""The number of trees that have addresses."""
ADDRESSES = 255
"""The addresses of a tree's number."""


def possible_roots(programs: Iterable[ServingSpec]) -> int:
    """The ranks that can be roots in all of these programs, those from 0 on."""
    return min((program.roots for program in programs), default=ROOTS)


def first_address(tree: int, *, ipv6: bool) -> int:
    """The address of a tree's root; those of its other switches follow."""
    return 1 + (_IPV6_TREE_NETWORK | tree << 32 if ipv6 else _TREE_NETWORK | tree << 8)


Serves = tuple[ChannelKey, ...]
"""Patterns, by collective and root."""


@dataclass(frozen=True)
class GroupRequest:
    """A request for a group: its ranks, collectives and size."""

    ranks: tuple[str, ...]
    """Hosts, in order of rank."""
    root: str | None = None
    """Switch; by default the topology's root, or the one nearest to the ranks."""
    sync: PsnSync = PsnSync.SUBGROUPS
    collectives: frozenset[Collective] = frozenset(Collective)
    """The collectives that it may invoke; fewer need fewer contexts."""
    roots: frozenset[int] | None = None
    """Ranks that are roots of Reduces or Broadcasts; by default all that can be."""
    epoch: int | None = 1
    """The epoch of all its contexts. None: each context takes an epoch that its state has not had yet."""
    first_psn: int = 0
    """Every rank's initial PSN, both ways."""
    slots: int | None = None
    """N; by default the program's."""
    every_switch: bool = False
    """Make every switch on the way a node."""
    memories: tuple[Memory, ...] = field(default=(), repr=False, metadata={"later": True})
    """The memory of each rank, if the switches of the group address it."""
    possible_roots: int = field(default=ROOTS, repr=False, metadata={"later": True})
    """Ranks that can be roots, those from 0 on (``ServingSpec.roots`` of the programs)."""
    barriers: bool = field(default=False, repr=False, metadata={"later": True})
    """Whether patterns share state and need Barriers between them, although ranks offer memory."""

    def channels(self) -> tuple[Serves, ...]:
        """The patterns that it needs, in groups that share contexts and QPs. AllReduce is among them, as Barriers
        between other patterns need it. ReduceScatter is N Reduces, AllGather N Broadcasts (EPIC §A). Where ranks
        offer memory, each pattern has contexts of its own, and no Barriers, unless ``barriers`` says otherwise."""
        wanted = self.collectives
        roots = range(min(len(self.ranks), self.possible_roots)) if self.roots is None else sorted(self.roots)
        alike = self.barriers or not self.memories
        symmetric = alike or wanted & {Collective.ALLREDUCE, Collective.BARRIER}
        found = [SYMMETRIC] if symmetric else []
        if wanted & {Collective.REDUCE, Collective.REDUCE_SCATTER}:
            found += [(Collective.REDUCE, root) for root in roots]
        if wanted & {Collective.BROADCAST, Collective.ALLGATHER}:
            found += [(Collective.BROADCAST, root) for root in roots]
        together = self.sync is PsnSync.REFINED and alike
        return (tuple(found),) if together else tuple((pattern,) for pattern in found)

    def problems(self) -> Iterator[str]:
        """The errors of the request that hold on any tree, a sentence each."""
        if not self.collectives:
            yield "it has no collectives"
        if self.memories and len(self.memories) != len(self.ranks):
            yield f"it has the memory of {len(self.memories)} ranks; there are {len(self.ranks)}"
        most = min(len(self.ranks), self.possible_roots)
        if most < len(self.ranks):
            yield from (
                f"{each} by {len(self.ranks)} ranks: each is a root, and control messages have {self.possible_roots}"
                for each in sorted(self.collectives)
                if each.every_root
            )
            if self.memories:
                yield f"{len(self.ranks)} ranks offer memory; switches address that of {self.possible_roots}"
        yield from (
            f"rank {root} cannot be a root, which are ranks 0 to {most - 1}"
            for root in sorted(self.roots or ())
            if not 0 <= root < most
        )


def request_of(spec: GroupSpec | GroupRequest, programs: Iterable[ServingSpec]) -> GroupRequest:
    """What a group asks of these programs."""
    known = tuple(programs)
    return GroupRequest(
        spec.ranks,
        sync=spec.sync,
        collectives=spec.collectives,
        memories=spec.memories,
        possible_roots=possible_roots(known),
        barriers=bool(spec.memories) and not any(program.own_state for program in known),
    )


def memory_needed(spec: GroupSpec, programs: Collection[ServingSpec]) -> int:
    """The bytes of memory that each rank has to offer before the group can be placed, as switches write results there;
    0 if they do not, or the request has it."""
    if spec.memories or not programs or not all(program.channel_memory for program in programs):
        return 0
    request = request_of(replace(spec, memories=(Memory(0, 0, 0),) * len(spec.ranks)), programs)
    return len(request.channels()) * max(program.channel_memory for program in programs)


@dataclass(frozen=True)
class RankEnd:
    """A rank's end of a channel: its own QP, and the endpoint that it sends to; or the first of several in a row. Where
    the last rank has a server (``spec.has_server``), the others send to its host, and it sends to rank 0's."""

    qp: int
    peer: Peer
    pairs: int = field(default=1, repr=False, metadata={"later": True})
    """How many QPs there are in a row, at both ends."""


@dataclass(frozen=True)
class Channel:
    """A queue pair at every rank and a context at every node, for patterns that follow each other in one PSN space."""

    serves: Serves
    ends: tuple[RankEnd, ...]
    """The ranks' ends, in order of rank."""
    contexts: Mapping[NodeKey, GroupContext] = field(repr=False)

    @property
    def key(self) -> ChannelKey:
        """The name of the channel in CommLib: its first pattern."""
        return self.serves[0]


_CARRIED_BY = {
    Collective.BARRIER: Collective.ALLREDUCE,
    Collective.REDUCE_SCATTER: Collective.REDUCE,
    Collective.ALLGATHER: Collective.BROADCAST,
}


@dataclass(frozen=True)
class PortAddress:
    """A second address of a node's switch, for the edges at one of its ports."""

    switch: str
    port: int
    address: int


@dataclass(frozen=True)
class PlacedGroup:
    """A group with its tree, addresses and channels."""

    request: GroupRequest
    tree: IncTree
    addresses: Mapping[str, int]
    """The addresses of the tree's switches."""
    channels: tuple[Channel, ...]
    port_addresses: tuple[PortAddress, ...] = field(default=(), metadata={"later": True})
    """Second addresses of switches that edges reach over different paths through the same switch: one address has one
    path there."""
    ring: Ring | None = field(default=None, repr=False, metadata={"later": True})
    """The queue pairs of a ring of its hosts, on which calls run that get no slots, if it shares them by locks."""

    def address(self, switch: str, port: int | None) -> int:
        """The address that the far end of an edge at a port of a node's switch sends to."""
        own = (each.address for each in self.port_addresses if (each.switch, each.port) == (switch, port))
        return next(own, self.addresses[switch])

    def channel(self, collective: Collective, root: int = 0) -> Channel:
        """The channel of a collective; for a phase of ReduceScatter or AllGather that of its Reduce or Broadcast.

        Raises ``InputError`` when the group was not made for it.
        """
        pattern = (_CARRIED_BY.get(collective, collective), root)
        if pattern[0] is Collective.ALLREDUCE:
            pattern = (pattern[0], 0)
        for channel in self.channels:
            if pattern in channel.serves:
                return channel
        raise InputError(f"the group is not placed for {collective} with root {root}")

    @property
    def number(self) -> int:
        """The first of ``numbers``."""
        return min(self.numbers)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of trees whose addresses it has: more than one if it has more than ``ADDRESSES``."""
        own = (*self.addresses.values(), *(each.address for each in self.port_addresses))
        return frozenset(each >> 32 & 0xFFFF if is_ipv6(each) else each >> 8 & 0xFF for each in own)

    @property
    def contexts(self) -> Iterator[tuple[NodeKey, GroupContext]]:
        """All contexts of the group. Contexts of one switch are in the order in which they were made."""
        return (pair for channel in self.channels for pair in channel.contexts.items())

    @property
    def switches(self) -> tuple[str, ...]:
        """The switches with entries for it: nodes, then those that its edges only pass through."""
        nodes = dict.fromkeys(node.key.switch for node in self.tree.nodes)
        passed = dict.fromkeys(name for node in self.tree.nodes for e in node.edges for name in e.path[1:-1])
        return tuple(nodes | passed)

    @property
    def links(self) -> frozenset[frozenset[str]]:
        """The links that it runs over, by their ends."""
        return self.tree.links

    def contexts_on(self, switch: str) -> list[GroupContext]:
        """The contexts of the group on one switch."""
        return [context for key, context in self.contexts if key.switch == switch]


@dataclass(frozen=True)
class PlacedTrees:
    """A group on its trees: on one, or on several, each of which carries a part of every call's data."""

    parts: tuple[PlacedGroup, ...]
    """The group on each of them; the first one carries most."""
    rates: tuple[float, ...] = ()
    """For several trees: bit/s of each rank over each of them, with headers. Calls are divided in proportion to the
    rates."""

    @property
    def first(self) -> PlacedGroup:
        """The group on its first tree, for properties that all trees share."""
        return self.parts[0]

    @property
    def trees(self) -> tuple[IncTree, ...]:
        """The trees of all parts, in their order."""
        return tuple(part.tree for part in self.parts)

    @property
    def contexts(self) -> Iterator[tuple[NodeKey, GroupContext]]:
        """The contexts of all trees."""
        return (pair for part in self.parts for pair in part.contexts)

    @property
    def switches(self) -> tuple[str, ...]:
        """The switches with entries for it."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.switches))

    @property
    def links(self) -> frozenset[frozenset[str]]:
        """The links that its trees run over, by their ends."""
        return frozenset().union(*(part.links for part in self.parts))

    def contexts_on(self, switch: str) -> list[GroupContext]:
        """The contexts of the group on one switch."""
        return [context for part in self.parts for context in part.contexts_on(switch)]
