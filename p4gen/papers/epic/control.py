"""The table entries of EPIC's programs for groups: contexts, patterns, flows, edges, multicast groups, clone sessions.

The tables are those of the generated programs; docs/modes.md explains each entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, summarize_address_range
from itertools import groupby
from typing import Final

from p4gen.groups import addresses
from p4gen.groups.entrances import entrances
from p4gen.groups.family import GroupEntries
from p4gen.groups.group import Edge, GroupContext, Pattern, SwitchConfig
from p4gen.groups.ranks import recovery_of
from p4gen.host.collectives.plan import ChannelKey
from p4gen.host.transport.nicinfo import NicNeeds
from p4gen.model.entries import Action, CloneSession, Entry, Exact, Match, MulticastGroup, Replica, Ternary
from p4gen.papers.epic.capabilities import lack
from p4gen.papers.epic.codes import Traffic
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.epic.tofino import folding, static
from p4gen.papers.epic.tofino.iii import KEPT, cursor_session
from p4gen.papers.epic.words import code as code_word
from p4gen.rocev2.psn import PSN_MASK
from p4gen.vocabulary.message import MAX_PACKETS, MESSAGE, ROOTS, Collective, Lease

_DATA, _CONTROL, _ANSWER, _NOTIFICATION, _TICK, _CURSOR, _CHECKED, _COUNTED = 1, 2, 3, 4, 6, 7, 8, 9
"""The program's ``kind_t``."""
_UP: Final = {Traffic.UP_DATA: (_DATA, _CONTROL), Traffic.UP_ANSWER: (_ANSWER, _NOTIFICATION)}
_DOWN: Final = {Traffic.DOWN_DATA: (_DATA, _CONTROL), Traffic.DOWN_ANSWER: (_ANSWER, _NOTIFICATION)}
ALL: Final = 0xFFFFFFFF
NOTHING: Final[Mapping[str, int]] = {}
SYMMETRIC: Final = (Collective.ALLREDUCE, Collective.BARRIER)
"""All ranks send and receive."""
MOST_EDGE_IDS: Final = 65535
"""If no register has a word for each edge, an id is only a number in a table."""


def _configuration(spec: EpicSpec, groups: Sequence[GroupContext], gateways: Mapping[int, int]) -> SwitchConfig:
    macs = {edge.local.ip: edge.local.mac for group in groups for edge in group.edges}
    entries = [*addresses.own(spec, macs), *addresses.neighbours(macs | dict(gateways))]
    trees: list[MulticastGroup] = []
    for group in groups:
        node = _Node(spec, group)
        entries += node.entries()
        trees += node.multicast_groups()
    sessions = tuple(_clone_sessions(spec)) if groups and spec.mode.augmented else ()
    return SwitchConfig(tuple(entries), tuple(trees), sessions)


def leases(group: GroupContext) -> tuple[Pattern, ...]:
    """The patterns of calls that acquire and release the block of a group, which go where an AllReduce does."""
    if group.block is None:
        return ()
    toward = next(each.toward for each in group.patterns if each.collective is Collective.ALLREDUCE)
    return tuple(Pattern(Collective.BARRIER, lease, toward) for lease in Lease)


def codes_of(spec: EpicSpec, pattern: Pattern) -> tuple[int, ...]:
    """The values of the program's ``meta.invocation.code`` that mean a pattern."""
    word = code_word(spec)
    return tuple(word.pack(collective=each.code, root=root) for each in pattern.announced_as for root in pattern.roots)


def _keys(spec: EpicSpec, codes: Iterable[int]) -> Iterator[Match]:
    """Keys that match these codes. A program with many roots has a key for each block of codes of which only the last
    bits differ, as IP networks have."""
    if spec.roots == ROOTS:
        yield from map(Exact, codes)
        return
    mask = (1 << code_word(spec).bits) - 1
    for _, pairs in groupby(enumerate(sorted(codes)), lambda pair: pair[1] - pair[0]):
        row = [code for _, code in pairs]
        for block in summarize_address_range(IPv4Address(row[0]), IPv4Address(row[-1])):
            yield Ternary(int(block.network_address), int(block.netmask) & mask)


