"""Jobs at a switch that adds their workers' gradients on the way to the server, and what hosts send and get.

Each frame that leaves is compared byte for byte with one that is built here from what hosts have sent.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p4gen.groups.config import routing
from p4gen.groups.group import NextHop, Route, SwitchConfig
from p4gen.model.entries import Entry
from p4gen.papers.atp.control import AtpJob, Copy, Entrance, Site, configuration
from p4gen.papers.atp.frames import Packet, bits
from p4gen.papers.atp.headers import Message
from p4gen.papers.atp.spec import AtpSpec
from p4gen.ptf.scenario import Output, SwitchTest, composed
from p4gen.rocev2.headers import Ethernet, IPv4, ipv4_text

Elements = npt.NDArray[Any]
"""A packet's elements, int32."""
SERVER_PORT = 5
UPLINKS = 6, 7
"""The ports toward other racks."""
OWN_MAC, HOP_MAC = 0x020000000001, 0x020000000F00


class GradientTest(SwitchTest):
    """Jobs whose worker i, from 0, is behind port i, unless it is in another rack. The server is behind port 5."""

    spec: AtpSpec
    kind = AtpSpec

    def unfit(self) -> str | None:
        spec = self.spec
        small = spec.groups < 2 or spec.fan_in < 4 or spec.aggregators < 2 or spec.ports < 8
        return "it is about programs with two jobs, four workers, two aggregators and eight ports" if small else None

    def setUp(self) -> None:
        super().setUp()
        self.sites: list[Site] = []
        self.reasons = {
            (str(drop.module.gress), f"{drop.module.name}.{drop.drop.reason}"): drop.index
            for drop in composed(self.spec).drops
        }
        self.begin()

    def begin(self) -> None:
        """The switch is as in the beginning: it has no jobs."""
        self.control.reset()
        self.sites.clear()
        hops = [NextHop(port, port, OWN_MAC, HOP_MAC | port) for port in range(8)]
        self.control.insert(*routing([], hops))

    # --- jobs ---

    def job(self, workers: int = 3, *, number: int = 7, epoch: int = 1) -> AtpJob:
        """A job that the switch does not serve yet."""
        return AtpJob(
            number, tuple(0x0A000100 | number << 16 | i for i in range(workers)), 0x0A000009 | number << 16, epoch
        )

    def rack(self, job: AtpJob, local: Iterable[int], *, server: bool = True) -> Site:
        """A job at a switch with some of its workers: at the server's, where all others come by the uplinks as one
        rack, or at another one, from which the server is behind the uplinks."""
        own, everyone = sorted(local), range(len(job.workers))
        others = [worker for worker in everyone if worker not in own] if server else []
        entrances = [Entrance(job.workers[worker], worker, 1 << worker) for worker in own]
        entrances += [Entrance(job.workers[worker], port, bits(others)) for worker in others for port in UPLINKS]
        entrances += [Entrance(job.server, port, server=True) for port in ((SERVER_PORT,) if server else UPLINKS)]
        copies = [Copy(worker, OWN_MAC, 0x020000000100 | worker, job.workers[worker]) for worker in own]
        copies += [Copy(UPLINKS[0], OWN_MAC, HOP_MAC | UPLINKS[0], job.workers[other]) for other in others[:1]]
        return Site(job, bits([*own, *others]), tuple(entrances), tuple(copies))

    def serve(self, site: Site) -> Site:
        """The switch serves a job from now on, beside those that it serves already."""
        before, after = (configuration(self.spec, sites) for sites in (self.sites, [*self.sites, site]))
        self.sites.append(site)
        new = tuple(entry for entry in after.entries if entry not in before.entries)
        groups = tuple(group for group in after.multicast_groups if group not in before.multicast_groups)
        self.install(SwitchConfig(new, groups))
        if not any(other.job.server == site.job.server for other in self.sites[:-1]):
            self.control.insert(self.route(site.job.server, SERVER_PORT))
        return site

    def served(self, workers: int = 3, **fields: int) -> Site:
        """A job with all hosts at this switch."""
        return self.serve(self.rack(self.job(workers, **fields), range(workers)))

    def configured(self, table: str) -> tuple[Entry, ...]:
        """The entries of a table for all jobs."""
        return tuple(entry for entry in configuration(self.spec, self.sites).entries if entry.table == table)

    def route(self, address: int, port: int) -> Entry:
        """A route by a port."""
        (entry,) = routing([Route(f"{ipv4_text(address)}/32", port)], ())
        return entry

    def place(self, job: AtpJob, sequence: int) -> int:
        """The aggregator of a packet."""
        return zlib.crc32(bytes((job.number, sequence % 256))) % self.spec.aggregators

    def rival(self, job: AtpJob) -> int:
        """The number of a job that shares places with another one."""
        return next(
            number
            for number in range(256)
            if number != job.number
            and self.place(job, 0) in {self.place(self.job(number=number), sequence) for sequence in range(256)}
        )

    def rivals(self, first: AtpJob, second: AtpJob, sequence: int = 0) -> int:
        """A sequence number of the second job that has the place of one of the first job."""
        wanted = self.place(first, sequence)
        return next(n for n in range(sequence + 1, sequence + 257) if self.place(second, n) == wanted)

    # --- packets ---

    def vectors(self, workers: int = 3) -> list[Elements]:
        """Random elements whose sum is far from the limits."""
        limit = (1 << 31) // (4 * workers)
        return [
            self.numbers(self.random.randrange(-limit, limit) for _ in range(self.spec.lanes)) for _ in range(workers)
        ]

    def numbers(self, values: Iterable[int]) -> Elements:
        """Elements with these values."""
        return np.fromiter(values, np.int32, self.spec.lanes)

    def packet(self, site: Site, workers: Iterable[int], data: Elements, sequence: int = 0, **fields: int) -> Packet:
        """A packet with the elements of these workers."""
        job = site.job
        whole = {"message": Message.GRADIENT, **fields}
        return Packet(
            job.number, job.epoch, sequence=sequence, workers=bits(workers), data=data.astype(">i4").tobytes(), **whole
        )

    def headers(self, site: Site, worker: int, tos: int = 0) -> tuple[Ethernet, IPv4]:
        """The headers of what a worker sends."""
        ip = IPv4(site.job.workers[worker], site.job.server, ttl=7, identification=0x1234, tos=tos)
        return Ethernet(OWN_MAC, 0x020000000100 | worker), ip

    def contribute(self, site: Site, worker: int, packet: Packet, port: int | None = None, tos: int = 0) -> None:
        """A worker's packet comes in, by its own port or by another one."""
        frame = packet.frame(*self.headers(site, worker, tos), src_port=5000 + worker)
        self.send(worker if port is None else port, frame)

    def to_server(self, site: Site, worker: int, packet: Packet, tos: int = 0) -> Output:
        """What goes on to the server, with the headers of what a worker has sent last."""
        ip = replace(self.headers(site, worker, tos)[1], ttl=6)
        return Output(SERVER_PORT, packet.frame(Ethernet(HOP_MAC | SERVER_PORT, OWN_MAC), ip, src_port=5000 + worker))

    def goes_on(self, site: Site, worker: int, packet: Packet, sent_on: Packet | None = None, **fields: int) -> None:
        """A worker's packet, or what it has become, goes on to the server."""
        self.contribute(site, worker, packet, **fields)
        fields.pop("port", None)
        self.expect([self.to_server(site, worker, packet if sent_on is None else sent_on, **fields)])

    def stays(self, site: Site, worker: int, packet: Packet, **fields: int) -> None:
        """A worker's packet stays in its aggregator."""
        before = self.counts("IncIngress.drops")
        self.contribute(site, worker, packet, **fields)
        self.expect_nothing()
        absorbed = self.reasons["ingress", "WaitForWorkers.absorbed"]
        self.equal("drops", self.counts("IncIngress.drops") - before, {absorbed: 1})

    def complete(self, site: Site, vectors: Sequence[Elements], sequence: int = 0, order: Sequence[int] = ()) -> Packet:
        """All workers contribute, in an order; the sum, which is returned, goes on with the last one, and nothing
        before."""
        *early, last = order or self.random.sample(range(len(vectors)), len(vectors))
        for worker in early:
            self.stays(site, worker, self.packet(site, [worker], vectors[worker], sequence))
        total = self.packet(site, range(len(vectors)), self.sum(vectors), sequence)
        self.goes_on(site, last, self.packet(site, [last], vectors[last], sequence), total)
        return total

    def sum(self, vectors: Iterable[Elements]) -> Elements:
        """The sum of elements, which fits."""
        return np.array(np.sum(list(vectors), axis=0, dtype=np.int32))

    def answer(self, site: Site, packet: Packet, port: int = SERVER_PORT, **fields: int) -> None:
        """The server sends a packet, and all get a copy."""
        self.send(port, self.from_server(site, packet, **fields))
        self.expect([self.result(copy, site, packet, **fields) for copy in site.copies])

    def from_server(self, site: Site, packet: Packet, tos: int = 0) -> bytes:
        """The frame of what the server sends: to its first worker, in the place of all."""
        ip = IPv4(site.job.server, site.job.workers[0], ttl=9, identification=0x4321, tos=tos)
        return packet.frame(Ethernet(OWN_MAC, 0x020000000200), ip)

    def result(self, copy: Copy, site: Site, packet: Packet, tos: int = 0) -> Output:
        """A copy of what the server sends."""
        ip = IPv4(site.job.server, copy.ip, ttl=64, identification=0x4321, tos=tos)
        return Output(copy.port, packet.frame(Ethernet(copy.dst_mac, copy.src_mac), ip))

    # --- what is refused ---

    def refused(self, reason: str, port: int, frame: bytes) -> None:
        """A frame is dropped in ingress for a reason."""
        index = self.reasons["ingress", reason]
        before = self.counts("IncIngress.drops")
        self.send(port, frame)
        self.expect_nothing()
        self.equal("drops", self.counts("IncIngress.drops") - before, {index: 1})
