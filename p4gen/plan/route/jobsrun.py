"""A plan of several jobs on packets: all make an AllReduce at the same time, at the rates of the plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from p4gen.errors import FailedError
from p4gen.families import load_collective
from p4gen.groups.wire import pace, payload_share
from p4gen.host.transport.clock import SECOND
from p4gen.model import EngineName
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.simulation import Simulation
from p4gen.plan.route.confirm import HIGH, LOW
from p4gen.plan.route.jobsplan import JobsPlan
from p4gen.plan.route.wire import round_trip, timeout_of, window_of
from p4gen.vocabulary import CollectiveSpec


@dataclass(frozen=True)
class JobRun:
    """A job's goodput in bit/s, as predicted and as measured."""

    name: str
    size: int
    """Bytes of each rank."""
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.measured / self.predicted

    @property
    def ok(self) -> bool:
        """Whether the goodput is the predicted one, within a few per cent."""
        return LOW <= self.ratio <= HIGH


def run_jobs(plan: JobsPlan, mode: str, size: int, seed: int, engine: EngineName) -> tuple[JobRun, ...]:
    """Run the jobs on links that have what is spare. The fastest tree reduces ``size`` bytes of each rank, others as
    much less as they are slower, so that all take equally long.

    Raises ``FailedError`` if a result is wrong, or a packet was dropped.
    """
    first = plan.plans[0].first
    spare = plan.jobs[0].fabric.spare
    links = tuple(
        link.model_copy(update={"bandwidth": int(spare[link.name])}) if link.name in spare else link
        for link in first.topology.links
    )
    topology = first.topology.changed(links=links)
    trees = [(tree, rate) for each in plan.plans for tree, rate in zip(each.plans, each.rates, strict=True)]
    rates = [rate for _, rate in trees]
    fields = {"mode": mode, "pipelines": first.pipelines, "ports": first.ports, "groups": 32}
    spec = load_collective(None, fields)
    trip = max(round_trip(tree, spec) for tree, _ in trees)
    flows = sum((tree.shape.loads(tree.fabric) for tree, _ in trees), Counter[str]())
    spec = load_collective(None, fields | {"window": window_of(topology, flows, max(rates), trip, spec, paced=True)})
    config = SimConfig(topology, spec, seed=seed, engine=engine, timeout=timeout_of(min(rates), trip, spec))
    sizes = [_size(size, rate / max(rates), spec) for rate in rates]
    work = tuple(
        Work((Call(size=own),), tree.ranks, None, tree.tree, pace(rate, spec, config.ack_every))
        for (tree, rate), own in zip(trees, sizes, strict=True)
    )
    simulation = Simulation(replace(config, work=work))
    result = simulation.run()
    if not result.ok or result.drops.total():
        raise FailedError("; ".join((*result.errors, *result.stuck)) or f"{result.drops.total()} packets were dropped")
    share = payload_share(spec, config.ack_every)
    found, groups = [], iter(zip(work, simulation.groups, strict=True))
    for job, each in zip(plan.jobs, plan.plans, strict=True):
        mine = [next(groups) for _ in each.plans]
        calls = [call for _, group in mine for rank in group.ranks for call in rank.made]
        duration = max(call.finished or 0 for call in calls) - min(call.started or 0 for call in calls)
        bytes_each = sum(one.calls[0].size for one, _ in mine)
        found.append(JobRun(job.name, bytes_each, each.rate * share, bytes_each * 8 * SECOND / duration))
    return tuple(found)


def _size(size: int, share: float, spec: CollectiveSpec) -> int:
    """Whole messages, at least one."""
    unit = spec.message * spec.payload_bytes
    return unit * max(1, round(size * share / unit))
