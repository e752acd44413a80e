"""Scenarios by name: what a suite has, what of it fits a program, and what a mistyped name may mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.errors import FailedError, InputError
from p4gen.families.epic.spec import EpicSpec, Mode
from p4gen.ptf.scenarios import Scenario, check_names, scenarios
from p4gen.spec import Icrc, Op

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


def test_a_suite_is_read_in_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_toy.py").write_text(SUITE)
    (tmp_path / "base.py").write_text("raise AssertionError('is not imported unless somebody wants it')")
    fitting = scenarios(EpicSpec(), (tmp_path,))
    assert fitting == (
        Scenario("test_toy.First", "One line.", of_another_mode=False, unfit=None),
        Scenario("test_toy.Second", "One line.", of_another_mode=False, unfit=None),
    )
    assert [s.unfit for s in scenarios(EpicSpec(op=Op.MAX), (tmp_path,))] == ["not max"] * 2


def test_a_suite_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "test_toy.py").write_text("import no_such_module\n")
    with pytest.raises(FailedError, match=r"cannot be imported: .*no_such_module"):
        scenarios(EpicSpec(), (tmp_path,))


@pytest.mark.parametrize("mode", Mode)
def test_our_own_suite(mode: Mode) -> None:
    known = scenarios(EpicSpec(mode=mode, icrc=Icrc.IGNORE))
    by_name = {s.name: s for s in known}
    assert len(by_name) == len(known) > 100
    assert all(s.unfit for s in known if s.of_another_mode)
    assert by_name["test_validation.WrongIcrc"].of_another_mode == (mode is Mode.III)
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
    with pytest.raises(InputError, match="--test: error: there is no scenario") as caught:
        check_names(["test_order", wanted], known)
    assert hint in str(caught.value)
