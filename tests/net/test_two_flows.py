"""Two flows that meet at one port, against the difference equations of DCQCN and of the queue between them.

The equations have rates, a queue and delays, in steps of 20 ns; packets are counted off only to see which ones are
marked. They are written from the published rules (Zhu et al., SIGCOMM 2015, section 3 and figure 7: the notification
point's interval, alpha, the cut by alpha / 2, fast recovery, additive and hyper increase), with the timers that
packet-level models of RNICs have: a cut is considered every T_D, alpha follows each microsecond, rates grow each T_I
after a cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pytest

from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.papers.themis.spec import Mode, Spread, ThemisSpec
from p4gen.vocabulary.topology import TopologySpec

LINE: Final = 100_000.0
"""Bits in a microsecond: 100 Gb/s. Times are in microseconds."""
STEP: Final = 0.02
MARKS: Final = 100_000
"""Bytes waiting from which all packets are marked: no chance is involved."""
DELAYS: Final = (1.0, 3.0)
"""From each sender to the switch."""
LATENCY, DOWN = 0.4, 1.0
"""Through the switch, and from it to the receiver."""
PACKET, CNP = (1024 + 58 + 24) * 8 / LINE, (74 + 24) * 8 / LINE
"""Times that frames take on a link."""
CNP_INTERVAL, GAIN, ADDITIVE, HYPER, LEAST = 4.0, 1 / 256, 20.0, 200.0, 100.0
END: Final = 1200


@dataclass
class Sender:
    """A reaction point, and the notification point of its flow."""

    start: float
    delay: float
    current: float = LINE
    target: float = LINE
    alpha: float = 1.0
    since_cut: int = 0
    cut_due: bool = False
    congested: bool = False
    looks: float | None = None
    steps: float = 0.0
    grows: float = 0.0
    notified: float = -CNP_INTERVAL
    credit: float = 0.0
    rates: list[float] = field(default_factory=list)
    marked: list[float] = field(default_factory=list)
    coming: list[float] = field(default_factory=list)

    def sent(self, now: float) -> float:
        """The rate at which its packets enter the switch's queue."""
        then = round((now - self.delay - PACKET - LATENCY) / STEP)
        return self.rates[then] if then * STEP >= self.start else 0.0

    def receive(self, now: float) -> None:
        """Marked packets reach the receiver, and CNPs the sender."""
        while self.marked and self.marked[0] <= now:
            self.marked.pop(0)
            if now - self.notified >= CNP_INTERVAL:
                self.notified = now
                self.coming.append(now + DOWN + LATENCY + self.delay + 2 * CNP)
        if self.coming and self.coming[0] <= now:
            self.coming.pop(0)
            self.cut_due = True
            if self.looks is None:
                self.looks, self.steps = now, now + 1
            else:
                self.congested = True

    def react(self, now: float, increase: float, decrease: float) -> None:
        """The timers that have expired."""
        if self.looks is None:
            return
        if now >= self.steps:
            self.steps += 1
            self.alpha = (1 - GAIN) * self.alpha + (GAIN if self.congested else 0)
            self.congested = False
        if now >= self.looks:
            self.looks += decrease
            if self.cut_due:
                if self.since_cut:
                    self.target = self.current
                self.current = max(LEAST, self.current * (1 - self.alpha / 2))
                self.cut_due, self.since_cut, self.grows = False, 0, now + increase
        if now >= self.grows:
            self.grows += increase
            step = (0.0, ADDITIVE, HYPER)[min(self.since_cut, 2)]
            self.target = min(LINE, self.target + step)
            self.current = (self.current + self.target) / 2
            self.since_cut += 1


def equations(starts: tuple[float, ...], increase: float, decrease: float) -> list[list[float]]:
    """The rates of both senders in each step."""
    senders = [Sender(start, delay) for start, delay in zip(starts, DELAYS, strict=True)]
    queue = 0.0
    for number in range(round(END / STEP) + 1):
        now = number * STEP
        for sender in senders:
            sender.rates.append(sender.current)
        inflow = [sender.sent(now) for sender in senders]
        queue = max(0.0, queue + (sum(inflow) - LINE) * STEP)
        for sender, rate in zip(senders, inflow, strict=True):
            sender.credit += rate * STEP
            if sender.credit >= PACKET * LINE:
                sender.credit -= PACKET * LINE
                if queue > 8 * MARKS:
                    sender.marked.append(now + queue / LINE + PACKET + DOWN)
            sender.receive(now)
            sender.react(now, increase, decrease)
    return [sender.rates for sender in senders]


def simulation(increase: int, decrease: int, skew: int) -> TrafficSimulation:
    """Two hosts that send to a third one through a switch, packet by packet."""
    ends = [("h0", "s", DELAYS[0]), ("h1", "s", DELAYS[1]), ("h2", "s", DOWN)]
    network = TopologySpec.model_validate(
        {
            "name": "two-flows",
            "switches": ["s"],
            "hosts": ["h0", "h1", "h2"],
            "links": [{"ends": [host, switch], "delay": f"{delay:g}us"} for host, switch, delay in ends],
            "switch_latency": f"{LATENCY:g}us",
            "defaults": {"bandwidth": "100G", "queue": "4M", "ecn": {"low": MARKS, "high": MARKS, "share": 0}},
        }
    )
    return TrafficSimulation(
        TrafficConfig(
            network,
            ThemisSpec(mode=Mode.SOURCE, spread=Spread.ECMP, ports=4),
            tuple(Traffic(Pattern.FLOW, (host, "h2"), 1 << 30) for host in ("h0", "h1")),
            dcqcn=TimedDcqcnConfig(increase_timer=increase * US, decrease_interval=decrease * US),
            window=4096,
            skew=skew * US,
            seed=1,
        )
    )


@pytest.mark.parametrize(
    ("increase", "decrease", "skew", "span"),
    [(900, 4, 0, 50), (55, 50, 0, 50), (55, 50, 60, 50), (10, 200, 60, 50), (100, 4, 60, 200)],
)
def test_two_flows_have_the_rates_of_the_equations(increase: int, decrease: int, skew: int, span: int) -> None:
    """Each flow's mean rate in each ``span``, within 5 %.

    CNPs are 4 us apart at least. If a cut is considered every 4 us too, and rates grow in between, then an instant
    decides whether a cut falls into this period or the next; so the last setting is compared over a longer span.
    """
    run = simulation(increase, decrease, skew)
    loop, mine = run.network.loop, [list[float]() for _ in DELAYS]
    for now in range(1, END):
        loop.run(until=now * US)
        for rates, track in zip(mine, run.tracks, strict=True):
            point = track.source.requester.rate
            assert point is not None
            point.pace(loop.now, 0)
            rates.append(point.rate / 1e6)
    starts = tuple((made.flows[0].started or 0) / US for made in run.members)
    assert max(starts) <= skew
    theirs = equations(starts, increase, decrease)
    for flow, (packets, steps) in enumerate(zip(mine, theirs, strict=True)):
        for first in range(0, END - span, span):
            ours = sum(packets[first : first + span]) / span
            should = sum(steps[round((first + 1 + i) / STEP)] for i in range(span)) / span
            assert ours == pytest.approx(should, rel=0.05), f"flow {flow}, from {first + 1} us"
        assert min(packets) <= LINE / 2
