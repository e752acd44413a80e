"""The table entries of SCIN's programs: contexts, which are groups with masks, and their ranks' queue pairs.

A rank has an edge of each context, from 1, with a port and three reliable connections: one for arrivals and flags, one
that it is read over, one that it is written over; if elements have scales, these are read over a fourth one. All of a
context's PSNs begin with the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from p4gen.errors import InputError
from p4gen.groups import addresses
from p4gen.groups.entrances import entrances, port_problems
from p4gen.groups.family import GroupEntries, context_holds
from p4gen.groups.group import Edge, Endpoint, GroupContext, Memory, SwitchConfig
from p4gen.host.collectives.plan import ChannelKey
from p4gen.host.transport.nicinfo import NicNeeds
from p4gen.model.entries import Action, CloneSession, Entry, Exact, MulticastGroup, Replica
from p4gen.papers.scin.headers import FLAG
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary.message import Collective


class Role(IntEnum):
    """What a queue pair is for."""

    SYNC = 0
    READ = 1
    WRITE = 2
    SCALES = 3


def roles(spec: ScinSpec) -> tuple[Role, ...]:
    """The queue pairs that a rank has."""
    return tuple(Role)[: spec.queue_pairs]


@dataclass(frozen=True)
class Pattern:
    """Whose operands calls of a context read, and who gets their results: ranks as bitmaps."""

    sources: int
    destinations: int

    @property
    def participants(self) -> int:
        """All that arrive, and get a flag."""
        return self.sources | self.destinations


@dataclass(frozen=True)
class PullEdge:
    """A rank of a context. ``local`` and ``remote`` are the two ends of its connections, by ``Role``."""

    edge: int
    """From 1; bit ``edge - 1`` of masks."""
    port: int
    local: tuple[Endpoint, ...]
    remote: tuple[Endpoint, ...]
    flag_address: int
    """Where the rank polls: eight bytes."""
    flag_key: int
    udp_src_port: int = 49152
    more_ports: tuple[int, ...] = ()
    """Where several paths lead to it: the ports by which its packets come in, beside ``port``."""

    @property
    def entrances(self) -> tuple[int, ...]:
        """The ports by which its packets come in."""
        return (self.port, *self.more_ports)


@dataclass(frozen=True)
class PullContext:
    """A group at a switch: calls that read the operands of ``sources`` and write to ``destinations``."""

    context: int
    """Unique on the switch."""
    edges: tuple[PullEdge, ...]
    sources: int
    destinations: int
    epoch: int = 1
    first_psn: int = 0


def configuration(
    spec: ScinSpec, contexts: Sequence[PullContext], gateways: Mapping[int, int] | None = None
) -> SwitchConfig:
    """What a switch must hold to serve contexts. ``gateways`` are more addresses that it answers ARP for.

    Raises ``InputError``, naming every context that the program cannot serve, and why.
    """
    found = list(problems(spec, contexts))
    if found:
        raise InputError(*found)
    ends = [end for context in contexts for edge in context.edges for end in edge.local]
    macs = {end.ip: end.mac for end in ends}
    entries = [*addresses.own(spec, macs), *addresses.neighbours({**(gateways or {}), **macs})]
    groups: list[MulticastGroup] = []
    for context in contexts:
        entries += _entries(spec, context)
        groups += _copies(context)
    arch = spec.architecture
    sessions = (CloneSession(arch.other_session, (Replica(0),)),) if contexts else ()
    return SwitchConfig(tuple(entries), tuple(groups), sessions)


def problems(spec: ScinSpec, contexts: Sequence[PullContext]) -> Iterator[str]:
    """Why a program cannot serve these contexts together, a line each."""
    if len({context.context for context in contexts}) < len(contexts):
        yield "two contexts have the same number"
    taken: set[tuple[int, int]] = set()
    for context in contexts:
        at = f"context {context.context}"
        if not 0 <= context.context < spec.contexts:
            yield f"{at}: the program has {spec.contexts}, numbered from 0"
        if not 1 <= context.epoch <= 255:
            yield f"{at}: epoch {context.epoch} is not in 1 to 255"
        ips = {end.ip for edge in context.edges for end in (*edge.local, *edge.remote)}
        yield from (f"{at}: {problem}" for problem in addresses.problems(spec, ips))
        known = 0
        for edge in context.edges:
            if not 1 <= edge.edge <= spec.edges:
                yield f"{at}: edge {edge.edge}: the program has {spec.edges}, numbered from 1"
                continue
            if known >> (edge.edge - 1) & 1:
                yield f"{at}: two of its edges are edge {edge.edge}"
            known |= 1 << (edge.edge - 1)
            yield from (f"{at}: edge {edge.edge}: {problem}" for problem in port_problems(spec, edge.entrances))
            if len(edge.local) != spec.queue_pairs or len(edge.remote) != spec.queue_pairs:
                yield f"{at}: edge {edge.edge}: a rank has {spec.queue_pairs} queue pairs"
        unknown = (context.sources | context.destinations) & ~known
        if unknown:
            yield f"{at}: its masks name ranks {unknown:#x}, which have no edges"
        if bool(context.sources) != bool(context.destinations) or not known:
            yield f"{at}: a context has sources and destinations"
        for end in (end for edge in context.edges for end in edge.local):
            if (end.ip, end.qp) in taken:
                yield f"{at}: QP {end.qp:#x} of {end.ip:#010x} has another connection"
            taken.add((end.ip, end.qp))


def _entries(spec: ScinSpec, context: PullContext) -> Iterator[Entry]:
    state = {
        "epoch": context.epoch,
        "first_psn": context.first_psn,
        "slots": context.context * spec.slots,
        "sources": context.sources,
        "destinations": context.destinations,
        "read_group": _group(context, Role.READ),
        "write_group": _group(context, Role.WRITE),
        "flag_group": _group(context, Role.SYNC),
    }
    yield Entry("contexts", {"context": Exact(context.context)}, Action("set_context", state))
    for edge in context.edges:
        key = {"context": Exact(context.context), "edge": Exact(edge.edge)}
        flag = {"flag_address": edge.flag_address, "rkey": edge.flag_key}
        yield Entry("flags", key, Action("set_flag", flag))
        for role in roles(spec):
            near, far = edge.local[role], edge.remote[role]
            found = {
                "context": context.context,
                "edge": edge.edge,
                "edge_bit": 1 << (edge.edge - 1),
                "remote_address": addresses.address(spec, far.ip),
                "of": int(role),
            }
            at = {**addresses.at(spec, near.ip), "hdr.bth.dest_qp": Exact(near.qp)}
            yield Entry("endpoints", at, Action("set_edge", found))
            yield from entrances(spec, near, edge.entrances)
            addressed = {
                "src_mac": near.mac,
                "dst_mac": far.mac,
                "src_address": addresses.address(spec, near.ip),
                "dst_address": addresses.address(spec, far.ip),
                "udp_src_port": edge.udp_src_port,
                "dest_qp": far.qp,
            }
            yield Entry("edges", {**key, "role": Exact(int(role))}, Action("set_endpoints", addressed))


def _group(context: PullContext, role: Role) -> int:
    return 1 + 3 * context.context + role


def _copies(context: PullContext) -> Iterator[MulticastGroup]:
    """The ranks that may get READs, WRITEs and flags; egress drops what is not for all of them."""
    both = context.sources | context.destinations
    for role, mask in ((Role.SYNC, both), (Role.READ, context.sources), (Role.WRITE, context.destinations)):
        replicas = tuple(Replica(edge.port, edge.edge) for edge in context.edges if mask >> (edge.edge - 1) & 1)
        yield MulticastGroup(_group(context, role), replicas)


# --- groups of the manager: a context for each collective and root, whose IncTree is one switch ---


def pattern_of(key: ChannelKey, ranks: int) -> Pattern:
    """Whom a context of so many ranks reads and writes to, by its collective and root."""
    (collective, root), everybody = key, (1 << ranks) - 1
    if collective is Collective.REDUCE:
        return Pattern(everybody, 1 << root)
    return Pattern(1 << root if collective is Collective.BROADCAST else everybody, everybody)


def flag_offset(key: ChannelKey, ranks: int) -> int:
    """Where in a rank's offered memory the flag of a context is."""
    collective, root = key
    before = {Collective.ALLREDUCE: 0, Collective.REDUCE: 1, Collective.BROADCAST: 1 + ranks}
    return FLAG.size * (before[collective] + root)


