"""Connections between hosts as scopes: messages over a network whose switches spray, filter or only forward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

from typing_extensions import override

from p4gen.families import WrittenSpec
from p4gen.host.transport.nic import Nic
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.verbs import Completion, Peer, QpConfig, Recovery, RecvWr, SendWr, Status
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.world.network import Network
from p4gen.p4.compile import program_from
from p4gen.plan.placement.placer import switch_of
from p4gen.program import compose, render
from p4gen.verification.family import verification_of
from p4gen.verification.findings.story import Event, Story
from p4gen.verification.system import System
from p4gen.verification.world import Budget, Rules, Scope, World
from p4gen.vocabulary import ProgramSpec

PAYLOAD: Final = 32
"""Bytes of a packet's payload."""


class Sender:
    """One end of a connection that sends messages (``p4gen.verification.parts.hosts.SearchedTask``)."""

    STATE = ("_acknowledged", "problem")

    def __init__(self, nic: Nic, number: int, peer: Peer, config: QpConfig, messages: Sequence[bytes]) -> None:
        self.name = f"sender {number:#x}"
        self.problem = ""
        self._acknowledged = 0
        self._messages = messages
        self._pair: QueuePair = nic.create_pair(number, peer, config, self._completed)

    def parts(self) -> dict[str, object]:
        """The task itself: the queue pair is a part of the NIC."""
        return {"task": self}

    def start(self) -> None:
        """Post all messages as SENDs."""
        for number, message in enumerate(self._messages):
            self._pair.post_send(SendWr(number, message))

    @property
    def done(self) -> bool:
        """Whether all messages are acknowledged."""
        return self._acknowledged == len(self._messages)

    def forget_times(self) -> None:
        """Nothing: it keeps no times."""

    def _completed(self, completion: Completion) -> None:
        if completion.status is Status.SUCCESS:
            self._acknowledged += 1
        else:
            self.problem = f"sending: {completion.status}"


class Receiver:
    """The other end of a connection, which compares arriving messages
    (``p4gen.verification.parts.hosts.SearchedTask``)."""

    STATE = ("_arrived", "_rooms", "problem")

    def __init__(self, nic: Nic, number: int, peer: Peer, config: QpConfig, messages: Sequence[bytes]) -> None:
        self.name = f"receiver {number:#x}"
        self.problem = ""
        self._arrived = 0
        self._messages = messages
        self._rooms: list[bytearray] = [bytearray(len(message)) for message in messages]
        self._pair: QueuePair = nic.create_pair(number, peer, config, self._completed)

    def parts(self) -> dict[str, object]:
        """The task itself: the queue pair is a part of the NIC."""
        return {"task": self}

    def start(self) -> None:
        """Post a receive for each message."""
        for number, room in enumerate(self._rooms):
            self._pair.post_recv(RecvWr(number, room))

    @property
    def done(self) -> bool:
        """Whether all messages have arrived as they were sent."""
        return self._arrived == len(self._messages)

    def forget_times(self) -> None:
        """Nothing: it keeps no times."""

    def _completed(self, completion: Completion) -> None:
        if completion.status is not Status.SUCCESS:
            self.problem = f"receiving: {completion.status}"
        elif bytes(self._rooms[completion.wr_id]) != self._messages[completion.wr_id]:
            self.problem = f"message {completion.wr_id + 1} is not what was sent"
        else:
            self._arrived += 1


