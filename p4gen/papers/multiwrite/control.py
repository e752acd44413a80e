"""The table entries of MultiWrite's programs: contexts, which are sources of a group, and where their writes go.

Each edge of a switch has a number, from 1, and a port. For each context it has a reliable connection of its own, whose
PSNs begin with the context's first PSN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from p4gen.errors import InputError
from p4gen.groups import addresses
from p4gen.groups.entrances import entrances, port_problems
from p4gen.groups.family import GroupEntries, context_holds
from p4gen.groups.group import Edge, Endpoint, GroupContext, Memory, SwitchConfig
from p4gen.host.collectives.plan import ChannelKey
from p4gen.host.transport.nicinfo import NicNeeds
from p4gen.model.entries import Action, CloneSession, Entry, Exact, MulticastGroup, Replica
from p4gen.papers.multiwrite.headers import mtu
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary.message import Collective

ALL_EDGES: Final = 1
"""The multicast group of all edges of programs that prune copies. With a group for each set of edges, a group's number
is the set itself."""
_LAST_ADDRESS: Final = 1 << 64
GROUP_KEY: Final = 0x00C0_FFEE
"""The key in the writes of sources. Which group they are of, their connection says."""


@dataclass(frozen=True)
class Window:
    """The memory of a destination that a source writes to."""

    base: int
    rkey: int
    slot_shift: int = 0
    """With ``place: append``, and of results, a slot has 2^slot_shift bytes."""
    ring: int = 1
    """With ``place: append``, the window has this many slots, a power of two."""


@dataclass(frozen=True)
class WriteEdge:
    """An edge as a context's writes see it."""

    edge: int
    """The number of the edge at this switch."""
    local: Endpoint
    remote: Endpoint
    reach: int = 0
    """The ranks behind it, as a bitmap; 0 of the edge toward the source."""
    window: Window | None = None
    """The destination's window, if a destination is at the other end; None for a switch."""
    udp_src_port: int = 49152
    more_ports: tuple[int, ...] = ()
    """Where several paths lead to it: the ports by which its packets come in, beside its own."""


@dataclass(frozen=True)
class WriteContext:
    """A source of a group at one switch."""

    context: int
    """Unique on the switch."""
    rank: int
    """The source's."""
    edges: tuple[WriteEdge, ...]
    source: int
    """The number of the edge toward the source."""
    rkey: int
    """The key in the source's writes: that of its group."""
    window_bytes: int
    """The size of the group's windows; offsets are within it."""
    epoch: int = 1
    first_psn: int = 0
    first_hop: bool = True
    """Whether the source itself, not a switch, is at the other end of that edge."""
    group: int = 0
    """The number of the group, in the MWETH of wide bitmaps."""
    results: Window | None = None
    """Where sums go at the source, if the program combines and the source is a neighbour: a ring of N slots."""

    @property
    def toward(self) -> WriteEdge:
        """The edge toward the source. Raises ``InputError`` if there is none of that number."""
        for edge in self.edges:
            if edge.edge == self.source:
                return edge
        raise InputError(f"context {self.context}: there is no edge {self.source}, which is to lead to the source")


def configuration(
    spec: MultiwriteSpec,
    contexts: Sequence[WriteContext],
    ports: Mapping[int, int],
    gateways: Mapping[int, int] | None = None,
) -> SwitchConfig:
    """What a switch must hold to serve contexts. ``ports`` are those of its edges, by their numbers; ``gateways`` more
    addresses that it answers ARP for.

    Raises ``InputError``, naming every context that the program cannot serve, and why.
    """
    found = list(problems(spec, contexts, ports))
    if found:
        raise InputError(*found)
    ends = [edge.local for context in contexts for edge in context.edges]
    macs = {end.ip: end.mac for end in ends}
    entries = [*addresses.own(spec, macs), *addresses.neighbours({**(gateways or {}), **macs})]
    for context in contexts:
        entries += _entries(spec, context, ports)
    sessions = tuple(_sessions(spec, ports)) if spec.holds else ()
    return SwitchConfig(tuple(entries), tuple(_copies(spec, ports)), sessions)


