"""Jobs at a switch that adds their workers' vectors, and what the workers send and get.

Each frame that leaves is compared byte for byte with one that is built here from what workers have sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p4gen.groups.group import SwitchConfig
from p4gen.papers.switchml.control import MlJob, Worker, configuration
from p4gen.papers.switchml.frames import Update, first_qp
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.ptf.scenario import Output, SwitchTest, composed
from p4gen.rocev2.headers import Ethernet, IPv4

Vectors = list[npt.NDArray[Any]]
"""A packet's elements of each worker."""


class UpdateTest(SwitchTest):
    """Jobs whose worker i is behind the i-th port; offsets of a slot grow by one for each use."""

    spec: SwitchmlSpec
    kind = SwitchmlSpec

    def unfit(self) -> str | None:
        spec = self.spec
        small = spec.groups < 2 or spec.fan_in < 3 or spec.slots < 6
        return "it is about programs with two jobs, three workers and six slots" if small else None

    def setUp(self) -> None:
        super().setUp()
        self.jobs: list[MlJob] = []
        self.sums: Counter[tuple[int, int]] = Counter()
        """Over RoCEv2: how many each worker, from 1, has got for a slot of the switch."""
        self.icrc = bytes(4)
        """That of the last update."""
        self.first = self.random.choice((0, self.random.getrandbits(32), (1 << 32) - 2))
        """The offset of the first use of a slot: offsets wrap."""
        self.reasons = {
            (str(drop.module.gress), f"{drop.module.name}.{drop.drop.reason}"): drop.index
            for drop in composed(self.spec).drops
        }

    # --- jobs ---

    def job(self, workers: int = 3, *, number: int = 7, base: int = 1, slots: int = 3, epoch: int = 1) -> MlJob:
        """A job that the switch does not serve yet."""
        members = tuple(
            Worker(port, 0x020000000100 | i, 0x0A000100 | number << 16 | i, 0xFFFFFE - (i << 8), 0xDEADBEEF ^ i)
            for i, port in enumerate(self.spec.architecture.front_ports(workers))
        )  # queue pairs of the first one go round
        return MlJob(number, members, base, slots, 0x02000000FF00 | number, 0x0A00FF00 | number, epoch)

    def served(self, workers: int = 3, **fields: int) -> MlJob:
        """A job that the switch serves from now on, beside those that it serves already."""
        job = self.job(workers, **fields)
        before, after = (configuration(self.spec, jobs) for jobs in (self.jobs, [*self.jobs, job]))
        self.jobs.append(job)
        new = tuple(entry for entry in after.entries if entry not in before.entries)
        groups = tuple(group for group in after.multicast_groups if group not in before.multicast_groups)
        self.install(SwitchConfig(new, groups))
        return job

    def anew(self, workers: int = 3, **fields: int) -> MlJob:
        """A switch that is as in the beginning serves a job."""
        self.control.reset()
        self.jobs.clear()
        self.sums.clear()
        return self.served(workers, **fields)

    def vectors(self, workers: int = 3) -> Vectors:
        """Random elements: sums wrap."""
        return [
            np.array([self.random.getrandbits(32) for _ in range(self.spec.lanes)], np.uint32) for _ in range(workers)
        ]

    # --- packets ---

    def update(self, job: MlJob, values: npt.NDArray[Any], use: int = 0, slot: int = 0, **fields: int) -> Update:
        """What a worker sends in the ``use``-th use of a slot; its version alternates."""
        whole: dict[str, int] = {
            "job": job.number, "epoch": job.epoch, "version": use % 2, "slot": slot,
            "offset": (self.first + use) % (1 << 32), **fields,
        }  # fmt: skip
        return Update(**whole, data=values.astype(">u4").tobytes())

    def headers(self, job: MlJob, worker: int) -> tuple[Ethernet, IPv4]:
        """The headers of what a worker sends."""
        sender = job.workers[worker]
        return Ethernet(job.mac, sender.mac), IPv4(sender.ip, job.ip, ttl=7, identification=0x1234)

    def contribute(self, job: MlJob, worker: int, update: Update) -> None:
        """A worker, counted from 0, sends an update."""
        self.send(job.workers[worker].port, self.frame(update, *self.headers(job, worker), worker))

    def frame(self, update: Update, ethernet: Ethernet, ip: IPv4, worker: int = 0) -> bytes:
        """An update as a worker sends it; over RoCEv2 with any PSN."""
        if not self.spec.roce:
            return update.frame(ethernet, ip, src_port=5000 + worker)
        packet = update.write(ethernet, ip, first_qp(worker + 1), self.random.getrandbits(24))
        frame = replace(packet, udp=replace(packet.udp, src_port=5000 + worker)).sealed().to_bytes()
        self.icrc = frame[-4:]
        return frame

    def result(self, job: MlJob, worker: int, update: Update, tos: int = 0) -> Output:
        """What a worker gets."""
        to = job.workers[worker]
        ethernet, ip = Ethernet(to.mac, job.mac), IPv4(job.ip, to.ip, ttl=64, tos=tos, identification=0x1234)
        if not self.spec.roce:
            return Output(to.port, update.frame(ethernet, ip))
        pair = worker + 1, job.base + update.slot
        packet = update.write(ethernet, ip, to.qp, self.sums[pair], to.rkey)
        self.sums[pair] += 1
        return Output(to.port, packet.sealed(icrc=None if self.spec.icrc.right else self.icrc).to_bytes())

    def complete(self, job: MlJob, vectors: Vectors, use: int = 0, slot: int = 0, order: Iterable[int] = ()) -> Update:
        """All workers contribute, in an order; all of them get the sum, which is returned, and nobody before."""
        *early, last = order or self.random.sample(range(len(job.workers)), len(job.workers))
        for worker in early:
            self.contribute(job, worker, self.update(job, vectors[worker], use, slot))
            self.expect_nothing()
        self.contribute(job, last, self.update(job, vectors[last], use, slot))
        total = self.total(job, vectors, use, slot)
        self.expect([self.result(job, worker, total) for worker in range(len(job.workers))])
        return total

    def total(self, job: MlJob, vectors: Vectors, use: int = 0, slot: int = 0) -> Update:
        """The sum of vectors."""
        return self.update(job, np.array(np.sum(vectors, axis=0, dtype=np.uint32)), use, slot)

    def answered(self, job: MlJob, worker: int, update: Update, total: Update) -> None:
        """A worker that sends an update gets a result alone."""
        self.contribute(job, worker, update)
        self.expect([self.result(job, worker, replace(total, offset=update.offset))])

    # --- what is refused ---

    def refused(self, reason: str, port: int, frame: bytes, gress: str = "ingress") -> None:
        """A frame is dropped for a reason."""
        counter, index = f"Inc{gress.capitalize()}.drops", self.reasons[gress, reason]
        before = self.counts(counter)
        self.send(port, frame)
        self.expect_nothing()
        self.equal("drops", self.counts(counter) - before, {index: 1})

    def ignored(self, job: MlJob, worker: int, update: Update, reason: str) -> None:
        """A worker's update is dropped for a reason."""
        frame = self.frame(update, *self.headers(job, worker), worker)
        self.refused(reason, job.workers[worker].port, frame)
