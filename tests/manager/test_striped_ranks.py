"""Ranks of groups on several trees, in real time: all calls are NumPy's, also of a tree that fails under way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from patience import until

from p4gen.errors import FailedError, InputError
from p4gen.families import collective
from p4gen.host.collectives.striped import StripedCommunicator
from p4gen.host.transport.verbs import Status
from p4gen.manager.ranks.host import Host, Member
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.values import draw
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective

from .plans import spines
from .plant import RigSwitches, plant
from .rig import Rig, group
from .test_member import ALL, begin, check, spec_of
from .test_striped import rig_of

Running = tuple[Rig, RigSwitches, dict[str, Host]]


@pytest.fixture(scope="module", params=["II", pytest.param("III", marks=pytest.mark.long)])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    spec = spec_of(request.param, ports=8, groups=2)
    rig = rig_of(spines(5e9, 3e9), tmp_path_factory.mktemp("plan"), spec, engine="jit")
    rig.register()
    try:
        with plant(rig, spec) as (switches, hosts):
            yield rig, switches, hosts
    finally:
        rig.manager.close()


@pytest.fixture
def ranks(running: Running) -> Iterator[list[Member]]:
    rig, switches, hosts = running
    rig.manager.init_group(group("g", *hosts, fallback=True))
    assert len(rig.manager.group("g").trees) == 2
    yield [host.member("g") for host in hosts.values()]
    rig.manager.destroy_group("g")
    until(lambda: not any(host.members() for host in hosts.values()))
    for one, other in map(tuple, set(switches.cut)):
        switches.set_link(*sorted((one, other)), up=True)


def spec_at(ranks: list[Member]) -> CollectiveSpec:
    until(lambda: ranks[0]._last is not None)
    config = ranks[0]._last
    assert config is not None
    return collective(config.spec)


def run(ranks: list[Member], calls: list[Call], seed: int) -> None:
    spec = spec_at(ranks)
    chance = np.random.default_rng(seed)
    data = [draw(call, spec, len(ranks), chance, overflowing=False) for call in calls]
    made = [begin(ranks, call, mine) for call, mine in zip(calls, data, strict=True)]
    for call, mine, futures in zip(calls, data, made, strict=True):
        check(spec, call, mine, futures)


def test_calls_without_waiting_for_each_other(ranks: list[Member], seed: int) -> None:
    order = [ALL[i] for i in np.random.default_rng(seed).permutation(len(ALL))]
    run(ranks, [*order, Call(Collective.BARRIER, 0), *order], seed)
    for member in ranks:
        assert member.completed == 2 * len(ALL) + 1
        assert member.progress() == 0.0
        assert isinstance(member._communicator, StripedCommunicator)
        first, second = member._communicator.communicators
        assert first.pair.requester.stats.sent > second.pair.requester.stats.sent > 0
    with pytest.raises(InputError, match="do not divide among 4 ranks"):
        ranks[0].reduce_scatter(np.zeros(5, np.int32))
    with pytest.raises(InputError, match="root 4 is not a rank"):
        ranks[0].broadcast(np.zeros(4, np.int32), 4)
    with pytest.raises(InputError, match="elements are float64"):
        ranks[0].all_reduce(np.zeros(4))


def test_calls_under_way_go_on_over_the_tree_that_is_left(ranks: list[Member], running: Running, seed: int) -> None:
    rig, switches, _ = running
    spec = spec_at(ranks)
    big, chance = Call(Collective.ALLREDUCE, 1 << 15), np.random.default_rng(seed)
    calls = [*ALL, big, big]
    data = [draw(call, spec, 4, chance, overflowing=False) for call in calls]
    made = [begin(ranks, call, mine) for call, mine in zip(calls, data, strict=True)]
    until(lambda: ranks[0].completed >= len(ALL) and ranks[0].progress() > 0.05)
    switches.set_link("leaf1", "spine0", up=False)
    for call, mine, futures in zip(calls, data, made, strict=True):
        check(spec, call, mine, futures)
    status = rig.manager.group("g")
    assert (status.generation, status.trees, dict(status.tree)["spine1"]) == (2, (), None)
    run(ranks, ALL, seed)
    switches.set_link("leaf0", "spine1", up=False)  # nothing connects the leaves now
    rig.wait(lambda: rig.manager.group("g").ring)
    more = draw(big, spec, 4, chance, overflowing=False)
    late = begin(ranks, big, more)
    switches.set_link("leaf0", "spine1", up=True)
    switches.set_link("leaf1", "spine0", up=True)
    check(spec, big, more, late)
    rig.wait(lambda: not rig.manager.group("g").ring)
    if not rig.manager.group("g").trees:  # the manager was quick: it has seen one link come back before the other
        rig.manager.move_group("g")
    rig.wait(lambda: len(rig.manager.group("g").trees) == 2)
    run(ranks, ALL, seed)


@pytest.mark.long
def test_calls_go_from_a_ring_to_several_trees(running: Running, seed: int) -> None:
    rig, _, hosts = running
    others = [f"{switch}-{n}" for switch in rig.topology.switches for n in range(2)]
    for name in others:
        rig.manager.init_group(group(name, "h0", "h2", root=name.partition("-")[0]))
    rig.manager.init_group(group("g", *hosts, fallback=True))
    assert rig.manager.group("g").ring
    ranks = [host.member("g") for host in hosts.values()]
    run(ranks, ALL, seed)
    big, spec = Call(Collective.BROADCAST, 1 << 14, root=1), spec_at(ranks)
    data = draw(big, spec, 4, np.random.default_rng(seed), overflowing=False)
    made = [begin(ranks, big, data) for _ in range(4)]
    for name in others:
        rig.manager.destroy_group(name)
    for futures in made:
        check(spec, big, data, futures)
    rig.wait(lambda: not rig.manager.group("g").ring)
    rig.manager.move_group("g")  # it may have got one tree while there was room for one only
    assert len(rig.manager.group("g").trees) == 2
    run(ranks, ALL, seed)
    rig.manager.destroy_group("g")


def test_a_queue_pair_that_fails_ends_the_calls_of_all_trees(ranks: list[Member], running: Running, seed: int) -> None:
    call = Call(Collective.ALLREDUCE, 1 << 12)
    run(ranks, [call], seed)
    member = ranks[2]
    calls = [member.begin(Collective.ALLREDUCE, np.zeros(512, np.int32)) for _ in range(3)]

    def fail(_: object) -> None:
        assert isinstance(member._communicator, StripedCommunicator)
        member._communicator.communicators[1].pair.fail(Status.RETRY_EXCEEDED)

    member._loop.call_soon_threadsafe(fail)
    for each in calls:
        with pytest.raises(FailedError, match="a queue pair failed"):
            each.result(30)
    running[0].manager.move_group("g")
    others = [each for each in ranks if each is not member]
    futures = [each.begin(Collective.ALLREDUCE, np.zeros(512, np.int32)) for each in others for _ in range(3)]
    for each in futures:
        each.result(30)
    run(ranks, ALL[:3], seed)