def _sessions(spec: MultiwriteSpec, ports: Mapping[int, int]) -> Iterator[CloneSession]:
    """One for the answers to each port, and one for cursors, which go round."""
    arch = spec.architecture
    yield from (CloneSession(arch.port_session(port), (Replica(port),)) for port in sorted(set(ports.values())))
    yield CloneSession(arch.other_session, (Replica(0),))


def problems(spec: MultiwriteSpec, contexts: Sequence[WriteContext], ports: Mapping[int, int]) -> Iterator[str]:
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
        ips = {end.ip for edge in context.edges for end in (edge.local, edge.remote)}
        yield from (f"{at}: {problem}" for problem in addresses.problems(spec, ips))
        if context.window_bytes < spec.payload:
            yield f"{at}: a window of {context.window_bytes} bytes has no room for a packet's {spec.payload}"
        yield from (f"{at}: {problem}" for problem in _edge_problems(spec, context, ports))
        if spec.combine and context.first_hop and context.results is None:
            yield f"{at}: where its source wants sums is not known"
        if context.results is not None:
            yield from (f"{at}: results: {problem}" for problem in _result_problems(spec, context.results))
        for end in (edge.local for edge in context.edges):
            if (end.ip, end.qp) in taken:
                yield f"{at}: QP {end.qp:#x} of {end.ip:#010x} has another connection"
            taken.add((end.ip, end.qp))


def _edge_problems(spec: MultiwriteSpec, context: WriteContext, ports: Mapping[int, int]) -> Iterator[str]:
    numbers = [edge.edge for edge in context.edges]
    if len(set(numbers)) < len(numbers):
        yield "two of its edges have the same number"
    if context.source not in numbers:
        yield f"there is no edge {context.source}, which is to lead to the source"
    behind = 1 << context.rank
    for edge in context.edges:
        if not 1 <= edge.edge <= spec.edges:
            yield f"edge {edge.edge}: the program has {spec.edges}, numbered from 1"
        if edge.edge in ports:
            found = port_problems(spec, (ports[edge.edge], *edge.more_ports))
            yield from (f"edge {edge.edge}: {problem}" for problem in found)
        else:
            yield f"edge {edge.edge} has no port"
        if edge.edge == context.source:
            if edge.reach:
                yield f"edge {edge.edge} leads to the source, and to destinations"
            continue
        if edge.reach >> spec.receivers:
            yield f"edge {edge.edge}: there are ranks 0 to {spec.receivers - 1} only"
        if edge.reach & behind:  # or a destination would get two copies, or the source its own
            yield f"edge {edge.edge}: ranks {edge.reach & behind:#x} are behind another edge, or the source"
        behind |= edge.reach
        if edge.window is not None:
            yield from _window_problems(spec, context, edge, edge.window)


def _window_problems(spec: MultiwriteSpec, context: WriteContext, edge: WriteEdge, window: Window) -> Iterator[str]:
    at = f"edge {edge.edge}"
    if edge.reach.bit_count() != 1:
        yield f"{at}: it leads to a destination, which is one rank, not {edge.reach:#x}"
    size = context.window_bytes
    if spec.appends:
        if window.ring.bit_count() != 1 or window.ring > 1 << 23:
            yield f"{at}: a ring of {window.ring} slots is no power of two up to 2^23"
        if 1 << window.slot_shift < spec.payload:
            yield f"{at}: a slot of {1 << window.slot_shift} bytes has no room for a packet's {spec.payload}"
        size = window.ring << window.slot_shift
    if window.base + size > _LAST_ADDRESS:
        yield f"{at}: the window goes beyond the last address"


def _result_problems(spec: MultiwriteSpec, window: Window) -> Iterator[str]:
    if spec.combine is None:
        yield "the program has no sums"
    if 1 << window.slot_shift < spec.payload:
        yield f"a slot of {1 << window.slot_shift} bytes has no room for a packet's {spec.payload}"
    if window.base + (spec.slots << window.slot_shift) > _LAST_ADDRESS:
        yield "the window goes beyond the last address"


