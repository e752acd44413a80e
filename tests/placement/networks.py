"""Random networks, and packets that follow the entries of all switches through one.

The walk knows the tables' meaning and nothing of trees: a value is the ranks whose data it holds, counted.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from p4gen.model.entries import Action, Exact, Lpm
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.plan.placement.network import Placement, contexts_needed
from p4gen.plan.placement.placed import Channel, GroupRequest
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec

Value = Counter[int]
CODES = {Collective.ALLREDUCE: 1, Collective.REDUCE: 2, Collective.BROADCAST: 3, Collective.BARRIER: 4}
"""Of the control message (docs/wire-format.md)."""


def spec_for(
    topology: TopologySpec, requests: list[GroupRequest], mode: Mode = Mode.II, pipelines: int = 1
) -> EpicSpec:
    """A program with as few ports and contexts as will do."""
    widest = max(len(links) for links in topology.ports.values())
    ports = -(-widest // pipelines) * pipelines
    contexts = max(1, contexts_needed(topology, requests, pipelines=pipelines, ports=ports))
    return EpicSpec.model_validate(
        {
            "mode": mode,
            "lanes": 8,
            "fan_in": 32,
            "groups": contexts,
            "pipelines": pipelines,
            "ports": ports,
            "message": 1,
            "window": 1,
        }
    )


@st.composite
def topologies(draw: st.DrawFn, max_switches: int = 8, max_hosts: int = 10) -> TopologySpec:
    """Connected switches in any shape, with cycles too; hosts anywhere on them."""
    switches = [f"s{i}" for i in range(draw(st.integers(1, max_switches)))]
    links = {(switches[draw(st.integers(0, i - 1))], switches[i]) for i in range(1, len(switches))}
    if len(switches) > 1:
        pairs = st.tuples(st.integers(0, len(switches) - 1), st.integers(0, len(switches) - 1))
        for a, b in draw(st.lists(pairs, max_size=4)):
            if a < b:
                links.add((switches[a], switches[b]))
    hosts = [f"h{i}" for i in range(draw(st.integers(1, max_hosts)))]
    cables = [*sorted(links), *((host, draw(st.sampled_from(switches))) for host in hosts)]
    root = draw(st.none() | st.sampled_from(switches))
    shuffled = draw(st.permutations(cables))
    return TopologySpec.model_validate(
        {"name": "random", "switches": switches, "hosts": hosts, "links": [list(c) for c in shuffled], "root": root}
    )


@dataclass(frozen=True)
class Packet:
    """On its way into a switch's pipeline."""

    switch: str
    pipeline: int
    src: int
    dst: int
    qp: int
    value: Value


