"""A leaf switch under test in a fabric with a manager: the manager's own code makes and orders all entries.

The fabric has two leaves, of two hosts each, and four spines. The switch under test is ``leaf1``, with the spines at
its first four ports, and ``h2`` and ``h3`` at the next two. The manager's other switches only remember what they get.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from unittest import mock

from leaf import ACK, NAK

from p4gen.groups import SwitchConfig
from p4gen.groups.connections import Tally
from p4gen.groups.group import PlacedEdge
from p4gen.manager.api import (
    Changes,
    ConnectionSpec,
    ConnectionState,
    ConnectionStatus,
    HostAddresses,
    HostInfo,
    SwitchInfo,
)
from p4gen.manager.connections import connections
from p4gen.manager.manager import IncManager
from p4gen.model.entries import Entry
from p4gen.papers.themis.spec import Mode, Spread, ThemisSpec
from p4gen.ptf.scenario import Output, SwitchTest
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, ip_header
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse
from p4gen.rocev2.places import places_for
from p4gen.vocabulary.topology import load_topology

NETWORK: Final = "clos:2x4x2"
HERE, AWAY = "leaf1", "leaf0"
SPINES: Final = 4
HOST_PORTS: Final = {"h2": 4, "h3": 5}
PATIENCE_S: Final = 600.0
_TABLES = ("cm_sources", "data_flows", "answer_flows", "paths", "neighbours", "ipv6_neighbours", "routes",
           "ipv6_routes", "next_hops")  # fmt: skip
"""In the order in which packets meet them: an entry is removed before what it leads to, and comes after it."""

Step = Callable[[str, str], None]
"""Called after each write with the switch and what was done: ``delete answer_flows``."""


class ScenarioAgent:
    """The agent (``p4gen.manager.api.Agent``) of the switch under test, or of one that is not there (``test`` None)."""

    def __init__(self, name: str, lock: threading.RLock, test: SwitchTest | None, step: Step) -> None:
        self.name = name
        self._lock = lock
        self._test = test
        self._step = step
        self._held = SwitchConfig((), ())

    def apply(self, wanted: SwitchConfig, *, resync: bool = False) -> Changes:
        """One entry after the other."""
        held, target = ({_key(entry): entry for entry in config.entries} for config in (self._held, wanted))
        gone = [entry for key, entry in held.items() if key not in target]
        new = [entry for key, entry in target.items() if key not in held]
        other = [entry for key, entry in target.items() if key in held and held[key] != entry]
        if self._test is not None and self._held.clone_sessions != wanted.clone_sessions:
            with self._lock:
                wanted.replicate(self._test.control)
        for entry in sorted(gone, key=_rank):
            self._write("delete", entry)
        for how, entries in (("modify", other), ("insert", new)):
            for entry in sorted(entries, key=_rank, reverse=True):
                self._write(how, entry)
        self._held = wanted
        return Changes(len(new), len(other), len(gone))

    def _write(self, how: str, entry: Entry) -> None:
        with self._lock:
            if self._test is not None:
                getattr(self._test.control, how)(entry)
            self._step(self.name, f"{how} {entry.table}")

    def read(self) -> SwitchConfig:
        """What the manager has given it."""
        return self._held

    def drops(self) -> Mapping[str, int]:
        """Not counted here."""
        return {}

    def tallies(self, tallies: Sequence[Tally]) -> Sequence[int]:
        """Not counted here."""
        return [0] * len(tallies)

    def given_up(self) -> Mapping[int, int]:
        """None has edges."""
        return {}

    def set_ticks(self, edges: Sequence[PlacedEdge]) -> None:
        """None needs ticks."""

    def restart(self) -> None:
        """Not needed: scenarios begin on a fresh switch."""

    def close(self) -> None:
        """Nothing is open."""


class ManagedTest(SwitchTest):
    """The switch under test and its manager."""

    spec: ThemisSpec
    kind = ThemisSpec

    def unfit(self) -> str | None:
        """Needs a program that keeps connections and chooses next hops."""
        if not self.spec.by_psn:
            return "the program keeps no connections"
        if self.spec.tiers > 2:
            return "the program leaves the choice of next hops to ECMP"
        if self.spec.ports <= max(HOST_PORTS.values()):
            return f"the program has {self.spec.ports} ports"
        if self.spec.paths < SPINES:
            return f"the program sprays over {self.spec.paths} paths"
        return None

    def setUp(self) -> None:
        super().setUp()
        self.lock = threading.RLock()
        self.agents: dict[str, ScenarioAgent] = {}
        self.topology = load_topology(NETWORK)
        for name in ("CONSENT", "WRITING"):  # a slow target answers in time
            patch = mock.patch.object(connections, name, PATIENCE_S)
            patch.start()
            self.addCleanup(patch.stop)
        away = ThemisSpec(
            mode=Mode.BOTH, paths=self.spec.paths, path_sets=self.spec.path_sets, ports=8, connections=1000,
            ip=self.spec.ip,
        )  # fmt: skip
        spine = ThemisSpec(mode=Mode.SOURCE, spread=Spread.ECMP, ports=8, ip=self.spec.ip)
        self.manager = IncManager(self._agent, topology=self.topology, patience=PATIENCE_S, drain=0.0)
        self.addCleanup(self.manager.close)
        for name in self.topology.switches:
            spec = self.program if name == HERE else away if name == AWAY else spine
            self.manager.register_switch(SwitchInfo(name, name, spec, "", b""))
        self.hosts = {
            host: self.manager.register_host(HostInfo(host, out_of_order=True)) for host in self.topology.hosts
        }

    def _agent(self, info: SwitchInfo) -> ScenarioAgent:
        name = info.name
        if name not in self.agents:
            self.agents[name] = ScenarioAgent(name, self.lock, self if name == HERE else None, self.step)
        return self.agents[name]

    def step(self, switch: str, what: str) -> None:
        """A switch has been changed; ``test`` scenarios look at the switch then."""

    def register(self, spec: ConnectionSpec) -> ConnectionStatus:
        """Have the manager register a connection."""
        return self.manager.register_connection(spec)

    def until_sprayed(self, paths: int) -> None:
        """Wait until all connections are sprayed over so many paths."""
        deadline = time.monotonic() + PATIENCE_S
        while not all(
            status.state is ConnectionState.SPRAYED and len(status.paths) == paths
            for status in self.manager.connections()
        ):
            self.equal("in time", time.monotonic() < deadline, True)
            time.sleep(0.01)

    # --- packets ---

    def port_of(self, host: str) -> int:
        """The port of one of its hosts; not all ports of a switch are for hosts and links."""
        return self.spec.architecture.front_ports(len(HOST_PORTS) + SPINES)[HOST_PORTS[host]]

    def exchange(self, port: int, packet: RocePacket) -> list[Output]:
        """What leaves when a packet comes, while nobody changes the switch."""
        with self.lock:
            self.send(port, packet.to_bytes())
            return self.outputs()

    def request(self, spec: ConnectionSpec, psn: int) -> list[Output]:
        """A request of a connection comes, from the fabric or from a host."""
        packet = self._packet(spec.source, spec.destination, BTH(Opcode.SEND_MIDDLE, spec.destination_qp, psn), 51000)
        return self.exchange(
            self.port_of(spec.source) if spec.source in HOST_PORTS else 0, replace(packet, payload=b"sprayed!").sealed()
        )

    def deliver(self, spec: ConnectionSpec, *psns: int) -> None:
        """Requests come from the fabric; each must reach its host, and nothing else must leave."""
        for psn in psns:
            outputs = self.request(spec, psn)
            self.equal(f"ports of {psn}", [output.port for output in outputs], [self.port_of(spec.destination)])
            self.equal("PSN", parse(outputs[0].frame).bth.psn, psn)

    def paths(self, spec: ConnectionSpec, psns: Sequence[int]) -> list[int]:
        """The spines that the requests of a host take."""
        taken = []
        for psn in psns:
            (output,) = self.request(spec, psn)
            taken.append(output.port)
        return taken

    def answer(self, spec: ConnectionSpec, psn: int, syndrome: int = NAK) -> RocePacket:
        """An answer of the destination: by default a NACK."""
        bth = BTH(Opcode.ACKNOWLEDGE, spec.source_qp, psn)
        packet = self._packet(spec.destination, spec.source, bth, spec.answer_port)
        return replace(packet, aeth=AETH(syndrome, 7)).sealed()

    def passes(self, spec: ConnectionSpec, psn: int) -> bool:
        """Whether the host's NACK leaves for the fabric; nothing else may leave."""
        outputs = self.exchange(self.port_of(spec.destination), self.answer(spec, psn))
        nacks = [output for output in outputs if parse(output.frame).aeth == AETH(NAK, 7)]
        if not nacks:
            implied = [parse(output.frame).aeth for output in outputs]
            self.equal("what leaves instead", implied, [AETH(ACK, 7)] * len(outputs))
        return len(nacks) == 1

    def _packet(self, source: str, destination: str, bth: BTH, port: int) -> RocePacket:
        a, b = self.hosts[source], self.hosts[destination]
        return RocePacket(self.ethernet(a), ip_header(a.ip, b.ip), UDP(port), bth)

    def ethernet(self, host: HostAddresses) -> Ethernet:
        """The Ethernet header of a host's frames."""
        return Ethernet(host.gateway, host.mac, places_for(host.ip).ether_type)


def _key(entry: Entry) -> tuple[object, ...]:
    return (entry.table, entry.priority, *sorted(entry.match.items(), key=lambda item: item[0]))


def _rank(entry: Entry) -> int:
    return _TABLES.index(entry.table)