def _entries(spec: MultiwriteSpec, context: WriteContext, ports: Mapping[int, int]) -> Iterator[Entry]:
    key = {"context": Exact(context.context)}
    state = {
        "epoch": context.epoch,
        "first_psn": context.first_psn,
        "ring": context.context * spec.slots,
        "ring_mask": spec.slots - 1,
        "rank": context.rank,
        "port": ports[context.source],
        "source_edge": context.source,
        "first_hop": int(context.first_hop),
        "rkey": context.rkey,
        "last_offset": context.window_bytes - spec.payload,
    }
    if spec.wide:
        state["group_number"] = context.group
    if spec.combine:
        state["edge_index"] = edge_index(spec, context.context, context.source)
    yield Entry("contexts", key, Action("set_context", state))
    if context.results is not None:
        place = {name: getattr(context.results, name) for name in ("base", "rkey", "slot_shift")}
        yield Entry("results", key, Action("place", place))
    for edge in context.edges:
        yield _endpoint(spec, context, edge, ports[edge.edge])
        yield from entrances(spec, edge.local, (ports[edge.edge], *edge.more_ports))
        both = {**key, "edge": Exact(edge.edge)}
        yield Entry("translate_header.edges", both, _addressed(spec, edge))
        if not edge.reach:
            continue
        yield Entry(f"reach_ports.edge_{edge.edge}.reach", key, Action("set_reach", {"mask": edge.reach}))
        if edge.window is None:
            yield Entry("subtrees", both, Action("keep", {"mask": edge.reach}))
        else:
            yield Entry("windows", both, _placed(spec, edge.window))


def edge_index(spec: MultiwriteSpec, context: int, edge: int) -> int:
    """Where a switch keeps the timer of an edge."""
    return context * spec.edges + edge - 1


def _endpoint(spec: MultiwriteSpec, context: WriteContext, edge: WriteEdge, port: int) -> Entry:
    key = {**addresses.at(spec, edge.local.ip), "hdr.bth.dest_qp": Exact(edge.local.qp)}
    arguments = {
        "context": context.context,
        "edge": edge.edge,
        "edge_bit": 1 << (edge.edge - 1),
        "remote_address": addresses.address(spec, edge.remote.ip),
        "source": int(edge.edge == context.source),
    }
    if spec.holds:
        arguments |= {"index": edge_index(spec, context.context, edge.edge), "port": port}
    return Entry("endpoints", key, Action("set_edge", arguments))


def _addressed(spec: MultiwriteSpec, edge: WriteEdge) -> Action:
    return Action(
        "set_endpoints",
        {
            "src_mac": edge.local.mac,
            "dst_mac": edge.remote.mac,
            "src_address": addresses.address(spec, edge.local.ip),
            "dst_address": addresses.address(spec, edge.remote.ip),
            "udp_src_port": edge.udp_src_port,
            "dest_qp": edge.remote.qp,
        },
    )


def _placed(spec: MultiwriteSpec, window: Window) -> Action:
    ring = {"slot_mask": window.ring - 1, "slot_shift": window.slot_shift} if spec.appends else {}
    return Action("place", {"base": window.base, "rkey": window.rkey, **ring})


def _copies(spec: MultiwriteSpec, ports: Mapping[int, int]) -> Iterator[MulticastGroup]:
    """One group of all edges, or one for each set of them, whose number has a bit for each."""
    edges = sorted(ports)
    if spec.prunes:
        yield MulticastGroup(ALL_EDGES, tuple(Replica(ports[edge], edge) for edge in edges))
        return
    for chosen in range(1, 1 << len(edges)):
        of_set = [edge for i, edge in enumerate(edges) if chosen >> i & 1]
        number = sum(1 << (edge - 1) for edge in of_set)
        yield MulticastGroup(number, tuple(Replica(ports[edge], edge) for edge in of_set))


# --- groups of the manager: a context for each source, which is placed like EPIC's Broadcasts; the group's IncTree says
# which ranks are behind each edge ---


def _configuration(spec: MultiwriteSpec, groups: Sequence[GroupContext], gateways: Mapping[int, int]) -> SwitchConfig:
    if not groups:
        return SwitchConfig(tuple(addresses.neighbours(gateways)), (), ())
    ports = {1 + number: spec.architecture.front_port(number) for number in range(spec.edges)}
    return configuration(spec, [_context(spec, group) for group in groups], ports, gateways)


