"""A plant: the rig's manager and switches with hosts in real time, whose packets go through those switches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from typing_extensions import override

from p4gen.groups.ticks import tick
from p4gen.host.raw import RawNic
from p4gen.host.transport.clock import MS
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.manager.api import HostInfo, HostManager
from p4gen.manager.ranks.host import Host
from p4gen.vocabulary import ServingSpec

from .cluster import TICK_S, SocketPort, Switches, socket_ports
from .rig import Rig


class RigSwitches(Switches):
    """The switches of a rig, with links that can be cut, and ticks for the edges that the manager names."""

    def __init__(self, rig: Rig, spec: ServingSpec, ports: dict[tuple[str, int], SocketPort]) -> None:
        super().__init__(rig.topology, spec, ports)
        self._rig = rig
        self._models = {name: switch.model for name, switch in rig.switches.items()}
        self.cut: set[frozenset[str]] = set()
        for switch in rig.switches.values():
            switch.lock = self._lock

    def _handle(self, switch: str, frames: list[tuple[int, bytes]]) -> dict[str, list[tuple[int, bytes]]]:
        onwards = super()._handle(switch, frames)
        return {far: there for far, there in onwards.items() if frozenset((switch, far)) not in self.cut}

    @override
    def _due(self) -> Sequence[tuple[str, bytes]]:
        agents = [*self._rig.agents.items()]
        return [(name, tick(edge, TICK_S)) for name, agent in agents for edge in agent.ticking]

    def set_link(self, one: str, other: str, *, up: bool) -> None:
        """Cut a link between switches, or mend it: packets first, then the manager hears of it from one end."""
        (self.cut.discard if up else self.cut.add)(frozenset((one, other)))
        links = self._topology.ports[one]
        self._rig.manager.report_links(one, {n: up for n, link in enumerate(links) if link.other(one) == other})


@contextlib.contextmanager
def plant(
    rig: Rig, spec: ServingSpec, timeout_ms: int = 30, manager_of: Callable[[str], HostManager] | None = None
) -> Iterator[tuple[RigSwitches, dict[str, Host]]]:
    """The switches and hosts of a rig whose switches have registered, run; ``manager_of`` is whom a host asks, by its
    name."""
    topology = rig.topology
    with contextlib.ExitStack() as stack:
        ends: dict[str, SocketPort] = {}
        ports: dict[tuple[str, int], SocketPort] = {}
        for host in topology.hosts:
            link = topology.ports[host][0]
            switch = link.other(host)
            ends[host], ports[switch, topology.ports[switch].index(link)], sockets = socket_ports()
            for end in sockets:
                stack.callback(end.close)
        switches = RigSwitches(rig, spec, ports)
        switches.start()
        stack.callback(switches.stop)
        hosts = {}
        for name in topology.hosts:
            manager = rig.manager if manager_of is None else manager_of(name)
            addresses = manager.register_host(HostInfo(name))
            loop = RealTimeLoop()
            nic = RawNic(loop, ends[name], addresses.mac, addresses.ip)
            hosts[name] = Host(manager, name, nic, timeout_ps=timeout_ms * MS)
            loop.start()
            stack.callback(loop.close)
            stack.callback(hosts[name].close)
        yield switches, hosts
