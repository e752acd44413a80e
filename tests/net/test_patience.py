"""How long a run that makes no progress goes on: as long as something in it waits, and not for ever."""

from __future__ import annotations

from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.transport.clock import MS, SECOND, US
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import simulate
from p4gen.net.world.faults import Faults, Outage
from p4gen.net.world.patience import Patience
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology


class Run:
    """A loop in which something happens every 10 us, and nothing makes progress unless a test says so."""

    def __init__(self, timeout: int = 0, waits: int = 0) -> None:
        self.loop, self.done, self.waits = CompiledHosts(64, 0).loop, 0, waits
        self.patience = Patience(self.loop, timeout, lambda: self.done, lambda: self.waits)
        self._again(None)

    def _again(self, _: object) -> None:
        self.loop.at(self.loop.now + 10 * US, self._again)

    def given_up(self, most: int) -> int | None:
        """The time at which it is given up, 100 us at a time; None if it is not by then."""
        while self.loop.now < most:
            if self.patience.over():
                return self.loop.now
            self.loop.run(until=self.loop.now + 100 * US)
        return None


def test_timeouts_are_waited_for() -> None:
    assert Run().given_up(SECOND) == 2 * MS + 100 * US
    assert Run(timeout=100 * US).given_up(SECOND) == 6 * MS + 100 * US


def test_progress_begins_anew() -> None:
    run = Run()
    assert run.given_up(MS) is None
    run.done = 1
    assert run.given_up(3 * MS) is None
    assert run.given_up(SECOND) is not None


def test_an_event_to_come_is_waited_for() -> None:
    """A packet that arrives late, a NIC's timer: also several times, since what is sent then may be lost, too."""
    run = Run()
    run.loop.at(20 * MS, run._again)
    given_up = run.given_up(SECOND)
    assert given_up is not None
    assert 60 * MS < given_up < 81 * MS


def test_a_switch_s_timer_is_waited_for() -> None:
    assert Run(waits=41 * MS).given_up(SECOND) == 164 * MS + 100 * US


def far(delay: str) -> TopologySpec:
    return TopologySpec.model_validate(
        {
            "name": "far",
            "switches": ["s0"],
            "hosts": ["h0", "h1"],
            "defaults": {"delay": delay},
            "links": [["h0", "s0"], ["h1", "s0"]],
        }
    )


def test_a_run_over_long_links_ends() -> None:
    """Their delay is a thousand timeouts."""
    spec = EpicSpec(lanes=8, window=4, message=2, groups=1, fan_in=4, ports=4)
    result = simulate(SimConfig(far("20ms"), spec, size=64, timeout=20 * US, engine="jit"))
    assert result.ok, result.diagnosis and result.diagnosis.lines()
    assert result.duration > 80 * MS


def test_a_run_waits_for_a_switch_that_has_backed_off() -> None:
    """A receiver's link is down for 20 ms; the switch tries again after 20.5, and hosts have nothing to send."""
    spec = EpicSpec.model_validate({"mode": "III", "lanes": 8, "window": 4, "message": 2, "fan_in": 8, "ports": 8})
    faults = Faults(outages=(Outage("h0", 0, 20 * MS),))
    config = SimConfig(
        load_topology("star-4"),
        spec,
        collective=Collective.BROADCAST,
        root=1,
        size=64,
        timeout=20 * US,
        faults=faults,
        engine="jit",
    )
    result = simulate(config)
    assert result.ok, result.diagnosis and result.diagnosis.lines()
    assert 20 * MS < result.duration < 60 * MS
