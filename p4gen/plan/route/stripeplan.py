"""Plans with several trees for one group, as files and as runs: each tree carries a share of every call's data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from p4gen.errors import InputError
from p4gen.groups.wire import pace
from p4gen.host.collectives.striped import divided
from p4gen.net.collectives.config import Call, Work
from p4gen.plan.route.planfile import TreePlan, parsed_plan, read_json
from p4gen.plan.route.stripes import Striped
from p4gen.plan.route.wire import round_trip, timeout_of, window_of
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec

FORM: Final = "inctrees"
_STRIPE: Final = "stripe_bps"
"""In a file: a tree's rate beside the others."""
_TOLERANCE: Final = 1e-6


@dataclass(frozen=True)
class StripedPlan:
    """Trees of a group as plans of their own, and the rate of each rank over each of them."""

    plans: tuple[TreePlan, ...]
    rates: tuple[float, ...]
    """Bit/s, with headers."""
    bound: float
    """The highest rate, in all, that any trees of the model have."""

    @classmethod
    def of(cls, found: Striped, pipelines: int, ports: int) -> StripedPlan:
        """The trees for programs of these pipelines and ports. Raises ``InputError`` for one that cannot be placed."""
        fabric = found.fabric
        plans = tuple(
            TreePlan(fabric.topology, fabric.ranks, fabric.inc, shape, pipelines, ports, found.bound, "aro")
            for shape in found.shapes
        )
        for plan in plans:
            plan.check()
        return cls(plans, found.rates, found.bound)

    @property
    def first(self) -> TreePlan:
        """The tree with the highest rate, for properties that all of them share."""
        return self.plans[0]

    @cached_property
    def striped(self) -> Striped:
        """The trees without programs."""
        return Striped(self.first.fabric, tuple(plan.shape for plan in self.plans), self.rates, self.bound)

    @property
    def rate(self) -> float:
        """Bit/s of each rank over all trees."""
        return self.striped.rate

    @property
    def gap(self) -> float:
        """By how much other trees could be faster, as a share of their rate."""
        return self.striped.gap

    def check(self) -> None:
        """Raises ``InputError`` for rates that links cannot carry."""
        fabric = self.first.fabric
        over = [n for n, load in self.striped.loads.items() if load > fabric.bandwidths[n] * (1 + _TOLERANCE)]
        common = {(plan.ranks, plan.inc, plan.pipelines, plan.ports) for plan in self.plans}
        if len(common) != 1 or min(self.rates) <= 0 or self.bound <= 0:
            raise InputError("its trees are of the same ranks, switches, pipelines and ports, and have positive rates")
        if over:
            raise InputError(f"its rates are more than {over[0]} carries")

    def restricted_to(self, which: Sequence[int], *, raised: bool = True) -> StripedPlan:
        """A plan with some of its trees, by number. With ``raised`` their rates grow alike, as far as links carry
        them."""
        some = StripedPlan(tuple(self.plans[n] for n in which), tuple(self.rates[n] for n in which), self.bound)
        if not raised:
            return some
        fabric = self.first.fabric
        factor = min(fabric.bandwidths[name] / load for name, load in some.striped.loads.items() if load)
        return StripedPlan(some.plans, tuple(rate * max(1.0, factor) for rate in some.rates), self.bound)

    def parts(self, call: Call, spec: CollectiveSpec) -> tuple[Call, ...]:
        """A call's parts, one for each tree: whole messages in proportion to the tree's rate, the rest for the fastest
        tree.

        A ReduceScatter and an AllGather are divided within each rank's part. A tree whose share is less than a message
        has none.
        """
        unit = spec.message * spec.payload_bytes
        if call.collective in (Collective.REDUCE_SCATTER, Collective.ALLGATHER):
            unit *= len(self.first.ranks)
        sizes = divided(call.size, unit, self.rates)
        return tuple(Call(call.collective, size, call.root, call.op, call.dtype) for size in sizes)

    def work(self, calls: tuple[Call, ...], spec: CollectiveSpec, ack_every: int) -> tuple[Work, ...]:
        """The groups that make the calls together, each over a tree of its own and, if there are several, at the tree's
        rate."""
        each = zip(*(self.parts(call, spec) for call in calls), strict=True)
        paces = [pace(rate, spec, ack_every) for rate in self.rates] if len(self.rates) > 1 else [None]
        return tuple(
            Work(parts, plan.ranks, None, plan.tree, own)
            for plan, own, parts in zip(self.plans, paces, each, strict=True)
            if all(part.size or part.collective is Collective.BARRIER for part in parts)
        )

    def window(self, spec: CollectiveSpec) -> int:
        """W with which all trees reach their rates, together."""
        trip = max(round_trip(plan, spec) for plan in self.plans)
        flows = sum((plan.shape.loads(plan.fabric) for plan in self.plans), Counter[str]())
        paced = len(self.rates) > 1
        return window_of(self.first.topology, flows, max(self.rates), trip, spec, paced=paced)

    def timeout(self, spec: CollectiveSpec) -> int:
        """A retransmission timer, in ps, that is longer than windows wait at the fullest link."""
        return timeout_of(min(self.rates), max(round_trip(plan, spec) for plan in self.plans), spec)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data, the content of its file."""
        return {
            "plan": FORM,
            "rate_bps": self.rate,
            "bound_bps": self.bound,
            "gap": self.gap,
            "trees": [{_STRIPE: rate, **plan.to_json()} for plan, rate in zip(self.plans, self.rates, strict=True)],
        }


def read_striped(file: Path, topology: TopologySpec) -> StripedPlan:
    """Read a plan, with one tree or several, that has to be one for this topology. Raises ``InputError`` with the file
    and the cause."""
    return read_json(file, lambda content: parsed_striped(content, topology))


def parsed_striped(content: Any, topology: TopologySpec) -> StripedPlan:
    """Make a plan of a file's content. Raises ``InputError``, or Python's errors for missing or wrong parts."""
    if not isinstance(content, dict) or content.get("plan") != FORM:
        plan = parsed_plan(content, topology)
        return StripedPlan((plan,), (plan.rate,), plan.bound)
    plans = tuple(parsed_plan(tree, topology) for tree in content["trees"])
    if not plans:
        raise InputError("it has no trees")
    found = StripedPlan(plans, tuple(float(tree[_STRIPE]) for tree in content["trees"]), float(content["bound_bps"]))
    found.check()
    return found
