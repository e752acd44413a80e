"""Ranks in real time: results as NumPy has them, whatever happens to packets and to the group."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError, InputError
from p4gen.families import collective, load_collective
from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.compiled.pairs import CompiledPair
from p4gen.host.transport.clock import MS
from p4gen.host.transport.verbs import Status
from p4gen.manager.api import Code, GroupState, ManagerError, Membership
from p4gen.manager.ranks.calls import CallResult
from p4gen.manager.ranks.follower import KEPT
from p4gen.manager.ranks.host import Member
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.kinds import Kinds
from p4gen.net.collectives.values import draw, expected
from p4gen.net.world.faults import DirectionFaults, Fate, Impairment
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective

from .cluster import Cluster

Futures = list[Future[CallResult]]


def spec_of(mode: str, **more: int | str) -> CollectiveSpec:
    return load_collective(None, {"mode": mode, "lanes": 8, "window": 4, "message": 2, "groups": 4} | more)


@pytest.fixture(params=["II", "III"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(spec_of(request.param)) as found:
        yield found


@pytest.fixture
def cluster_iii() -> Iterator[Cluster]:
    with Cluster(spec_of("III")) as found:
        yield found


def members(cluster: Cluster, group: str = "g", hosts: Sequence[str] | None = None) -> list[Member]:
    return [cluster.hosts[host].member(group, PATIENCE_S) for host in hosts or cluster.topology.hosts]


def activate(cluster: Cluster) -> list[Member]:
    cluster.manager.activate(g=tuple(cluster.topology.hosts))
    return members(cluster)


def begin(ranks: Sequence[Member], call: Call, values: Sequence[Array], deadline: float | None = None) -> Futures:
    return [
        member.begin(call.collective, mine, call.root, call.op, deadline)
        for member, mine in zip(ranks, values, strict=True)
    ]


def check(spec: CollectiveSpec, call: Call, values: Sequence[Array], futures: Futures) -> list[CallResult]:
    results = [future.result(PATIENCE_S) for future in futures]
    for rank, (result, wanted) in enumerate(zip(results, expected(call, spec, values), strict=True)):
        if wanted is None or call.collective is Collective.BARRIER:
            assert result.value is None, f"rank {rank} of {call}"
        else:
            assert result.value is not None, f"rank {rank} of {call}"
            assert np.array_equal(result.value, wanted), f"rank {rank} of {call}"
            assert result.value.dtype == wanted.dtype
    return results


def values(cluster: Cluster, call: Call, seed: int) -> list[Array]:
    spec = collective(cluster.spec)
    return draw(call, spec, len(cluster.topology.hosts), np.random.default_rng(seed), overflowing=False)


def run(cluster: Cluster, ranks: Sequence[Member], call: Call, seed: int = 1) -> list[CallResult]:
    values = draw(call, collective(cluster.spec), len(ranks), np.random.default_rng(seed), overflowing=False)
    return check(collective(cluster.spec), call, values, begin(ranks, call, values))


def same(future: Future[CallResult], wanted: Array) -> bool:
    value = future.result(PATIENCE_S).value
    return value is not None and np.array_equal(value, wanted)


def deafen(cluster: Cluster, host: str, deaf: bool = True) -> None:
    """Nothing arrives at a host's NIC from now on."""
    nic, done = cluster.nics[host], threading.Event()

    def switch(_: object) -> None:
        nic.incoming = (lambda frame, now: Fate((), "deaf")) if deaf else None
        done.set()

    cluster.loops[host].call_soon_threadsafe(switch)
    assert done.wait(PATIENCE_S)


ALL = [
    Call(Collective.ALLREDUCE, 4 * 101),
    Call(Collective.BARRIER, 0),
    Call(Collective.REDUCE, 4 * 40, root=2),
    Call(Collective.BROADCAST, 4 * 77, root=1),
    Call(Collective.REDUCE_SCATTER, 4 * 48),
    Call(Collective.ALLGATHER, 4 * 60),
    Call(Collective.BROADCAST, 4 * 5, root=3),
    Call(Collective.ALLREDUCE, 4 * 300),
]


