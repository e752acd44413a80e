"""The network of a lab, built by Mininet: namespaces of hosts, veth pairs, links that fail and recover.

Switches are in the lab's own network namespace, each host in a child namespace. Interfaces are called
``<node>-eth<port>``; ports are numbered as in the topology. The manager assigns hosts' addresses (``hostd``).
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Any, Final

from p4gen.errors import FailedError, InputError
from p4gen.labs.network import bandwidths, mininet
from p4gen.labs.network.hostnet import MTU
from p4gen.labs.prerequisites import interface
from p4gen.packetio.ip import ip
from p4gen.vocabulary.topology import Link, TopologySpec

MANAGEMENT: Final = "100.64.0.1"
"""The address of a lab's manager for hosts that are told not to use its socket; of those for use inside networks (RFC
6598)."""
_NO_IPV6 = "for f in all default; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done 2>/dev/null"
"""Disables IPv6, because the kernel would send neighbour solicitations."""


class Network:
    """The network, from ``build`` on. Raises ``FailedError`` when a part of it cannot be created.

    ``bridged`` links have a kernel bridge in the middle, and fail there. Some switches cannot handle it if their own
    interface goes down: BMv2 (with libpcap 1.10) then waits for that interface and serves no other port. And a link
    between switches can have faults only in its middle (``wires``). ``rates`` are in bit/s, of bridged links by name.
    """

    def __init__(
        self, topology: TopologySpec, bridged: Collection[Link] = (), rates: Mapping[str, int] | None = None
    ) -> None:
        self.topology, self.rates = topology, rates or {}
        self._bridges = {link.name: f"L{number}" for number, link in enumerate(topology.links) if link in bridged}
        """Of links with a bridge its name, in upper case as no name of a node is."""
        self.down: set[frozenset[str]] = set()
        """Links that are down, by their ends."""
        self._modules = mininet.load()
        self._net: Any = None

    def build(self) -> None:
        """Create namespaces, interfaces and links, and bring the interfaces up."""
        node, link = self._modules.node, self._modules.link
        subprocess.run(["sh", "-c", _NO_IPV6], check=False)
        ip("link set lo up")
        try:
            self._net = self._modules.net.Mininet(
                switch=_switch_class(node), host=_host_class(node), link=link.Link, controller=None, build=False
            )
            for number, name in enumerate(self.topology.switches):
                self._net.addSwitch(name, dpid=f"{number + 1:x}")
            for name in self.topology.hosts:
                self._net.addHost(name, ip=None)
            for number, cable in enumerate(self.topology.links):
                # The first end of the pair belongs to a switch, so it is created in this namespace.
                a, b = sorted(cable.ends, key=lambda end: end not in self.topology.switches)
                bridge = self._bridges.get(cable.name)
                if bridge is None:
                    self._net.addLink(a, b, port1=self.port(a, cable), port2=self.port(b, cable))
                    continue
                self._net.addSwitch(bridge, dpid=f"{len(self.topology.switches) + number + 1:x}")
                for port, end in enumerate((a, b)):
                    self._net.addLink(bridge, end, port1=port, port2=self.port(end, cable))
            self._net.build()
        except Exception as error:  # Mininet raises plain Exceptions
            raise FailedError(f"Mininet could not build the network: {str(error).strip()}") from error
        present = ip("-o link")
        expected = [name for switch in self.topology.switches for name in self.interfaces(switch).values()]
        missing = [name for name in expected if f" {name}@" not in present]
        if missing:
            raise FailedError(f"Mininet built the network without {', '.join(missing)}")
        ip(*(f"link set {name} mtu {MTU} arp off up" for name in expected))
        for host in self.topology.hosts:
            self.ip_in(host, f"link set {interface(host, 0)} mtu {MTU} up")
        for bridge in self._bridges.values():
            ip(
                f"link add {bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
                *(f"link set {interface(bridge, port)} mtu {MTU} master {bridge} up" for port in (0, 1)),
                f"link set {bridge} mtu {MTU} up",
            )
        limited = [(link, self.rates[link.name]) for link in self.topology.links if link.name in self.rates]
        bandwidths.limit({device: rate for link, rate in limited for device in self.middle(link)})

    def manage(self) -> None:
        """Give each host a link of its own to this namespace, on which it reaches ``MANAGEMENT``."""
        ip(f"address add {MANAGEMENT}/32 dev lo")
        for number, host in enumerate(self.topology.hosts):
            here, there, own = f"M{number}", f"m{number}", ip_address(int(ip_address(MANAGEMENT)) + 1 + number)
            ip(f"link add {here} type veth peer {there}", f"link set {there} netns {self.pid(host)}")
            ip(f"link set {here} up", f"route add {own}/32 dev {here}")
            self.ip_in(host, f"address add {own}/32 dev {there}", f"link set {there} up")
            self.ip_in(host, f"route add {MANAGEMENT}/32 dev {there}")

    def overflows(self) -> dict[str, int]:
        """By link with a bandwidth of its own: frames for which its queues had no room."""
        limited = [link for link in self.topology.links if link.name in self.rates]
        return {link.name: bandwidths.lost(self.middle(link)) for link in limited}

    def middle(self, link: Link) -> list[str]:
        """The interfaces in the middle of a link that has a bridge, in the order of its ends."""
        bridge = self._bridges[link.name]
        return [interface(bridge, port) for port in (0, 1)]

    def bridge(self, link: Link, *, joined: bool) -> None:
        """Have the bridge of a link forward between its halves, or not: then something else has to."""
        master = f"master {self._bridges[link.name]}" if joined else "nomaster"
        ip(*(f"link set {name} {master}" for name in self.middle(link)))

    def port(self, node: str, link: Link) -> int:
        """The port of a node to which a link is connected."""
        return self.topology.port(node, link)

    def interfaces(self, node: str) -> dict[int, str]:
        """A node's interfaces, by port."""
        return {port: interface(node, port) for port in range(len(self.topology.ports[node]))}

    def pid(self, host: str) -> int:
        """The id of a process in the host's namespace (its shell)."""
        return int(self._net[host].pid)

    def inside(self, host: str) -> list[str]:
        """The prefix of a command that runs it in the host's namespace."""
        return ["mnexec", "-a", str(self.pid(host))]

    def ip_in(self, host: str, *commands: str) -> str:
        """Run ``ip`` commands in a host's namespace. Returns the output."""
        return ip(*commands, before=self.inside(host))

    def link(self, a: str, b: str) -> Link:
        """The link between two nodes. Raises ``InputError``, which lists the node's links, when there is none."""
        for name in (a, b):
            if name not in self.topology.ports:
                raise InputError(f"there is no node '{name}'; there are {', '.join(self.topology.ports)}")
        for link in self.topology.ports[a]:
            if link.other(a) == b:
                return link
        neighbours = ", ".join(link.other(a) for link in self.topology.ports[a])
        raise InputError(f"there is no link between {a} and {b}; {a} has links to {neighbours}")

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Bring a link down or up. Raises ``InputError`` when there is none."""
        link = self.link(a, b)
        if link.name in self._bridges:
            names = self.middle(link)
        else:
            # A host's own end stays up, otherwise it would lose its routes; it has no carrier.
            ends = [end for end in link.ends if end in self.topology.switches]
            names = [interface(end, self.port(end, link)) for end in ends]
        state = "up" if up else "down"
        ip(*(f"link set {name} {state}" for name in names))
        (self.down.discard if up else self.down.add)(frozenset(link.ends))


def _switch_class(node: Any) -> Any:
    class LabSwitch(node.Switch):  # type: ignore[misc]
        """A switch whose process the lab starts, not Mininet."""

        def __init__(self, name: str, **params: Any) -> None:
            super().__init__(name, **params)
            self.delIntf(self.controlIntf)  # lo would be port 0, which belongs to the first link

        def start(self, _controllers: Any) -> None:
            """Nothing: ``p4gen.labs.switches`` starts the process."""

    return LabSwitch


def _host_class(node: Any) -> Any:
    class LabHost(node.Host):  # type: ignore[misc]
        """A host whose kernel sends nothing by itself."""

        def startShell(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802 - Mininet's name
            """Start the shell, then disable IPv6 before an interface exists."""
            super().startShell(*args, **kwargs)
            self.cmd(_NO_IPV6)

        def config(self, **_params: Any) -> Mapping[str, Any]:
            """Configure only the loopback interface; ``hostd`` configures the others."""
            self.cmd("ip link set lo up")
            return {}

    return LabHost
