"""The optimum for one task without a solver: on leaf-spine fabrics, ARO's integer program (§III) needs none.

Are K flows on a link enough?

- A spine that aggregates takes at most K flows from each leaf, and sends one down for each pipeline in use. So it
  serves at most K kinds of leaves; leaves of one kind enter the same pipeline of every spine.
- A spine that does not aggregate takes K flows in all.
- Spines enter at most K pipelines of the server's leaf, those of its own workers among them.

Let n spines that aggregate and m others be behind the pipelines that are entered. Where a of the n serve a kind, each
of its leaves has max(0, flows - K a) flows left over. The others can carry the flows left over of all leaves if these
are at most K m. Each further spine gains a kind no more than the one before. So the K n pipelines are dealt one by one
to the kind that gains the most; the resulting numbers, each n at most, can be dealt to different spines in turn.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heapreplace

from p4gen.errors import InputError
from p4gen.plan.route.instance import Instance
from p4gen.plan.route.plan import Plan


def direct(instance: Instance) -> Plan:
    """The best plan, with its proof: K is tried from the least that the server's own workers allow.

    Raises ``InputError`` if the server's leaf does not aggregate: its link then carries all flows, which is another
    problem.
    """
    if instance.server[0] not in instance.aggregating_leaves:
        raise InputError("the server's leaf does not aggregate")
    began = time.monotonic()
    for most in range(instance.least, sum(instance.sends.values()) + instance.least + 1):
        for entered in _entered(instance, most):
            up = _routed(instance, most, entered)
            if up is not None:
                return Plan("aro", up, float(most), time.monotonic() - began)
    raise AssertionError("with as many flows on a link as there are, every plan is possible")


def _entered(instance: Instance, most: int) -> Iterator[frozenset[int]]:
    """Pipelines of the server's leaf that may be entered: all, or ``most`` of them. A set is tried only if no other set
    has at least as many spines of both kinds behind it: aggregating ones and others."""
    spines: dict[int, Counter[bool]] = {}
    for spine in range(instance.fabric.spines):
        spines.setdefault(instance.entry(spine), Counter())[spine in instance.aggregating_spines] += 1
    if len(spines.keys() | instance.own) <= most:
        yield frozenset(spines)
        return
    kept: dict[tuple[int, int], frozenset[int]] = {(0, 0): frozenset()}
    for entry in sorted(instance.own & spines.keys()):
        kept = {
            (n + spines[entry][True], m + spines[entry][False]): chosen | {entry} for (n, m), chosen in kept.items()
        }
    room = most - len(instance.own)
    by_count: list[dict[tuple[int, int], frozenset[int]]] = [kept, *({} for _ in range(room))]
    for entry in sorted(spines.keys() - instance.own):
        for count in range(room, 0, -1):
            for (n, m), chosen in by_count[count - 1].items():
                by_count[count].setdefault((n + spines[entry][True], m + spines[entry][False]), chosen | {entry})
            by_count[count] = _largest(by_count[count])
    yield from by_count[room].values()


def _largest(found: Mapping[tuple[int, int], frozenset[int]]) -> dict[tuple[int, int], frozenset[int]]:
    """The sets that no other set equals or exceeds in both kinds of spines."""
    best: dict[tuple[int, int], frozenset[int]] = {}
    plain = -1
    for (n, m), chosen in sorted(found.items(), key=lambda item: item[0], reverse=True):
        if m > plain:
            best[n, m] = chosen
            plain = m
    return best


def _routed(instance: Instance, most: int, entered: frozenset[int]) -> dict[tuple[int, int], int] | None:
    """Flows from leaves to spines with at most ``most`` on a link; None if there are none."""
    usable = [spine for spine in range(instance.fabric.spines) if instance.entry(spine) in entered]
    adding = [spine for spine in usable if spine in instance.aggregating_spines]
    plain = [spine for spine in usable if spine not in instance.aggregating_spines]
    kinds: dict[int, list[int]] = {}
    for leaf in instance.sends:
        kinds.setdefault(instance.fabric.spine_pipeline(leaf), []).append(leaf)
    flows = {kind: [instance.sends[leaf] for leaf in leaves] for kind, leaves in kinds.items()}
    dealt = _dealt(flows, len(adding), most)
    up: Counter[tuple[int, int]] = Counter()
    rest: dict[int, int] = {}
    first = 0
    for kind, leaves in kinds.items():
        own = [adding[(first + i) % len(adding)] for i in range(dealt[kind])]
        first += dealt[kind]
        for leaf in leaves:
            rest[leaf] = instance.sends[leaf]
            for spine in own:
                up[leaf, spine] = min(most, rest[leaf])
                rest[leaf] -= up[leaf, spine]
    if sum(rest.values()) > most * len(plain):
        return None
    over = (spine for spine in plain for _ in range(most))
    for leaf, count in rest.items():
        up.update((leaf, next(over)) for _ in range(count))
    return {place: count for place, count in up.items() if count}


def _dealt(flows: Mapping[int, Sequence[int]], spines: int, most: int) -> dict[int, int]:
    """The number of aggregating spines for each kind of leaves that leaves the least over: each spine has ``most``
    pipelines."""
    dealt = dict.fromkeys(flows, 0)
    if not spines:
        return dealt
    gains = [(-_gain(counts, 0, most), kind) for kind, counts in flows.items()]
    heapify(gains)
    for _ in range(spines * most):
        if not gains or gains[0][0] == 0:
            break
        kind = gains[0][1]
        dealt[kind] += 1
        gain = _gain(flows[kind], dealt[kind], most) if dealt[kind] < spines else 0
        heapreplace(gains, (-gain, kind))
    return dealt


def _gain(flows: Iterable[int], spines: int, most: int) -> int:
    """The flows that a kind's next spine takes."""
    return sum(min(most, max(0, count - most * spines)) for count in flows)
