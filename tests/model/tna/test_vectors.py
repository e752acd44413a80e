"""p4testgen's tests of p4c's programs for Tofino, where they were made: ``P4TESTGEN_STF`` names a folder with
``t1/PROGRAM/*.stf`` for Tofino 1 and ``t2`` for Tofino 2, and ``P4C_TESTDATA`` p4c's ``testdata``."""

from __future__ import annotations

import os
import re
from itertools import groupby
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.inputs import read_text
from p4gen.model import EngineName, engines
from p4gen.p4.compile import compile_file
from p4gen.stf import parse_text, run
from p4gen.stf.engines import ENGINES

from .test_samples import TARGETS, folder

NAMES = {"multipipe_simple": ("Ingress_0.", "pipe1.Ingress.")}
"""How p4testgen names tables by the compiler's own copies of controls, and what P4Info calls them."""
COPIED = re.compile(r"copy_to_cpu = .*Computed: .*copy_to_cpu = (\d);")
CPU = {"1": 64, "2": 2}
EXACT = "p4testgen takes @ternary for another match kind: the test has wildcards for a key that P4Info calls exact"
BITS = "a @flexible header of 282 bits: the compiler makes whole bytes of it, p4testgen goes on by bits"
EXPLAINED = {
    "t1/switchml/switchml_5": BITS,  # which ones they are depends on the version of Z3
    "t1/switchml/switchml_6": BITS,
    "t1/switchml/switchml_9": BITS,
    "t1/tna_table_control_ternary_anno/tna_table_control_ternary_anno_1": EXACT,
    "t1/tna_table_control_ternary_anno/tna_table_control_ternary_anno_3": EXACT,
    "t2/tna_table_control_ternary_anno/tna_table_control_ternary_anno_1": EXACT,
    "t2/tna_table_control_ternary_anno/tna_table_control_ternary_anno_3": EXACT,
    "t2/parser_reject/parser_reject_1": "port 6 is Tofino 2's for recirculation, which p4testgen does not have",
}
"""Tests that do not hold here, and why, as docs/tofino.md says how to make them."""


def mended(test: Path) -> str:
    """A test, with the names that P4Info has, and the copy to the CPU, which p4testgen does not make. What the program
    asks for stands in the test's comments."""
    text = read_text(test).replace(*NAMES.get(test.parent.name, ("", "")))
    if COPIED.findall(text)[-1:] == ["1"]:
        text += f"\nexpect {CPU[test.parent.parent.name[1]]}\n"
    return text


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_all_but_the_explained_ones_pass(engine: EngineName) -> None:
    made = os.environ.get("P4TESTGEN_STF")
    if not made:
        pytest.skip("P4TESTGEN_STF names no folder")
    root, programs, failed, count = Path(made), folder(), {}, 0
    for where, tests in groupby(sorted(root.glob("t[12]/*/*.stf")), key=lambda test: test.parent):
        name, target = where.name, where.parent.name[1]
        paths = [programs / f"{name}.p4", *(programs / part / f"{name}.p4" for part in TARGETS)]
        path = next(p for p in paths if p.exists())
        program = compile_file(path, [f"__TARGET_TOFINO__={target}"], [programs]).program
        if engine not in engines(program):
            pytest.skip(f"{engine} does not run TNA")
        for test in tests:
            count += 1
            try:
                outcome = run(program, parse_text(mended(test), str(test)), engine=ENGINES[engine])
                problems = [str(failure) for failure in outcome.failures]
            except InputError as problem:
                problems = [str(problem)]
            if problems:
                failed[str(test.relative_to(root).with_suffix(""))] = problems[0][:300]
    assert count
    assert {name: what for name, what in failed.items() if name not in EXPLAINED} == {}
    assert len(failed) <= count * 5 // 100