class _Node:
    """The entries of one context, and the sets of edges that they send to."""

    def __init__(self, spec: EpicSpec, group: GroupContext) -> None:
        self._spec = spec
        self._group = group
        self._outputs: set[int] = set()

    def entries(self) -> Iterator[Entry]:
        spec, group = self._spec, self._group
        context = {"context": Exact(group.context)}
        state = {"epoch": group.epoch}
        if spec.mode.augmented:
            state["first_psn"] = group.first_psn
        if static(spec):
            flows_of = self._static_iii if spec.mode is Mode.III else self._static_ii
            for bit, edge in enumerate(group.edges):
                yield from flows_of(1 << bit, edge)
                yield self._endpoint(edge, 1 << bit)
                yield from entrances(spec, edge.local, edge.entrances)
                yield _edge_entry(spec, edge)
            return
        yield Entry("contexts", context, Action("set_context", state))
        flows = self._mode_iii if spec.mode.augmented else self._mode_ii
        if group.block is not None:
            at_root = int(leases(group)[0].toward is None)
            yield Entry("shares", context, Action("share", {"lock": group.block, "root": at_root}))
            yield Entry("holders", context, Action("set_current", {"epoch": group.epoch}))
        for number, pattern in enumerate((*group.patterns, *leases(group)), start=1):
            codes = codes_of(spec, pattern)
            if spec.mode.augmented and (pattern.collective is Collective.ALLREDUCE or group.patterns == (pattern,)):
                codes += (
                    0,
                )  # packets before any announcement are answered as well; in an AllReduce all edges may send
            choice = Action("set_pattern", {"pattern": number, "toward": group.toward(pattern)})
            for code in _keys(spec, codes):
                yield Entry("patterns", {**context, "code": code}, choice, int(isinstance(code, Ternary)))
            for traffic, action in flows(pattern):
                key = {**context, "pattern": Exact(number), "traffic": Exact(traffic)}
                yield Entry("flows", key, action)
        for bit, edge in enumerate(group.edges):
            yield self._endpoint(edge, 1 << bit)
            yield from entrances(spec, edge.local, edge.entrances)
            yield _edge_entry(spec, edge, _offsets(group, edge) if spec.mode.stores else {})
            if spec.uses_memory and edge.memory is not None:
                place = Action("place", {"base": edge.memory.address, "rkey": edge.memory.rkey})
                yield Entry("memories", {"edge": Exact(edge.edge_id)}, place)

    def multicast_groups(self) -> Iterator[MulticastGroup]:
        """Those that the entries made so far refer to."""
        for bits in sorted(self._outputs, key=self._group_id):
            edges = [edge for bit, edge in enumerate(self._group.edges) if bits >> bit & 1]
            yield MulticastGroup(self._group_id(bits), tuple(Replica(edge.port, edge.edge_id) for edge in edges))
            if folding.patched(self._spec):
                again = tuple(Replica(folding.port_back(self._spec, edge.port), edge.edge_id) for edge in edges)
                yield MulticastGroup(self._group_id(bits) + folding.recirculating(self._spec), again)

    def _mode_ii(self, pattern: Pattern) -> Iterator[tuple[Traffic, Action]]:
        """EPIC §4.3 and §A; Reduce's ACKs are broadcast to the senders, Broadcast's are aggregated."""
        group = self._group
        toward, away = group.toward(pattern), group.away(pattern)
        at_root = pattern.toward is None
        if group.has_up(pattern):
            arguments = {
                "base": group.base,
                "mask": group.slots - 1,
                "source_mask": away,
                "out_group": self._output(away if at_root else toward),
                "alone": int(at_root),
            }
            yield Traffic.UP_DATA, Action("aggregate", arguments)
        if group.has_down(pattern):
            arguments = {"out_group": self._output(away)}
            if pattern.collective is Collective.BROADCAST and group.ranges() and not static(self._spec):
                # Slots in which other patterns aggregate.
                arguments |= {"base": group.base, "mask": group.slots - 1}
                yield Traffic.DOWN_DATA, Action("pass_on", arguments)
            else:
                yield Traffic.DOWN_DATA, Action("replicate", arguments)
        if pattern.collective in SYMMETRIC:
            yield Traffic.UP_ANSWER, Action("reflect")
        elif pattern.collective is Collective.REDUCE and away:
            yield Traffic.DOWN_ANSWER, Action("replicate", {"out_group": self._output(away)})
        elif away:
            combine = {"out_mask": away, "out_group": self._output(toward)}
            yield Traffic.UP_ANSWER, Action("combine", combine)

    def _static_ii(self, bit: int, edge: Edge) -> Iterator[Entry]:
        """The group's only pattern, as entries for an edge; what a control message announces is part of their keys."""
        group, pattern = self._group, self._group.patterns[0]
        flows = dict(self._mode_ii(pattern))
        for traffic, kinds in (_DOWN if bit == group.toward(pattern) else _UP).items():
            if traffic in flows:
                action = flows[traffic]
                yield from self._of_kinds(
                    edge, {kind: self._copied(kind, self._static(kind, action)) for kind in kinds}
                )

    def _static(self, kind: int, action: Action) -> Action:
        """An action of ``_mode_ii`` as one of static groups."""
        arguments = {name: value for name, value in action.args.items() if name != "mask"}
        begins = kind == _CONTROL and self._group.patterns[0].collective is Collective.BROADCAST
        match action.name:
            case "aggregate":
                return Action("aggregate", {**arguments, "epoch": self._group.epoch})
            case "combine" if kind == _NOTIFICATION:
                return Action("replicate", {"out_group": arguments["out_group"]})
            case "combine":
                return Action("combine", {**arguments, **self._acked()})
            case "replicate" if begins:
                return Action("begin", {**arguments, **self._acked()})
        return action

    def _acked(self) -> dict[str, int]:
        """What words a group has for what its edges have acknowledged."""
        return {"context": self._group.context, "epoch": self._group.epoch}

    def _copied(self, kind: int, action: Action) -> Action:
        """The same action; copies of data that recirculate for their ICRC have multicast groups of their own."""
        if kind != _DATA or not folding.patched(self._spec):
            return action
        group = action.args["out_group"] + folding.recirculating(self._spec)
        return Action(action.name, {**action.args, "out_group": group})

    def _static_iii(self, bit: int, edge: Edge) -> Iterator[Entry]:
        """The same of Mode III. What is about an edge's output is about the pipe that it is an output of."""
        group, pattern = self._group, self._group.patterns[0]
        flows = dict(self._mode_iii(pattern))
        data, answers = _DOWN if bit == group.toward(pattern) else _UP
        accepted, acknowledged = flows.get(data), flows.get(answers)
        if accepted is not None:
            named = {name: accepted.args[name] for name in ("base", "source_mask", "out_group")}
            action = Action("accept", {**named, **self._pipe(accepted), "outside": -group.slots << 8 & ALL})
            yield from self._of_kinds(edge, {_DATA: action, _CONTROL: action})
        if acknowledged is not None:
            named = {name: acknowledged.args[name] for name in ("base", "source_mask", "out_mask")}
            action = Action("acknowledge", {**named, **self._pipe(acknowledged)})
            own = Action("acknowledge", {**action.args, "out_mask": bit})
            senders = acknowledged.args["answer_group"]
            relay = Action("replicate", {"out_group": senders}) if senders else Action("reflect")
            kinds = dict.fromkeys((_ANSWER, _CHECKED, _COUNTED, _CURSOR), action)
            yield from self._of_kinds(edge, {**kinds, _TICK: own, _NOTIFICATION: relay})

    def _pipe(self, action: Action) -> dict[str, int]:
        """What words of state a pipe has, and what they count from."""
        group = self._group
        return {
            "pipe": 2 * group.context + action.args["pipe"],
            "epoch": group.epoch,
            "origin": -group.first_psn << 8 & ALL,
        }

    def _of_kinds(self, edge: Edge, actions: Mapping[int, Action]) -> Iterator[Entry]:
        pattern = self._group.patterns[0]
        said = [self._announced(collective.code, pattern.root) for collective in pattern.announced_as]
        for kind, action in actions.items():
            for announced in said if kind == _CONTROL else [None]:
                key: dict[str, Match] = {"edge": Exact(edge.edge_id), "kind": Exact(kind)}
                yield Entry("flows", key if announced is None else {**key, "announced": announced}, action, 1)

    def _announced(self, collective: int, root: int) -> Ternary:
        """The immediate data of control messages of a collective, whatever number of packets they announce."""
        assert self._spec.numbers is not None
        said, wild = (
            MESSAGE.pack(collective=code, numbers=numbers, root=of, packets=packets)
            for code, numbers, of, packets in ((collective, self._spec.numbers.code, root, 0), (0, 0, 0, MAX_PACKETS))
        )
        return Ternary(said, ~wild & (1 << MESSAGE.bits) - 1)

    def _mode_iii(self, pattern: Pattern) -> Iterator[tuple[Traffic, Action]]:
        """EPIC §4.4: a pipe up (0), a pipe down (1), or both; the root's only pipe gives the result back. In Mode I
        nothing flows along with others, and a tick may find a result that has not been sent."""
        group = self._group
        toward, away = group.toward(pattern), group.away(pattern)
        one_way = int(pattern.collective not in SYMMETRIC)
        stores = self._spec.mode.stores
        sync = {} if stores else {"sync": one_way}

        def new(outputs: int) -> dict[str, int]:
            return {"result_group": self._output(outputs)} if stores else {}

        if group.has_up(pattern):
            outputs = toward or away
            pipe = {"base": group.base, "mask": group.slots - 1, "source_mask": away, "pipe": 0, **sync}
            yield Traffic.UP_DATA, Action("accept", {**pipe, "out_group": self._output(outputs)})
            answers = {"out_mask": outputs, "answer_group": self._output(away) if one_way else 0, **new(outputs)}
            yield Traffic.DOWN_ANSWER if toward else Traffic.UP_ANSWER, Action("acknowledge", {**pipe, **answers})
        if group.has_down(pattern):
            assert group.base_down is not None
            pipe = {"base": group.base_down, "mask": group.slots - 1, "source_mask": toward, "pipe": 1, **sync}
            yield Traffic.DOWN_DATA, Action("accept", {**pipe, "out_group": self._output(away)})
            answers = {"out_mask": away, "answer_group": self._output(toward) if one_way else 0, **new(away)}
            yield Traffic.UP_ANSWER, Action("acknowledge", {**pipe, **answers})

    def _output(self, bits: int) -> int:
        self._outputs.add(bits)
        return self._group_id(bits)

    def _group_id(self, bits: int) -> int:
        """The multicast group of a set of edges; one set has one number in all patterns.

        A context's numbers: 0 all edges, then each edge alone, then all but one.
        """
        count, fan_in = len(self._group.edges), self._spec.fan_in
        rest = self._group.source_mask & ~bits
        if not rest:
            index = 0
        elif bits & (bits - 1) == 0:
            index = bits.bit_length()
        else:
            assert rest & (rest - 1) == 0, f"{bits:#x} of {count} edges"
            index = fan_in + rest.bit_length()
        return 1 + self._group.context * (2 * fan_in + 1) + index

    def _endpoint(self, edge: Edge, bit: int) -> Entry:
        arguments = {
            "context": self._group.context,
            "edge": edge.edge_id,
            "edge_bit": bit,
            "remote_address": addresses.address(self._spec, edge.remote.ip),
        }
        if static(self._spec):
            del arguments["context"]
            arguments["mask"] = self._group.slots - 1
            if self._spec.mode is Mode.III:
                arguments["session"] = self._spec.architecture.port_session(edge.port)
        if self._spec.mode.augmented:
            arguments |= {"port": edge.port, "first_hop": int(edge.first_hop)}
        if self._spec.mode.stores:
            arguments |= {f"first_{way}": psn for way, psn in _offsets(self._group, edge).items()}
        key = {**addresses.at(self._spec, edge.local.ip), "hdr.bth.dest_qp": Exact(edge.local.qp)}
        return Entry("endpoints", key, Action("set_edge", arguments))


