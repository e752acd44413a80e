"""Buffers of stored contributions beside EPIC's formulas (section F.3)."""

from __future__ import annotations

import re

import pytest

from p4gen import generate
from p4gen.papers.epic.memory import buffers, formulas
from p4gen.papers.epic.spec import EpicSpec, Fold, Mode
from p4gen.program import compose
from p4gen.vocabulary import Op

SPEC = EpicSpec(mode=Mode.I, lanes=64, window=16, message=4, fan_in=8)


def test_the_papers_formulas() -> None:
    """100 Gb/s and 1 us a hop, trees of two and four tiers, 8 edges."""
    flat, deep = formulas(12_500, 2, 8), formulas(12_500, 4, 8)
    assert (flat.mode_i, flat.mode_ii, flat.mode_iii) == (225_000, 50_000, 50_000)
    assert (flat.mode_ii_reproducible, flat.mode_iii_reproducible) == (450_000, 225_000)
    assert (deep.mode_i, deep.mode_ii, deep.mode_ii_reproducible) == (225_000, 150_000, 1_350_000)


def test_a_node_needs_what_the_paper_says() -> None:
    """(D + 1) windows of one hop: D of contributions, and one of results that come down (the paper's is of results)."""
    own = buffers(SPEC)
    assert own.window == 64 * 256
    assert own.needed == 147_456 == formulas(own.window // 2, 2, 8).mode_i


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        EpicSpec(mode=Mode.I, op=Op.MAX, fold=Fold.ARRIVAL),
        EpicSpec(mode=Mode.I, pipelines=2),
        EpicSpec(mode=Mode.II, fold=Fold.ORDERED),
        EpicSpec(mode=Mode.III, fold=Fold.ORDERED),
    ],
)
def test_the_registers_hold_what_is_reported(spec: EpicSpec) -> None:
    composition = compose(spec)
    lanes = [
        register for module in composition.modules for register in module.keeps if register.name.startswith("lane_*")
    ]
    bits = sum(register.bits for register in lanes)
    assert bits == 8 * spec.pipelines * spec.bank_slots // (spec.pipes * spec.slots_per_group) * buffers(spec).kept
    found = generate(composition.spec).manifest["memory"]
    assert found["group"]["kept"] == buffers(spec).kept
    assert found["paper"]["mode_i"] == (spec.fan_in + 1) * 2 * buffers(spec).hop


def test_a_build_says_so() -> None:
    said = compose(SPEC).report
    assert said is not None
    for text in ("262,144 bytes", "147,456", "2BL = 16,384 bytes, D = 8, H = 2", "II 32,768"):
        assert re.search(re.escape(text), said), said


def test_reproducible_sums_of_mode_iii_take_what_the_paper_says() -> None:
    own = buffers(EpicSpec(mode=Mode.III, fold=Fold.ORDERED, lanes=64, window=16, message=4))
    assert own.needed == formulas(own.window // 2, 2, 8).mode_iii_reproducible
    assert own.kept == 524_288


def test_reproducible_sums_of_mode_ii_take_what_the_paper_says_but_for_results() -> None:
    own = buffers(EpicSpec(fold=Fold.ORDERED, lanes=64, window=16, message=4))
    assert own.needed == own.kept == 8 * own.window
    assert own.needed + own.window == formulas(own.hop, 2, 8).mode_ii_reproducible


def test_other_modes_say_nothing_of_it() -> None:
    assert compose(EpicSpec(mode=Mode.III)).report is None
