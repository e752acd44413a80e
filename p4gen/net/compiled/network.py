"""A network whose events, links, switches and connections are compiled (``p4gen.compiled``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from p4gen.compiled import run
from p4gen.compiled.cached import is_kept
from p4gen.compiled.memory import Ask
from p4gen.host.compiled.hosts import CompiledHosts, Method
from p4gen.host.compiled.loop import CompiledLoop
from p4gen.host.compiled.nics import CompiledNic
from p4gen.model import EngineName
from p4gen.net.compiled.links import CompiledDirection
from p4gen.net.compiled.switches import CompiledNode
from p4gen.net.world.faults import DirectionFaults, Faults
from p4gen.net.world.link import LinkTraits
from p4gen.net.world.network import Addresses, Network
from p4gen.p4 import ir
from p4gen.vocabulary.topology import Link, TopologySpec


class CompiledNetwork(Network):
    """A network with a compiled world. ``frame`` is the most bytes of a frame."""

    loop: CompiledLoop

    def __init__(
        self,
        topology: TopologySpec,
        placement: Addresses,
        programs: Mapping[str, ir.Program],
        faults: Faults,
        seed: int,
        engine: EngineName,
        frame: int,
    ) -> None:
        self._ports = {
            name: 1 + max((placement.architectures[name].front_port(i) for i in range(len(links))), default=0)
            for name, links in topology.ports.items()
            if name in topology.switches
        }
        directions, outputs = 2 * len(topology.links), sum(self._ports.values())
        self._hosts = CompiledHosts(
            frame, len(topology.hosts), directions=directions, switches=len(topology.switches), outputs=outputs
        )
        self.frames = self._hosts.frames
        self._nodes: list[CompiledNode] = []
        self._links: list[CompiledDirection] = []
        self._numbers = {name: i for names in (topology.hosts, topology.switches) for i, name in enumerate(names)}
        self._hosts.serve(self._links, _OF_LINKS)
        self._hosts.serve(self._nodes, _OF_NODES)
        super().__init__(topology, placement, programs, faults, seed, engine)
        self._hosts.after_action += [node.flush for node in self._nodes]
        self.loop.before_run = [*(node.prepare for node in self._nodes), *(link.prepare for link in self._links)]

    @override
    def _new_loop(self) -> CompiledLoop:
        return self._hosts.loop

    @override
    def _new_nic(self, mac: int, ip: int) -> CompiledNic:
        return self._hosts.add(mac, ip)

    @override
    def _new_node(self, name: str) -> CompiledNode:
        number = len(self._nodes)
        latency, delay = self.topology.switch_latency, self._recirculation(name)
        node = CompiledNode(self.frames, number, self.switches[name], latency, self.loop, delay)
        of = self.frames.world.switches[number]
        of["outputs"], of["ports"] = sum(list(self._ports.values())[:number]), self._ports[name]
        self._nodes.append(node)
        return node

    @override
    def _new_direction(
        self, src: str, dst: str, traits: LinkTraits, faults: DirectionFaults | None, seed: str
    ) -> CompiledDirection:
        self._links.append(CompiledDirection(self.frames, len(self._links), src, dst, traits, self.loop, faults, seed))
        return self._links[-1]

    @override
    def _connect(self, link: Link, src: str, dst: str, *rest: Any) -> None:
        super()._connect(link, src, dst, *rest)
        direction, of = self._links[-1], self.frames.world
        if direction.buffer is not None:
            direction.share(self._numbers[src])
        if src in self.nics:
            of.hosts["direction"][self._numbers[src]] = direction.number
        else:
            port = next(port for port, output in self.nodes[src].outputs.items() if output is direction)
            of.outputs["value"][int(of.switches["outputs"][self._numbers[src]]) + port] = direction.number
        if dst in self.nics:
            direction.join(self._numbers[dst], None)
        else:
            port = self._arch[dst].front_port(self.topology.port(dst, link))
            direction.join(self._numbers[dst], port)

    @override
    def parts(self) -> dict[str, object]:
        return {**super().parts(), "world": self._hosts.state()}

    @property
    @override
    def waits_for(self) -> str:
        return "" if is_kept(run.run) else "compiling the network, once"

    @override
    def restored(self) -> None:
        self._hosts.restored()


_OF_LINKS: Final[dict[Ask, Method]] = {
    Ask.FATE: CompiledDirection.pass_frame,
    Ask.LOST: CompiledDirection.lose,
    Ask.WATCH: CompiledDirection.show,
}
_OF_NODES: Final[dict[Ask, Method]] = {Ask.BATCH: CompiledNode.process, Ask.EVENTS: CompiledNode.take_events}