def _offsets(group: GroupContext, edge: Edge) -> dict[str, int]:
    """What the PSNs of an edge's two directions are ahead of the numbers of their packets."""
    return {
        "received": (edge.first_received - group.first_psn) & PSN_MASK,
        "sent": (edge.first_sent - group.first_psn) & PSN_MASK,
    }


def _edge_entry(spec: EpicSpec, edge: Edge, offsets: Mapping[str, int] = NOTHING) -> Entry:
    arguments = {
        **offsets,
        "src_mac": edge.local.mac,
        "dst_mac": edge.remote.mac,
        "src_address": addresses.address(spec, edge.local.ip),
        "dst_address": addresses.address(spec, edge.remote.ip),
        "udp_src_port": edge.udp_src_port,
        "dest_qp": edge.remote.qp,
        **({"port": edge.port} if folding.patched(spec) else {}),
    }
    if edge.to_pipeline is None:
        action = Action("set_endpoints", arguments)
    else:
        action = Action("set_internal", {**arguments, "to_pipe": edge.to_pipeline})
    return Entry("edges", {"edge": Exact(edge.edge_id)}, action)


def _clone_sessions(spec: EpicSpec) -> Iterator[CloneSession]:
    arch = spec.architecture
    if static(spec):
        for port in arch.front_ports(spec.ports):
            yield CloneSession(arch.port_session(port), (Replica(port),), KEPT)
        yield CloneSession(cursor_session(spec), (Replica(arch.recirculation_port),))
        return
    for port in range(spec.ports):
        yield CloneSession(spec.architecture.port_session(port), (Replica(port),))
    yield CloneSession(spec.architecture.other_session, (Replica(0),))  # of the retransmission cursor


