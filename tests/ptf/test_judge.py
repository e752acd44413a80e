"""Who caught a fault, who let it pass, and who cannot say: a suite of scenarios made for the purpose."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4gen.p4 import ir
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.conformance.small import small
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program.compilation import compile_spec
from p4gen.ptf.judge import Finding, Trial, judge
from p4gen.ptf.memory import Scenarios, load_suite
from p4gen.ptf.report import Outcome

SUITE = '''
import os, random
from p4gen.errors import Diagnostic
from p4gen.ptf.testcase import ReportedTest, parameters


class Passes(ReportedTest):
    def runTest(self):
        self.equal("one", 1, 1)


class Notices(ReportedTest):
    def runTest(self):
        self.equal("frames", 1, 2)


class Asserts(ReportedTest):
    def runTest(self):
        assert 1 == 2


class Crashes(ReportedTest):
    def runTest(self):
        [][0]


class LibraryAsserts(ReportedTest):
    """An assertion of p4gen's own, which is not the suite's."""

    def runTest(self):
        from p4gen.ptf.memory import TestedSwitch
        from p4gen.p4.mutate.rewrite import rewritten
        rewritten(None, {})


class LosesItsFence(ReportedTest):
    def runTest(self):
        raise TimeoutError("the switch has gone")


class Spins(ReportedTest):
    def runTest(self):
        while True:
            pass


class Dies(ReportedTest):
    def runTest(self):
        os._exit(7)


class Once(ReportedTest):
    """Says nothing the first time, and notices when it is run again."""

    def runTest(self):
        path = os.environ["P4GEN_ONCE"]
        if not os.path.exists(path):
            open(path, "w").close()
            raise OSError("not now")
        self.equal("frames", 1, 2)


class Traps(ReportedTest):
    def runTest(self):
        parameters()["control"].process(0, bytes(64))
'''

TRAP = """
#include <v1model.p4>
struct headers_t {}
struct meta_t {}
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply {} }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<8>>(4) cells;
    apply { cells.write(4, 1); }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers_t h) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""

SPEC = small(EpicSpec, lanes=8, groups=2)


@pytest.fixture(scope="module")
def program() -> ir.Program:
    return compile_spec(SPEC).program


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scenarios]:
    (tmp_path / "test_made_up.py").write_text(SUITE)
    monkeypatch.setenv("P4GEN_ONCE", str(tmp_path / "once"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield load_suite((tmp_path,), ["test_made_up"])
    sys.modules.pop("test_made_up")


def trial_of(program: ir.Program, suite: Scenarios, *names: str) -> Trial[str]:
    order = [f"test_made_up.{name}" for name in names]
    (done,) = judge([Trial("a fault", SPEC, lambda: program, order, processor_s=4)], suite, seed=1, jobs=1)
    return done


@pytest.mark.parametrize("name", ["Notices", "Asserts"])
def test_an_assertion_of_the_suite_catches_a_fault(program: ir.Program, suite: Scenarios, name: str) -> None:
    done = trial_of(program, suite, "Passes", name, "Spins")
    assert (done.finding, done.by) == (Finding.CAUGHT, f"test_made_up.{name}")
    assert [result.outcome for result in done.results.values()] == [Outcome.PASSED, Outcome.FAILED]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Crashes", "IndexError: list index out of range"),
        ("LibraryAsserts", "AssertionError"),
        ("LosesItsFence", "TimeoutError: the switch has gone"),
        ("Spins", "took more than 4 s of processor time"),
        ("Dies", "its process ended"),
    ],
)
@pytest.mark.sample(2)
def test_who_cannot_say_has_not_caught_anything(program: ir.Program, suite: Scenarios, name: str, why: str) -> None:
    done = trial_of(program, suite, name, "Passes")
    assert (done.finding, done.by) == (Finding.UNCLEAR, f"test_made_up.{name}")
    assert why in done.message
    assert done.results["test_made_up.Passes"].outcome is Outcome.PASSED  # what comes behind it is run all the same
    caught = trial_of(program, suite, name, "Notices")
    assert (caught.finding, caught.by) == (Finding.CAUGHT, "test_made_up.Notices")


def test_who_could_not_say_is_asked_again(program: ir.Program, suite: Scenarios) -> None:
    done = trial_of(program, suite, "Once", "Passes")
    assert (done.finding, done.by) == (Finding.CAUGHT, "test_made_up.Once")


def test_a_fault_that_nobody_notices_survives(program: ir.Program, suite: Scenarios) -> None:
    done = trial_of(program, suite, "Passes")
    assert (done.finding, done.message) == (Finding.SURVIVED, "survived 1 scenarios")


def test_what_the_model_traps_is_caught(suite: Scenarios) -> None:
    done = trial_of(compile_text(TRAP).program, suite, "Traps")
    assert done.finding is Finding.CAUGHT
    assert "the model trapped" in done.message
    assert "register" in done.message


def test_a_program_that_cannot_be_loaded_is_none(suite: Scenarios) -> None:
    program = compile_text(
        "parser P(); package Other(P p); parser Q() { state start { transition accept; } } Other(Q()) main;"
    )
    assert trial_of(program.program, suite, "Passes").finding is Finding.INVALID


def test_trials_come_back_as_they_end_and_all_of_them(program: ir.Program, suite: Scenarios) -> None:
    trials = (Trial(i, SPEC, lambda: program, ["test_made_up.Passes"]) for i in range(5))
    assert sorted(done.fault for done in judge(trials, suite, seed=1, jobs=3)) == [0, 1, 2, 3, 4]
