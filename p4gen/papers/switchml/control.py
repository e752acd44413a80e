"""From jobs and their workers to the configuration of a switch of SwitchML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from p4gen.errors import InputError
from p4gen.groups import addresses
from p4gen.groups.entrances import port_problems
from p4gen.groups.family import GroupEntries
from p4gen.groups.group import GroupContext, SwitchConfig
from p4gen.groups.jobs import NumberedJob, holds, refusals
from p4gen.groups.jobs import problems as job_problems
from p4gen.model.entries import Action, Entry, Exact, MulticastGroup, Replica
from p4gen.papers.switchml.headers import KEY
from p4gen.papers.switchml.spec import SwitchmlSpec


@dataclass(frozen=True)
class Worker:
    """A worker, whose number in its job is its place there, from 1."""

    port: int
    mac: int
    ip: int
    qp: int = 0
    """Over RoCEv2: its queue pair for slot 0; those of the other slots follow."""
    rkey: int = 0
    """The key of its memory."""


@dataclass(frozen=True)
class MlJob:
    """A job at a switch: its workers, and the slots [base, base + slots) of its pool."""

    number: int
    """Unique on the switch; in the header."""
    workers: tuple[Worker, ...]
    base: int
    slots: int
    mac: int
    """The switch's own addresses."""
    ip: int
    epoch: int = 1
    """Its generation: another one than those before it with any of its slots."""

    @property
    def key(self) -> int:
        """Over RoCEv2: the remote key of vectors for the first buffer."""
        return KEY.pack(job=self.number, epoch=self.epoch, version=0, slot=0)


def configuration(spec: SwitchmlSpec, jobs: Sequence[MlJob], gateways: Mapping[int, int] | None = None) -> SwitchConfig:
    """What a switch must hold to serve jobs. ``gateways`` are more addresses that it answers ARP for.

    Raises ``InputError``, naming every job that the program cannot serve, and why.
    """
    found = list(problems(spec, jobs))
    if found:
        raise InputError(*found)
    macs = {job.ip: job.mac for job in jobs}
    entries = [*addresses.own(spec, macs), *addresses.neighbours({**(gateways or {}), **macs})]
    entries += (Entry("sources", {"hdr.ipv4.src_addr": Exact(ip)}, Action("NoAction")) for ip in sorted(macs))
    groups = []
    for job in jobs:
        number = 1 + job.number  # whatever other jobs come and go
        entries += _entries(spec, job, number)
        copies = (Replica(worker.port, of) for of, worker in enumerate(job.workers, start=1))
        groups.append(MulticastGroup(number, tuple(copies)))
    return SwitchConfig(tuple(entries), tuple(groups))


def problems(spec: SwitchmlSpec, jobs: Sequence[MlJob]) -> Iterator[str]:
    """Why a program cannot serve these jobs together, a line each."""
    named = [NumberedJob(job.number, job.epoch, [worker.ip for worker in job.workers]) for job in jobs]
    yield from job_problems(named, spec.groups, spec.fan_in)
    taken: set[int] = set()
    for job in jobs:
        at = f"job {job.number}"
        slots = range(job.base, job.base + job.slots)
        if not slots or slots[0] < 0 or slots[-1] >= spec.slots:
            yield f"{at}: slots from {job.base} up to {job.base + job.slots}; the program has {spec.slots}"
        elif not taken.isdisjoint(slots):
            yield f"{at}: another job has some of its slots"
        taken.update(slots)
        for number, worker in enumerate(job.workers, start=1):
            yield from (f"{at}: worker {number}: {problem}" for problem in port_problems(spec, (worker.port,)))


def job_of(group: GroupContext) -> MlJob:
    """A group as a job, whose number is that of the context. Memory of its workers has the key of the first buffer."""
    near, ends = group.edges[0].local, [(edge.port, edge.remote) for edge in group.edges]
    job = MlJob(group.context, (), group.base, group.slots, near.mac, near.ip, group.epoch)
    workers = (Worker(port, remote.mac, remote.ip, remote.qp, job.key) for port, remote in ends)
    return replace(job, workers=tuple(workers))


def _entries(spec: SwitchmlSpec, job: MlJob, group: int) -> Iterator[Entry]:
    size = {"last": job.slots - 1} if spec.tofino else {"slots": job.slots}
    members = {"epoch": job.epoch, "base": job.base, **size, "members": len(job.workers), "group": group}
    yield Entry("jobs", {"job": Exact(job.number)}, Action("set_job", members))
    for number, worker in enumerate(job.workers, start=1):
        known = {"worker": number, "worker_bit": 1 << (number - 1), "port": worker.port}
        yield Entry("workers", {"job": Exact(job.number), "address": Exact(worker.ip)}, Action("set_worker", known))
        ends = {"src_mac": job.mac, "dst_mac": worker.mac, "src_address": job.ip, "dst_address": worker.ip}
        ends |= {"first_qp": worker.qp, "rkey": worker.rkey} if spec.roce else {}
        key = {"job": Exact(job.number), "worker": Exact(number)}
        yield Entry("destinations", key, Action("set_addresses", ends))


FACET: GroupEntries[SwitchmlSpec] = GroupEntries(
    configuration=lambda spec, groups, gateways: configuration(spec, list(map(job_of, groups)), gateways),
    last_edge_id=lambda spec: spec.groups * spec.fan_in,
    holds=holds,
    refusals=refusals,
)
