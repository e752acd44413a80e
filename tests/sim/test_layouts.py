"""A layout is declared once: with others, programs do the same, and what reads their registers reads them right."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from p4gen.layout import Word
from p4gen.net.collectives.config import Work
from p4gen.papers.epic import state
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.words import layouts
from p4gen.program import repair
from p4gen.program.compilation import compile_spec

from .runs import all_six, run, scripted, tiny, trouble

SPECS = [
    tiny(mode="II", op="dynamic"),
    tiny(mode="II", reliability="gbn"),
    tiny(mode="III", op="dynamic"),
    tiny(mode="III", reliability="gbn", op="dynamic"),
]
each_spec = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.mode}-{spec.op}-{spec.reliability}")


def reverse(word: Word) -> Word:
    """The same fields the other way round; what they consist of stays as it is."""
    return Word(*reversed(word.fields))


@pytest.fixture
def reversed_words(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All registers have their fields the other way round."""

    def reversed_layouts(spec: EpicSpec) -> dict[str, Word]:
        return {name: reverse(word) for name, word in layouts(spec).items()}

    def turned(layout: Callable[[EpicSpec], Word]) -> Callable[[EpicSpec], Word]:
        return lambda spec: reverse(layout(spec))

    monkeypatch.setattr("p4gen.papers.epic.program.layouts", reversed_layouts)
    for module, name in ((state, "PROGRESS"), (repair, "TIMER")):
        monkeypatch.setattr(module, name, reverse(getattr(module, name)))
    for name in ("announcement", "slot", "receive"):
        monkeypatch.setattr(state, name, turned(getattr(state, name)))
    compile_spec.cache_clear()
    yield
    compile_spec.cache_clear()


@each_spec
def test_a_run_with_losses_is_the_same(spec: EpicSpec, request: pytest.FixtureRequest) -> None:
    def outcome() -> tuple[bool, int, int, int]:
        result = run(3, program=spec, work=(Work(all_six(3)),), seed=7, faults=trouble(loss=0.02))
        return result.ok, result.duration, result.sent, result.resent

    before = outcome()
    request.getfixturevalue("reversed_words")
    assert outcome() == before
    assert before[0]
    assert before[3] > 0


@each_spec
def test_a_diagnosis_is_the_same(spec: EpicSpec, request: pytest.FixtureRequest) -> None:
    def lines() -> list[str]:
        found = run(3, program=spec, timeout=0, faults=scripted("drop 5-100000 UP_DATA of rank 2")).diagnosis
        return found.lines() if found else []

    before = lines()
    request.getfixturevalue("reversed_words")
    assert lines() == before
    assert any("slot of PSN" in line and "waits for rank 2" in line for line in before)
    assert any("expects PSN" in line for line in before) == spec.terminates
