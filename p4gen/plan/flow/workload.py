"""Workloads from YAML: a fabric, jobs or a random mix of jobs, failures."""

from __future__ import annotations

import difflib
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from p4gen.errors import Diagnostic, InputError
from p4gen.inputs import quote
from p4gen.plan.flow.fabric import FABRICS, FatTree
from p4gen.plan.flow.jobs import MODELS, Job, parallel_job, training_job
from p4gen.plan.flow.lingjun import recorded
from p4gen.plan.flow.placing import Placing
from p4gen.plan.flow.policies import ALL_POLICIES, POLICIES, Volume
from p4gen.plan.flow.simulate import Failure, Setting
from p4gen.vocabulary import units
from p4gen.vocabulary.positions import diagnostics, read_yaml

MAX_GPUS: Final = 1 << 17
MAX_JOBS: Final = 100_000
MAX_PAIRS: Final = 1 << 17
FOLDER: Final = Path(__file__).parent / "workloads"
"""The built-in workloads."""

Seconds = Annotated[float, BeforeValidator(lambda value: units.duration(value) / 1e12)]
Bytes = Annotated[int, BeforeValidator(units.size)]
Share = Annotated[float, BeforeValidator(units.share)]
Count = Annotated[int, Field(ge=1, le=4096)]
Bandwidth = Annotated[int, BeforeValidator(units.bandwidth)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FabricFields(_Strict):
    """A fat tree of the user's own."""

    pods: Count = 1
    leaves: Count = 1
    spines: Count = 1
    cores: Count = 1
    hosts: Count
    bandwidth: Bandwidth = 100_000_000_000
    scale_up: Annotated[int, Field(ge=0, le=4096)] = 0
    scale_up_bandwidth: Bandwidth = 8_000_000_000_000
    scale_up_inc: bool = False

    @model_validator(mode="after")
    def _fits(self) -> FabricFields:
        if self.pods * self.leaves * self.hosts > MAX_GPUS:
            raise ValueError(f"a fabric has {MAX_GPUS:,} GPUs at most")
        if self.scale_up and self.hosts % self.scale_up:
            raise ValueError(f"servers of {self.scale_up} GPUs do not divide a leaf's {self.hosts}")
        if self.scale_up_inc and not self.scale_up:
            raise ValueError("scale_up_inc goes with scale_up")
        return self

    def fabric(self) -> FatTree:
        """The fabric with these numbers of switches and hosts."""
        return FatTree(**self.model_dump())


_OWN: Final = ("tp_volume", "dp_volume", "pp_volume", "ep", "ep_volume", "sharded")
"""Fields of a job without a model."""


def _fabric(value: Any) -> Any:
    if isinstance(value, str):
        if value not in FABRICS:
            near = difflib.get_close_matches(value, FABRICS, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise ValueError(f"there is no fabric {quote(value)}; there are {', '.join(FABRICS)}{hint}")
        return FABRICS[value]
    return FabricFields.model_validate(value).fabric() if isinstance(value, dict) else value


class JobFields(_Strict):
    """A job, or ``count`` equal ones: a model of Table 33, or its own computation and volumes of an iteration."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
    model: str | None = None
    tp: Count | None = None
    dp: Count | None = None
    pp: Count | None = None
    batch: Annotated[int, Field(ge=1)] | None = None
    flops: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    compute: Seconds | None = None
    tp_volume: Bytes = 0
    dp_volume: Bytes = 0
    pp_volume: Bytes = 0
    ep: Count = 1
    ep_volume: Bytes = 0
    sharded: bool = False
    iterations: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    start: Seconds = 0.0
    count: Annotated[int, Field(ge=1, le=MAX_JOBS)] = 1

    @model_validator(mode="after")
    def _fits(self) -> JobFields:
        own = {"compute", *_OWN} & self.model_fields_set
        trained = {"batch", "flops"} & self.model_fields_set
        if self.model is not None:
            if self.model not in MODELS:
                raise ValueError(f"there is no model {quote(self.model)}; there are {', '.join(MODELS)}")
            if own:
                raise ValueError(f"{', '.join(sorted(own))} and model exclude each other")
        elif self.compute is None:
            raise ValueError("a job has a model, or compute with tp_volume and dp_volume")
        elif (gpus := (self.tp or 1) * (self.dp or 1) * (self.pp or 1)) % self.ep:
            raise ValueError(f"groups of {self.ep} experts do not divide its {gpus} GPUs")
        elif (pairs := gpus * (self.ep - 1) // 2) > MAX_PAIRS:
            raise ValueError(f"its experts are {pairs:,} pairs; {MAX_PAIRS:,} is the limit")
        elif trained:
            raise ValueError(f"{', '.join(sorted(trained))} belong to a model")
        return self

    def jobs(self) -> Iterator[Job]:
        """The jobs, ``count`` equal ones."""
        if self.model is not None:
            job = training_job(
                self.name,
                MODELS[self.model],
                tp=self.tp,
                dp=self.dp,
                pp=self.pp,
                batch=self.batch,
                flops=self.flops,
                iterations=self.iterations,
                start=self.start,
            )
        else:
            job = parallel_job(
                self.name,
                self.tp or 1,
                self.dp or 1,
                self.compute or 0.0,
                self.tp_volume,
                self.dp_volume,
                self.iterations,
                pp=self.pp or 1,
                pp_volume=self.pp_volume,
                ep=self.ep,
                ep_volume=self.ep_volume,
                sharded=self.sharded,
                start=self.start,
            )
        for number in range(self.count):
            yield job if self.count == 1 else replace(job, name=f"{self.name}.{number}")


class ClassFields(_Strict):
    """Jobs of one kind in a random mix; ``iterations`` may be a range to draw from."""

    share: Share
    tp: Count = 8
    dp: Count = 1
    compute: Seconds
    tp_volume: Bytes = 0
    dp_volume: Bytes = 0
    iterations: Annotated[int, Field(ge=1, le=1_000_000)] | tuple[int, int] = 1

    @model_validator(mode="after")
    def _fits(self) -> ClassFields:
        if isinstance(self.iterations, tuple) and not 1 <= self.iterations[0] <= self.iterations[1] <= 1_000_000:
            raise ValueError("iterations is a number, or a range such as [10, 20]")
        return self


class TraceFields(_Strict):
    """A random mix: this many jobs, submitted at random with a mean time between them."""

    jobs: Annotated[int, Field(ge=1, le=MAX_JOBS)]
    every: Seconds
    classes: Annotated[tuple[ClassFields, ...], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _fits(self) -> TraceFields:
        total = sum(each.share for each in self.classes)
        if abs(total - 1) > 1e-6:
            raise ValueError(f"the shares add up to {total:.4g}, not to 1")
        return self

    def drawn(self, seed: int) -> Iterator[Job]:
        """Draw the jobs of the mix, from a seed."""
        source = random.Random(seed)  # noqa: S311 - a simulation
        start = 0.0
        kinds = source.choices(self.classes, [each.share for each in self.classes], k=self.jobs)
        for number, kind in enumerate(kinds):
            low, high = kind.iterations if isinstance(kind.iterations, tuple) else (kind.iterations,) * 2
            name = f"j{number}.{kind.tp * kind.dp}"
            volumes = kind.compute, float(kind.tp_volume), float(kind.dp_volume)
            yield parallel_job(name, kind.tp, kind.dp, *volumes, source.randint(low, high), start=start)
            start += source.expovariate(1 / self.every) if self.every else 0.0


class LingjunFields(_Strict):
    """Jobs of Alibaba's Lingjun data set. Sizes, times of submission and durations come from the data set; the other
    fields are not in it."""

    data: str = ""
    """The folder of the data set, relative to that of the workload's file."""
    jobs: Annotated[int, Field(ge=1, le=MAX_JOBS)] = 1000
    """The most jobs, the first ones of the data set."""
    least: Count = 8
    """The fewest GPUs of a job; smaller jobs are left out."""
    most: Annotated[int, Field(ge=1, le=MAX_GPUS)] = MAX_GPUS
    speed: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """The factor by which jobs are submitted faster than in the data set."""
    tp: Count = 8
    compute: Seconds
    tp_volume: Bytes = 0
    dp_volume: Bytes = 0
    iteration: Annotated[Seconds, Field(gt=0)]
    """Seconds of an iteration in the data set: a job has as many iterations as fill its time."""

    def recorded(self, folder: Path) -> Iterator[Job]:
        """The jobs, with whole TP groups. Raises ``InputError`` as ``recorded`` does, and if none are left."""
        if not self.data:
            raise InputError("the data set is not part of p4gen: 'p4gen flow lingjun:FOLDER' reads a copy of it")
        data = folder / self.data
        sized = [job for job in recorded(data) if self.least <= job.gpus <= self.most][: self.jobs]
        if not sized:
            raise InputError(Diagnostic(str(data), f"it has no job of {self.least} to {self.most:,} GPUs"))
        for job in sized:
            tp = min(self.tp, job.gpus)
            volumes = self.compute, float(self.tp_volume), float(self.dp_volume)
            iterations = min(1_000_000, max(1, round(job.seconds / self.iteration)))
            start = (job.submitted - sized[0].submitted) / self.speed
            yield parallel_job(job.name, tp, -(-job.gpus // tp), *volumes, iterations, start=start)


class FailureFields(_Strict):
    """A link or a switch that is down for a while, or for ever."""

    link: str | None = None
    switch: str | None = None
    at: Seconds
    until: Seconds | None = None

    @model_validator(mode="after")
    def _fits(self) -> FailureFields:
        if (self.link is None) == (self.switch is None):
            raise ValueError("a failure has either link or switch")
        if self.until is not None and self.until <= self.at:
            raise ValueError("until is not after at")
        return self

    def failure(self, fabric: FatTree) -> Failure:
        """The failure. Raises ``ValueError`` if the fabric has no such part."""
        if self.link is not None:
            return Failure(self.link, (fabric.link_named(self.link),), self.at, self.until)
        name = self.switch or ""
        return Failure(name, fabric.links_of(fabric.switch_named(name)), self.at, self.until)


class PlacingFields(_Strict):
    """How jobs and groups are placed; see ``Placing``."""

    jobs: Literal["packed", "spread", "random"] = "packed"
    unit: Annotated[int, Field(ge=1, le=4096)] | None = None
    trees: Literal["least", "random"] = "least"


class _WorkloadFields(_Strict):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    fabric: Annotated[FatTree, BeforeValidator(_fabric)]
    policy: str | None = None
    slots: Annotated[int, Field(ge=0, le=1 << 20)] = 8
    volume: Literal["paper", "exact"] = "paper"
    placing: PlacingFields = PlacingFields()
    jobs: tuple[JobFields, ...] = ()
    trace: TraceFields | None = None
    lingjun: LingjunFields | None = None
    failures: tuple[FailureFields, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> _WorkloadFields:
        if not self.jobs and self.trace is None and self.lingjun is None:
            raise ValueError("a workload has jobs, a trace, or lingjun")
        if self.policy is not None and self.policy not in ALL_POLICIES:
            raise ValueError(f"there is no policy {quote(self.policy)}; there are {', '.join(ALL_POLICIES)}")
        for failure in self.failures:
            failure.failure(self.fabric)
        return self


@dataclass(frozen=True)
class Workload:
    """A workload, as a file or a name describes it."""

    name: str
    fields: _WorkloadFields
    folder: Path
    """The folder of the workload's file."""

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies to simulate: the one that the file names, or the paper's four."""
        return (self.fields.policy,) if self.fields.policy else tuple(POLICIES)

    def jobs(self, seed: int) -> list[Job]:
        """All jobs; those of a trace are drawn.

        Raises ``InputError`` if there are too many, or the data set cannot be read.
        """
        fields = self.fields
        found = [job for each in fields.jobs for job in each.jobs()]
        found += fields.trace.drawn(seed) if fields.trace else ()
        found += fields.lingjun.recorded(self.folder) if fields.lingjun else ()
        if len(found) > MAX_JOBS:
            raise InputError(f"{self.name}: {len(found):,} jobs; {MAX_JOBS:,} is the limit")
        return found

    def setting(
        self,
        policy: str,
        seed: int,
        *,
        slots: int | None = None,
        volume: str | None = None,
        fabric: FatTree | None = None,
    ) -> Setting:
        """The simulation's setting under a policy, with the file's slots, volumes and fabric unless others are given.

        Raises ``InputError`` if another fabric does not have the parts that fail.
        """
        fields = self.fields
        fabric = fabric or fields.fabric
        unit = fields.placing.unit
        if unit is None:  # a server's GPUs, where leaves consist of such servers
            unit = 8 if fabric.hosts % 8 == 0 else 1
        placing = Placing(fields.placing.jobs, unit, fields.placing.trees, seed)
        try:
            failures = tuple(failure.failure(fabric) for failure in fields.failures)
        except ValueError as error:
            raise InputError(f"{self.name}: failures: {error}") from None
        paper = (volume or fields.volume) == "paper"
        slots = fields.slots if slots is None else slots
        return Setting(fabric, ALL_POLICIES[policy], slots, Volume(paper), placing, failures)


def load_workload(path: Path | str) -> Workload:
    """The workload in a YAML file, or a built-in one by its name (``trace1``). ``lingjun:FOLDER`` is the built-in
    workload ``lingjun`` with the data set in a folder.

    Raises ``InputError`` with one diagnostic for each wrong value, with its position.
    """
    name, _, data = str(path).partition(":")
    if data and name == "lingjun":
        found = load_workload(name)
        assert found.fields.lingjun is not None
        lingjun = found.fields.lingjun.model_copy(update={"data": data})
        return replace(found, fields=found.fields.model_copy(update={"lingjun": lingjun}), folder=Path())
    file = Path(path)
    if not os.path.exists(file) and file.suffix == "" and len(file.parts) == 1:
        names = sorted(each.stem for each in FOLDER.glob("*.yaml"))
        if str(path) not in names:
            raise InputError(f"there is neither a file nor a workload {quote(str(path))}; there are {', '.join(names)}")
        file = FOLDER / f"{path}.yaml"
    value, where, lines = read_yaml(file)
    if not isinstance(value, dict):
        raise InputError(Diagnostic(where.get((), str(file)), "a workload is a mapping, as in 'fabric: epic-128'"))
    try:
        return Workload(file.stem, _WorkloadFields.model_validate(value), file.parent)
    except ValidationError as error:
        raise InputError(*diagnostics(error, where, lines, str(file))) from None