def _problems(spec: EpicSpec, group: GroupContext) -> Iterator[str]:
    yield from _refusals(spec, [[(pattern.collective, pattern.root) for pattern in group.patterns]])
    yield from folding.problems_of_group(spec, group.edges)
    if spec.uses_memory:
        yield from (f"edge {edge.edge_id}: {why}" for edge in group.edges for why in _no_place(spec, edge))
    if spec.mode.augmented and group.base_down is None and any(map(group.has_down, group.patterns)):
        yield "it has no slots for DOWN traffic (base_down)"


def _no_place(spec: EpicSpec, edge: Edge) -> Iterator[str]:
    """Why results cannot be written to the rank at the other end of an edge, if there is one."""
    if edge.first_hop and edge.memory is None:
        yield "the memory of the rank there is not known (verb write)"
    elif edge.memory is not None:
        needed = spec.channel_memory
        if edge.memory.size < needed:
            yield f"the rank there offers {edge.memory.size:,} bytes; its results take {needed:,} (verb write)"
        if edge.memory.address + needed > 1 << 64:
            yield "the memory of the rank there goes beyond the last address"


def _refusals(spec: EpicSpec, channels: Sequence[Sequence[ChannelKey]]) -> Iterator[str]:
    if spec.mode.stores and any(len(serves) != 1 for serves in channels):
        yield "Mode I has a queue pair for each collective and root (sync subgroups)"
    if spec.locks and len(channels) > 1:
        yield "groups that share slots have one queue pair for all collectives: --sync refined, or AllReduce alone"
    if not static(spec):
        return
    if any(len(serves) != 1 for serves in channels):
        yield lack(spec, "patterns")
    collectives = {collective for serves in channels for collective, _ in serves}
    if spec.mode is Mode.II and Collective.BROADCAST in collectives and not spec.broadcasts:
        yield lack(spec, "broadcast")


