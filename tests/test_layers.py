"""Imports point downwards: the layers of the house as data, and what may not be loaded by whom.

A package that comes, goes or gets another name is one line of ``LAYERS``.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PAPERS = tuple(f"papers.{name}" for name in ("aro", "atp", "epic", "multiwrite", "scin", "switchml", "themis"))
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "choices", "environment", "layout", "packages", "protos", "version"),
    ("inputs", "plugins", "records", "resources", "scratch", "stored"),
    ("arch",),
    ("vocabulary", "rocev2", "packetio"),
    ("families",),
    # the P4 front end
    ("p4.node", "p4.p4c"),
    ("p4.types",),
    ("p4.fold", "p4.ir"),
    ("p4.walk", "p4.show"),
    ("p4.simplify", "p4.parse"),
    ("p4.check", "p4.live"),
    ("p4.lower", "p4.lint", "p4.info", "p4.toolchain", "p4.resources"),
    ("p4.compile",),
    ("p4.mutate",),
    # programs: from a spec to a folder
    ("program",),
    ("builder",),
    # what runs programs
    ("model",),
    ("compiled.cached", "compiled.machine", "compiled.memory"),
    ("compiled.programs", "compiled.sockets"),
    ("compiled.carrying",),
    ("p4rt", "stf"),
    ("switch",),
    ("runs",),
    # collectives on them
    ("host.transport",),
    ("compiled",),
    ("host.compiled",),
    ("host.collectives",),
    ("host.device", "host.raw"),
    ("groups",),
    ("cluster",),
    ("experiments",),
    ("plan.placement",),
    ("plan.flow", "manager", "net", "ptf"),
    ("difftest", "plan.route"),
    ("verification",),
    ("bench", "labs"),
    # papers and chips: nobody imports them but tests, and the registries that find them
    ("chips.tna",),
    ("chips.t2na", "chips.v1model", *PAPERS),
    ("library",),
    ("cli", "ptf_tests", "torch"),
    ("__main__",),
)
"""From the bottom to the top. A name stands for a module or a package of p4gen with all that is in it, the longest
name that fits counts. What is in a layer may import itself and what is in layers below, and nothing else."""


@dataclass(frozen=True)
class Import:
    """A module that imports another one: anywhere in it, for types only and inside functions too."""

    importer: str
    imported: str
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.importer} imports {self.imported}"


def imports(root: Path, packages: Sequence[str]) -> tuple[set[str], list[Import]]:
    """All modules of packages below ``root``, and which of them imports which."""
    files = {_name(file.relative_to(root)): file for package in packages for file in root.glob(f"{package}/**/*.py")}
    found: list[Import] = []
    for name, file in sorted(files.items()):
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                where = f"{file.relative_to(root)}:{node.lineno}"
                found += [Import(name, other, where) for other in _imported(node, package, files) if other != name]
    return set(files), found


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _imported(node: ast.Import | ast.ImportFrom, package: str, modules: Mapping[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
    else:
        above = package.split(".")[: -(node.level - 1) or None] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            if f"{base}.{alias.name}" in modules:
                yield f"{base}.{alias.name}"
            elif base in modules:
                yield base


def layer(module: str, layers: Sequence[Sequence[str]]) -> tuple[int, str] | None:
    """The layer of a module, and the name in it that the module belongs to; the root of p4gen is below all, and imports
    what it offers only when somebody asks for it."""
    if module == "p4gen":
        return -1, ""
    name = module.removeprefix("p4gen.")
    fitting = [(i, own) for i, names in enumerate(layers) for own in names if f"{name}.".startswith(f"{own}.")]
    return max(fitting, key=lambda found: len(found[1]), default=None)


def upward(found: Sequence[Import], layers: Sequence[Sequence[str]]) -> list[str]:
    """The imports that do not point downwards."""
    wrong = []
    for one in (one for one in found if one.importer != "p4gen"):
        importer, imported = layer(one.importer, layers), layer(one.imported, layers)
        if importer and imported and importer != imported and imported[0] >= importer[0]:
            wrong.append(f"{one}, which is not below it")
    return wrong


def circle(found: Sequence[Import]) -> list[str]:
    """Modules that import each other, the first one again at the end; empty if there are none."""
    graph = defaultdict(set)
    for one in (one for one in found if one.importer != "p4gen"):
        graph[one.importer].add(one.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(module) for module in reversed(error.args[1])]
    return []


@pytest.fixture(scope="module")
def house() -> tuple[set[str], list[Import]]:
    return imports(ROOT, ("p4gen", "ptf_tests"))


def test_every_module_has_a_layer_and_every_layer_its_modules(house: tuple[set[str], list[Import]]) -> None:
    modules, found = house
    names = [name for names in LAYERS for name in names]
    without = {module for module in modules if layer(module, LAYERS) is None}
    # A package whose parts are in several layers holds nothing itself.
    parted = {module for module in without if any(f"p4gen.{name}".startswith(f"{module}.") for name in names)}
    assert without - parted == set()
    assert [str(one) for one in found if parted & {one.importer, one.imported}] == []
    used = {place[1] for module in modules if (place := layer(module, LAYERS))}
    assert [name for name in names if name not in used] == []


def test_imports_point_downwards(house: tuple[set[str], list[Import]]) -> None:
    assert upward(house[1], LAYERS) == []


def test_no_modules_import_each_other(house: tuple[set[str], list[Import]]) -> None:
    assert circle(house[1]) == []


UPWARD = {
    "plain": "from p4gen.high.b import thing",
    "for types only": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p4gen.high import b",
    "in a function": "def f():\n    import p4gen.high.b",
    "relative": "from ..high import b",
    "of the package": "from p4gen import high",
}


@pytest.mark.parametrize("text", UPWARD.values(), ids=UPWARD)
def test_an_upward_import_is_found(tmp_path: Path, text: str) -> None:
    _write(tmp_path, {"low/a": text, "high/b": "thing = 1"})
    _, found = imports(tmp_path, ("p4gen",))
    (wrong,) = upward(found, (("low",), ("high",)))
    assert wrong.startswith(f"p4gen/low/a.py:{len(text.splitlines())}: p4gen.low.a imports p4gen.high")
    assert upward(found, (("low", "high"),))  # neighbours in one layer do not import each other
    assert upward(found, (("high",), ("low",))) == []


def test_the_longest_name_counts() -> None:
    layers = (("p4.info",), ("p4",), ("p4.info.files",))
    assert layer("p4gen.p4.info.ids", layers) == (0, "p4.info")
    assert layer("p4gen.p4.info.files", layers) == (2, "p4.info.files")
    assert layer("p4gen.p4rt", layers) is None


def test_a_circle_is_found(tmp_path: Path) -> None:
    _write(tmp_path, {"one/a": "from p4gen.one import b", "one/b": "def f():\n    from p4gen.one.a import f", "c": ""})
    _, found = imports(tmp_path, ("p4gen",))
    assert set(circle(found)) == {"p4gen.one.a", "p4gen.one.b"}
    assert upward(found, (("one",), ("c",))) == []


KINDS = frozenset({"ProgramSpec", "ServingSpec", "MemorySpec", "CollectiveSpec"})
"""Kinds of specs that are not a family's own."""
TOLD_APART = {
    "vocabulary/program.py": "a spec beside another one is told from what a file says of it",
}
"""Files outside papers that may ask of which kind a spec is, and why."""


