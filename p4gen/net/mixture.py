"""Several jobs in one network and one virtual time: collectives of groups, and traffic between hosts.

A job draws from the seed what it would draw alone. Background traffic goes on until all other jobs have ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Final, cast

from typing_extensions import override

from p4gen.errors import InputError
from p4gen.groups.connections import connection_limits
from p4gen.host.transport.clock import SECOND, duration_text
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.net.collectives import simulation as groups
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import SimResult, Simulation, check_order, first_draws, in_use
from p4gen.net.job import Job, Stuck, Task, parts_of
from p4gen.net.result import RunResult
from p4gen.net.traffic import traffic_simulation as traffic
from p4gen.net.traffic.traffic import TrafficConfig
from p4gen.net.traffic.traffic_simulation import TrafficResult, TrafficSimulation
from p4gen.net.traffic.wiring import Wiring
from p4gen.net.world.network import Network
from p4gen.plan.placement.network import Placement, place
from p4gen.plan.placement.plain import PlainPlacement, connected, place_plain
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import CollectiveSpec, ProgramSpec

FIRST_QP: Final = 0x800000
"""Numbers of the queue pairs of traffic; those of groups are below."""
_QPS: Final = 0x10000
"""From the first number of a job to that of the next one."""
MOST_JOBS: Final = (0x1000000 - FIRST_QP) // _QPS


@dataclass(frozen=True)
class JobConfig:
    """A job of a mixture. All have the topology, the program, the faults, the seed and the engine of the first one."""

    name: str
    config: SimConfig | TrafficConfig
    spray: bool = False
    """Whether switches know the connections of traffic, and may spread their packets; otherwise they only route."""

    @property
    def background(self) -> bool:
        """Whether the mixture does not wait for its end."""
        return isinstance(self.config, TrafficConfig) and self.config.endless

    def check(self) -> None:
        """Raises ``InputError`` if hosts cannot send this traffic, or switches cannot spread it, and for groups whose
        trees are given: a mixture's are of shortest paths."""
        if isinstance(self.config, TrafficConfig):
            self.config.check()
        elif self.config.trees:
            raise InputError("groups of a mixture have trees of shortest paths")
        if self.spray and not connection_limits(self.config.program).starts:
            raise InputError(f"{self.config.program.program} knows no connections that it could spray")


