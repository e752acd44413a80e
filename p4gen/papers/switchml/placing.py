"""Where a job of all ranks around one switch is: the ports and the addresses of its workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from p4gen.arch import Architecture
from p4gen.errors import InputError
from p4gen.groups.config import routing
from p4gen.groups.group import SwitchConfig
from p4gen.papers.switchml.control import MlJob, Worker
from p4gen.papers.switchml.spec import MOST_WORKERS, SwitchmlSpec
from p4gen.plan.placement.placer import Names, routes
from p4gen.rocev2.headers import ipv4
from p4gen.vocabulary.topology import TopologySpec

SWITCH_ADDRESS: Final = ipv4("10.254.0.1")


def fitted(spec: SwitchmlSpec, topology: TopologySpec) -> SwitchmlSpec:
    """The program with as many workers and ports as the topology has, unless the spec says how many. Raises
    ``InputError`` unless that has one switch."""
    _check(topology)
    workers = len(topology.rank_hosts)
    if workers > MOST_WORKERS:
        raise InputError(f"{topology.name} has {workers} ranks; a job has {MOST_WORKERS} workers at most")
    degree = len(topology.ports[topology.switches[0]])
    wanted = {"fan_in": max(workers, spec.fan_in), "ports": max(degree, spec.ports)}
    return SwitchmlSpec.model_validate(wanted | spec.model_dump(mode="json", exclude_unset=True))


@dataclass(frozen=True)
class Plain:
    """The network before there is a job (``p4gen.net.world.network.Addresses``)."""

    switch: str
    mac: Mapping[str, int]
    ip: Mapping[str, int]
    switches: Mapping[str, SwitchConfig]
    architectures: Mapping[str, Architecture]
    tree_depths: Mapping[int, int]

    @classmethod
    def of(cls, topology: TopologySpec, spec: SwitchmlSpec) -> Plain:
        """The network of a topology. Raises ``InputError`` unless that has one switch."""
        _check(topology)
        names, (switch,), arch = Names.of(topology), topology.switches, spec.architecture
        plain = SwitchConfig(routing(*routes(topology, names, switch, {}, arch)), (), ())
        return cls(switch, names.mac, names.ip, {switch: plain}, {switch: arch}, {SWITCH_ADDRESS: 0})

    def job(self, topology: TopologySpec, slots: int) -> MlJob:
        """A job of all ranks, with as many slots."""
        links, arch = topology.ports[self.switch], self.architectures[self.switch]
        workers = (
            Worker(arch.front_port(links.index(topology.ports[host][0])), self.mac[host], self.ip[host])
            for host in topology.rank_hosts
        )
        return MlJob(1, tuple(workers), 0, slots, self.mac[self.switch], SWITCH_ADDRESS)


def _check(topology: TopologySpec) -> None:
    if len(topology.switches) != 1:
        raise InputError(f"{topology.name} has {len(topology.switches)} switches; SwitchML's jobs are around one")
