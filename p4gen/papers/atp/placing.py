"""Where the jobs of all ranks of a topology are: what each switch has to know of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p4gen.errors import InputError
from p4gen.papers.atp.control import AtpJob, Copy, Entrance, Site
from p4gen.papers.atp.frames import bits
from p4gen.papers.atp.spec import MOST_WORKERS, AtpSpec
from p4gen.plan.placement.placer import switch_of
from p4gen.plan.placement.plain import PlainPlacement
from p4gen.vocabulary.topology import TopologySpec


@dataclass(frozen=True)
class PlacedJob:
    """A job of all ranks, one of which has the server on its host."""

    job: AtpJob
    hosts: tuple[str, ...]
    """The hosts of all workers; that of a worker that sends to a server on its own host without a switch is the last
    one, and not in ``job.workers``."""
    server: str
    """The server's host."""


def fitted(spec: AtpSpec, topology: TopologySpec, jobs: int) -> AtpSpec:
    """The program with as many workers, ports and jobs as there are, unless the spec says how many."""
    ranks = len(topology.rank_hosts)
    if not 2 <= ranks <= MOST_WORKERS:
        raise InputError(f"{topology.name} has {ranks} ranks; a job has 2 to {MOST_WORKERS} workers")
    degree = max(len(topology.ports[switch]) for switch in topology.switches)
    wanted = {"fan_in": max(ranks, spec.fan_in), "ports": max(degree, spec.ports), "groups": max(jobs, spec.groups)}
    return AtpSpec.model_validate(wanted | spec.model_dump(mode="json", exclude_unset=True))


def placed_job(topology: TopologySpec, plain: PlainPlacement, number: int, *, sends: bool, server: int) -> PlacedJob:
    """Job ``number`` of all ranks, with its server on the host of rank ``server``, whose own worker ``sends`` its
    packets through switches as the others do, or hands them to the server."""
    ranks = topology.rank_hosts
    hosts = (*ranks[:server], *ranks[server + 1 :])
    through = ranks if sends else hosts
    job = AtpJob(number, tuple(plain.ip[host] for host in through), plain.ip[ranks[server]])
    return PlacedJob(job, ranks if sends else (*hosts, ranks[server]), ranks[server])


def sites(topology: TopologySpec, plain: PlainPlacement, jobs: Sequence[PlacedJob]) -> dict[str, list[Site]]:
    """The jobs of each switch that has any: those of their workers and servers. All others only route.

    Raises ``InputError`` if packets of a rack pass another rack's switch on their way to the server.
    """
    found: dict[str, list[Site]] = {}
    for placed in jobs:
        racks: dict[str, list[int]] = {switch_of(topology, placed.server): []}
        for number in range(len(placed.job.workers)):
            racks.setdefault(switch_of(topology, placed.hosts[number]), []).append(number)
        for switch in racks:
            found.setdefault(switch, []).append(_site(topology, plain, placed, racks, switch))
    return found


def _site(
    topology: TopologySpec, plain: PlainPlacement, placed: PlacedJob, racks: dict[str, list[int]], switch: str
) -> Site:
    job, own, root = placed.job, racks[switch], next(iter(racks))
    others = {rack: workers for rack, workers in racks.items() if rack != switch} if switch == root else {}
    for on_the_way in _between(topology, switch, placed.server):
        if on_the_way in racks and on_the_way != root:
            raise InputError(f"{topology.name}: {on_the_way} has workers, and those of {switch} send through it")

    def ports(host: str) -> list[int]:
        return [plain.architectures[switch].front_port(port) for port in topology.next_ports(switch, host)]

    def copy(worker: int) -> Copy:
        port = topology.next_ports(switch, placed.hosts[worker])[0]
        neighbour = topology.ports[switch][port].other(switch)
        front = plain.architectures[switch].front_port(port)
        return Copy(front, plain.mac[switch], plain.mac[neighbour], job.workers[worker])

    speaks = {worker: 1 << worker for worker in own}
    speaks |= {worker: bits(workers) for workers in others.values() for worker in workers}
    entrances = [
        Entrance(job.workers[worker], port, of, server=placed.hosts[worker] == placed.server)
        for worker, of in speaks.items()
        for port in ports(placed.hosts[worker])
    ]
    if job.server not in (entrance.ip for entrance in entrances):
        entrances += [Entrance(job.server, port, server=True) for port in ports(placed.server)]
    copies = [*map(copy, own), *(copy(workers[0]) for workers in others.values())]
    return Site(job, bits(speaks), tuple(entrances), tuple(copies))


def _between(topology: TopologySpec, switch: str, host: str) -> Iterator[str]:
    """The switches behind one on its shortest paths to a host."""
    for port in topology.next_ports(switch, host):
        following = topology.ports[switch][port].other(switch)
        if following != host:
            yield following
            yield from _between(topology, following, host)
