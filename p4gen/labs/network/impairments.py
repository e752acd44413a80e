"""Faults of a running lab's links: those of hosts' links at their NICs, those between switches in ``wires``."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from p4gen.errors import InputError
from p4gen.labs.hosts.hosts import HostClient
from p4gen.labs.network import faults
from p4gen.labs.network.faults import Troubles
from p4gen.labs.nodes import Nodes
from p4gen.records import to_plain
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import Link, TopologySpec

ALL: Final = "all"
"""The place that stands for every host's link."""


def links_at(topology: TopologySpec, place: str) -> list[Link]:
    """The links between switches at a place: a switch (all of its own), or a link (``leaf0-spine0``). Raises
    ``InputError`` for a place that has none."""
    between = [link for link in topology.links if set(link.ends) <= set(topology.switches)]
    found = [link for link in between if place in link.ends or place in (link.name, "-".join(link.ends[::-1]))]
    if not found:
        names = [*topology.hosts, *(link.name for link in between)]
        raise InputError(
            f"there is no host '{place}', and no link between switches at it; there are {', '.join(names)}"
        )
    return found


def check_withstood(spec: ProgramSpec, kind: str) -> None:
    """Raises ``InputError`` for a fault that a program cannot withstand."""
    if kind == "reorder" and spec.needs_order:
        raise InputError(
            f"{spec.program} takes an older packet for a newer one: links must keep the order of packets, so none may "
            "be reordered"
        )
    if kind == "corrupt" and spec.needs_intact:
        raise InputError(
            f"{spec.program} checks no sum of what it changes, so it takes corrupt packets for right ones: none may be "
            "corrupted"
        )


class Impairments:
    """The faults of ``lab``'s links. ``wires`` is the process for links between switches; None if these have none.

    All methods raise ``P4genError`` with the reason.
    """

    def __init__(self, lab: Nodes, wires: HostClient | None) -> None:
        self._lab, self._wires = lab, wires
        self.hosts = {host: Troubles() for host in lab.topology.hosts}
        """Of each host's link."""
        self.links: dict[str, Troubles] = {}
        """Of links between switches, by name; only those that have any."""

    def suffer(self, place: str, kind: str, value: str) -> Troubles:
        """Set one kind of fault of a host's link, of all hosts' (``all``), of a switch's links to other switches, or of
        one link between switches, in both directions. Returns the faults of the first of them."""
        amount = faults.parse(kind, value)
        check_withstood(self._lab.job.spec, kind)
        if place == ALL or place in self._lab.hosts:
            names = list(self._lab.hosts) if place == ALL else [place]
            for name in names:
                self._set_host(name, replace(self.hosts[name], **{kind: amount}))  # type: ignore[arg-type]
            return self.hosts[names[0]]
        links = links_at(self._lab.topology, place)
        for link in links:
            self._set_link(link, replace(self.links.get(link.name, Troubles()), **{kind: amount}))  # type: ignore[arg-type]
        return self.links.get(links[0].name, Troubles())

    def heal(self) -> None:
        """Remove all faults of hosts' links and of links between switches."""
        for name in self.hosts:
            self._set_host(name, Troubles())
        for link in self._lab.topology.links:
            if link.name in self.links:
                self._set_link(link, Troubles())

    def counts(self) -> dict[str, dict[str, int]]:
        """Number of frames that faults of links between switches have lost, by link, then by reason."""
        return {} if self._wires is None else dict(self._wires.call("counters"))

    def _set_host(self, name: str, troubles: Troubles) -> None:
        self.hosts[name] = troubles
        seed = self._lab.job.wanted.seed if troubles.any else 0
        self._lab.hosts[name].call("faults", troubles=to_plain(troubles), seed=seed)

    def _set_link(self, link: Link, troubles: Troubles) -> None:
        if self._wires is None:
            raise InputError(
                f"{link.name} has no faults in this lab: between switches they need --target bmv2, connections "
                "(--mode themis), or a fault of such a link on the command line"
            )
        network = self._lab.network
        if link.name in network.rates:
            raise InputError(f"{link.name} has a bandwidth of its own (--bandwidth), and so no faults in its middle")
        interfaces = network.middle(link)
        fields = {"link": link.name, "interfaces": interfaces, "troubles": to_plain(troubles)}
        fields["in_order"] = self._lab.job.spec.needs_order
        if troubles.any:
            network.bridge(link, joined=False)
        self._wires.call("set", seed=self._lab.job.wanted.seed, **fields)
        if troubles.any:
            self.links[link.name] = troubles
        else:
            self.links.pop(link.name, None)
            network.bridge(link, joined=True)
