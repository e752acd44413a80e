"""Plans on packets: random leaf-spine fabrics, the fastest tree of each, and the rates of its ranks in a simulation."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from p4gen.families import load_collective
from p4gen.groups.wire import payload_share
from p4gen.model import EngineName
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.simulation import SimResult, Simulation
from p4gen.plan.route.fabric import Fabric
from p4gen.plan.route.planfile import TreePlan
from p4gen.plan.route.stripeplan import StripedPlan
from p4gen.plan.route.stripes import striped
from p4gen.plan.route.trees import Compared, compare
from p4gen.plan.route.wire import timeout, window
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.topology import load_topology

LOW: Final = 0.95
HIGH: Final = 1.02
"""The highest ratio of measured goodput to predicted."""
USUAL: Final = {"II": (256, 8), "III": (64, 4)}
"""Lanes and packets of a message, by mode: smaller ones where windows must not wait long for their turn."""
_WORTH: Final = 1.10
"""The tree of shortest paths to one root is run, too, if the plan's rate is at least this many times as high."""
_GAIN: Final = 1.08
"""The plan's goodput over theirs, at least."""


def draw_fabric(seed: int, *, bandwidth: str = "10G") -> tuple[Fabric, int]:
    """A random fabric of 4 leaves and 4 spines with 8 to 32 ranks, of whose switches 20 to 70 % aggregate; and the
    pipelines of the switches' programs."""
    chance = random.Random(seed)  # noqa: S311 - a simulation
    topology = load_topology(f"clos:4x4x{chance.choice([2, 4, 8])}@{bandwidth}")
    ranks = tuple(chance.sample(topology.hosts, min(len(topology.hosts), chance.randint(8, 32))))
    count = round(chance.uniform(0.2, 0.7) * len(topology.switches))
    inc = frozenset(chance.sample(topology.switches, max(1, count)))
    return Fabric(topology, ranks, inc), chance.choice([1, 2, 4])


@dataclass(frozen=True)
class Trial:
    """A run, and the rate that its plan promises."""

    result: SimResult
    predicted: float
    """Goodput in bit/s."""

    @property
    def ratio(self) -> float:
        """Measured goodput over predicted."""
        return self.result.throughput / self.predicted

    @property
    def ok(self) -> bool:
        """Whether results are NumPy's, nothing was dropped, and the goodput is that predicted."""
        return self.result.ok and not self.result.drops.total() and LOW <= self.ratio <= HIGH


@dataclass(frozen=True)
class Measured(Trial):
    """A plan with a tree that was run."""

    plan: TreePlan

    @property
    def hottest(self) -> float:
        """The largest share of the time that a link of the plan's fullest was busy in a direction."""
        fabric = self.plan.fabric
        loads = self.plan.shape.loads(fabric)
        names = {n for n, count in loads.items() if fabric.bandwidths[n] / count <= self.plan.rate * (1 + 1e-9)}
        ends = {frozenset(link.ends) for link in fabric.topology.links if link.name in names}
        return max(use.utilisation for use in self.result.links if frozenset(use.name.split(">")) in ends)


@dataclass(frozen=True)
class MeasuredTogether(Trial):
    """A plan with several trees that was run."""

    plan: StripedPlan


@dataclass(frozen=True)
class Confirmed:
    """A fabric and the runs on it: of its best plan, of the tree of shortest paths to one root where that tree is
    slower, and of several trees where they are faster."""

    seed: int
    pipelines: int
    compared: Compared
    best: Measured
    one_root: Measured | None
    together: MeasuredTogether | None = None

    @property
    def ok(self) -> bool:
        """Whether all predictions came true, and plans that promise more are faster: by 8 % at least."""
        best = self.best.result.throughput
        ok = self.best.ok
        if self.one_root is not None:
            ok = ok and self.one_root.ok and best >= _GAIN * self.one_root.result.throughput
        if self.together is not None:
            ok = ok and self.together.ok and self.together.result.throughput >= _GAIN * best
        return ok


def config_of(plan: TreePlan, spec: CollectiveSpec, size: int, seed: int, engine: EngineName) -> SimConfig:
    """AllReduce over a plan's tree."""
    topology = plan.topology.model_copy(update={"ranks": plan.ranks})
    work = (Work((Call(size=size),), plan.ranks, None, plan.tree),)
    return SimConfig(topology, spec, size=size, seed=seed, engine=engine, timeout=timeout(plan, spec), work=work)


def measure(plan: TreePlan, spec: CollectiveSpec, size: int, seed: int, engine: EngineName) -> Measured:
    """Run AllReduce over a plan's tree."""
    config = config_of(plan, spec, size, seed, engine)
    predicted = plan.rate * payload_share(config.program, config.ack_every)
    return Measured(Simulation(config).run(), predicted, plan)


def program(plan: TreePlan, mode: str, lanes: int, message: int) -> CollectiveSpec:
    """A program for a plan, with the window that its rate needs."""
    fields = _fields(plan, mode, lanes, message)
    return load_collective(None, {**fields, "window": window(plan, load_collective(None, fields))})


def _fields(plan: TreePlan, mode: str, lanes: int, message: int) -> dict[str, object]:
    return {
        "mode": mode,
        "lanes": lanes,
        "message": message,
        "pipelines": plan.pipelines,
        "ports": plan.ports,
        "groups": 32,
    }


def confirm(
    seed: int,
    mode: str,
    size: int,
    *,
    lanes: int | None = None,
    message: int | None = None,
    trees: int = 1,
    engine: EngineName = "jit",
    limit: float = 60.0,
    report: Callable[[Measured], None] | None = None,
) -> Confirmed:
    """Draw a fabric, plan, and run the plan. Also run the tree of shortest paths to one root if the plan promises at
    least a tenth more, and up to ``trees`` trees together if they do. ``report`` is called with the plan's run."""
    usual = USUAL[mode]
    lanes, message = lanes or usual[0], message or usual[1]
    fabric, pipelines = draw_fabric(seed)
    compared = compare(fabric, pipelines, 32, limit)
    plan = compared.plan
    spec = program(plan, mode, lanes, message)
    best = measure(plan, spec, size, seed, engine)
    if report is not None:
        report(best)
    other = None
    shape = compared.shapes["one-root"]
    if shape is not None and plan.rate >= _WORTH * shape.rate(fabric):
        slower = replace(plan, shape=shape, algorithm="one-root")
        other = measure(slower, program(slower, mode, lanes, message), size, seed, engine)
    together = _together(compared, best, mode, lanes, message, trees, limit) if trees > 1 else None
    return Confirmed(seed, pipelines, compared, best, other, together)


def _together(
    compared: Compared, best: Measured, mode: str, lanes: int, message: int, trees: int, limit: float
) -> MeasuredTogether | None:
    single, config = best.plan, best.result.config
    several = StripedPlan.of(striped(compared.fabric, trees, limit, single.shape), single.pipelines, single.ports)
    if several.rate < _WORTH * single.rate:
        return None
    fields = _fields(single, mode, lanes, message)
    spec = load_collective(None, {**fields, "window": several.window(load_collective(None, fields))})
    work = several.work((Call(size=config.size),), spec, config.ack_every)
    config = replace(config, program=spec, timeout=several.timeout(spec), work=work)
    predicted = several.rate * payload_share(spec, config.ack_every)
    return MeasuredTogether(Simulation(config).run(), predicted, several)
