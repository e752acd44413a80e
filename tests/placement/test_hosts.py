"""Which hosts a job gets of those that are free: properties of random fabrics, and the racks of topologies."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.plan.placement.hosts import PLACEMENTS, Path, proposals, racks
from p4gen.vocabulary.topology import load_topology

Free = dict[Path, list[int]]


@st.composite
def fabrics(draw: st.DrawFn) -> Free:
    """Free hosts, by pod and rack; hosts are numbered."""
    counts = draw(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=3))
    paths = [(pod, 10 * pod + rack) for pod, racks in enumerate(counts) for rack in range(len(racks))]
    sizes = [count for racks in counts for count in racks]
    return {path: [100 * path[1] + host for host in range(size)] for path, size in zip(paths, sizes, strict=True)}


def of(free: Free, units: int, placement: str) -> list[list[int]]:
    return list(proposals(free, units, placement, random.Random(0)))


def by_path(free: Free, hosts: list[int]) -> dict[Path, int]:
    return {path: count for path, some in free.items() if (count := len(set(hosts) & set(some)))}


def fewest(sizes: list[int], units: int) -> int:
    """By brute force: how few of these sizes make as many units."""
    return next(n for n in range(len(sizes) + 1) if any(sum(some) >= units for some in combinations(sizes, n)))


@given(fabrics(), st.integers(1, 20), st.sampled_from(PLACEMENTS))
def test_every_rank_has_a_host_and_no_host_two(free: Free, units: int, placement: str) -> None:
    every = {host for some in free.values() for host in some}
    found = of(free, units, placement)
    assert bool(found) == (units <= len(every))
    for hosts in found:
        assert len(hosts) == len(set(hosts)) == units
        assert set(hosts) <= every
        if placement != "random":  # ranks of a rack follow each other
            assert len([a for a, b in pairwise(hosts) if a // 100 != b // 100]) == (len(by_path(free, hosts)) - 1)


@given(fabrics(), st.integers(1, 20))
def test_packed_takes_the_fewest_racks_of_the_narrowest_domain(free: Free, units: int) -> None:
    found = of(free, units, "packed")
    if not found:
        return
    pods = Counter[int]()
    for (pod, _), some in free.items():
        pods[pod] += len(some)
    used = by_path(free, found[0])
    in_pods = {pod for pod, _ in used}
    assert len(in_pods) == fewest(list(pods.values()), units)
    racks_of = {pod: [len(some) for (at, _), some in free.items() if at == pod] for pod in pods}
    if len(in_pods) == 1:
        (pod,) = in_pods
        least = fewest(racks_of[pod], units)
        assert len(used) == least
        if least == 1:  # the fullest that has room
            (path,) = used
            assert len(free[path]) == min(len(some) for some in free.values() if len(some) >= units)
        else:
            assert all(len(some) < units for some in free.values())
            assert pods[pod] == min(count for count in pods.values() if count >= units)


@given(fabrics(), st.integers(1, 20))
def test_spread_takes_the_most_racks_and_pods_evenly(free: Free, units: int) -> None:
    found = of(free, units, "spread")
    if not found:
        return
    used = by_path(free, found[0])
    assert len(used) == min(units, sum(bool(some) for some in free.values()))
    for path, some in free.items():
        if len(some) > used.get(path, 0):  # a rack with room has no two fewer than another
            assert used.get(path, 0) >= max(used.values()) - 1
    with_room = {pod for (pod, rack), some in free.items() if some}
    assert len({pod for pod, _ in used}) == min(units, len(with_room))


@given(fabrics(), st.integers(1, 20))
def test_later_proposals_are_other_domains(free: Free, units: int) -> None:
    found = of(free, units, "packed")
    fitting = [some for some in free.values() if len(some) >= units]
    for hosts in found[: len(fitting)]:
        assert len(by_path(free, hosts)) == 1
    assert len({frozenset(hosts) for hosts in found[: len(fitting)]}) == len(fitting)


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("star-4", {(0,): 4}),
        ("leaf-spine", {(2,): 2, (3,): 2, (4,): 2, (5,): 2}),
        ("fat-tree-k4", {(pod, 12 + 2 * pod + rack): 2 for pod in range(4) for rack in range(2)}),
        ("clos3:2x2x2x2x3", {(pod, 8 + 2 * pod + rack): 3 for pod in range(2) for rack in range(2)}),
    ],
)
def test_racks_and_pods_of_topologies(name: str, paths: dict[Path, int]) -> None:
    assert Counter(racks(load_topology(name)).values()) == paths
