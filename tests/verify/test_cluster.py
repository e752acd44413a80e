"""Workers in other processes, over Dask: the same counts as with threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from p4gen.errors import FailedError, InputError, MissingToolError
from p4gen.host.collectives.plan import Flow
from p4gen.verification.search.cluster import Cluster
from p4gen.verification.search.search import Search
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from verify.scopes import scope

WHY = "needs Dask: pip install 'p4gen[cluster]'"


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason=WHY)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.mark.long
def test_counts_are_those_of_threads(dask: Any) -> None:
    one = scope("III", packets=2, budget=Budget(losses=1))
    teams = None, Cluster(dask.scheduler_address)
    results = [Search(System(one), reduce=False, symmetry=True, team=team).run() for team in teams]
    assert results[0].complete
    assert len({(r.distinct, r.transitions, r.depth, r.ends, r.complete, r.stood) for r in results}) == 1


@pytest.mark.long
def test_a_violation_has_a_shortest_way(dask: Any) -> None:
    one = scope("III", variant="psn-recycling", flow=Flow.ACKS, window=1, packets=4)
    problem = Search(System(one), reduce=False, team=Cluster(dask.scheduler_address)).run().problem
    assert problem is not None
    assert (problem.property, len(problem.events)) == ("results", 7)


@pytest.mark.long
def test_a_lost_worker_ends_the_search(dask: Any) -> None:
    """Its states are gone: nothing is said about them."""
    team = Cluster(dask.scheduler_address)
    one = scope("III", packets=2, budget=Budget(losses=1))
    with pytest.raises(FailedError, match="lost a worker"):
        Search(System(one), team=team).run(report=lambda _: dask.scale(1))


@pytest.mark.long
def test_an_address_where_nobody_is() -> None:
    pytest.importorskip("distributed", reason=WHY)
    with pytest.raises(InputError, match="1 to 64"):
        Cluster("local:0")
    with pytest.raises(InputError, match="no Dask scheduler"):
        Cluster("nonsense://")


@pytest.mark.long
def test_without_dask_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingToolError, match=r"p4gen\[cluster\]"):
        Cluster("local:2")
