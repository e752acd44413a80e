"""Plans of several jobs together, as files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from p4gen.errors import InputError
from p4gen.plan.route.planfile import read_json
from p4gen.plan.route.stripeplan import StripedPlan, parsed_striped
from p4gen.plan.route.together import Job, Together, value
from p4gen.vocabulary.topology import TopologySpec

FORM: Final = "jobs"
_TOLERANCE: Final = 1e-6


@dataclass(frozen=True)
class JobsPlan:
    """The trees of jobs that share a network, with their rates beside each other."""

    jobs: tuple[Job, ...]
    plans: tuple[StripedPlan, ...]
    """By job."""
    bound: float
    """The value that no trees exceed, in bit/s (formula (3), ``together.value``)."""

    @classmethod
    def of(cls, found: Together, pipelines: int, ports: int) -> JobsPlan:
        """The trees for programs of these pipelines and ports. Raises ``InputError`` for one that cannot be placed."""
        return cls(found.jobs, tuple(StripedPlan.of(each, pipelines, ports) for each in found.trees), found.bound)

    @property
    def rates(self) -> tuple[float, ...]:
        """Bit/s of each job's ranks over all of its trees, with headers."""
        return tuple(plan.rate for plan in self.plans)

    @property
    def gap(self) -> float:
        """By how much other plans could be better, as a share of the value."""
        return max(0.0, 1 - value(self.jobs, self.rates) / self.bound)

    @property
    def loads(self) -> Mapping[str, float]:
        """Bit/s over each link in a direction, by the link's name."""
        return _together(self.plans)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data, the content of its file."""
        jobs = [
            {"name": job.name, "weight": job.weight, **plan.to_json()}
            for job, plan in zip(self.jobs, self.plans, strict=True)
        ]
        return {
            "plan": FORM,
            "value_bps": value(self.jobs, self.rates),
            "bound_bps": self.bound,
            "gap": self.gap,
            "loads_bps": dict(sorted(self.loads.items())),
            "jobs": jobs,
        }


def _together(plans: Sequence[StripedPlan]) -> dict[str, float]:
    found: defaultdict[str, float] = defaultdict(float)
    for plan in plans:
        for name, load in plan.striped.loads.items():
            found[name] += load
    return dict(found)


def read_plans(file: Path, topology: TopologySpec) -> tuple[tuple[str, StripedPlan], ...]:
    """The plans in a file, which has to be for this topology: of several jobs, with their names, or of one group, whose
    name is "". Raises ``InputError`` with the file and the cause."""
    return read_json(file, lambda content: _parsed(content, topology))


def _parsed(content: Any, topology: TopologySpec) -> tuple[tuple[str, StripedPlan], ...]:
    if not isinstance(content, dict) or content.get("plan") != FORM:
        return (("", parsed_striped(content, topology)),)
    found = tuple((str(job["name"]), parsed_striped(job, topology)) for job in content["jobs"])
    if not found:
        raise InputError("it has no jobs")
    bandwidths, loads = found[0][1].first.fabric.bandwidths, _together([plan for _, plan in found])
    over = [name for name, load in loads.items() if load > bandwidths[name] * (1 + _TOLERANCE)]
    if over:
        raise InputError(f"the rates of its jobs are together more than {over[0]} carries")
    return found