@pytest.mark.parametrize("trouble", [0.0, 0.02])
def test_all_collectives_are_right_under_loss_duplication_and_delay(
    cluster: Cluster, trouble: float, seed: int
) -> None:
    faults = [Impairment(loss=trouble, duplicate=trouble, reorder=trouble, jitter=3 * MS)] if trouble else []
    for i, nic in enumerate(cluster.nics.values()):
        nic.outgoing = DirectionFaults(random.Random(f"{seed} {i}>"), faults, (), (), Kinds({}, {})).fate
        nic.incoming = DirectionFaults(random.Random(f"{seed} >{i}"), faults, (), (), Kinds({}, {})).fate
    ranks = activate(cluster)
    order = [ALL[i] for i in np.random.default_rng(seed).permutation(len(ALL))]
    chance = np.random.default_rng(seed)
    values = [draw(call, collective(cluster.spec), 4, chance, overflowing=False) for call in order]
    calls = [begin(ranks, call, mine) for call, mine in zip(order, values, strict=True)]
    for call, mine, futures in zip(order, values, calls, strict=True):
        results = check(collective(cluster.spec), call, mine, futures)
        if call.collective is Collective.BARRIER:
            assert min(r.finished for r in results) >= max(r.started for r in results)
    assert [member.completed for member in ranks] == [len(ALL)] * 4
    lost = sum((nic.lost.total() for nic in cluster.nics.values()), 0)
    assert bool(lost) == bool(trouble)
    if trouble:  # without, there may be resends too: a receiver was not ready
        assert sum(member.report().resent for member in ranks)


