"""The fabric: the switches and hosts that have registered, the topology, link states (EPIC §6.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from p4gen.host.transport.nicinfo import OUR_NIC, NicInfo
from p4gen.manager.api import Code, HostAddresses, HostInfo, ManagerError, SwitchInfo
from p4gen.plan.placement.placer import Names, over_ipv6, switch_of
from p4gen.plan.placement.planner import View
from p4gen.vocabulary import ServingSpec
from p4gen.vocabulary.topology import Link, TopologySpec


class Discovered(TopologySpec):
    """A topology made from the links that the registered switches report, if no topology is given.

    Its ports have the reported numbers. A port that leads to an unknown node has a link to a node that is not in the
    topology, and that link is down.
    """

    cabling: Mapping[str, tuple[Link, ...]]

    @cached_property
    def ports(self) -> Mapping[str, tuple[Link, ...]]:
        """The links of each node, by port."""
        return self.cabling


class Fabric:
    """The fabric as switches and hosts have reported it. Use it from one thread at a time; ``view`` results may be
    shared."""

    def __init__(self, given: TopologySpec | None = None) -> None:
        self.given = given
        self.switches: dict[str, SwitchInfo] = {}
        self.hosts: dict[str, int] = {}
        """Registered hosts, with their numbers."""
        self.out_of_order: set[str] = set()
        """Hosts whose NICs take packets out of order."""
        self.nics: dict[str, NicInfo] = {}
        """The NICs of hosts whose NIC is not p4gen's own."""
        self.switch_numbers: dict[str, int] = {}
        self.ports_down: set[tuple[str, int]] = set()
        self.silent: dict[str, str] = {}
        """Switches that do not answer, or answer incorrectly, with the reason."""
        self.cordoned: set[str] = set()
        """Switches that new placements, and hosts that new jobs are to leave alone."""
        self._doubted: dict[tuple[str, int], float] = {}
        """Ports over which nothing is acknowledged, with the time (``time.monotonic``) until which they are not
        used."""
        self._view: View | None = None

    @property
    def view(self) -> View:
        """The current state of everything."""
        if self._view is None:
            self._view = self._look()
        return self._view

    # --- registration ---

    def add_switch(self, info: SwitchInfo) -> None:
        """Register a switch, or the same one with other properties. Raises ``ManagerError``."""
        self._check(info)
        self.switches[info.name] = info
        if info.name not in self.switch_numbers:
            self.switch_numbers[info.name] = _next(
                self.switch_numbers, self.given.switches if self.given else None, info.name
            )
        ports = {link.port for link in info.links}
        if self.given is None:
            self.ports_down = {(name, port) for name, port in self.ports_down if name != info.name or port in ports}
        self._view = None

    def remove_switch(self, name: str) -> None:
        """Undo the registration of a switch."""
        self.switches.pop(name, None)
        self.silent.pop(name, None)
        self._view = None

    def add_host(self, host: HostInfo) -> bool:
        """Register a host, or the same one with another NIC. Returns whether this is news. Raises ``ManagerError``."""
        name = host.name
        if self.given is not None and name not in self.given.hosts:
            raise ManagerError(Code.INVALID, f"there is no host '{name}' in topology {self.given.name}")
        if name in self.switches:
            raise ManagerError(Code.INVALID, f"{name} is registered as a switch")
        wrong = list(host.nic.problems())
        if wrong:
            raise ManagerError(Code.INVALID, "\n".join(f"the NIC of {name}: {problem}" for problem in wrong))
        new = name not in self.hosts
        if new:
            self.hosts[name] = _next(self.hosts, self.given.hosts if self.given else None, name)
            self._view = None
        before = name in self.out_of_order, self.nics.pop(name, OUR_NIC)
        (self.out_of_order.add if host.may_be_sprayed else self.out_of_order.discard)(name)
        if host.nic != OUR_NIC:
            self.nics[name] = host.nic
        if before[1] != host.nic:
            self._view = None
        return new or before != (host.may_be_sprayed, host.nic)

    def _check(self, info: SwitchInfo) -> None:
        def refuse(code: Code, reason: str) -> None:
            raise ManagerError(code, reason)

        name = info.name
        known = self.switches.get(name)
        if known is not None and known.address != info.address:
            refuse(Code.EXISTS, f"{name} is already registered, with address {known.address}")
        if name in self.hosts:
            refuse(Code.INVALID, f"{name} is registered as a host")
        if self.given is not None:
            if name not in self.given.switches:
                refuse(Code.INVALID, f"there is no switch '{name}' in topology {self.given.name}")
            last = len(self.given.ports[name]) - 1
        else:
            last = max((link.port for link in info.links), default=-1)
            twice = _twice(f"port {link.port}" for link in info.links)
            twice += _twice(f"neighbour {link.neighbour}" for link in info.links)
            if twice:
                refuse(Code.INVALID, f"{name}: {', '.join(twice)} occurs twice")
            for link in info.links:
                for other in self.switches.values():
                    if other.name == name or link.neighbour not in self.hosts:
                        continue
                    if any(theirs.neighbour == link.neighbour for theirs in other.links):
                        refuse(Code.INVALID, f"host {link.neighbour} is already connected to {other.name}")
        if last >= info.spec.ports:
            refuse(Code.INVALID, f"{name} has a link at port {last}; its program has {info.spec.ports} ports")
        specs = {each.name: each.spec for each in self.switches.values()}
        ipv6 = over_ipv6((specs or {name: info.spec}).values())
        if over_ipv6((specs | {name: info.spec}).values()) != ipv6 or not (info.spec.ipv6 if ipv6 else info.spec.ipv4):
            kind = "IPv6" if ipv6 else "IPv4"
            refuse(Code.INVALID, f"{name}: RoCEv2 is over {kind} here; with {info.spec.program} it could not stay so")

    # --- link state ---

    def set_links(self, switch: str, ports: Mapping[int, bool]) -> bool:
        """Set the link states of a switch's ports. Returns whether any state changed. Raises ``ManagerError``."""
        if switch not in self.switches:
            raise ManagerError(Code.NOT_FOUND, f"switch {switch} is not registered")
        known = range(len(self.view.topology.ports.get(switch, ())))
        wrong = sorted(port for port in ports if port not in known)
        if wrong:
            raise ManagerError(Code.INVALID, f"{switch} has no link at port {', '.join(map(str, wrong))}")
        before = set(self.ports_down)
        changed = False
        for port, up in ports.items():
            (self.ports_down.discard if up else self.ports_down.add)((switch, port))
            changed |= self._doubted.pop((switch, port), None) is not None
        changed |= self.ports_down != before
        if changed:
            self._view = None
        return changed

    def doubt(self, switch: str, port: int, until: float) -> bool:
        """Stop using a link over which nothing is acknowledged, until time ``until`` or until its state is reported.
        Returns whether it was in use."""
        if not 0 <= port < len(self.view.topology.ports.get(switch, ())):
            return False
        fresh = (switch, port) not in self._doubted
        self._doubted[switch, port] = until
        if fresh:
            self._view = None
        return fresh

    def trust(self, now: float) -> bool:
        """Use links again whose time is over. Returns whether there are any."""
        over = [at for at, until in self._doubted.items() if until <= now]
        for at in over:
            del self._doubted[at]
        if over:
            self._view = None
        return bool(over)

    def set_silent(self, switch: str, reason: str | None) -> bool:
        """Record that a switch does not answer, or answers again (None). Returns whether this changes anything."""
        before = self.silent.get(switch)
        if reason is None:
            self.silent.pop(switch, None)
        else:
            self.silent[switch] = reason
        if (before is None) == (reason is None):
            return False
        self._view = None
        return True

    def links_down(self, switch: str) -> tuple[str, ...]:
        """A switch's neighbours at links that are down, by port."""
        links = self.view.topology.ports.get(switch, ())
        down = self.ports_down | self._doubted.keys()
        return tuple(link.other(switch) for port, link in enumerate(links) if (switch, port) in down)

    # --- queries ---

    def addresses(self, host: str) -> HostAddresses:
        """A host's addresses. Raises ``KeyError`` for a host that is not in the topology."""
        view = self.view
        names = view.names
        gateway = names.mac[switch_of(view.topology, host)]
        return HostAddresses(names.mac[host], names.ip[host], gateway, names.second.get(host, 0))

    def program(self, hosts: Sequence[str]) -> ServingSpec | None:
        """The program that defines the calls of a ring of hosts: the program of the first of the hosts' switches that
        serves groups, otherwise of any switch that does; None if no switch does."""
        view = self.view
        near = [switch_of(view.topology, host) for host in hosts if host in view.topology.hosts]
        return next((view.specs[name] for name in (*near, *view.specs) if name in view.specs), None)

    def _look(self) -> View:
        programs = {name: info.spec for name, info in self.switches.items()}
        down: dict[str, str] = {}
        if self.given is not None:
            topology, names = self.given, Names.of(self.given, programs.values())
        else:
            topology, down = self._discover()
            names = Names.numbered(self.hosts, self.switch_numbers, programs.values())
        for switch in topology.switches:
            for port, link in enumerate(topology.ports[switch]):
                if (switch, port) in self.ports_down:
                    down[link.name] = f"link {link.name} is down"
                elif (switch, port) in self._doubted:
                    down.setdefault(link.name, f"{link.other(switch)} acknowledges nothing of {switch}'s")
        for switch in topology.switches:
            reason = self.silent.get(switch)
            if switch not in programs:
                reason = f"switch {switch} is not registered"
            if reason is not None:
                down |= {link.name: reason for link in topology.ports[switch]}
        return View(topology, names, programs, down, dict(self.nics))

    def _discover(self) -> tuple[Discovered, dict[str, str]]:
        links: dict[tuple[str, str], Link] = {}
        down: dict[str, str] = {}
        cabling: dict[str, tuple[Link, ...]] = dict.fromkeys(self.hosts, ())
        for name, info in self.switches.items():
            neighbours = {link.port: link.neighbour for link in info.links}
            mine = []
            for port in range(max(neighbours, default=-1) + 1):
                other = neighbours.get(port, f"{name}_port{port}")
                ends = (name, other) if (other, name) not in links and other not in self.hosts else (other, name)
                link = links.setdefault(ends, Link.model_construct(ends=ends))
                mine.append(link)
                if other in self.hosts:
                    cabling[other] = (link,)
                elif other not in self.switches:
                    down[link.name] = f"{other} is not registered"
                elif not any(theirs.neighbour == name for theirs in self.switches[other].links):
                    down[link.name] = f"{other} does not know of a link to {name}"
            cabling[name] = tuple(mine)
        hosts = tuple(host for host in self.hosts if cabling[host])
        found = Discovered.model_construct(
            name="discovered",
            switches=tuple(self.switches),
            hosts=hosts,
            links=tuple(links.values()),
            ranks=None,
            root=None,
            cabling=cabling,
        )
        return found, down


def _twice(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


def _next(taken: Mapping[str, int], given: tuple[str, ...] | None, name: str) -> int:
    """The position in a given topology, or the first number after all others."""
    return given.index(name) if given is not None else max(taken.values(), default=-1) + 1
