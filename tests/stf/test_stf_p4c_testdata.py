"""p4c's own STF tests on every engine, where ``P4C_TESTDATA`` names a checkout of its testdata."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from p4gen.p4 import p4c
from p4gen.p4.compile import compile_file
from p4gen.p4.p4info import differences, parse_text
from p4gen.p4.source import P4Error
from p4gen.stf.engines import ENGINES
from p4gen.stf.suite import FAILED, PASSED, SKIPPED, find_tests, run_tests

_TESTDATA = os.environ.get("P4C_TESTDATA")
pytestmark = pytest.mark.skipif(not _TESTDATA, reason="P4C_TESTDATA does not name a checkout of p4c's testdata")
SAMPLES = Path(_TESTDATA or ".") / "p4_16_samples"

SHARED_OBJECT = "extern-funcs-bmv2"
"""Needs an extern that BMv2 loads from a shared object."""

# Where p4c's optimiser removes a register or an action that the program does use.
OPTIMISED = {"issue2735-bmv2.p4", "gauntlet_exit_combination_5-bmv2.p4"}


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


@pytest.mark.skipif(p4c.find() is None, reason="p4c is not on PATH")
def test_p4info_is_what_this_p4c_derives(tmp_path: Path) -> None:
    compiler = p4c.find()
    assert compiler is not None
    different: dict[str, list[str]] = {}
    compared = 0
    for path in sorted(SAMPLES.glob("*.p4")):
        if "v1model.p4" not in path.read_text(encoding="utf-8", errors="replace"):
            continue
        try:
            ours = compile_file(path).p4info
        except P4Error:
            continue
        theirs = tmp_path / f"{path.stem}.txtpb"
        command = [compiler, "--p4runtime-files", str(theirs), "-o", str(tmp_path / "out.json"), str(path)]
        if subprocess.run(command, capture_output=True, timeout=p4c.TIMEOUT_S, check=False).returncode:
            continue
        compared += 1
        lines = differences(ours, parse_text(theirs.read_text(encoding="utf-8")))
        if lines:
            different[path.name] = lines
    assert compared > 300
    assert different.keys() <= OPTIMISED, different
