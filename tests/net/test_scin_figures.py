"""Figures of SCIN's paper: what a call takes by first principles, and that a figure which does not hold says so."""

from __future__ import annotations

import pytest

from p4gen.experiments.experiment import Order
from p4gen.papers.scin.experiments import FACET, figure_fpga
from p4gen.papers.scin.experiments.figure_12 import INPUTS, MODELS, Gpu, Input, faster, fitted, line, share
from p4gen.papers.scin.experiments.study import capacity, star, timed
from p4gen.papers.scin.spec import ScinSpec, Variant

SPEC = ScinSpec(lanes=64, waves=4, wave=4, contexts=1, edges=4, ports=8)
LINK_US, SWITCH_US = 1.0, 0.3
RATE = 10_000_000_000


def test_a_call_takes_six_links_and_a_barrier_two() -> None:
    found = timed(SPEC, star(4, RATE, "1us", "300ns"), 1, "jit", 1)
    sending = 5 * 350 * 8 / RATE * 1e6  # less than five packets' times
    assert 2 * LINK_US + SWITCH_US < found.barrier / 1e6 < 2 * LINK_US + SWITCH_US + sending
    assert 6 * LINK_US + 3 * SWITCH_US < found.call / 1e6 < 6 * LINK_US + 3 * SWITCH_US + sending
    assert found.data == found.call - found.barrier


@pytest.mark.long
def test_long_calls_fill_the_link_if_enough_is_in_flight() -> None:
    network = star(4, RATE, "1us", "300ns")
    times = {waves: timed(SPEC.model_copy(update={"waves": waves}), network, 512, "jit", 1).data for waves in (1, 8)}
    shares = {waves: 512 * SPEC.payload / (time * 1e-12) / capacity(SPEC, RATE) for waves, time in times.items()}
    assert shares[1] < 0.3
    assert 0.9 < shares[8] < 1


@pytest.mark.long
def test_slots_that_are_released_early_fill_the_link_with_half_as_much_in_flight() -> None:
    """The paper's: a slot is in use for two links' time, not for four."""
    network = star(4, RATE, "1us", "300ns")
    few = SPEC.model_copy(update={"waves": 2})  # so that not even slots that are released early fill the link
    early = few.model_copy(update={"variant": Variant.EARLY_RELEASE})
    times = [timed(spec, network, 512, "jit", 1).data for spec in (few, early)]
    assert 1.5 < times[0] / times[1] < 2.2


@pytest.mark.long
def test_scales_come_two_links_earlier() -> None:
    spec = ScinSpec(dtype="mxint8", lanes=32, waves=2, wave=4, contexts=1, edges=4, ports=8)
    found = timed(spec, star(4, RATE, "1us", "300ns"), 1, "jit", 1)
    sending = 7 * 350 * 8 / RATE * 1e6  # less than seven packets' times
    assert 8 * LINK_US + 4 * SWITCH_US < found.call / 1e6 < 8 * LINK_US + 4 * SWITCH_US + sending


@pytest.mark.long
def test_the_network_has_room_for_the_scales_behind_a_wave() -> None:
    """256 bytes of them in a frame, behind 512 of data."""
    spec = ScinSpec(dtype="mxint8", lanes=512, waves=2, wave=16, contexts=1, edges=2, ports=4)
    assert spec.scale_bytes == 256
    assert timed(spec, star(2, RATE, "1us", "300ns"), 16, "jit", 1).data > 0


def test_a_figure_that_does_not_hold_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_fpga, "SPEC", ScinSpec(lanes=256, waves=2, wave=2, contexts=1, edges=4, ports=8))
    monkeypatch.setattr(figure_fpga, "LARGE", 1 << 20)
    monkeypatch.setattr(figure_fpga, "PAPER", {figure_fpga.SMALL: 2.62, 1 << 20: 142.0})
    report = FACET.experiments["prototype"].perform(Order("paper", 1))
    assert [check.ok for check in report.checks] == [True, False]
    assert not report.ok


def test_a_gpu_is_fitted_to_the_shares_of_both_stages() -> None:
    times = line({4 << 10: 13.0, 1 << 20: 17.0, 16 << 20: 84.0})
    gpu = fitted(2, 0.47, 0.25, times)
    assert share(gpu, times, prefills=True) == pytest.approx(0.47, abs=1e-3)
    assert share(gpu, times, prefills=False) == pytest.approx(0.25, abs=1e-3)


def test_gains_follow_the_share_of_allreduce() -> None:
    """Amdahl's law, at each input; computation by first principles."""
    gpu = Gpu(2, 5e14, 80.0)
    before, after = line({1 << 10: 12.0, 1 << 20: 16.0}), line({1 << 10: 2.0, 1 << 20: 4.0})
    for one in INPUTS:
        reduced, new = (one.reduced(times, prefills=False) for times in (before, after))
        part = reduced / (reduced + one.computed(gpu, prefills=False))
        wanted = 1 / (1 - part + part * new / reduced)
        assert faster(one, gpu, before, after, prefills=False) == pytest.approx(wanted)
    one = Input(MODELS[0], 1, 128)
    assert one.size(prefills=True) == 2 * 128 * 4096
    assert one.size(prefills=False) == 2 * 4096
    memory = 2 * 6.74e9 / 8 / 4.8e12 * 1e6
    assert one.computed(gpu, prefills=False) == pytest.approx(memory + 32 * 80, rel=0.02)


def test_times_are_on_a_line_through_those_that_are_known() -> None:
    times = line({10: 1.0, 20: 2.0, 40: 6.0})
    assert [times(size) for size in (5, 10, 15, 30, 60)] == pytest.approx([0.5, 1.0, 1.5, 4.0, 10.0])
