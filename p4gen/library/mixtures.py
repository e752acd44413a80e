"""Files of jobs that run in one network at the same time (``p4gen.net.mixture``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.families import collective
from p4gen.host.collectives.algorithms import Algorithm
from p4gen.host.transport.clock import MS
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.simulation import first_draws
from p4gen.net.mixture import JobConfig
from p4gen.net.traffic.traffic import MAX_FLOW, Pattern, Traffic, TrafficConfig
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.positions import Path_, diagnostics, read_yaml
from p4gen.vocabulary.topology import Bandwidth, Bytes, Duration, Name

Fields = dict[str, Any]
"""What all jobs of a file share: topology, program, faults, seed and engine; or what the NICs of collectives do."""
_JOB: Final = "jobs"


class _Job(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[Name, Field(description="of the job, in results")]
    start: Annotated[Duration, Field(description="when it begins")] = 0
    priority: Annotated[int, Field(ge=0, le=7, description="of its packets")] = 0
    dcqcn: Annotated[bool, Field(description="NICs slow down upon congestion notifications")] = False


class CollectiveJob(_Job):
    """A group that makes the same call several times."""

    collective: Collective
    size: Annotated[Bytes, Field(description="of each rank's data; 0 for a barrier")] = 0
    root: Annotated[int, Field(ge=0, description="rank; of reduce and broadcast")] = 0
    repeat: Annotated[int, Field(ge=1, le=100_000, description="calls, one after the other")] = 1
    ranks: Annotated[tuple[Name, ...] | None, Field(description="hosts in order of rank; the topology's ranks")] = None

    def config(self, common: Fields, nics: Fields) -> JobConfig:
        """The job, checked. Raises ``InputError``."""
        collective(common["program"])
        calls = (Call(self.collective, self.size, self.root),) * self.repeat
        found = SimConfig(
            **common,
            **nics,
            collective=self.collective,
            size=self.size,
            repeat=self.repeat,
            work=(Work(calls, self.ranks),),
            start=self.start,
            priority=self.priority,
            dcqcn=DcqcnConfig() if self.dcqcn else None,
        )
        found.requests(first_draws(found)[1])
        return JobConfig(self.name, found)


class TrafficJob(_Job):
    """Traffic between hosts over connections of their own."""

    pattern: Pattern
    hosts: Annotated[tuple[Name, ...], Field(min_length=2, description="that send and receive")]
    size: Annotated[Bytes | None, Field(description="of a flow, or of a host's array")] = None
    algorithm: Annotated[Algorithm, Field(description="of pattern allreduce")] = Algorithm.RING
    background: Annotated[bool, Field(description="flows go on until all other jobs have ended")] = False
    spray: Annotated[bool, Field(description="switches know the connections, and may spread their packets")] = False
    nic: Annotated[Recovery, Field(description="NICs' loss recovery: gbn or sr")] = Recovery.SELECTIVE_REPEAT
    rate: Annotated[Bandwidth | None, Field(description="most bit/s of a connection, with overhead")] = None
    timeout: Annotated[Duration, Field(description="NICs' retransmission timer; 0: none")] = MS

    @model_validator(mode="after")
    def _fits(self) -> TrafficJob:
        if self.background != (self.size is None):
            raise ValueError("a job in the background has no size, and any other one has")
        if self.background and not self.pattern.flows:
            raise ValueError("only patterns flow and next can be in the background")
        if self.rate is not None and self.dcqcn:
            raise ValueError("either rate or dcqcn decides how much is sent")
        if self.nic not in (Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT):
            raise ValueError("nic is gbn or sr")
        return self

    def config(self, common: Fields, _: Fields) -> JobConfig:
        """The job, checked. Raises ``InputError``."""
        topology = common["topology"]
        size = MAX_FLOW if self.size is None else self.size
        line_rate, *others = {topology.setting(topology.ports[host][0], "bandwidth") for host in self.hosts}
        if self.dcqcn and others:
            raise InputError("dcqcn: these hosts have links of different bandwidths")
        config = TrafficConfig(
            **common,
            traffic=(Traffic(self.pattern, self.hosts, size),),
            recovery=self.nic,
            algorithm=self.algorithm,
            dcqcn=TimedDcqcnConfig.at(line_rate) if self.dcqcn else None,
            timeout=self.timeout,
            start=self.start,
            pace=self.rate,
            priority=self.priority,
            endless=self.background,
        )
        found = JobConfig(self.name, config, self.spray)
        found.check()
        return found


def load_jobs(file: Path, common: Fields, nics: Fields) -> tuple[JobConfig, ...]:
    """The jobs of a YAML file. Raises ``InputError`` with one diagnostic for each wrong value, with its position."""
    value, where, lines = read_yaml(file)
    jobs = value.get(_JOB) if isinstance(value, dict) and set(value) == {_JOB} else None
    if not isinstance(jobs, list) or not jobs:
        raise InputError(Diagnostic(where.get((), str(file)), "jobs are a list, as in 'jobs: [{name: one, ...}]'"))
    found: dict[str, JobConfig] = {}
    problems: list[Diagnostic] = []
    for number, fields in enumerate(jobs):
        here = {path[2:]: place for path, place in where.items() if path[:2] == (_JOB, number)}
        try:
            job = _read(fields, here, common, nics)
            if job.name in found:
                raise InputError(Diagnostic(here["name",], f"there are two jobs '{job.name}'"))
            found[job.name] = job
        except ValidationError as error:
            problems += diagnostics(error, here, lines, str(file))
        except InputError as error:
            problems += (
                each if isinstance(each.where, Pos) else Diagnostic(here[()], each.message)
                for each in error.diagnostics
            )
    if problems:
        raise InputError(*problems)
    return tuple(found.values())


def _read(fields: Any, where: Mapping[Path_, Pos], common: Fields, nics: Fields) -> JobConfig:
    if not isinstance(fields, dict) or ("collective" in fields) == ("pattern" in fields):
        raise InputError("a job has a collective, or a pattern of traffic")
    kind = CollectiveJob if "collective" in fields else TrafficJob
    job: CollectiveJob | TrafficJob = kind.model_validate(fields)
    hosts = "ranks" if isinstance(job, CollectiveJob) else "hosts"
    topology = common["topology"]
    unknown = [
        Diagnostic(where[hosts, i], f"{topology.name} has no host {host}")
        for i, host in enumerate(getattr(job, hosts) or ())
        if host not in topology.hosts
    ]
    if unknown:
        raise InputError(*unknown)
    return job.config(common, nics)
