"""A simulated topology: hosts with NICs, switches that run a program, links with their faults."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol

from p4gen.arch import Architecture
from p4gen.errors import InputError
from p4gen.groups.group import SwitchConfig
from p4gen.host.transport.clock import US
from p4gen.model import EngineName, Model
from p4gen.model.behaviour import behaviour_of
from p4gen.net.collectives.kinds import Kinds
from p4gen.net.world.faults import DirectionFaults, Faults, ScriptState, applies
from p4gen.net.world.watching import Passage, Watcher
from p4gen.p4 import ir
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.places import places_in
from p4gen.vocabulary.topology import Link, TopologySpec

if TYPE_CHECKING:
    from p4gen.net.world.link import Direction
    from p4gen.net.world.nodes import SwitchNode
    from p4gen.net.world.pausing import FlowControl

REMEMBERED_DROPS = 10_000
_HEADERS = 128
"""The most bytes of a frame beside its payload."""
_KEPT = 4096
"""The most bytes of what a program keeps with a packet that recirculates."""
_LINE = 64
"""Bytes of a processor's cache line."""


class Addresses(Protocol):
    """The addresses and configurations that a network takes from a placement, such as
    ``p4gen.plan.placement.network.Placement``."""

    @property
    def mac(self) -> Mapping[str, int]:
        """The MAC addresses of all nodes."""
        ...

    @property
    def ip(self) -> Mapping[str, int]:
        """The IP addresses of hosts."""
        ...

    @property
    def switches(self) -> Mapping[str, SwitchConfig]:
        """The configuration of each switch."""
        ...

    @property
    def architectures(self) -> Mapping[str, Architecture]:
        """The architectures of the switches' programs."""
        ...

    @property
    def tree_depths(self) -> Mapping[int, int]:
        """The addresses of IncTrees' switches, with their depths."""
        ...


