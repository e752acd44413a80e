"""Frozen simulations: restored as often as one likes, they end as the run does that was never frozen."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from p4gen.host.collectives.algorithms import Algorithm
from p4gen.host.collectives.compiled import Channel
from p4gen.host.compiled.loop import CompiledLoop
from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.model import EngineName
from p4gen.net.collectives.config import Call, Work
from p4gen.net.collectives.hosts import HostsSimulation
from p4gen.net.collectives.simulation import SimConfig, Simulation
from p4gen.net.job import Job
from p4gen.net.world.faults import DirectionFaults, Faults, Impairment, Script
from p4gen.net.world.freezing import Frozen
from p4gen.net.world.watching import Passage
from p4gen.papers.epic.spec import Mode
from p4gen.vocabulary.collective import Reliability
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

from .runs import all_six, star, tiny, trouble

TROUBLE = trouble(loss=0.02, burst=2.0, reorder=0.1, duplicate=0.1, corrupt=0.01)
"""Of the instants at which runs are frozen."""


def config(mode: Mode, engine: EngineName = "jit", **fields: Any) -> SimConfig:
    """An AllReduce of small packets on tree-3-2, where much goes wrong."""
    tree = load_topology("tree-3-2")
    defaults: dict[str, Any] = {"topology": tree, "size": 1024, "faults": TROUBLE, "seed": 5, "skew": 20 * US}
    defaults["program"] = tiny(mode=mode, groups=16)
    return SimConfig(engine=engine, **(defaults | fields))


@dataclass
class End:
    """All that can be seen of a run's end, and of what passed over its links."""

    outcome: str
    results: list[Any]
    state: Frozen
    passed: list[Passage]


def end_of(simulation: Simulation) -> End:
    """Run to the end."""
    passed: list[Passage] = []
    simulation.network.watch(passed.append)
    result = simulation.run()
    assert result.ok, result.errors
    results = [
        (call.started, call.finished, call.last_result, None if (value := call.result()) is None else value.tobytes())
        for call in simulation.invocations
    ]
    outcome = (result.duration, result.sent, result.resent, result.timeouts, result.naks, result.drops, result.links)
    return End(repr((outcome, result.events, result.cnps)), results, simulation.freeze(), passed)


def assert_same(end: End, whole: End, where: str) -> None:
    """A run that went on from a frozen state has ended as the whole one did."""
    assert end.outcome == whole.outcome, where
    assert end.results == whole.results, where
    assert end.state.differences(whole.state) == [], where
    assert end.passed == whole.passed[len(whole.passed) - len(end.passed) :], where


def at(simulation: Simulation, events: int) -> Frozen:
    """The state after so many events."""
    simulation.network.loop.run(count=events - simulation.network.loop.handled)
    return simulation.freeze()


def busy_events(make: Callable[[], Simulation]) -> int:
    """Events until the last rank has its result; what comes later is quiet."""
    simulation = make()
    while not simulation.done:
        simulation.network.loop.run(count=1)
    return simulation.network.loop.handled


@pytest.mark.sample(1)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.long
def test_a_hundred_restored_runs_end_alike(
    mode: Mode, engine: EngineName, pytestconfig: pytest.Config, seed: int
) -> None:
    """A hundred times on each engine with --full; else on the interpreter, which is slow, 25 times."""
    chance = random.Random(seed)
    whole, events = end_of(Simulation(config(mode, engine))), busy_events(lambda: Simulation(config(mode, engine)))
    late = events * 19 // 20
    early = chance.sample(range(1, late), 2)
    times = 25 if engine == "interp" and not pytestconfig.getoption("--full") else 100
    restores = {early[0]: 2, early[1]: 2, chance.randrange(late, events): times - 4}
    for instant, again_and_again in restores.items():
        where = f"frozen after {instant} of {events} events"
        simulation = Simulation(config(mode, engine))
        frozen = at(simulation, instant)
        assert frozen == at(Simulation(config(mode, engine)), instant), where
        assert frozen == pickle.loads(pickle.dumps(frozen)), where
        assert_same(end_of(simulation), whole, where)  # freezing does no harm
        assert simulation.freeze() != frozen, where
        assert sum(simulation.network.drops.values()) > 3, where
        assert sum(pair.responder.stats.out_of_order for pair in simulation.pairs), where
        assert sum(pair.responder.stats.duplicates for pair in simulation.pairs), where
        for again in range(again_and_again):
            # The simulation that has ended; and now and then one that has not begun.
            simulation = Simulation(config(mode, engine)) if again % 32 == 1 else simulation
            simulation.restore(frozen)
            assert simulation.freeze() == frozen, where
            assert_same(end_of(simulation), whole, where)