@dataclass(frozen=True)
class JobResult:
    """What came of a job."""

    config: JobConfig
    ended: bool
    result: SimResult | TrafficResult
    """What links and switches have counted is that of all jobs."""

    @property
    def rate(self) -> float:
        """Bit/s of data: of a collective its algorithm throughput, of traffic the mean of its flows or groups; 0 if it
        did not end."""
        return self.result.throughput if isinstance(self.result, SimResult) else self.result.data_rate

    @property
    def line(self) -> str:
        """The result in a line."""
        found = self.result
        how = "in the background of" if self.config.background else "in" if self.ended else "not ended after"
        return (
            f"{self.config.name}: {self.rate / 1e9:.2f} Gb/s {how} {duration_text(found.duration)}; "
            f"{found.resent:,} of {found.sent:,} packets again, {found.timeouts:,} timeouts"
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data; the time is in seconds."""
        found = self.result
        return {
            "ended": self.ended, "background": self.config.background, "seconds": found.duration / SECOND,
            "gbps": self.rate / 1e9, "sent": found.sent, "resent": found.resent, "timeouts": found.timeouts,
            "errors": list(found.errors),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MixtureResult(RunResult):
    """The result of a mixture, with those of its jobs by name."""

    jobs: Mapping[str, JobResult]

    @override
    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"jobs": {name: each.to_dict() for name, each in self.jobs.items()}}


class Mixture(Job[Task, MixtureResult]):
    """A run of several jobs. Raises ``InputError``, before any packet is sent, when it cannot be carried out."""

    STEP: ClassVar = 256

    def __init__(self, configs: Sequence[JobConfig]) -> None:
        _check(configs)
        self.configs, first = configs, configs[0].config
        topology = first.topology
        wirings = {
            each.name: Wiring(each.config, FIRST_QP + _QPS * number)
            for number, each in enumerate(configs)
            if isinstance(each.config, TrafficConfig)
        }
        spec, grouped = _grouped([each.config for each in configs if isinstance(each.config, SimConfig)], first)
        specs = dict.fromkeys(topology.switches, spec)
        connections = [each for job in configs if job.spray for each in wirings[job.name].connections]
        numbered = [replace(each, number=number) for number, each in enumerate(connections)]
        placement = connected(
            place_plain(topology, specs, ()) if grouped is None else _plain(grouped), topology, specs, numbered
        )
        programs = dict.fromkeys(topology.switches, compile_spec(spec).program)
        payload = max(_payload(each.config) for each in configs)
        network = Network(topology, placement, programs, first.faults, first.seed, first.engine, payload=payload)
        network.keep_lengths(placement.queues)
        super().__init__(network, specs, max(each.config.timeout for each in configs))
        self.jobs: dict[str, Simulation | TrafficSimulation] = {}
        placed = iter(grouped.groups if grouped is not None else ())
        for each in configs:
            before = set(map(id, self.pairs))
            config = each.config
            if isinstance(config, SimConfig):
                assert grouped is not None
                mine = tuple(islice(placed, len(config.jobs)))
                site = groups.Site(network, grouped, cast("CollectiveSpec", spec), mine)
                self.jobs[each.name] = Simulation(config, site=site)
            else:
                site_of_traffic = traffic.Site(wirings[each.name], network, placement, specs)
                self.jobs[each.name] = TrafficSimulation(config, site_of_traffic)
            self.jobs[each.name].own = tuple(pair for pair in self.pairs if id(pair) not in before)
        self._awaited = [self.jobs[each.name] for each in configs if not each.background]
        self.tasks = [task for job in self._awaited for task in job.tasks]
        self._start_ticks(grouped)

    def _start_ticks(self, grouped: Placement | None) -> None:
        """The ticks of all groups, for switches that want them."""
        serving = [job for job in self.jobs.values() if isinstance(job, Simulation)]
        if grouped is None or not serving[0].spec.wants_ticks:
            return
        users = {at: pairs for job in serving for at, pairs in job.users().items()}
        self.start_ticks(grouped.edges, serving[0].spec.architecture.cpu_port, in_use(users))
        for job in serving:
            job.ticker = self.ticker

    @property
    @override
    def title(self) -> str:
        first = self.configs[0].config
        return f"{len(self.configs)} jobs on {first.topology.name}, {first.program.program}"

    @override
    def longest_wait(self) -> int:
        return max(job.longest_wait() for job in self.jobs.values())

    @override
    def arrived(self) -> int:
        return sum(job.arrived() for job in self._awaited)

    @override
    def result(self, stuck: Stuck | None) -> MixtureResult:
        found = {}
        for each in self.configs:
            job = self.jobs[each.name]
            found[each.name] = JobResult(each, job.done, job.result(None if job.done or each.background else stuck))
        reasons = () if stuck is None else stuck.reasons
        their = (f"{name}: {why}" for name, each in found.items() for why in each.result.stuck if why not in reasons)
        return MixtureResult(
            errors=tuple(f"{name}: {error}" for name, each in found.items() for error in each.result.errors),
            stuck=(*reasons, *their),
            lines=tuple(each.line for each in found.values()),
            verdict="every job's results are right",
            jobs=found,
            **self.counted(max(each.result.duration for each in found.values() if not each.config.background)),
        )

    @override
    def parts(self) -> dict[str, object]:
        found = super().parts()
        for name in parts_of(self.tasks):
            del found[name]  # which those of two jobs may have
        for job, of in self.jobs.items():
            found |= {f"{job} {name}": part for name, part in {"job": of, **parts_of(of.tasks)}.items()}
        return found


def _check(configs: Sequence[JobConfig]) -> None:
    """Raises ``InputError`` for jobs that do not fit together."""
    if all(each.background for each in configs):
        raise InputError("there is no job to wait for, beside background traffic")
    if len(configs) > MOST_JOBS:
        raise InputError(f"{len(configs)} jobs; there are queue pairs for {MOST_JOBS}")
    for each in configs:
        each.check()


def _grouped(configs: Sequence[SimConfig], first: SimConfig | TrafficConfig) -> tuple[ProgramSpec, Placement | None]:
    """The program with room for all groups, and where they are; none without groups."""
    if not configs:
        return first.program, None
    domains: dict[str, ProtectionDomain] = {}
    requests = [each for config in configs for each in config.requests(first_draws(config)[1], domains)]
    spec = configs[0].fit_program(requests)
    check_order(spec, first.faults)
    return spec, place(first.topology, spec, requests)


def _plain(placed: Placement) -> PlainPlacement:
    """The placement of groups, without what only groups need."""
    return PlainPlacement(
        placed.mac, placed.ip, placed.gateway, placed.switches, placed.architectures, placed.tree_depths
    )


def _payload(config: SimConfig | TrafficConfig) -> int:
    """The most bytes of a packet's data."""
    return config.mtu if isinstance(config, TrafficConfig) else config.program.payload_bytes
