"""p4testgen's tests of p4c's programs for Tofino, where they were made: ``P4TESTGEN_STF`` names a folder with
``t1/PROGRAM/*.stf`` for Tofino 1 and ``t2`` for Tofino 2, and ``P4C_TESTDATA`` p4c's ``testdata``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from p4gen.p4.compile import compile_file
from p4gen.stf import parse_file, run

from .test_samples import TARGETS, folder

EXCEPTIONS = {"multipipe_simple"}
"""Programs with several pipelines of one control, whose tables p4testgen names by the compiler's own copies of it."""


def test_all_of_them_pass() -> None:
    made = os.environ.get("P4TESTGEN_STF")
    if not made:
        pytest.skip("P4TESTGEN_STF names no folder")
    programs, failed, count = folder(), [], 0
    for test in sorted(Path(made).glob("t[12]/*/*.stf")):
        name, target = test.parent.name, test.parent.parent.name[1]
        paths = [programs / f"{name}.p4", *(programs / part / f"{name}.p4" for part in TARGETS)]
        path = next(p for p in paths if p.exists())
        if name in EXCEPTIONS:
            continue
        count += 1
        program = compile_file(path, [f"__TARGET_TOFINO__={target}"], [programs]).program
        outcome = run(program, parse_file(test))
        failed += [f"{test}: {failure}" for failure in outcome.failures]
    assert count
    assert failed == []