def test_calls_that_wait(cluster: Cluster) -> None:
    ranks = activate(cluster)
    got: dict[int, object] = {}

    def work(rank: int, member: Member) -> None:
        member.barrier(deadline=PATIENCE_S)
        mine = np.full((3, 4), rank, np.int32)
        got[rank] = (
            member.all_reduce(mine, deadline=PATIENCE_S).tolist(),
            member.reduce(mine, 1, deadline=PATIENCE_S) is not None,
            member.broadcast(mine, 2, deadline=PATIENCE_S)[0, 0],
            member.reduce_scatter(mine, deadline=PATIENCE_S).tolist(),
            member.all_gather(mine[0], deadline=PATIENCE_S).tolist(),
        )

    threads = [threading.Thread(target=work, args=each) for each in enumerate(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    gathered = [rank for rank in range(4) for _ in range(4)]
    assert got == {rank: ([[6] * 4] * 3, rank == 1, 2, [6] * 3, gathered) for rank in range(4)}


def test_a_generation_in_the_middle_of_a_call(cluster: Cluster) -> None:
    ranks = activate(cluster)
    run(cluster, ranks, Call(size=400))
    deafen(cluster, "h1")
    call = Call(size=4 * 2000)
    values = draw(call, collective(cluster.spec), 4, np.random.default_rng(5), overflowing=False)
    futures = begin(ranks, call, values)
    until(lambda: all(member.report().sent > 20 for member in ranks))
    assert not any(future.done() for future in futures)
    activate(cluster)
    until(lambda: [member.generation for member in ranks] == [2] * 4)
    mended = time.monotonic_ns() * 1000
    deafen(cluster, "h1", deaf=False)
    results = check(collective(cluster.spec), call, values, futures)
    assert [r.begun for r in results] == [2] * 4
    assert max(r.started for r in results) < mended < min(r.finished for r in results)  # it took that long
    assert [member.generation for member in ranks] == [2] * 4
    assert cluster.manager.agreed[-1] == (2, dict.fromkeys(range(4), 1), 1)


def test_ranks_that_have_completed_more_give_again_what_others_lack(cluster_iii: Cluster) -> None:
    # In Mode III the next hop acknowledges, so a rank can be through while another has nothing of the result.
    cluster = cluster_iii
    ranks = activate(cluster)
    deafen(cluster, "h3")
    call = Call(size=4 * 16)
    values = draw(call, collective(cluster.spec), 4, np.random.default_rng(6), overflowing=False)
    futures = begin(ranks, call, values)
    wait(futures[:3], PATIENCE_S)
    assert [future.done() for future in futures] == [True, True, True, False]
    later = Call(size=4 * 64)
    more = draw(later, collective(cluster.spec), 4, np.random.default_rng(7), overflowing=False)
    after = begin(ranks, later, more)
    activate(cluster)
    until(lambda: [member.generation for member in ranks] == [2] * 4)
    deafen(cluster, "h3", deaf=False)
    check(collective(cluster.spec), call, values, futures)
    check(collective(cluster.spec), later, more, after)
    assert cluster.manager.agreed[-1] == (2, {0: 1, 1: 1, 2: 1, 3: 0}, 0)
    assert [member.completed for member in ranks] == [2] * 4


def test_many_generations_during_many_calls(cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    ranks = activate(cluster)
    order = [chance.choice(ALL) for _ in range(20)]
    values = [draw(call, collective(cluster.spec), 4, np.random.default_rng(seed), overflowing=False) for call in order]
    calls = [begin(ranks, call, mine) for call, mine in zip(order, values, strict=True)]
    for _ in range(6):
        time.sleep(chance.random() * 0.05)
        activate(cluster)
    for call, mine, futures in zip(order, values, calls, strict=True):
        check(collective(cluster.spec), call, mine, futures)
    until(lambda: [member.generation for member in ranks] == [7] * 4)
    assert [member.completed for member in ranks] == [len(order)] * 4


def test_a_broken_group_lets_calls_wait_until_it_comes_back(cluster: Cluster) -> None:
    ranks = activate(cluster)
    run(cluster, ranks, Call(size=400))
    cluster.manager.break_group("g", "no tree: s0 and h2 have no link")
    until(lambda: all(member.state is GroupState.BROKEN for member in ranks))
    call = Call(size=800)
    values = draw(call, collective(cluster.spec), 4, np.random.default_rng(8), overflowing=False)
    with pytest.raises(FailedError, match=r"all|no tree: s0 and h2 have no link"):
        ranks[0].all_reduce(values[0], deadline=0.05)
    waiting = begin(ranks[1:], call, values[1:])
    time.sleep(0.05)
    assert not any(future.done() for future in waiting)
    activate(cluster)
    # Rank 0's call has failed, but it is still done for the others.
    total: Array = np.stack(values).sum(axis=0)
    for future in waiting:
        assert same(future, total)
    run(cluster, ranks, Call(Collective.BARRIER, 0))
    assert [member.completed for member in ranks] == [3] * 4


def test_a_deadline_says_what_is_missing(cluster_iii: Cluster) -> None:
    cluster = cluster_iii
    ranks = activate(cluster)
    values = np.arange(8, dtype=np.int32)
    with pytest.raises(FailedError, match=r"allreduce of group g has not ended in 0\.05 s: other ranks have not"):
        ranks[0].all_reduce(values, deadline=0.05)
    for future in [member.begin(Collective.ALLREDUCE, values) for member in ranks[1:]]:
        assert same(future, 4 * values)
    cluster.manager.hold_ready.clear()
    activate(cluster)
    until(lambda: ranks[0].generation == 2)
    with pytest.raises(FailedError, match="not all ranks have joined generation 2"):
        ranks[0].barrier(deadline=0.05)
    cluster.manager.hold_ready.set()
    for future in [member.begin(Collective.BARRIER) for member in ranks[1:]]:
        future.result(PATIENCE_S)


def test_calls_with_other_patience_fail_in_their_own_time(cluster: Cluster) -> None:
    (first, *_) = activate(cluster)
    values = np.arange(8, dtype=np.int32)
    patient, impatient, last = (first.begin(Collective.ALLREDUCE, values, deadline=t) for t in (0.3, 0.05, 0.1))
    with pytest.raises(FailedError, match=r"0\.05 s"):
        impatient.result(PATIENCE_S)
    with pytest.raises(FailedError, match=r"0\.1 s"):
        last.result(PATIENCE_S)
    with pytest.raises(FailedError, match=r"0\.3 s"):
        patient.result(PATIENCE_S)
    ended = threading.Event()
    first.begin(Collective.ALLREDUCE, values, deadline=0.01).add_done_callback(lambda _: ended.set())
    assert ended.wait(PATIENCE_S)


def test_a_call_may_be_made_where_the_one_before_ends(cluster: Cluster) -> None:
    """On the host's loop, in the middle of what compiled code has asked for."""
    ranks, calls = activate(cluster), 8
    values = np.arange(8, dtype=np.int32)
    left = [calls - 1] * len(ranks)
    results: list[Future[CallResult]] = [Future() for _ in ranks]

    def again(number: int, ended: Future[CallResult]) -> None:
        if left[number]:
            left[number] -= 1
            begun = ranks[number].begin(Collective.ALLREDUCE, ended.result().value)
            begun.add_done_callback(partial(again, number))
        else:
            results[number].set_result(ended.result())

    for number, member in enumerate(ranks):
        member.begin(Collective.ALLREDUCE, values).add_done_callback(partial(again, number))
    for future in results:
        assert same(future, values * 4**calls)
    assert [member.completed for member in ranks] == [calls] * len(ranks)


def test_a_group_that_goes_fails_its_calls(cluster: Cluster) -> None:
    ranks = activate(cluster)
    future = ranks[0].begin(Collective.ALLREDUCE, np.arange(100, dtype=np.int32))
    time.sleep(0.02)
    cluster.manager.destroy("g")
    with pytest.raises(FailedError, match="group g was destroyed"):
        future.result(PATIENCE_S)
    with pytest.raises(FailedError, match="group g was destroyed"):
        ranks[0].barrier()
    until(lambda: not any(host.members() for host in cluster.hosts.values()))
    assert not any(nic.nic.pairs for nic in cluster.nics.values())
    with pytest.raises(FailedError, match=r"h0 is not in group g \(it is in: none\)"):
        cluster.hosts["h0"].member("g", timeout=0.01)
    again = activate(cluster)
    assert again[0] is not ranks[0]
    run(cluster, again, Call(size=400))


def test_two_groups_on_the_same_hosts(cluster: Cluster, seed: int) -> None:
    cluster.manager.activate(g=("h0", "h1", "h2", "h3"), pair=("h2", "h0"))
    both = [members(cluster), members(cluster, "pair", ["h2", "h0"])]
    assert [(m.rank, m.size) for m in both[1]] == [(0, 2), (1, 2)]
    chance = np.random.default_rng(seed)
    waiting = []
    for call in (Call(size=4000), Call(Collective.ALLGATHER, 1600), Call(Collective.BROADCAST, 2000, root=1)):
        for ranks in both:
            values = draw(call, collective(cluster.spec), len(ranks), chance, overflowing=False)
            waiting.append((call, values, begin(ranks, call, values)))
    for call, values, futures in waiting:
        check(collective(cluster.spec), call, values, futures)


def test_reports_tell_what_was_done(cluster: Cluster) -> None:
    ranks = activate(cluster)
    deafen(cluster, "h2")
    futures = begin(ranks, Call(size=4 * 8 * 6), [np.ones(48, np.int32)] * 4)
    until(lambda: ranks[2].report().timeouts > 0)
    activate(cluster)
    deafen(cluster, "h2", deaf=False)
    wait(futures, PATIENCE_S)
    run(cluster, ranks, Call(Collective.ALLGATHER, 640))
    run(cluster, ranks, Call(Collective.BARRIER, 0))
    reports = cluster.manager.reports
    until(lambda: [reports[("g", r)].invocations if ("g", r) in reports else 0 for r in range(4)] == [3] * 4)
    for rank in range(4):
        report = reports["g", rank]
        assert report.data_bytes == 4 * 48 + 640
        assert report.sent - report.resent >= 2 * (6 + 1)  # the first call's packets, in both generations
        assert report.dropped.keys() <= {"unknown_qp"}
    assert reports["g", 2].timeouts > 0  # in the generation that has gone


def test_groups_go_on_without_the_manager_and_hear_of_what_they_missed(cluster_iii: Cluster) -> None:
    cluster = cluster_iii
    ranks = activate(cluster)
    cluster.manager.absent = True
    cluster.manager.hang_up()
    run(cluster, ranks, Call(size=400))
    ranks_gone = cluster.manager.groups_ranks.pop("g")
    assert len(ranks_gone) == 4
    time.sleep(1.1)
    run(cluster, ranks, Call(size=400))
    cluster.manager.absent = False
    until(lambda: not cluster.hosts["h0"].members())
    with pytest.raises(FailedError, match="destroyed"):
        ranks[0].barrier()


def test_a_call_of_a_group_that_nobody_knows_any_more_ends(cluster_iii: Cluster) -> None:
    cluster = cluster_iii
    ranks = activate(cluster)
    run(cluster, ranks, Call(size=400))
    cluster.manager.groups_ranks.pop("g")  # and its end was never told
    with pytest.raises(FailedError, match="group g was destroyed"):
        ranks[0].barrier(PATIENCE_S)


def test_another_group_of_the_same_name_is_a_new_one(cluster_iii: Cluster) -> None:
    cluster = cluster_iii
    ranks = activate(cluster)
    run(cluster, ranks, Call(size=400))
    waiting = ranks[0].begin(Collective.BARRIER)
    # The manager destroyed it and made another, and nobody told the hosts of the first one's end.
    cluster.manager.generation = 0
    cluster.manager.forget()
    cluster.manager.activate(g=("h3", "h2", "h1", "h0"))
    with pytest.raises(FailedError, match="group g was destroyed"):
        waiting.result(PATIENCE_S)
    until(lambda: all(again is not old for again, old in zip(members(cluster), ranks, strict=True)))
    again = members(cluster, hosts=["h3", "h2", "h1", "h0"])
    until(lambda: [member.rank for member in again] == [0, 1, 2, 3])
    run(cluster, again, Call(Collective.BROADCAST, 400, root=1))


def test_groups_whose_ranks_write_to_each_other_are_not_for_this_commlib(cluster_iii: Cluster) -> None:
    member = activate(cluster_iii)[0]
    run(cluster_iii, members(cluster_iii), Call(Collective.BARRIER, 0))
    config = member._last
    assert config is not None
    news = Membership("g", GroupState.ACTIVE, 2, replace(config, generation=2, spec=MultiwriteSpec()))
    member._loop.call_soon_threadsafe(member.follow, news)
    with pytest.raises(FailedError, match="barrier of group g: group g is of multiwrite, and this host has offered"):
        member.begin(Collective.BARRIER).result(PATIENCE_S)


def test_what_no_program_can_do_is_refused_at_once(cluster_iii: Cluster) -> None:
    ranks = activate(cluster_iii)
    run(cluster_iii, ranks, Call(size=400))
    with pytest.raises(InputError, match="elements are float64"):
        ranks[0].all_reduce(np.zeros(4))
    with pytest.raises(InputError, match="elements are uint32"):
        ranks[0].all_reduce(np.zeros(4, np.uint32))
    with pytest.raises(InputError, match="root 4 is not a rank"):
        ranks[0].broadcast(np.zeros(4, np.int32), 4)
    with pytest.raises(InputError, match="5 elements do not divide"):
        ranks[0].reduce_scatter(np.zeros(5, np.int32))
    run(cluster_iii, ranks, Call(size=400))


def test_before_the_group_is_active_the_future_refuses(cluster_iii: Cluster) -> None:
    cluster = cluster_iii
    cluster.manager.groups_ranks["g"] = tuple(cluster.topology.hosts)
    cluster.manager.break_group("g", "s0 does not answer")
    ranks = members(cluster)
    assert ranks[0].rank is None
    wrong = [member.begin(Collective.ALLREDUCE, np.zeros(4)) for member in ranks]
    right = [member.begin(Collective.ALLREDUCE, np.ones(4, np.int32)) for member in ranks]
    activate(cluster)
    for future in wrong:
        with pytest.raises(InputError, match="elements are float64"):
            future.result(PATIENCE_S)
    for future in right:
        assert same(future, np.full(4, 4, np.int32))
    assert [member.completed for member in ranks] == [1] * 4


def test_inputs_are_kept_for_some_calls_only(cluster_iii: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_iii
    ranks = activate(cluster)
    for _ in range(KEPT + 1):
        run(cluster, ranks, Call(Collective.BARRIER, 0))
    monkeypatch.setattr(cluster.manager, "ready", lambda *_: 1)
    activate(cluster)
    until(lambda: ranks[0].generation == 2)
    run(cluster, ranks, Call(Collective.BARRIER, 0))  # all of the last eight can be done again
    monkeypatch.setattr(cluster.manager, "ready", lambda *_: 1)
    activate(cluster)
    with pytest.raises(FailedError, match="call 1 must be repeated, but its input is no longer kept"):
        ranks[0].barrier(PATIENCE_S)
    monkeypatch.undo()
    activate(cluster)
    until(lambda: ranks[0].generation == 4)


@pytest.mark.parametrize("collective", [Collective.BARRIER, Collective.BROADCAST])
def test_a_queue_pair_that_fails_takes_its_generation_along(cluster_iii: Cluster, collective: Collective) -> None:
    cluster = cluster_iii
    ranks = activate(cluster)
    run(cluster, ranks, Call(size=400))
    pairs = list(cluster.nics["h0"].nic.pairs.values())
    values = np.zeros(4, np.int32)
    # Rank 0 only receives the Broadcast, so the failure reaches it as a flushed receive.
    future = ranks[0].begin(collective, values, root=1)
    cluster.loops["h0"].call_soon_threadsafe(lambda _: pairs[0].fail(Status.REMOTE_ACCESS_ERROR))
    for failed in (future, ranks[0].begin(collective, values, root=1)):
        with pytest.raises(FailedError, match="a queue pair failed: remote access error"):
            failed.result(PATIENCE_S)
    others = [[member.begin(collective, values, root=1) for member in ranks[1:]] for _ in range(2)]
    activate(cluster)
    for future in (f for mine in others for f in mine):
        future.result(PATIENCE_S)
    run(cluster, ranks, Call(size=400))


@pytest.fixture(params=["II", "III"])
def by_requests(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster whose NICs have no machine code for collectives."""
    with Cluster(spec_of(request.param, groups=9)) as found:
        for nic in found.nics.values():
            nic.nic.compiled = False
        found.manager.sync = PsnSync.SUBGROUPS
        yield found


def test_ranks_without_machine_code_on_their_nics(by_requests: Cluster, seed: int) -> None:
    ranks = activate(by_requests)
    for number, each in enumerate(Collective):
        call = Call(each, 0 if each is Collective.BARRIER else 3200, number % 2)
        run(by_requests, ranks, call, seed)


def test_a_nic_that_cannot_connect_ends_the_rank(by_requests: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    nic = by_requests.nics["h0"].nic
    create, left = nic.create_pair, [1]

    def create_one(*connection: Any) -> CompiledPair:
        if not left:
            raise FailedError("there is no neighbour")
        left.pop()
        return create(*connection)

    monkeypatch.setattr(nic, "create_pair", create_one)
    rank = activate(by_requests)[0]
    until(lambda: bool(rank.ended))
    assert not nic.pairs
    with pytest.raises(FailedError, match="there is no neighbour"):
        rank.barrier()


def test_a_nic_that_sets_no_psns_ends_a_rank_that_needs_it(by_requests: Cluster) -> None:
    by_requests.manager.sync = PsnSync.REFINED
    rank = activate(by_requests)[0]
    until(lambda: bool(rank.ended))
    with pytest.raises(FailedError, match="refined synchronisation"):
        rank.barrier()


def test_a_loop_that_ends_fails_all_calls(cluster_iii: Cluster) -> None:
    ranks = activate(cluster_iii)
    waiting = ranks[0].begin(Collective.BARRIER)

    def crash(_: object) -> None:
        raise ZeroDivisionError("a mistake")

    cluster_iii.loops["h0"].call_soon_threadsafe(crash)
    with pytest.raises(FailedError, match=r"the host's loop has ended: ZeroDivisionError\('a mistake'\)"):
        waiting.result(PATIENCE_S)
    with pytest.raises(FailedError, match="the host's loop has ended"):
        ranks[0].barrier()


def test_a_host_that_leaves_fails_its_calls(cluster_iii: Cluster) -> None:
    ranks = activate(cluster_iii)
    waiting = ranks[1].begin(Collective.BARRIER)
    cluster_iii.hosts["h1"].close()
    with pytest.raises(FailedError, match="h1 has left"):
        waiting.result(PATIENCE_S)


def test_waiting_on_the_loop_itself_is_refused(cluster_iii: Cluster) -> None:
    ranks = activate(cluster_iii)
    found: list[BaseException] = []

    def on_loop(_: object) -> None:
        try:
            ranks[0].barrier()
        except RuntimeError as error:
            found.append(error)

    cluster_iii.loops["h0"].call_soon_threadsafe(on_loop)
    until(lambda: bool(found))
    assert "on the loop" in str(found[0])
    for future in [member.begin(Collective.BARRIER) for member in ranks[1:]]:
        future.result(PATIENCE_S)


def test_a_tree_of_switches() -> None:
    with Cluster(spec_of("III", reliability="sack"), "tree-3-2") as cluster:
        assert cluster.spec.wants_ticks
        ranks = activate(cluster)
        for call in ALL:
            run(cluster, ranks, call)


def test_errors_of_a_manager_are_no_end(cluster_iii: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_iii
    tried: list[int] = []
    ready = cluster.manager.ready

    def unreachable_at_first(group: str, generation: int, rank: int, completed: int) -> int:
        tried.append(rank)
        if tried.count(rank) == 1:
            raise ManagerError(Code.UNREACHABLE, "nobody")
        return ready(group, generation, rank, completed)

    monkeypatch.setattr(cluster.manager, "ready", unreachable_at_first)
    ranks = activate(cluster)
    run(cluster, ranks, Call(size=400))
    assert sorted(tried) == [0, 0, 1, 1, 2, 2, 3, 3]
