"""Scenarios by name: what a suite has, what of it fits a program, and what a mistyped name may mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.errors import FailedError, InputError
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.ptf.scenarios import Scenario, are_there, check_names, drawn_names, scenarios
from p4gen.vocabulary import Icrc, Op

SUITE = '''
from p4gen.ptf.testcase import ReportedTest


class Base(ReportedTest):
    """A base is no scenario."""


class First(Base):
    """One line.

    And more.
    """

    def runTest(self):
        pass

    def misfit(self, spec):
        return f"not {spec.op}" if spec.op == "max" else None


class Second(First):
    pass
'''


@pytest.mark.long
def test_a_suite_is_read_in_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_toy.py").write_text(SUITE)
    (tmp_path / "base.py").write_text("raise AssertionError('is not imported unless somebody wants it')")
    fitting = scenarios(EpicSpec(), (tmp_path,))
    assert fitting == (
        Scenario("test_toy.First", "One line.", of_another_mode=False, unfit=None),
        Scenario("test_toy.Second", "One line.", of_another_mode=False, unfit=None),
    )
    assert [s.unfit for s in scenarios(EpicSpec(op=Op.MAX), (tmp_path,))] == ["not max"] * 2


@pytest.mark.parametrize(
    ("names", "there"),
    [
        ([], True),
        (["test_toy", "test_toy.First"], True),
        (["test_toy.Second"], False),  # it inherits what makes it a scenario
        (["test_toy.Base"], False),
        (["test_toy", "test_other"], False),
        (["base"], False),
        (["test_broken"], False),
        (["../test_toy"], False),
    ],
)
def test_names_that_the_text_of_a_suite_shows_need_no_import(tmp_path: Path, names: list[str], there: bool) -> None:
    for name, text in (("test_toy", SUITE), ("base", SUITE), ("test_broken", "class")):
        (tmp_path / f"{name}.py").write_text(text)
    assert are_there(names, (tmp_path,)) is there


def test_a_suite_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "test_toy.py").write_text("import no_such_module\n")
    with pytest.raises(FailedError, match=r"cannot be imported: .*no_such_module"):
        scenarios(EpicSpec(), (tmp_path,))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.long
def test_our_own_suite(mode: Mode) -> None:
    known = scenarios(EpicSpec(mode=mode, icrc=Icrc.IGNORE))
    by_name = {s.name: s for s in known}
    assert len(by_name) == len(known) > 100
    assert all(s.unfit for s in known if s.of_another_mode)
    assert by_name["test_validation.WrongIcrc"].of_another_mode == (mode is not Mode.II)
    assert by_name["test_validation.WrongIcrc"].unfit
    assert by_name["test_iii_order.Contributions"].of_another_mode == (mode is Mode.II)


NAMES = ("test_validation.WrongIcrc", "test_validation.WrongQp", "test_order.Gap", "test_iii_order.Gaps")


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ("test_validatoin", "did you mean test_validation?"),
        ("WrongIcrc", "did you mean test_validation.WrongIcrc?"),
        ("test_validatoin.Nonsense", "did you mean test_validation?"),
        ("test_order.WrongIcr", "test_validation.WrongIcrc"),
        ("Nonsense", "p4gen ptf list names all"),
        ("test_validation.Nonsense", "did you mean test_validation?"),
        ("", "p4gen ptf list names all"),
    ],
)
def test_a_mistyped_name_says_what_may_be_meant(wanted: str, hint: str) -> None:
    known = [Scenario(name, "", of_another_mode=False, unfit=None) for name in NAMES]
    check_names([*NAMES, "test_order"], known)
    with pytest.raises(InputError, match=r"^test: error: there is no scenario") as caught:
        check_names(["test_order", wanted], known)
    assert hint in str(caught.value)


def test_a_sample_is_of_what_applies_and_repeatable() -> None:
    fitting = [Scenario(f"test_a.{letter}", "", of_another_mode=False, unfit=None) for letter in "ABCDEFGH"]
    others = [Scenario("test_b.A", "", True, None), Scenario("test_a.I", "", False, "it does not apply")]
    names = [each.name for each in fitting]
    for seed in range(20):
        chosen = drawn_names([*others, *fitting], 3, seed)
        assert len(set(chosen)) == 3
        assert list(chosen) == [name for name in names if name in chosen]
        assert chosen == drawn_names([*others, *fitting], 3, seed)
    assert len({drawn_names(fitting, 3, seed) for seed in range(20)}) > 1
    assert drawn_names([*others, *fitting], 99, 1) == tuple(names)
