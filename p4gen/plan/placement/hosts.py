"""The hosts of a job (EPIC §G, "job placement"): which of the free ones it gets.

Hosts are in racks, and these in wider *domains*: a rack's path is the numbers of all domains around it, the widest
first and the rack's own last. Paths of one fabric are equally long. What is chosen are *units*: hosts, or several hosts
that a job gets together.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from p4gen.vocabulary.topology import TopologySpec

T = TypeVar("T")
Path = tuple[int, ...]
"""The path of a rack."""
PLACEMENTS: Final = ("packed", "spread", "random")
"""``packed``: the smallest domain that has room, of several the fullest; in it as few domains and racks as possible.
``spread``: over as many racks as possible, of several the emptiest. ``random``: any."""


def proposals(free: Mapping[Path, Sequence[T]], units: int, placement: str, source: random.Random) -> Iterator[list[T]]:
    """Choices of as many units of the free ones, by rack, best first; none if there are not so many. The units of a
    choice are in the order of a job's ranks: those of a rack follow each other."""
    room = {path: len(some) for path, some in free.items()}
    if sum(room.values()) < units:
        return
    if placement == "random":
        yield source.sample([unit for some in free.values() for unit in some], units)
        return
    for chosen in _packed(room, units) if placement == "packed" else (_spread(room, units),):
        yield [unit for path, count in chosen for unit in free[path][:count]]


def _packed(room: Mapping[Path, int], units: int) -> Iterator[list[tuple[Path, int]]]:
    """One choice in each domain that has room: racks before wider domains, the fullest first. The emptiest of the
    domains in it, and of the racks in these, are filled first."""
    inside = Counter[Path]()
    for path, count in room.items():
        for depth in range(len(path) + 1):
            inside[path[:depth]] += count

    def order(path: Path) -> list[tuple[int, Path]]:
        return [(-inside[path[:depth]], path[:depth]) for depth in range(1, len(path) + 1)]

    fitting = [domain for domain, count in inside.items() if count >= units]
    for domain in sorted(fitting, key=lambda domain: (-len(domain), inside[domain], domain)):
        left, chosen = units, []
        for path in sorted((path for path in room if path[: len(domain)] == domain), key=order):
            chosen.append((path, min(room[path], left)))
            left -= chosen[-1][1]
        yield [(path, count) for path, count in chosen if count]


def _spread(room: Mapping[Path, int], units: int) -> list[tuple[Path, int]]:
    """One unit after the other, from a rack that has given the fewest, in a domain that has; of several the emptiest
    rack."""
    given = Counter[Path]()

    def turn(path: Path) -> tuple[list[int], int, Path]:  # it only grows
        return [given[path[:depth]] for depth in range(len(path), 0, -1)], given[path] - room[path], path

    heap = [turn(path) for path in room]
    heapq.heapify(heap)
    while units:
        known = heapq.heappop(heap)
        path = known[-1]
        if given[path] == room[path]:
            continue
        if known == turn(path):
            given.update(path[:depth] for depth in range(1, len(path) + 1))
            units -= 1
        heapq.heappush(heap, turn(path))
    return [(path, given[path]) for path in room if given[path]]


def racks(topology: TopologySpec) -> dict[str, Path]:
    """Each host's rack: its switch, in the domains of the switches that are connected without going above a tier."""
    tiers = topology.tiers
    numbers: dict[str, Path] = {switch: (number,) for number, switch in enumerate(topology.switches)}
    for tier in range(2, max(tiers.values(), default=1)):
        found: dict[str, int] = {}
        domain = itertools.count()
        for first in topology.switches:
            todo = [first] if tiers.get(first, tier + 1) <= tier and first not in found else []
            number = next(domain) if todo else -1
            while todo:
                switch = todo.pop()
                if switch not in found:
                    found[switch] = number
                    near = (link.other(switch) for link in topology.ports[switch])
                    todo += (other for other in near if tiers.get(other, tier + 1) <= tier)
        numbers = {switch: (found.get(switch, -1), *path) for switch, path in numbers.items()}
    return {host: numbers[topology.ports[host][0].other(host)] for host in topology.hosts if topology.ports[host]}
