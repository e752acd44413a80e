"""ARO's accelerations: fewer aggregating spines (APP), and two stages (SRO) (§III-C)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

from p4gen.errors import FailedError
from p4gen.plan.route.flows import Allowed
from p4gen.plan.route.instance import Instance
from p4gen.plan.route.plan import Plan
from p4gen.plan.route.several import jointly
from p4gen.plan.route.solve import route
from p4gen.plan.route.tasks import Joint, Tasks

ALPHA: Final = 0.6
"""The share of the aggregating spines that a task keeps."""
_NEAR: Final = 0.01
"""The gap of a first stage that is worth no more time."""


def prune(instances: Sequence[Instance], alpha: float = ALPHA) -> list[tuple[int, ...]]:
    """APP's choice for each task: ⌊alpha n⌋ of the n aggregating spines, but at least one of any.

    The paper takes the spines first whose pipelines' scores vary least; a score is the number of flows that can reach a
    pipeline. On a leaf-spine fabric all spines have the same scores. So spines are taken in turn by the pipeline of the
    server's leaf that they enter. There is one list for all tasks, which is filled again when no spine is left for a
    task.
    """
    found: list[tuple[int, ...]] = []
    listed: list[int] = []
    for instance in instances:
        spines = sorted(instance.aggregating_spines)
        count = min(len(spines), max(1, int(alpha * len(spines) + 1e-9)))
        chosen: list[int] = []
        while len(chosen) < count:
            if not any(spine not in chosen for spine in listed):
                listed = spines
            chosen.append(_next(instance, [spine for spine in listed if spine not in chosen], chosen))
            listed = [spine for spine in listed if spine != chosen[-1]]
        found.append(tuple(sorted(chosen)))
    return found


def _next(instance: Instance, spines: Iterable[int], chosen: Sequence[int]) -> int:
    """The spine whose pipeline the fewest of the ``chosen`` spines enter; of several, the first."""
    entered = [instance.entry(spine) for spine in chosen]
    return min(spines, key=lambda spine: (entered.count(instance.entry(spine)), spine))


def solve_accelerated(
    instance: Instance, limit: float = 60.0, *, alpha: float = ALPHA, pruned: bool = True, staged: bool = True
) -> Plan:
    """One task's best plan with fewer spines, in two stages, or both (ARO-APP, ARO-SRO, ARO-ACC). It has no bound.

    The first stage is without spines that do not aggregate. The second stage leaves out pipelines that the first plan
    does not use, and takes its K as an upper bound. Raises ``FailedError`` if no plan was found within ``limit``
    seconds.
    """
    began = time.monotonic()
    (spines,) = prune([instance], alpha) if pruned else [tuple(sorted(instance.aggregating_spines))]
    first = route(instance, allowed=Allowed(spines), limit=limit) if spines and staged else None
    if first is None:
        second = route(instance, allowed=_with_plain(instance, spines), limit=limit)
    else:
        allowed = _with_plain(instance, spines, first)
        second = route(instance, allowed=allowed, at_most=first.fullest(instance), limit=limit) or first
    if second is None:
        raise FailedError(f"no plan was found within {limit:g} s")
    return Plan(_name(pruned, staged), second.up, None, time.monotonic() - began)


def solve_accelerated_jointly(
    tasks: Tasks, seed: int, limit: float = 60.0, *, alpha: float = ALPHA, pruned: bool = True, staged: bool = True
) -> Joint:
    """The same for several tasks, as ``jointly`` finds plans. The first stage only decides which pipelines may be used:
    it has a quarter of the time, and need not be as near to its best."""
    began = time.monotonic()
    choices = prune(tasks.instances, alpha)
    if not pruned:
        choices = [tuple(sorted(instance.aggregating_spines)) for instance in tasks.instances]
    each = list(zip(tasks.instances, choices, strict=True))
    first = None
    if staged and all(choices):
        first = jointly(tasks, seed, limit / 4, [Allowed(spines) for spines in choices], _NEAR)
    plans: Sequence[Plan | None] = first.plans if first is not None else [None] * len(choices)
    allowed = [_with_plain(instance, spines, plan) for (instance, spines), plan in zip(each, plans, strict=True)]
    best = jointly(tasks, seed, limit + began - time.monotonic(), allowed)
    if first is not None:
        best = max(first, best, key=lambda joint: tasks.value(joint.rates))
    return Joint(_name(pruned, staged), best.plans, best.rates, None, time.monotonic() - began)


def _with_plain(instance: Instance, spines: Sequence[int], first: Plan | None = None) -> Allowed:
    """These spines and all that do not aggregate; with a first stage's plan, only the pipelines that it uses."""
    plain = [spine for spine in range(instance.fabric.spines) if spine not in instance.aggregating_spines]
    if first is None:
        return Allowed((*spines, *plain))
    used: dict[int, set[int]] = {}
    for leaf, spine in first.up:
        used.setdefault(spine, set()).add(instance.fabric.spine_pipeline(leaf))
    return Allowed((*spines, *plain), {spine: frozenset(kinds) for spine, kinds in used.items()})


def _name(pruned: bool, staged: bool) -> str:
    return {(True, True): "aro-acc", (True, False): "aro-app", (False, True): "aro-sro"}.get((pruned, staged), "aro")
