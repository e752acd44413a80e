"""From jobs and their hosts to the configuration of a switch of ATP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from p4gen.errors import InputError
from p4gen.groups import addresses
from p4gen.groups.entrances import port_problems
from p4gen.groups.family import GroupEntries
from p4gen.groups.group import GroupContext, SwitchConfig
from p4gen.groups.jobs import NumberedJob, holds, refusals
from p4gen.groups.jobs import problems as job_problems
from p4gen.model.entries import Action, Entry, Exact, MulticastGroup, Replica
from p4gen.papers.atp.spec import AtpSpec


@dataclass(frozen=True)
class AtpJob:
    """A job: its hosts, wherever they are. Worker i, from 0, is bit i of a set."""

    number: int
    """In the header."""
    workers: tuple[int, ...]
    """Their IPv4 addresses."""
    server: int
    """The server's, which may be a worker's, too."""
    epoch: int = 1
    """Its generation: another one than those before it with the same number."""


@dataclass(frozen=True)
class Entrance:
    """A port by which a host's packets come in."""

    ip: int
    port: int
    workers: int = 0
    """The workers that they can be of: the host itself, or its rack; bits."""
    server: bool = False


@dataclass(frozen=True)
class Copy:
    """Where a copy of a result goes: to a worker, or to a worker of another rack, whose switch copies it."""

    port: int
    src_mac: int
    dst_mac: int
    ip: int


@dataclass(frozen=True)
class Site:
    """A job at a switch."""

    job: AtpJob
    expected: int
    """The workers that send through this switch; bits."""
    entrances: tuple[Entrance, ...]
    copies: tuple[Copy, ...]


def configuration(spec: AtpSpec, sites: Sequence[Site], gateways: Mapping[int, int] | None = None) -> SwitchConfig:
    """What a switch must hold to serve jobs. ``gateways`` are addresses that it answers ARP for.

    Raises ``InputError``, naming every job that the program cannot serve, and why.
    """
    found = list(problems(spec, sites))
    if found:
        raise InputError(*found)
    entries, groups = [*addresses.neighbours(gateways or {})], []
    for site in sites:
        number = 1 + site.job.number  # whatever other jobs come and go
        entries += _entries(site, number)
        copies = (Replica(copy.port, of) for of, copy in enumerate(site.copies, start=1))
        groups.append(MulticastGroup(number, tuple(copies)))
    return SwitchConfig(tuple(entries), tuple(groups))


def problems(spec: AtpSpec, sites: Sequence[Site]) -> Iterator[str]:
    """Why a program cannot serve these jobs together, a line each."""
    named = [NumberedJob(site.job.number, site.job.epoch, site.job.workers) for site in sites]
    yield from job_problems(named, spec.groups, spec.fan_in)
    for site in sites:
        job, at = site.job, f"job {site.job.number}"
        if not site.expected or site.expected >> len(job.workers):
            yield f"{at}: {site.expected:#x} is no set of its workers"
        ports = {entrance.port for entrance in site.entrances} | {copy.port for copy in site.copies}
        for port in sorted(ports):
            yield from (f"{at}: {problem}" for problem in port_problems(spec, (port,)))


def site_of(spec: AtpSpec, group: GroupContext) -> Site:
    """A group at a switch as a job, whose number is that of the context."""
    last, up = len(group.hosts) - 1, group.patterns[0].toward
    workers = group.hosts if spec.server == "worker" else group.hosts[:last]
    job = AtpJob(group.context, workers, group.hosts[last], group.epoch)
    expected, entrances, copies = 0, [], []
    for number, edge in enumerate(group.edges):
        if number == up:
            entrances += [Entrance(job.server, port, server=True) for port in edge.entrances]
            continue
        behind = edge.ranks & (1 << len(workers)) - 1
        expected |= behind
        ranks = [rank for rank in range(len(group.hosts)) if edge.ranks >> rank & 1]
        entrances += [
            Entrance(group.hosts[rank], port, behind, server=rank == last) for rank in ranks for port in edge.entrances
        ]
        if behind:
            copies.append(Copy(edge.port, edge.local.mac, edge.remote.mac, group.hosts[ranks[0]]))
    return Site(job, expected, tuple(entrances), tuple(copies))


def _problems(_: AtpSpec, group: GroupContext) -> Iterator[str]:
    if len(group.hosts) < 2:
        yield "a job has a worker and a server, so two ranks at least"


def _entries(site: Site, group: int) -> Iterator[Entry]:
    job, key = site.job, Exact(site.job.number)
    served = {"epoch": job.epoch, "expected": site.expected, "group": group}
    yield Entry("jobs", {"job": key}, Action("set_job", served))
    for ip in sorted({*job.workers, job.server}):
        yield Entry("members", {"job": key, "address": Exact(ip)}, Action("NoAction"))
    for each in site.entrances:
        match = {"job": key, "address": Exact(each.ip), "port": Exact(each.port)}
        yield Entry("hosts", match, Action("set_host", {"workers": each.workers, "is_server": int(each.server)}))
    for number, copy in enumerate(site.copies, start=1):
        ends = {"src_mac": copy.src_mac, "dst_mac": copy.dst_mac, "address": copy.ip}
        yield Entry("copies", {"job": key, "copy": Exact(number)}, Action("set_addresses", ends))


FACET: GroupEntries[AtpSpec] = GroupEntries(
    configuration=lambda spec, groups, gateways: configuration(
        spec, [site_of(spec, each) for each in groups], gateways
    ),
    last_edge_id=lambda spec: spec.groups * spec.hosts,
    holds=holds,
    refusals=refusals,
    problems=_problems,
)
