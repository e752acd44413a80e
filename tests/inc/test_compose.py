"""Composition: modules in the paper's order, and refused where their needs are not met."""

from __future__ import annotations

import dataclasses

import pytest

from p4gen.errors import InputError
from p4gen.inc import MODES, Size, compose
from p4gen.inc import modules as m
from p4gen.spec import Icrc, Mode, ProgramSpec


def test_mode_ii_is_algorithm_1_in_order() -> None:
    names = [module.name for module in compose(ProgramSpec()).modules]
    in_the_paper = ["LookupTable", "CheckDuplicate", "AggregateData", "ReplicateData", "TranslateHeader"]
    assert [name for name in names if name in in_the_paper] == in_the_paper


def test_without_icrc_its_modules_are_gone() -> None:
    composition = compose(ProgramSpec(icrc=Icrc.IGNORE))
    assert not composition.has("CheckIcrc")
    assert not composition.has("SetIcrc")
    assert "CheckIcrc_bad_icrc" not in {drop.symbol for drop in composition.drops}


def test_a_module_before_its_provider_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    order = tuple(module for module in MODES[Mode.II] if module is not m.RECYCLE_BUFFER)
    monkeypatch.setitem(MODES, Mode.II, order)
    with pytest.raises(InputError, match="CheckDuplicate needs slot_use"):
        compose(ProgramSpec())


def test_drop_reasons_are_numbered_from_one_without_gaps() -> None:
    drops = compose(ProgramSpec()).drops
    assert [drop.index for drop in drops] == list(range(1, len(drops) + 1))
    assert len({drop.symbol for drop in drops}) == len(drops)


def test_state_follows_the_formula() -> None:
    spec = ProgramSpec(lanes=64, window=16, message=4, groups=4)
    slots = 4 * 128
    assert compose(spec).state_bits == slots * 104 + 64 * slots * 32


def test_sizes_are_products_and_say_so() -> None:
    size = Size("groups", "fan_in", 2)
    assert size.of(ProgramSpec(groups=3, fan_in=5)) == 30
    assert str(size) == "groups x fan_in x 2"


def test_descriptors_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.FORWARD.name = "Backward"  # type: ignore[misc]
