"""Against p4c's testdata, where ``P4C_TESTDATA`` names a checkout of it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4gen.errors import Pos
from p4gen.p4.compile import compile_file
from p4gen.p4.info.text import differences, parse_text, to_text
from p4gen.p4.p4c import find
from p4gen.p4.parse.source import P4Error

_TESTDATA = os.environ.get("P4C_TESTDATA")
pytestmark = pytest.mark.skipif(not _TESTDATA, reason="P4C_TESTDATA does not name a checkout of p4c's testdata")
ROOT = Path(_TESTDATA or ".")
_INCLUDE = re.compile(r'#\s*include\s*[<"]([^>"]+)[>"]')

# What p4c's front end takes and we refuse, and why.
REFUSED = {
    "array1.p4": "arrays of what is not a header; p4c refuses them for BMv2 too",
    "array2.p4": "arrays of what is not a header; p4c refuses them for BMv2 too",
    "issue3394.p4": "compile-time int as a run-time argument; p4c refuses the program for BMv2",
}
# Every how manieth sample is given to p4c itself; 1 for all of them, which takes minutes.
P4C_STEP = int(os.environ.get("P4GEN_P4C_STEP", "10"))


def samples(folder: str, needs: set[str] | None = None) -> Iterator[Path]:
    for path in sorted((ROOT / folder).rglob("*.p4")):
        if "include" in path.parts:
            continue  # a part of another one
        included = set(_INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")))
        if needs is None or ("v1model.p4" in included if needs == {"v1model.p4"} else included <= needs):
            yield path


def test_v1model_samples_compile_with_the_same_p4info() -> None:
    refused: dict[str, str] = {}
    different: dict[str, list[str]] = {}
    folders: set[str] = set()
    count = 0
    for path in samples("p4_16_samples", {"v1model.p4"}):
        count += 1
        try:
            found = compile_file(path)
        except P4Error as problem:
            refused[path.name] = str(problem)
            continue
        folder = path.parent.relative_to(ROOT / "p4_16_samples")
        golden = ROOT / "p4_16_samples_outputs" / folder / f"{path.name}.p4info.txtpb"
        if golden.exists():
            folders.add(str(folder))
            lines = differences(found.p4info, parse_text(golden.read_text(encoding="utf-8")))
            if lines:
                different[path.name] = lines
    assert count > 400
    assert refused.keys() == REFUSED.keys(), {k: v for k, v in refused.items() if k not in REFUSED}
    assert not different
    assert folders >= {".", "dash", "fabric_20190420", "omec", "pins"}


@pytest.mark.skipif(find() is None, reason="p4c-bm2-ss is not on PATH")
def test_p4c_writes_the_same_p4info_to_the_letter(tmp_path: Path) -> None:
    compared = 0
    different: list[str] = []
    for path in list(samples("p4_16_samples", {"v1model.p4"}))[::P4C_STEP]:
        output = tmp_path / f"{path.name}.txtpb"
        command = [str(find()), "--p4runtime-files", str(output), "-o", str(tmp_path / "t.json"), str(path)]
        accepted = subprocess.run(command, check=False, capture_output=True).returncode == 0
        if path.name not in REFUSED and accepted:
            compared += 1
            ours = compile_file(path)
            assert not ours.beyond_targets, path
            if to_text(ours.p4info) != output.read_text(encoding="utf-8"):
                different.append(path.name)
    assert compared > 400 / P4C_STEP
    assert not different


def test_no_sample_of_any_architecture_ends_in_a_traceback() -> None:
    for path in samples("p4_16_samples"):
        with contextlib.suppress(P4Error):
            compile_file(path)


def test_wrong_programs_are_refused_on_the_line_that_p4c_gives() -> None:
    total = right = 0
    for path in samples("p4_16_errors", {"core.p4", "v1model.p4"}):
        golden = ROOT / "p4_16_errors_outputs" / f"{path.name}-stderr"
        text = golden.read_text(encoding="utf-8") if golden.exists() else ""
        lines = {int(m) for m in re.findall(re.escape(path.name) + r"\((\d+)\):[^\n]*error", text)}
        total += 1
        try:
            errors = list(compile_file(path).beyond_targets)
        except P4Error as problem:
            errors = [d for d in problem.diagnostics if d.severity == "error"]
        ours = {d.where.line for d in errors if isinstance(d.where, Pos)}
        ours |= {place.line for d in errors for place, _ in d.notes}
        right += bool(ours & lines) if lines else bool(errors)
    assert total > 500
    assert right / total >= 0.9, f"{right} of {total}"