@dataclass(frozen=True)
class FlowScope(Scope):
    """A search of connections: the first host sends messages to the second one."""

    KIND: ClassVar = "flows"

    program: WrittenSpec
    """The program of switches with hosts."""
    core: WrittenSpec
    """The program of all other switches."""
    packets: int = 4
    """Packets of a message."""
    messages: int = 1
    recovery: Recovery = Recovery.SELECTIVE_REPEAT
    seed: int = 1
    """The seed of initial PSNs and UDP source ports."""
    connections: int = 1
    first_psn: int | None = None
    """The first PSN of all connections; drawn from the seed by default."""
    stale: bool = False
    """Whether registers have the state of earlier connections, of another epoch."""

    @override
    def sound(self) -> FlowScope | None:
        program = verification_of(self.program).sound(self.program)
        if self.fault is None and program == self.program:
            return None
        return replace(self, program=program, fault=None)

    @override
    def sentence(self) -> str:
        over = f" over each of {self.connections} connections" if self.connections > 1 else ""
        left = "; registers of earlier connections" if self.stale else ""
        what = f"the first host sends {self.messages} messages of {self.packets} packets{over}"
        return f"{self.subject}: {what}; {self.budget.sentence()}{left}"

    @override
    def text(self, spec: ProgramSpec) -> str:
        """The fault is in ``program`` only."""
        return super().text(spec) if spec is self.program else render(compose(spec)).text

    def _simulation(self, epoch: int) -> tuple[TrafficSimulation, Network]:
        """The connections in a simulation, and its network with this scope's programs."""
        hosts = self.topology.hosts
        config = TrafficConfig(
            self.topology,
            self.program,
            (Traffic(Pattern.FLOW, hosts[:2], PAYLOAD * self.packets),) * self.connections,
            core=self.core,
            seed=self.seed,
            recovery=self.recovery,
            spray_gbn=True,
            mtu=PAYLOAD,
            ack_every=1,
            engine=self.engine if self.fault is None else "interp",  # its network is not used then
            epoch=epoch,
        )
        simulation = TrafficSimulation(config)
        if self.fault is None:
            return simulation, simulation.network
        programs = {
            switch: program_from(self.text(spec), f"{spec.program}.p4") for switch, spec in simulation.specs.items()
        }
        return simulation, Network(
            self.topology, simulation.placement, programs, config.faults, config.seed, self.engine, payload=PAYLOAD
        )

    @property
    def _last(self) -> str:
        """The switch that the second host is connected to."""
        return switch_of(self.topology, self.topology.hosts[1])

    @override
    def world(self) -> World:
        simulation, network = self._simulation(2 if self.stale else 1)
        placement, specs = simulation.placement, simulation.specs
        messages = [
            b"".join(bytes([16 * number + packet + 1]) * PAYLOAD for packet in range(self.packets))
            for number in range(self.messages)
        ]
        made: dict[str, list[Any]] = {host: [] for host in self.topology.hosts}
        for track in simulation.tracks:
            source, destination = track.name.split(">")
            for host, kind, pair in ((source, Sender, track.source), (destination, Receiver, track.destination)):
                first = pair.config.initial_psn if self.first_psn is None else self.first_psn
                config = replace(pair.config, initial_psn=first)
                made[host].append(partial(kind, number=pair.number, peer=pair.peer, config=config, messages=messages))
        tasks = {host: partial(_tasks, kinds) for host, kinds in made.items() if kinds}
        if self.stale:
            self._leave(network)
        (paths,) = {here.paths for known in placement.connections.values() for here in known}
        about = verification_of(self.program)
        exact, filters = about.exact(self.program), about.filters(self.program)
        return World(
            network,
            specs,
            placement.mac,
            placement.ip,
            tasks,
            Rules(
                no_drops=True,
                no_repeats=True,
                one_repeat=exact and self.budget == Budget(losses=1),
                repeats_requested=(self._last, paths, exact),
                filters=(self._last, paths, exact) if filters and self._judged else None,
                checks=self._last if filters else None,
            ),
            0,
            placement.switches,
            {switch: self.text(spec) for switch, spec in specs.items()},
            unlike=self.topology.hosts[:2],
        )

    @property
    def _judged(self) -> bool:
        """Whether monitors judge NAKs one by one. The packets that have arrived tell which NAKs are needed. Without a
        fault, a retransmission shows that a NAK was not needed."""
        budget = self.budget
        return bool(budget.losses or budget.duplicates) and not (budget.delays or budget.corruptions)

    def _leave(self, network: Network) -> None:
        """Set registers to the state of earlier connections that ended before the packets of one path had arrived."""
        story = Story(System(replace(self, stale=False)))
        system = story.system
        late = next(link.name for link in system.links if link.dst == self._last and link.src in self.topology.switches)
        while True:
            waiting = [
                link.name
                for link, content in zip(system.links, story.contents, strict=True)
                if system.contents[content].in_order and link.name != late
            ]
            if not waiting:
                break
            story.play(Event("deliver", waiting[0]))
        for part, watch, state in zip(system.switches, system.switch_watches, story.switches, strict=True):
            for register, words in zip(part.registers, part.words(watch.inner(state)), strict=True):
                network.switches[part.name].register_cells(register)[:] = list(words)


def _tasks(kinds: Sequence[Any], nic: Nic) -> list[Any]:
    return [kind(nic) for kind in kinds]
