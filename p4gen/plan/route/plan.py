"""A routing plan: the number of flows on each link; and its check against the paper's constraints."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, repeat

from p4gen.plan.route.instance import Instance


@dataclass(frozen=True)
class Plan:
    """Flows of a task. All workers have the same rate: the bandwidth over the flows on the fullest link."""

    algorithm: str
    up: Mapping[tuple[int, int], int]
    """Flows from a leaf to a spine; absent where there are none."""
    bound: float | None = None
    """The fewest flows that any plan has on its fullest link; None if nothing was proven."""
    seconds: float = 0.0

    def down(self, instance: Instance) -> dict[int, int]:
        """Flows from each spine to the server's leaf: of an aggregator one for each pipeline that has any."""
        arriving: Counter[tuple[int, int]] = Counter()
        for (leaf, spine), flows in self.up.items():
            pipeline = instance.fabric.spine_pipeline(leaf)
            arriving[spine, pipeline if spine in instance.aggregating_spines else leaf] += flows
        found: Counter[int] = Counter()
        for (spine, _), flows in arriving.items():
            found[spine] += min(flows, 1) if spine in instance.aggregating_spines else flows
        return {spine: flows for spine, flows in sorted(found.items()) if flows}

    def last(self, instance: Instance) -> int:
        """Flows on the link of the server: one for each pipeline of its leaf that workers or spines enter, or all of
        them if the leaf does not aggregate."""
        leaf = instance.server[0]
        if leaf not in instance.aggregating_leaves:
            return sum(self.down(instance).values()) + len(instance.by_leaf.get(leaf, ()))
        return len(instance.own | {instance.entry(spine) for spine in self.down(instance)})

    def fullest(self, instance: Instance) -> int:
        """The most flows on a link: K."""
        return max([1, self.last(instance), *self.up.values(), *self.down(instance).values()])

    def throughput(self, instance: Instance, *, whole: bool = False) -> float:
        """Rate of each worker in bit/s; ``whole``: in hundredths of the bandwidth, as QSR has it with N = 100."""
        flows = self.fullest(instance)
        return instance.fabric.bandwidth / 100 * (100 // flows) if whole else instance.fabric.bandwidth / flows

    @property
    def least(self) -> int:
        """The fewest flows that any plan has on its fullest link: the bound, as a whole number."""
        return 1 if self.bound is None else max(1, math.ceil(self.bound - 1e-6))

    def gap(self, instance: Instance) -> float | None:
        """By how much the best plan could be faster, as a share of its rate: 0 if this is the best."""
        return None if self.bound is None else 1 - self.least / self.fullest(instance)

    def problems(self, instance: Instance) -> Iterator[str]:
        """Violations of the constraints (4) to (9) of ARO's §III: flows that are lost, or come from nowhere; a sentence
        each."""
        sent: Counter[int] = Counter()
        for (leaf, spine), flows in self.up.items():
            if flows < 1 or flows != int(flows):
                yield f"leaf{leaf} to spine{spine}: {flows} flows"
            if not 0 <= spine < instance.fabric.spines:
                yield f"there is no spine{spine}"
            sent[leaf] += flows
        for leaf in sorted(set(sent) | set(instance.sends)):
            want = instance.sends.get(leaf, 0)
            if sent[leaf] != want:
                yield f"leaf{leaf} sends {sent[leaf]} flows up; {want} come out of it"

    def paths(self, instance: Instance) -> dict[tuple[int, int], tuple[str, ...]]:
        """The path of each worker to the server (Algorithm 1 of ARO): flows in the same pipeline go on together."""
        found: dict[tuple[int, int], tuple[str, ...]] = {}
        ways: dict[int, Iterator[int]] = {}
        for (leaf, spine), flows in sorted(self.up.items()):
            ways[leaf] = chain(ways.get(leaf, ()), repeat(spine, flows))
        for leaf, ports in instance.by_leaf.items():
            end = f"leaf{instance.server[0]}"
            if leaf == instance.server[0]:
                found |= {(leaf, port): (end,) for port in ports}
                continue
            joined: dict[int, int] = {}
            for port in ports:
                pipeline = instance.fabric.leaf_pipeline(port) if leaf in instance.aggregating_leaves else -1
                spine = joined.get(pipeline, -1)
                if spine < 0:
                    spine = next(ways[leaf])
                    if pipeline >= 0:
                        joined[pipeline] = spine
                found[leaf, port] = (f"leaf{leaf}", f"spine{spine}", end)
        return found
