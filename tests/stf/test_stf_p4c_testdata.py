"""p4c's own STF tests on every engine, where ``P4C_TESTDATA`` names a checkout of its testdata."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from p4gen.stf.engines import ENGINES
from p4gen.stf.suite import FAILED, PASSED, SKIPPED, find_tests, run_tests

_TESTDATA = os.environ.get("P4C_TESTDATA")
pytestmark = pytest.mark.skipif(not _TESTDATA, reason="P4C_TESTDATA does not name a checkout of p4c's testdata")
SAMPLES = Path(_TESTDATA or ".") / "p4_16_samples"

SHARED_OBJECT = "extern-funcs-bmv2"
"""Needs an extern that BMv2 loads from a shared object."""


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_all_of_p4cs_v1model_tests_pass(engine: str) -> None:
    tests = [t for t in find_tests(SAMPLES) if t.program and "v1model.p4" in t.program.read_text(encoding="utf-8")]
    assert len(tests) >= 204
    results = list(run_tests(tests, engine=engine))
    counts = Counter(result.verdict for result in results)
    failed = [f"{r.name}: {r.reasons[0]}" for r in results if r.verdict == FAILED]
    assert not failed, "\n".join(failed)
    assert [r.name for r in results if r.verdict == SKIPPED] == [SHARED_OBJECT]
    assert counts[PASSED] >= 203