class Fabric:
    """All switches' entries, looked up as packets come along."""

    def __init__(self, topology: TopologySpec, spec: EpicSpec, placement: Placement) -> None:
        self.topology = topology
        self.placement = placement
        self.ports_per_pipeline = spec.ports // spec.pipelines
        self.pipeline_of = {(placed.switch, placed.context): placed.pipeline for placed in placement.edges}
        self.host = {ip: host for host, ip in placement.ip.items()}
        self.name = {mac: node for node, mac in placement.mac.items()}
        self.tables: dict[str, dict[str, dict[tuple[int, ...], Action]]] = {}
        self.trees: dict[str, dict[int, list[tuple[int, int]]]] = {}
        for switch, config in placement.switches.items():
            tables = self.tables[switch] = {}
            for entry in config.entries:
                key = tuple(m.value for m in entry.match.values() if isinstance(m, Exact | Lpm))
                assert key not in tables.setdefault(entry.table, {}), f"{switch} {entry}"
                tables[entry.table][key] = entry.action
            self.trees[switch] = {g.group_id: [(r.port, r.rid) for r in g.replicas] for g in config.multicast_groups}

    def travel(self, node: str, port: int, mac: int, dst: int) -> set[tuple[str, int]]:
        """Where a packet sent out of ``port`` can end: at the host with that address, or at a switch that answers to
        it; and the port there. Follows every next hop that ECMP may choose."""
        todo, ends, seen = [(node, port, mac)], set(), set()
        while todo:
            here, out, to_mac = todo.pop()
            link = self.topology.ports[here][out]
            there = link.other(here)
            assert self.name[to_mac] == there, f"{here} port {out} leads to {there}, the MAC is {self.name[to_mac]}'s"
            arrival = (there, self.topology.ports[there].index(link))
            if arrival in seen:
                continue
            seen.add(arrival)
            if there in self.topology.hosts:
                assert self.host[dst] == there
                ends.add(arrival)
            elif (dst,) in self.tables[there].get("addresses", {}):
                ends.add(arrival)
            else:
                todo += ((there, *hop) for hop in self.hops(there, dst))
        return ends

    def hops(self, switch: str, dst: int) -> Iterable[tuple[int, int]]:
        """The (port, MAC) of each next hop."""
        route = self.tables[switch]["routes"][dst,].args
        ids = [route["id"]] if "id" in route else range(route["first"], route["first"] + route["count"])
        for number in ids:
            hop = self.tables[switch]["next_hops"][number,].args
            assert hop["src_mac"] == self.placement.mac[switch]
            yield hop["port"], hop["dst_mac"]

    def walk(
        self, channel: Channel, collective: Collective, root: int, senders: Iterable[int], *, answers: bool = False
    ) -> dict[int, list[Value]]:
        """What each rank gets when ``senders`` each send one packet of a pattern, or an answer."""
        hosts = self.placement.groups[0].tree.ranks
        for group in self.placement.groups:
            if channel in group.channels:
                hosts = group.tree.ranks
        code = CODES[collective] << 5 | root
        todo: deque[Packet] = deque()
        for rank in senders:
            peer = channel.ends[rank].peer
            ip = self.placement.ip[hosts[rank]]
            for node, port in self.travel(hosts[rank], 0, peer.mac, peer.ip):
                todo.append(Packet(node, port // self.ports_per_pipeline, ip, peer.ip, peer.qp, Counter({rank: 1})))
        waiting: dict[tuple[str, int, int], tuple[int, Value]] = {}
        received: dict[int, list[Value]] = {rank: [] for rank in range(len(hosts))}
        while todo:
            packet = todo.popleft()
            tables = self.tables[packet.switch]
            end = tables["endpoints"][packet.dst, packet.qp].args
            assert end["remote_address"] == packet.src
            assert self.pipeline_of[packet.switch, end["context"]] == packet.pipeline, "another pipeline has its state"
            choice = tables["patterns"][end["context"], code].args
            over_root = end["edge_bit"] == choice["toward"]
            traffic = 1 + over_root + 2 * answers
            action = tables["flows"][end["context"], choice["pattern"], traffic]
            if action.name == "reflect":
                outputs = [(0, end["edge"])]
                value = packet.value
            else:
                mask = action.args.get("out_mask" if answers else "source_mask", end["edge_bit"])
                assert end["edge_bit"] & mask, "no contributor"
                place = (packet.switch, end["context"], traffic)
                arrived, value = waiting.get(place, (0, Counter()))
                assert not arrived & end["edge_bit"], "twice over one edge"
                arrived, value = arrived | end["edge_bit"], value + packet.value
                if arrived != mask:
                    waiting[place] = arrived, value
                    continue
                waiting.pop(place, None)
                outputs = self.trees[packet.switch][action.args["out_group"]]
            for port, edge in outputs:
                todo += self._leave(
                    packet.switch, port, edge, value, hosts, channel, received, action.name == "reflect"
                )
        assert not waiting, f"incomplete: {waiting}"
        return received

    def _leave(
        self,
        switch: str,
        port: int,
        edge: int,
        value: Value,
        hosts: tuple[str, ...],
        channel: Channel,
        received: Mapping[int, list[Value]],
        back: bool,
    ) -> Iterable[Packet]:
        action = self.tables[switch]["edges"][edge,]
        args = action.args
        src, dst, qp = args["src_address"], args["dst_address"], args["dest_qp"]
        if action.name == "set_internal":
            yield Packet(switch, args["to_pipe"], src, dst, qp, value)
            return
        if back:
            port = next(
                placed.edge.port
                for placed in self.placement.edges
                if (placed.switch, placed.edge.edge_id) == (switch, edge)
            )
        for node, arrival in self.travel(switch, port, args["dst_mac"], dst):
            if node in self.topology.hosts:
                rank = hosts.index(node)
                assert qp == channel.ends[rank].qp
                assert src == channel.ends[rank].peer.ip
                received[rank].append(value)
            else:
                yield Packet(node, arrival // self.ports_per_pipeline, src, dst, qp, value)