def memory_size(ranks: int) -> int:
    """Bytes that a rank of a group has to offer: a flag for each context."""
    return FLAG.size * (1 + 2 * ranks)


def _configuration(spec: ScinSpec, groups: Sequence[GroupContext], gateways: Mapping[int, int]) -> SwitchConfig:
    return configuration(spec, [_context(spec, group) for group in groups], gateways)


def _context(spec: ScinSpec, group: GroupContext) -> PullContext:
    ranks = sum(edge.ranks for edge in group.edges).bit_length()
    (served,) = group.patterns
    key = served.collective, served.root
    pattern, offset = pattern_of(key, ranks), flag_offset(key, ranks)
    edges = tuple(_edge(spec, edge, edge.memory, offset) for edge in group.edges if edge.memory is not None)
    return PullContext(group.context, edges, pattern.sources, pattern.destinations, group.epoch, group.first_psn)


def _edge(spec: ScinSpec, edge: Edge, memory: Memory, offset: int) -> PullEdge:
    near, far = (tuple(replace(end, qp=end.qp + role) for role in roles(spec)) for end in (edge.local, edge.remote))
    number, address = edge.ranks.bit_length(), memory.address + offset
    return PullEdge(number, edge.port, near, far, address, memory.rkey, edge.udp_src_port, edge.more_ports)


def _problems(_: ScinSpec, group: GroupContext) -> Iterator[str]:
    if len(group.patterns) != 1:
        yield f"{len(group.patterns)} patterns; a context of SCIN has one"
    ranks = sum(edge.ranks for edge in group.edges).bit_length()
    for edge in group.edges:
        if not edge.first_hop:
            yield f"edge {edge.edge_id} leads to a switch; groups of SCIN are around one"
        elif edge.memory is None:
            yield f"edge {edge.edge_id}: the memory of the rank there is not known"
        elif edge.memory.size < memory_size(ranks):
            yield f"edge {edge.edge_id}: {edge.memory.size} bytes of memory; flags take {memory_size(ranks)}"


def _needs(spec: ScinSpec) -> NicNeeds:
    """Each wave is a READ, and with scales the last packet of what is written is longer."""
    return NicNeeds(spec.written_mtu if spec.wave == 1 else spec.payload, spec.wave, spec.scaled, reads=spec.waves)


FACET: GroupEntries[ScinSpec] = GroupEntries(
    configuration=_configuration,
    last_edge_id=lambda spec: spec.contexts * spec.edges,
    holds=context_holds,
    ticked=lambda _spec, group, edge: edge == group.edges[0],
    needs=_needs,
    problems=_problems,
)