def _context(spec: MultiwriteSpec, group: GroupContext) -> WriteContext:
    (pattern,) = group.patterns
    assert pattern.toward is not None
    toward = group.edges[pattern.toward]
    memories = [edge.memory for edge in group.edges if edge.memory is not None]
    ranks = sum(edge.ranks for edge in group.edges).bit_length()
    edges = tuple(
        WriteEdge(
            _number(spec, edge),
            edge.local,
            edge.remote,
            0 if i == pattern.toward else edge.ranks,
            None if i == pattern.toward or edge.memory is None else _window(spec, edge.memory, pattern.root, ranks),
            edge.udp_src_port,
            edge.more_ports,
        )
        for i, edge in enumerate(group.edges)
    )
    # The windows of a group are equally large; a switch without hosts places nothing, so any size will do.
    return WriteContext(
        group.context,
        pattern.root,
        edges,
        edges[pattern.toward].edge,
        GROUP_KEY,
        min((memory.size for memory in memories), default=1 << 48) - spec.sum_bytes,
        group.epoch,
        group.first_psn,
        toward.first_hop,
        results=_results(spec, toward.memory) if spec.combine and toward.memory is not None else None,
    )


def _number(spec: MultiwriteSpec, edge: Edge) -> int:
    """The number of an edge at its switch: each has a port."""
    return 1 + spec.architecture.front_number(edge.port)


def _window(spec: MultiwriteSpec, memory: Memory, source: int, ranks: int) -> Window:
    """A destination's memory as a source's writes see it: all of it, or with ``append`` a part of it for each source,
    which is a ring."""
    if not spec.appends:
        return Window(memory.address, memory.rkey)
    shift, area = (spec.payload - 1).bit_length(), (memory.size - spec.sum_bytes) // ranks
    slots = max(1, 1 << (area >> shift).bit_length() >> 1)
    return Window(memory.address + source * area, memory.rkey, shift, slots)


def _results(spec: MultiwriteSpec, memory: Memory) -> Window:
    """The end of a source's memory, where sums go."""
    return Window(memory.address + memory.size - spec.sum_bytes, memory.rkey, (spec.payload - 1).bit_length())


def _problems(spec: MultiwriteSpec, group: GroupContext) -> Iterator[str]:
    if len(group.patterns) != 1 or group.patterns[0].collective is not Collective.BROADCAST:
        yield "a context of MultiWrite is one source, whose writes go the way of a Broadcast"
        return
    for i, edge in enumerate(group.edges):
        number = spec.architecture.front_number(edge.port)
        if number >= spec.edges:
            yield f"edge {edge.edge_id} is on port {number}; the program has {spec.edges} edges, a port each"
        if edge.first_hop and i != group.patterns[0].toward and edge.memory is None:
            yield f"edge {edge.edge_id}: the memory of the rank there is not known"


def _refusals(spec: MultiwriteSpec, channels: Sequence[Sequence[ChannelKey]]) -> Iterator[str]:
    patterns = [pattern for serves in channels for pattern in serves]
    if any(collective is not Collective.BROADCAST for collective, _ in patterns):
        yield f"{spec.program} reduces nothing: its groups have a Broadcast from each rank"
    if len(patterns) > spec.receivers:
        yield f"{len(patterns)} ranks; bitmaps of {spec.program} have {spec.receivers} bits"


def _ticked(spec: MultiwriteSpec, group: GroupContext, edge: Edge) -> bool:
    """Edges toward destinations have timers, and if the program combines also the one toward the source."""
    return bool(spec.combine) or group.edges.index(edge) != group.patterns[0].toward


def _last_edge_id(spec: MultiwriteSpec) -> int:
    return spec.contexts * spec.edges


def _needs(spec: MultiwriteSpec) -> NicNeeds:
    return NicNeeds(mtu(spec), outstanding=spec.slots)


FACET: GroupEntries[MultiwriteSpec] = GroupEntries(
    configuration=_configuration,
    last_edge_id=_last_edge_id,
    holds=context_holds,
    refusals=_refusals,
    needs=_needs,
    ticked=_ticked,
    problems=_problems,
)
