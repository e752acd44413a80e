"""Jobs that are to be planned together, from YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from p4gen.errors import Diagnostic, InputError
from p4gen.plan.route.fabric import Fabric
from p4gen.plan.route.together import Job
from p4gen.vocabulary import units
from p4gen.vocabulary.positions import diagnostics, read_yaml
from p4gen.vocabulary.topology import TopologySpec

_Bandwidth = Annotated[int, BeforeValidator(units.bandwidth), Field(gt=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _JobFields(_Strict):
    name: Annotated[str, Field(min_length=1)]
    ranks: tuple[str, ...]
    weight: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 1.0
    trees: Annotated[int, Field(ge=1, le=8)] = 1


class _File(_Strict):
    jobs: Annotated[tuple[_JobFields, ...], Field(min_length=1, max_length=100)]
    aggregating: Annotated[frozenset[str], Field(min_length=1)] | None = None
    spare: dict[str, _Bandwidth] = {}

    @model_validator(mode="after")
    def _fits(self) -> _File:
        names = [job.name for job in self.jobs]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"jobs have the same name: {', '.join(twice)}")
        return self


def load_jobs(file: Path, topology: TopologySpec, fan_in: int) -> tuple[Job, ...]:
    """The jobs of a file on a topology, whose programs have nodes of ``fan_in`` edges at most.

    Raises ``InputError`` with one diagnostic for each wrong value, and for a job that can have no tree.
    """
    content, where, lines = read_yaml(file)
    if not isinstance(content, dict):
        raise InputError(
            Diagnostic(where.get((), str(file)), "is a mapping, as in 'jobs: [{name: a, ranks: [h0, h1]}]'")
        )
    try:
        found = _File.model_validate(content)
    except ValidationError as error:
        raise InputError(*diagnostics(error, where, lines, str(file))) from None
    links = {link.name for link in topology.links}
    if unknown := sorted(found.spare.keys() - links):
        raise InputError(Diagnostic(where.get(("spare",), str(file)), f"there is no link {', '.join(unknown)}"))
    spare = {name: float(bandwidth) for name, bandwidth in found.spare.items()}
    inc = frozenset(topology.switches) if found.aggregating is None else found.aggregating
    jobs = tuple(
        Job(job.name, Fabric(topology, job.ranks, inc, fan_in=fan_in, spare=spare), job.weight, job.trees)
        for job in found.jobs
    )
    for number, job in enumerate(jobs):
        try:
            job.fabric.check()
        except InputError as error:
            place = where.get(("jobs", number), str(file))
            raise InputError(
                *(Diagnostic(place, f"job {job.name}: {each.message}") for each in error.diagnostics)
            ) from None
    return jobs