KINDS: dict[str, Callable[[], Simulation]] = {
    "every collective, II": lambda: Simulation(config(Mode.II, work=(Work(all_six(4)),))),
    "every collective, III": lambda: Simulation(config(Mode.III, work=(Work(all_six(4)),))),
    "two groups": lambda: Simulation(
        config(Mode.III, work=tuple(Work((Call(size=1024),), ranks) for ranks in (("h0", "h3"), ("h1", "h2"))))
    ),
    "Go-Back-N": lambda: Simulation(config(Mode.III, recovery=Recovery.GO_BACK_N)),
    "ideal, II": lambda: Simulation(config(Mode.II, recovery=Recovery.IDEAL)),
    "ideal, III": lambda: Simulation(
        config(Mode.III, program=tiny(mode=Mode.III, groups=16, reliability=Reliability.SACK))
    ),
    "DCQCN": lambda: Simulation(config(Mode.II, size=1 << 14, dcqcn=DcqcnConfig())),
    "scripts": lambda: Simulation(
        config(Mode.III, faults=Faults((Impairment(loss=0.05),), (), (Script.parse("drop 3-9 UP_DATA of rank 1"),)))
    ),
    "rings": lambda: HostsSimulation(config(Mode.II, topology=star(5), work=(Work(all_six(5)),)), Algorithm.RING),
    "rings' chunks": lambda: HostsSimulation(
        config(Mode.II, topology=star(3), work=(Work((Call(Collective.REDUCE, 1 << 18, root=2),)),), faults=Faults()),
        Algorithm.RING,
    ),
    "trees": lambda: HostsSimulation(
        config(Mode.II, topology=star(5), work=(Work((Call(size=1 << 12),)), Work((Call(size=1 << 10),)))),
        Algorithm.TREE,
    ),
    "halving": lambda: HostsSimulation(
        config(Mode.II, topology=star(6), work=(Work((Call(size=1 << 12), Call(size=64))),)), Algorithm.HALVING
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.long
def test_whatever_runs_is_restored_into_a_fresh_simulation(kind: str, seed: int) -> None:
    chance, make = random.Random(seed), KINDS[kind]
    whole, events = end_of(make()), busy_events(make)
    for _ in range(2):
        # A run notes its progress every STEP events, ``at`` does not.
        instant = chance.randrange(1, min(events, Job.STEP))
        frozen = at(make(), instant)
        fresh = make()
        fresh.restore(frozen)
        assert_same(end_of(fresh), whole, f"frozen after {instant} of {events} events")


def test_states_of_different_instants_differ() -> None:
    simulation = Simulation(config(Mode.III))
    states = [at(simulation, events) for events in range(0, 200, 10)]
    assert len(set(states)) == len(states)
    assert "loop" in states[0].differences(states[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(3)
def test_equal_states_are_equal_whatever_their_histories_have_used(kind: str) -> None:
    """One run goes on with the records and frames that it has used so far, the other one with new ones."""
    whole = KINDS[kind]()
    for instant in range(100, 700, 150):
        fresh = KINDS[kind]()
        fresh.restore(at(whole, instant))
        for events in range(instant + 5, instant + 50, 15):
            assert at(fresh, events).differences(at(whole, events)) == [], events


def test_what_is_frozen_does_not_change() -> None:
    simulation = Simulation(config(Mode.III))
    frozen = at(simulation, 200)
    before = pickle.dumps(frozen)
    end_of(simulation)
    simulation.restore(frozen)
    end_of(simulation)
    assert pickle.loads(before) == frozen


def test_a_state_of_another_network_is_refused() -> None:
    with pytest.raises(ValueError, match="another simulation"):
        Simulation(config(Mode.II)).restore(Simulation(config(Mode.II, topology=star(3))).freeze())


@pytest.mark.long
def test_wiring_never_changes() -> None:
    """What is in no STATE is the same at the end as at the beginning, but for caches, what a run has made, and what is
    behind a property in a STATE."""
    caches = {"_known", "_durations", "_frames", "watcher", "_events", "_actions", "_next", "_room"}
    for make in KINDS.values():
        fresh, ended = make(), make()
        ended.run()
        others = ended.parts()
        for name, part in fresh.parts().items():
            if name.endswith("switch") or name == "world":
                continue
            state = type(part).STATE  # type: ignore[attr-defined]
            wiring = {key: value for key, value in vars(part).items() if key not in {*state, *caches}}
            for key, value in wiring.items():
                if isinstance(value, (int, float, str, bytes, tuple, list, dict, set, type(None))):
                    assert repr_of(vars(others[name])[key]) == repr_of(value), (name, key)


def repr_of(value: Any) -> str:
    """A text without addresses; of containers their length and types, for what is in them is compared on its own."""
    if isinstance(value, (int, float, str, bytes, type(None))):
        return repr(value)
    return f"{type(value).__name__} of {len(value)}: {sorted({type(each).__name__ for each in value})}"


@pytest.mark.parametrize(
    ("part", "forgotten"),
    [(Channel, "_runs"), (DirectionFaults, "random"), (CompiledLoop, "actions")],
)
@pytest.mark.long
def test_a_forgotten_attribute_is_noticed(part: type, forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above can fail: without one attribute, runs that go on end otherwise, or not at all."""

    def make() -> Simulation:
        return Simulation(config(Mode.III))

    def check() -> None:
        fresh = make()
        fresh.restore(at(make(), 200))
        assert_same(end_of(fresh), whole, "")

    whole = end_of(make())
    check()
    state = part.STATE  # type: ignore[attr-defined]
    monkeypatch.setattr(part, "STATE", tuple(name for name in state if name != forgotten))
    with pytest.raises((AssertionError, ValueError, KeyError, IndexError)):
        check()


def test_closures_in_the_event_queue_are_refused() -> None:
    simulation = Simulation(config(Mode.II))
    simulation.network.loop.at(5, lambda _: None)
    with pytest.raises(TypeError, match=r"loop: .* is not plain state"):
        simulation.freeze()


def test_calls_of_what_is_no_part_are_refused() -> None:
    simulation, other = Simulation(config(Mode.II)), Simulation(config(Mode.II))
    simulation.network.loop.at(5, other.network.nics["h0"].receive, b"")
    with pytest.raises(TypeError, match=r"loop: a call of \w*Nic.receive of an object that is not a part"):
        simulation.freeze()
