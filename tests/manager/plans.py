"""Plans with several trees for one group, by hand: programs without a solver read them, too."""

from __future__ import annotations

from p4gen.plan.route.fabric import Fabric, Shape
from p4gen.plan.route.jobsplan import JobsPlan
from p4gen.plan.route.planfile import TreePlan
from p4gen.plan.route.stripeplan import StripedPlan
from p4gen.plan.route.together import Job
from p4gen.vocabulary.topology import TopologySpec, load_topology


def plan_of(topology: TopologySpec, *trees: tuple[str, tuple[tuple[str, ...], ...], float]) -> StripedPlan:
    inc = frozenset(topology.switches)
    plans = tuple(
        TreePlan(topology, topology.hosts, inc, Shape(root, paths), 1, 8, 10e9, "by hand") for root, paths, _ in trees
    )
    plan = StripedPlan(plans, tuple(rate for _, _, rate in trees), 10e9)
    plan.check()
    return plan


def passing() -> StripedPlan:
    """Of two trees that are 5 and 1.67 Gb/s fast where the first leaf only forwards: what `p4gen route tree --trees 2`
    finds there."""
    topology = load_topology("clos:2x2x3@10G")
    near = (("h3", "leaf1"), ("h4", "leaf1"), ("h5", "leaf1"), ("spine1", "leaf1"))
    ways = [(f"h{rank}", "leaf0", spine) for rank, spine in enumerate(("spine0", "spine1", "spine0"))]
    far = [(f"h{rank}", "leaf0", "spine1") for rank in range(3)]
    return plan_of(topology, ("leaf1", (*near, ("spine0", "leaf1"), *ways), 5e9), ("spine1", (*near, *far), 5e9 / 3))


def spines(*rates: float) -> StripedPlan:
    """Trees over each spine, of two hosts on each of two leaves."""
    topology = load_topology(f"clos:2x{len(rates)}x2@10G")
    ends = (("h0", "leaf0"), ("h1", "leaf0"), ("h2", "leaf1"), ("h3", "leaf1"))
    trees = ((f"spine{n}", (*ends, ("leaf0", f"spine{n}"), ("leaf1", f"spine{n}")), r) for n, r in enumerate(rates))
    return plan_of(topology, *trees)


def pair() -> StripedPlan:
    """Two trees of two hosts, of spines alone: leaves only forward."""
    topology = load_topology("clos:2x2x1@10G")
    trees = (
        (spine, (("h0", "leaf0", spine), ("h1", "leaf1", spine)), rate)
        for spine, rate in (("spine0", 6e9), ("spine1", 4e9))
    )
    return plan_of(topology, *trees)


def weighted() -> JobsPlan:
    """Two jobs of two hosts each, which share the links of the one spine; the second has twice the weight."""
    topology = load_topology("clos:2x1x2@10G")
    inc = frozenset(topology.switches)
    jobs, plans = [], []
    for name, ranks, weight in (("a", ("h0", "h2"), 1.0), ("b", ("h1", "h3"), 2.0)):
        jobs.append(Job(name, Fabric(topology, ranks, inc), weight))
        paths = ((ranks[0], "leaf0", "spine0"), (ranks[1], "leaf1", "spine0"))
        tree = TreePlan(topology, ranks, inc, Shape("spine0", paths), 1, 8, 10e9, "by hand")
        plans.append(StripedPlan((tree,), (weight * 10e9 / 3,), 10e9))
    return JobsPlan(tuple(jobs), tuple(plans), 10e9)