def kinds_asked(text: str) -> list[int]:
    """The lines of a module that ask by ``isinstance`` or a pattern of which kind a spec is."""
    found: list[ast.expr | ast.pattern] = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, asked]):
                if KINDS & {n.id for n in ast.walk(asked) if isinstance(n, ast.Name)}:
                    found.append(node)
            case ast.MatchClass(cls=ast.Name(id=name)) if name in KINDS:
                found.append(node)
    return [node.lineno for node in found]


def test_outside_papers_nobody_asks_of_which_kind_a_spec_is() -> None:
    asking = {
        str(file.relative_to(ROOT / "p4gen")): lines
        for file in (ROOT / "p4gen").rglob("*.py")
        if "papers" not in file.parts and (lines := kinds_asked(file.read_text(encoding="utf-8")))
    }
    assert asking.keys() == TOLD_APART.keys(), asking


def test_a_question_of_kind_is_found() -> None:
    text = """
a = isinstance(spec, str | CollectiveSpec)
match spec:
    case ProgramSpec():
        b = isinstance(spec, EpicSpec)
"""
    assert kinds_asked(text) == [2, 4]


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = folder / "p4gen" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        for package in (folder / "p4gen", file.parent):
            (package / "__init__.py").touch()


COMMAND = frozenset({"cli"})
"""What a build loads from above ``builder``: the command itself."""
HEAVY = frozenset({"grpc", "llvmlite", "matplotlib", "mininet", "numpy", "p4runtime_sh", "ptf", "scapy"})
_LOADED = """
import json, sys
from p4gen.cli import main
sys.argv = ["p4gen", *sys.argv[1:]]
try:
    main()
finally:
    print("loaded", json.dumps(sorted(sys.modules)))
"""


def loaded(*command: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    run = subprocess.run(
        [sys.executable, "-c", _LOADED, *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout.rpartition("loaded ")[2]))


@pytest.mark.parametrize("mode", ["II", "III"])
def test_a_build_loads_only_what_generates_and_checks_programs(tmp_path: Path, mode: str) -> None:
    modules = loaded("build", "--mode", mode, "--lanes", "8", "--out", str(tmp_path))
    assert "p4gen.builder" in modules
    assert HEAVY & modules == set()
    top, _ = layer("p4gen.builder", LAYERS) or (0, "")
    ours = [place for module in modules if module.startswith("p4gen.") and (place := layer(module, LAYERS))]
    above = {name for number, name in ours if number > top}
    assert above - COMMAND == {"chips.tna", "chips.t2na", "chips.v1model", *PAPERS}
    unwanted = tuple(f"p4gen.{family}.conf" for family in PAPERS)
    assert not {module for module in modules if module.startswith(unwanted)}


def test_a_command_that_runs_programs_loads_more() -> None:
    """The test above can fail: what it looks for is there when something needs it."""
    modules = loaded("sim", "run", "star-2", "--mode", "II", "--lanes", "8", "--size", "1K")
    assert "p4gen.net" in modules
    assert "numpy" in modules


@pytest.mark.parametrize("verb", ["bench", "ptf", "sim"])
def test_help_of_a_group_loads_no_command_of_it(verb: str) -> None:
    modules = loaded(verb, "--help")
    assert f"p4gen.cli.{verb}" in modules
    assert not {
        module for module in modules if module.startswith((f"p4gen.cli.{verb}.", "p4gen.vocabulary", "p4gen.net"))
    }
    assert HEAVY & modules == set()