def _refusals_of_hosts(spec: EpicSpec, channels: Sequence[Sequence[ChannelKey]]) -> Iterator[str]:
    """Includes what switches could serve, and CommLib cannot."""
    yield from _refusals(spec, channels)
    if spec.uses_memory and not spec.mode.stores and any(len(serves) != 1 for serves in channels):
        yield "with verb write CommLib has a queue pair, and a ring, for each collective and root (sync subgroups)"


def _needs(spec: EpicSpec) -> NicNeeds:
    return NicNeeds(
        spec.payload_bytes, spec.message, recovery=recovery_of(spec), outstanding=spec.window * spec.message
    )


def _holds(spec: EpicSpec, entries: Sequence[Entry], group: GroupContext) -> bool:
    return _epochs(_Node(spec, group).entries()).items() <= _epochs(entries).items()


def _epochs(entries: Iterable[Entry]) -> dict[tuple[str, tuple[tuple[str, Match], ...]], int]:
    """The epochs that entries give to state, by table and key."""
    found: dict[tuple[str, tuple[tuple[str, Match], ...]], int] = {}
    for entry in entries:
        if "epoch" in entry.action.args:
            key = ((name, m.value if isinstance(m, Exact) else m) for name, m in sorted(entry.match.items()))
            found[entry.table.rpartition(".")[2], tuple(key)] = entry.action.args["epoch"]
    return found


def _last_edge_id(spec: EpicSpec) -> int:
    indexed = spec.mode.augmented or spec.pipelines > 1 or spec.loss_recovery.in_order
    return spec.groups * spec.fan_in if indexed else MOST_EDGE_IDS


FACET: GroupEntries[EpicSpec] = GroupEntries(
    configuration=_configuration,
    problems=_problems,
    refusals=_refusals_of_hosts,
    needs=_needs,
    holds=_holds,
    last_edge_id=_last_edge_id,
    given_up="IncIngress.resend_timer.given_up",
)
