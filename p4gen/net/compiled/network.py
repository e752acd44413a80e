"""A network whose events, links, switches and connections are compiled (``p4gen.compiled``)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, Final

from typing_extensions import override

from p4gen.compiled import machine, run
from p4gen.compiled.cached import is_kept
from p4gen.compiled.freezing import State
from p4gen.compiled.memory import PROBLEMS, Ask, world
from p4gen.net.compiled.links import CompiledDirection
from p4gen.net.compiled.loop import CompiledLoop
from p4gen.net.compiled.nics import CompiledNic
from p4gen.net.compiled.pairs import CompiledPair
from p4gen.net.compiled.records import Frames
from p4gen.net.compiled.switches import CompiledNode
from p4gen.net.world.faults import DirectionFaults, Faults
from p4gen.net.world.link import LinkTraits
from p4gen.net.world.network import Addresses, Network
from p4gen.p4 import ir
from p4gen.vocabulary.topology import Link, TopologySpec

_CALLBACK: Final = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)


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
        frame: int,
    ) -> None:
        self._ports = {
            name: 1 + max((placement.architectures[name].front_port(i) for i in range(len(links))), default=0)
            for name, links in topology.ports.items()
            if name in topology.switches
        }
        directions, outputs = 2 * len(topology.links), sum(self._ports.values())
        of = world(frame, directions, len(topology.switches), outputs, len(topology.hosts))
        self.frames = Frames(of)
        self._hosts: list[CompiledNic] = []
        self._nodes: list[CompiledNode] = []
        self._links: list[CompiledDirection] = []
        self._numbers = {name: i for names in (topology.hosts, topology.switches) for i, name in enumerate(names)}
        self._pairs: list[CompiledPair] = []
        self._answer = _CALLBACK(self._asked)
        of.all["ask"], of.all["crc"] = (
            ctypes.cast(self._answer, ctypes.c_void_p).value,
            machine.crc32().address("crc32_from"),
        )
        super().__init__(topology, placement, programs, faults, seed, "jit")
        self.loop.after_run = [self._count]
        self.loop.before_run = [*(node.prepare for node in self._nodes), *(link.prepare for link in self._links)]

    @override
    def _new_loop(self) -> CompiledLoop:
        return CompiledLoop(self.frames.world)

    @override
    def _new_nic(self, mac: int, ip: int) -> CompiledNic:
        self._hosts.append(CompiledNic(self.frames, len(self._hosts), mac, ip, self.loop, self._pairs))
        return self._hosts[-1]

    @override
    def _new_node(self, name: str) -> CompiledNode:
        number = len(self._nodes)
        node = CompiledNode(self.frames, number, self.switches[name], self.topology.switch_latency, self.loop)
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
        if src in self.nics:
            of.hosts["direction"][self._numbers[src]] = direction.number
        else:
            port = next(port for port, output in self.nodes[src].outputs.items() if output is direction)
            of.outputs["value"][int(of.switches["outputs"][self._numbers[src]]) + port] = direction.number
        if dst in self.nics:
            direction.join(self._numbers[dst], None)
        else:
            port = self._arch[dst].front_port(self.topology.ports[dst].index(link))
            direction.join(self._numbers[dst], port)

    @override
    def parts(self) -> dict[str, object]:
        return {**super().parts(), "world": State(self.frames.world)}

    @property
    @override
    def waits_for(self) -> str:
        return "" if is_kept(run.run) else "compiling the network, once"

    @override
    def restored(self) -> None:
        for pair in self._pairs:
            pair.find_memory()

    def _count(self) -> None:
        for pair in self._pairs:
            if pair.channel is not None:
                pair.channel.count()

    def _asked(self, what: int, who: int, one: int, two: int) -> int:
        """Do what compiled code asks for. An exception ends the run: it must not pass through compiled code."""
        try:
            if what == Ask.ACTION:
                self.loop.act(who)
                for node in self._nodes:
                    node.flush()
                return 0
            if what == Ask.PROBLEM:
                raise AssertionError(PROBLEMS[who])
            whose, method = _SERVED[what]
            return method(getattr(self, whose)[who], one, two)
        except BaseException as error:
            self.loop.fail(error)
            return 0


_SERVED: Final[dict[int, tuple[str, Callable[[Any, int, int], int]]]] = {
    Ask.SENT: ("_pairs", CompiledPair.sent),
    Ask.RECEIVED: ("_pairs", CompiledPair.received),
    Ask.FAIL: ("_pairs", CompiledPair.break_off),
    Ask.TEMPLATE: ("_pairs", CompiledPair.fill_template),
    Ask.WRITE: ("_pairs", CompiledPair.begin_write),
    Ask.OVERRUN: ("_pairs", CompiledPair.overrun),
    Ask.EXECUTE: ("_pairs", CompiledPair.execute),
    Ask.REPEAT: ("_pairs", CompiledPair.repeat),
    Ask.PACE: ("_pairs", CompiledPair.pace),
    Ask.SLOW_DOWN: ("_pairs", CompiledPair.slow_down),
    Ask.CNP: ("_pairs", CompiledPair.next_cnp),
    Ask.ENDED: ("_pairs", CompiledPair.end_run),
    Ask.UNEXPECTED: ("_pairs", CompiledPair.refuse_run),
    Ask.ANSWER: ("_pairs", CompiledPair.next_response),
    Ask.REFUSED: ("_hosts", CompiledNic.refused),
    Ask.FATE: ("_links", CompiledDirection.pass_frame),
    Ask.LOST: ("_links", CompiledDirection.lose),
    Ask.MARK: ("_links", CompiledDirection.mark),
    Ask.ROOM: ("_links", CompiledDirection.has_room),
    Ask.WATCH: ("_links", CompiledDirection.show),
    Ask.BATCH: ("_nodes", CompiledNode.process),
    Ask.EVENTS: ("_nodes", CompiledNode.take_events),
}
"""Whose method answers what compiled code asks for; the first argument is the record's number."""
