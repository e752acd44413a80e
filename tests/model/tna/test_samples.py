"""p4c's programs for Tofino on the model, where ``P4C_TESTDATA`` names p4c's ``testdata``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.model import Model
from p4gen.model.entries import Action, Entry
from p4gen.p4.compile import compile_file

from . import programs

TARGETS = {"tofino1_only": (1,), "tofino2_only": (2,)}


def folder() -> Path:
    """Where p4testgen's programs are."""
    root = os.environ.get("P4C_TESTDATA")
    if not root:
        pytest.skip("P4C_TESTDATA names no checkout")
    return (Path(root) / "../backends/p4tools/modules/testgen/targets/tofino/test/p4-programs").resolve()


def sample(name: str, target: int = 1) -> Model:
    """One of them on the model."""
    root = folder()
    program = compile_file(root / name, [f"__TARGET_TOFINO__={target}"], [root]).program
    return Model(program, clock=lambda: 0, engine=programs.ENGINE, cache="")


def test_all_of_them_load() -> None:
    root = folder()
    refused, count = {}, 0
    for path in sorted([*root.glob("*.p4"), *root.glob("tofino?_only/*.p4")]):
        for target in TARGETS.get(path.parent.name, (1, 2)):
            count += 1
            try:
                sample(str(path.relative_to(root)), target)
            except InputError as problem:
                refused[f"{path.name} for Tofino {target}"] = str(problem)
    assert (count, refused) == (101, {})


def test_two_pipelines_have_tables_of_their_own() -> None:
    model = sample("multipipe_simple.p4")
    tables = [table.name for table in model.program.tables]
    for table, action in zip(tables, (a.name for a in model.program.actions if a.name.endswith("a1")), strict=True):
        model.insert(Entry(table, {"hdr.payload.x": 0}, Action(action)))
    assert model.process(0, b"\0\0rest")[0][1].endswith(b"rest")
    assert model.process(0, b"\0\0rest") != model.process(128, b"\0\0rest")
