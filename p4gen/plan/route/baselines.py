"""The algorithms that ARO is compared with (§V): RANDOM and AggTree, as read for leaf-spine fabrics
(docs/routing.md)."""

from __future__ import annotations

import random
from collections import Counter

from p4gen.plan.route.instance import Instance
from p4gen.plan.route.plan import Plan


def random_spine(instance: Instance, seed: int) -> Plan:
    """RANDOM: all flows of a leaf take one spine, an aggregating one if there are any."""
    source = random.Random(seed)  # noqa: S311 - a simulation
    spines = sorted(instance.aggregating_spines) or list(range(instance.fabric.spines))
    return Plan("random", {(leaf, source.choice(spines)): flows for leaf, flows in instance.sends.items() if flows})


def aggregation_tree(instance: Instance, seed: int) -> Plan:
    """AggTree: the flows of a leaf are spread over spines, whether these aggregate or not; each flow takes another
    spine as far as there are enough."""
    source = random.Random(seed)  # noqa: S311 - a simulation
    up: Counter[tuple[int, int]] = Counter()
    for leaf, flows in instance.sends.items():
        while flows > 0:
            chosen = source.sample(range(instance.fabric.spines), min(flows, instance.fabric.spines))
            up.update((leaf, spine) for spine in chosen)
            flows -= len(chosen)  # noqa: PLW2901
    return Plan("aggtree", dict(up))