class Network:
    """The hosts, switches and links of a topology. Each switch runs its own program of ``programs``, and is configured
    for the placement; the program's architecture determines the ports of its links. ``payload`` is the most bytes of a
    packet's data."""

    STATE: ClassVar = ("drops", "recent_drops", "lost_requests")

    def __init__(
        self,
        topology: TopologySpec,
        placement: Addresses,
        programs: Mapping[str, ir.Program],
        faults: Faults,
        seed: int,
        engine: EngineName = "interp",
        *,
        payload: int,
    ) -> None:
        faults.check(topology)
        # Numba takes a while to load, and only networks need it.
        from p4gen.host.compiled.hosts import CompiledHosts  # noqa: PLC0415
        from p4gen.net.world import link, nodes, pausing  # noqa: PLC0415

        self.topology = topology
        self._ports = {
            name: 1 + max((placement.architectures[name].front_port(i) for i in range(len(links))), default=0)
            for name, links in topology.ports.items()
            if name in topology.switches
        }
        frame = payload + _HEADERS + (_KEPT if topology.recirculation_delay else 0)
        self.flow_control: FlowControl | None = None
        """With priority flow control."""
        self._hosts = CompiledHosts(
            -(-frame // _LINE) * _LINE,
            len(topology.hosts),
            directions=2 * len(topology.links),
            switches=len(topology.switches),
            outputs=sum(self._ports.values()),
        )
        self.loop = self._hosts.loop
        self.kinds = Kinds(
            {placement.ip[host]: rank for rank, host in enumerate(topology.rank_hosts)}, placement.tree_depths
        )
        self.nics = {host: self._hosts.add(placement.mac[host], placement.ip[host]) for host in topology.hosts}
        self.switches: dict[str, Model] = {}
        self.nodes: dict[str, SwitchNode] = {}
        self.directions: dict[str, Direction] = {}
        self.drops: Counter[tuple[str, str]] = Counter()
        """Number of packets lost on links, by (direction, reason)."""
        self.recent_drops: deque[Passage] = deque(maxlen=REMEMBERED_DROPS)
        self.lost_requests: Counter[tuple[int, int]] = Counter()
        """Requests lost on links, by the address and the QP of their destination."""
        self.reports_losses = False
        """Whether NICs are told which of their packets links have dropped (``Recovery.ORACLE``)."""
        self._arch = placement.architectures
        self._number = {name: number for number, name in enumerate(topology.switches)}
        self._nics_by_ip = {nic.ip: nic for nic in self.nics.values()}
        for name in topology.switches:
            chance = random.Random(f"{seed} {name}").getrandbits(64)  # noqa: S311 - a simulation, to be repeatable
            switch = Model(programs[name], clock=lambda: self.loop.now // US, seed=chance, engine=engine)
            placement.switches[name].install(switch)
            self.switches[name] = switch
            self.nodes[name] = self._new_node(name)
        self.scripts = scripts = [ScriptState(script) for script in faults.scripts]
        for each in topology.links:
            for src, dst in (each.ends, each.ends[::-1]):
                self._connect(each, src, dst, faults, scripts, seed)
        if topology.pfc is not None:
            self.flow_control = pausing.FlowControl(
                self._hosts.world, topology.pfc, self.directions, topology.switch_latency, payload + _HEADERS
            )
        self._hosts.serve(list(self.directions.values()), link.ANSWERS)
        self._hosts.serve(list(self.nodes.values()), nodes.ANSWERS)
        self._hosts.after_action += [node.flush for node in self.nodes.values()]
        self.loop.before_run += [each.prepare for each in self.nodes.values()]
        self.loop.before_run += [each.prepare for each in self.directions.values()]

    def _new_node(self, name: str) -> SwitchNode:
        frames, number = self._hosts.frames, len(self.nodes)
        of = frames.world.switches[number]
        of["outputs"], of["ports"] = sum(list(self._ports.values())[:number]), self._ports[name]
        from p4gen.net.world.nodes import SwitchNode  # noqa: PLC0415 - as in __init__

        return SwitchNode(frames, number, self.switches[name], self.topology.switch_latency, self._recirculation(name))

    def _recirculation(self, switch: str) -> int:
        """The time, in ps, after which a packet that recirculates is at a switch's ingress again."""
        delay, model = self.topology.recirculation_delay, self.switches[switch]
        if delay and not behaviour_of(model.program).holds:
            raise InputError(
                f"{self.topology.name}: recirculation_delay: packets of {model.program.package} that recirculate come"
                " back at once"
            )
        return delay

    def keep_lengths(self, queues: Mapping[str, Mapping[str, int]]) -> None:
        """Keep the lengths of queues in registers of programs: by switch, registers with their ports."""
        for switch, registers in queues.items():
            self.nodes[switch].keep_lengths(registers)

    def watch(self, watcher: Watcher) -> None:
        """Call ``watcher`` for every frame on every link, when it is sent."""
        for direction in self.directions.values():
            direction.watcher = watcher

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        found: dict[str, object] = {"network": self, "loop": self.loop, "world": self._hosts.state()}
        for host, nic in self.nics.items():
            found |= {f"{host} {name}": part for name, part in nic.parts().items()}
        for name, node in self.nodes.items():
            found |= {f"{name} node": node, f"{name} switch": node.switch}
        for name, direction in self.directions.items():
            found[name] = direction
            if direction.faults is not None:
                found[f"{name} faults"] = direction.faults
        return found | {f"script {number}": script for number, script in enumerate(self.scripts)}

    @property
    def waits_for(self) -> str:
        """What the first run waits for before it begins; "" if for nothing."""
        from p4gen.compiled import run  # noqa: PLC0415 - as in __init__
        from p4gen.compiled.cached import is_kept  # noqa: PLC0415

        return "" if is_kept(run.run) else "compiling the network, once"

    def restored(self) -> None:
        """The parts have returned to an earlier state."""
        self._hosts.restored()

    def _connect(self, link: Link, src: str, dst: str, faults: Faults, scripts: list[ScriptState], seed: int) -> None:
        from p4gen.net.world.link import Direction, LinkTraits  # noqa: PLC0415 - as in __init__

        topology = self.topology
        traits = LinkTraits(*(topology.setting(link, name) for name in ("bandwidth", "delay", "queue", "ecn")))
        touches_host = src in self.nics or dst in self.nics
        impairments = [i for i in faults.impairments if applies(i.where, link, src, dst)]
        outages = [o for o in faults.outages if applies(o.where, link, src, dst)]
        mine = scripts if touches_host else []
        trouble = None
        if impairments or outages or mine:
            chance = random.Random(f"{seed} {src}>{dst} faults")  # noqa: S311 - a simulation, to be repeatable
            trouble = DirectionFaults(chance, impairments, outages, mine, self.kinds)
        number, of = len(self.directions), self._hosts.frames.world
        direction = Direction(self._hosts.frames, number, src, dst, traits, trouble, f"{seed} {src}>{dst} marks")
        direction.on_drop = self._dropped
        self.directions[direction.name] = direction
        if src in self.nics:
            of.hosts["direction"][self.nics[src].number] = number
            if topology.pfc is not None:
                direction.control(host=self.nics[src].number)
        else:
            port = self._arch[src].front_port(topology.port(src, link))
            output = int(of.switches["outputs"][self._number[src]]) + port
            self.nodes[src].outputs[port] = direction
            of.outputs["value"][output] = number
            if topology.pfc is not None:
                direction.control(output=output)
            if topology.buffer is not None:
                direction.share(self._number[src], topology.buffer)
        if dst in self.nics:
            direction.join(self.nics[dst].number, None)
        else:
            direction.join(self._number[dst], self._arch[dst].front_port(topology.port(dst, link)))

    def _dropped(self, passage: Passage) -> None:
        self.drops[f"{passage.src}>{passage.dst}", passage.reason] += 1
        self.recent_drops.append(passage)
        frame = passage.frame
        places = places_in(frame)
        if places is None or (sender := self._nics_by_ip.get(int.from_bytes(frame[places.src_addr]))) is None:
            return
        if frame[places.opcode_at] < Opcode.READ_RESPONSE_FIRST:
            to = int.from_bytes(frame[places.dst_addr]), int.from_bytes(frame[places.dest_qp])
            self.lost_requests[to] += 1
        if self.reports_losses:
            self.loop.at(max(passage.sent, self.loop.now), sender.on_loss, frame)

    def packets_sent(self) -> int:
        """Packets sent so far, counted on every link, including lost ones."""
        return sum(direction.packets for direction in self.directions.values())

    def lost(self, by_switches: Mapping[str, Mapping[str, int]]) -> Counter[str]:
        """Number of packets lost so far, by ``where module.reason``: on links, at NICs, for ports without a link, and
        ``by_switches``, those that each switch's program dropped."""
        found: Counter[str] = Counter()
        for (direction, reason), count in self.drops.items():
            found[f"{direction} {reason}"] += count
        for name, reasons in by_switches.items():
            for reason, count in reasons.items():
                found[f"{name} {reason}"] += count
            if lost := self.nodes[name].lost_ports:
                found[f"{name} port_without_link"] += lost
        for host, nic in self.nics.items():
            for reason, count in nic.dropped.items():
                found[f"{host} nic.{reason}"] += count
        return found

    def overruns(self) -> tuple[str, ...]:
        """A line for each port whose headroom was too small (``FlowControl``)."""
        return () if self.flow_control is None else self.flow_control.overruns(self.drops)

    def silent_scripts(self) -> tuple[str, ...]:
        """Scripts that have dropped nothing so far, with the number of packets of their kind."""
        return tuple(
            f"'{state.script.text}' dropped nothing: there were {state.seen:,} packets of its kind"
            for state in self.scripts
            if state.seen < state.script.first
        )
