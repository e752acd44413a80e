"""TNA programs of others, and p4c's declarations of the architectures, where checkouts of them are named:
``P4C_TESTDATA`` (p4c's ``testdata``), ``P4STUDIO`` (open-p4studio), ``P4APP_SWITCHML`` (p4app-switchML), and
``P4C_INCLUDE`` (the folder with p4c's ``tna.p4``)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from test_p4_tna_errors import WRONG
from tna_programs import compiled, ingress

from p4gen.p4.compile import compile_file
from p4gen.p4.parse import ast
from p4gen.p4.parse.parser import parse
from p4gen.p4.parse.preprocess import preprocess
from p4gen.p4.parse.source import P4Error, Reporter
from p4gen.p4.walk import used_by


def checkout(variable: str, below: str = "") -> Path:
    """The folder ``below`` the checkout that ``variable`` names; without one, the test is skipped."""
    root = os.environ.get(variable)
    if not root:
        pytest.skip(f"{variable} names no checkout")
    return Path(root) / below


def refused(programs: Iterable[tuple[Path, int]], *includes: Path) -> tuple[int, dict[str, str]]:
    """How many programs there are, each with its target's number, and what is wrong with which."""
    count, found = 0, {}
    for path, target in programs:
        count += 1
        try:
            program = compile_file(path, [f"__TARGET_TOFINO__={target}"], includes).program
        except P4Error as problem:
            found[f"{path.name} for Tofino {target}"] = str(problem)
            continue
        # Every body of an action on a register is reached from a block, or belongs to an instance that nobody calls.
        calls = {c.instance for block in program.blocks.values() for c in used_by(block).calls}
        functions = {f for block in program.blocks.values() for f in used_by(block).functions}
        for instance in program.externs:
            assert instance not in calls or functions.issuperset(instance.methods.values())
    return count, found


def test_all_of_p4cs_samples_are_accepted() -> None:
    root = checkout("P4C_TESTDATA", "../backends/p4tools/modules/testgen/targets/tofino/test/p4-programs").resolve()
    paths = sorted([*root.glob("*.p4"), *root.glob("tofino?_only/*.p4")])
    assert len(paths) == 54
    targets = {"tofino1_only": (1,), "tofino2_only": (2,)}
    numbered = [(path, target) for path in paths for target in targets.get(path.parent.name, (1, 2))]
    assert refused(numbered, root) == (101, {})


def test_all_of_open_p4studios_programs_are_accepted() -> None:
    root = checkout("P4STUDIO", "pkgsrc/p4-examples/p4_16_programs")
    paths = [path for path in sorted(root.rglob("*.p4")) if "Switch(" in path.read_text(encoding="utf-8")]
    both = [(path, target) for path in paths for target in (1, 2)]
    # Its name says that it is for one of them.
    both = [(path, target) for path, target in both if not (path.name.startswith("t2na_") and target == 1)]
    assert refused(both, root) == (83, {})


def test_p4app_switchml_is_accepted() -> None:
    root = checkout("P4APP_SWITCHML", "dev_root/p4")
    assert refused([(root / "switchml.p4", 1)]) == (1, {})


# --- declarations --------------------------------------------------------------------------------


def declarations(arch: str, target: int, includes: tuple[Path, ...] = ()) -> dict[str, object]:
    """What an architecture's header declares, without positions and without annotations but ``@optional``."""
    source = preprocess("t.p4", f"#include <{arch}.p4>\n", [f"__TARGET_TOFINO__={target}"], includes)
    reporter = Reporter(source)
    tree = parse(source, reporter)
    reporter.raise_if_failed()
    found: dict[str, object] = {}
    for decl in tree.decls:
        if isinstance(decl, ast.ErrorDecl | ast.MatchKindDecl):
            found.update({f"{decl.name} {member}": decl.name for _, member in decl.members})
        elif isinstance(decl, ast.FunctionDecl):
            found[f"{decl.name}({', '.join(p.name for p in decl.params)})"] = shape(decl)
        elif isinstance(decl, ast.ExternDecl):
            methods = [f"{m.name}({', '.join(p.name for p in m.params)})" for m in decl.methods]
            found[decl.name] = decl.type_params, dict(zip(methods, map(shape, decl.methods), strict=True))
        else:
            found[decl.name] = shape(decl)
    return found


def shape(node: Any) -> object:
    """A syntax tree, to be compared."""
    if isinstance(node, ast.EnumDecl):
        return shape(node.base), tuple((name, shape(value)) for _, name, value in node.members)
    if isinstance(node, tuple):
        return tuple(map(shape, node))
    if not is_dataclass(node):
        return node
    kept = {"optional"} if isinstance(node, ast.Parameter | ast.FunctionDecl) else set()
    names = (f.name for f in fields(node) if f.name not in ("at", "annotations", "base" if ints(node) else ""))
    own = sorted(a.name for a in getattr(node, "annotations", ()) if a.name in kept)
    return type(node).__name__, tuple(own), {name: shape(getattr(node, name)) for name in names}


def ints(node: object) -> bool:
    """Whether ``node`` is a number, whose base says nothing."""
    return isinstance(node, ast.IntLit)


@pytest.mark.parametrize(("arch", "target"), [("tna", 1), ("tna", 2), ("t2na", 2)])
def test_declarations_agree_with_p4cs(arch: str, target: int) -> None:
    theirs = declarations(arch, target, (checkout("P4C_INCLUDE"),))
    ours = declarations(arch, target)
    assert len(ours) > 100
    assert ours.keys() ^ theirs.keys() == set()
    assert {name: what for name, what in ours.items() if what != theirs[name]} == {}


# --- p4c itself ----------------------------------------------------------------------------------

BACK_END = {"a property's extern", "an implementation"}
"""What p4c's front end does not check."""


def p4test(text: str, folder: Path) -> bool:
    """Whether p4c's front end accepts a program, with its own declarations."""
    program = which("p4test")
    if program is None:
        pytest.skip("p4test is not on PATH")
    file = folder / "t.p4"
    file.write_text(text, encoding="utf-8")
    target = 2 if "<t2na.p4>" in text else 1
    argv = [program, f"-D__TARGET_TOFINO__={target}", "-I", str(checkout("P4C_INCLUDE")), str(file)]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def cases() -> Iterator[str]:
    yield from (name for name in WRONG if name not in BACK_END)


@pytest.mark.parametrize("name", list(cases()))
def test_p4c_refuses_what_we_refuse(name: str, tmp_path: Path) -> None:
    local, _ = WRONG[name]
    assert not p4test(ingress("", local), tmp_path)


def test_p4c_accepts_what_we_accept(tmp_path: Path) -> None:
    local = """Register<bit<32>, bit<16>>(4) reg; RegisterAction<bit<32>, bit<16>, bit<32>>(reg) add = {
        void apply(inout bit<32> value, out bit<32> rv) { value = value + hdr.h.d; rv = value; } };"""
    text = ingress("meta.y = add.execute(meta.x);", local)
    assert compiled(text)
    assert p4test(text, tmp_path)
