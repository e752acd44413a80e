"""The timed reaction point against its definition: a model that looks at the state at every instant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.host.compiled.rates import Rate
from p4gen.host.transport.clock import SECOND, US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig
from p4gen.host.transport.verbs import QpConfig

from .bench import FIRST_PSN, MTU, Bench

CONFIG = TimedDcqcnConfig()
LINE = CONFIG.line_rate


def test_nothing_is_limited_before_the_first_notification() -> None:
    assert Rate(CONFIG).pace(5 * US, 1000) == 0


def test_the_first_notification_halves_the_rate_at_once() -> None:
    point = Rate(CONFIG)
    point.on_cnp(10 * US)
    assert point.rate == pytest.approx(LINE / 2)
    assert point.pace(10 * US, 1000) == pytest.approx(8000 * SECOND / (LINE / 2))


@given(st.lists(st.integers(0, 40 * US), min_size=1, max_size=200))
def test_there_is_one_cut_at_most_in_each_decrease_interval(times: list[int]) -> None:
    """However many notifications come: with no increase in between, the rate says how often it was cut."""
    config = replace(CONFIG, gain=1.0, alpha_timer=SECOND, min_rate=1)
    point = Rate(config)
    for time in sorted(times):
        point.on_cnp(time)
    first, *others = sorted(times)
    point.pace(50 * US, 0)
    # alpha is 1 throughout, so that every cut halves the rate. The first notification cuts at once; from there on
    # intervals are counted, and a notification at the very end of one belongs to the next.
    intervals = {0} | {(time - first) // config.decrease_interval + 1 for time in others}
    assert point.rate == pytest.approx(LINE / 2 ** len(intervals))


def test_recovery_begins_one_increase_timer_after_the_cut() -> None:
    point = Rate(CONFIG)
    point.on_cnp(0)
    point.pace(CONFIG.increase_timer - 1, 0)
    assert point.rate == pytest.approx(LINE / 2)
    point.pace(CONFIG.increase_timer, 0)
    assert point.rate == pytest.approx(LINE * 3 / 4)


def test_steps_are_fast_then_additive_then_hyper() -> None:
    point = Rate(replace(CONFIG, gain=1e-9))
    point.on_cnp(0)
    point.on_cnp(1)  # a second cut: alpha is still 1, and the target stays the line rate
    at = CONFIG.decrease_interval
    point.pace(at, 0)
    assert [point.rate, point.target] == pytest.approx([LINE / 4, LINE])
    point.pace(at + CONFIG.increase_timer, 0)
    assert point.rate == pytest.approx(LINE * 5 / 8)
    point.on_cnp(at + CONFIG.increase_timer)  # after an increase the target is what the cut found
    at = CONFIG.increase_timer + 2 * CONFIG.decrease_interval
    point.pace(at, 0)
    assert point.target == pytest.approx(LINE * 5 / 8)
    cut_to, found = point.rate, point.target
    steps = [0.0, float(CONFIG.additive_step), float(CONFIG.hyper_step), float(CONFIG.hyper_step)]
    # The look after the notification is the one that cut: the increase timer began then.
    rate, target, when = cut_to, found, at
    while point.rate == cut_to:
        when += US
        point.pace(when, 0)
    for number, step in enumerate(steps):
        target += step
        rate = (rate + target) / 2
        point.pace(when + number * CONFIG.increase_timer, 0)
        assert [point.rate, point.target] == pytest.approx([rate, target])


class Stepped:
    """The same rules, with a clock that stops at every picosecond that matters."""

    def __init__(self, config: TimedDcqcnConfig) -> None:
        self.c, self.now = config, 0
        self.rate = self.target = float(config.line_rate)
        self.alpha, self.stage = 1.0, 0
        self.start: int | None = None
        self.cut_at = 0
        self.mark_cut = self.mark_alpha = False

    def to(self, now: int) -> None:
        while self.now < now:
            self.now += 1
            self.tick()

    def tick(self) -> None:
        c = self.c
        if self.start is None:
            return
        since = self.now - self.start
        if since and since % c.alpha_timer == 0:
            self.alpha = (1 - c.gain) * self.alpha + c.gain * self.mark_alpha
            self.mark_alpha = False
        if since % c.decrease_interval == 0 and self.mark_cut:
            self.cut()
        elif self.now > self.cut_at and (self.now - self.cut_at) % c.increase_timer == 0:
            if self.stage >= c.fast_recovery:
                self.target += c.additive_step if self.stage == c.fast_recovery else c.hyper_step
                self.target = min(self.target, c.line_rate)
            self.stage += 1
            self.rate = (self.rate + self.target) / 2
            if self.rate > 0.999 * c.line_rate:
                self.rate = self.target = float(c.line_rate)

    def cut(self) -> None:
        if self.stage:
            self.target = self.rate
        self.rate = max(self.c.min_rate, self.rate * (1 - self.alpha / 2))
        self.mark_cut, self.stage, self.cut_at = False, 0, self.now

    def notify(self) -> None:
        if self.start is None:
            self.start = self.now
            self.cut()
        else:
            self.mark_cut = self.mark_alpha = True


@given(
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 40), st.floats(0.01, 1),
    st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=30),
)  # fmt: skip
def test_the_state_is_that_of_a_clock_that_stops_everywhere(
    alpha: int, decrease: int, increase: int, gain: float, steps: list[tuple[int, bool]]
) -> None:
    config = TimedDcqcnConfig(1_000_000, 10, 1000, 20_000, gain, alpha, decrease, increase)
    point, model = Rate(config), Stepped(config)
    now = 0
    for wait, notified in steps:
        now += wait
        model.to(now)
        if notified:
            point.on_nack(now)
            model.notify()
        point.pace(now, 1)
        assert [point.rate, point.target] == pytest.approx([model.rate, model.target])
        if model.start is not None:
            assert point.alpha == pytest.approx(model.alpha)


def test_a_line_has_steps_in_proportion() -> None:
    assert TimedDcqcnConfig.at(LINE) == CONFIG
    assert TimedDcqcnConfig.at(4 * LINE).hyper_step == 4 * CONFIG.hyper_step


@pytest.mark.parametrize("wrong", [{"decrease_interval": 0}, {"increase_timer": -1}, {"gain": 0}, {"min_rate": 0}])
def test_impossible_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="DCQCN"):
        replace(CONFIG, **wrong)


@pytest.mark.parametrize(
    ("dcqcn", "cut"),
    [
        (TimedDcqcnConfig(), True),
        (TimedDcqcnConfig(nack_cuts=False), False),
        (DcqcnConfig(nack_cuts=True), True),
        (DcqcnConfig(), False),
    ],
)
def test_a_nack_cuts_the_rate_if_it_is_to(dcqcn: DcqcnConfig | TimedDcqcnConfig, cut: bool) -> None:
    at = Bench(QpConfig(mtu=MTU, initial_psn=FIRST_PSN, timeout_ps=0, dcqcn=dcqcn))
    at.play("send 24\n> FIRST 0\n> MIDDLE 1\n> LAST 2 ack\n< NAK 0\n> FIRST 0 ack\n> MIDDLE 1 ack\n> LAST 2 ack")
    rate = at.pair.requester.rate
    assert rate is not None
    assert (rate.rate < LINE) is cut
