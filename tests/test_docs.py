"""What documents show is true."""

import ast
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from p4gen.manager.api import GroupSpec
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.scin.experiments import figure_10
from p4gen.plan.placement.policy import FabricView, SwitchRoom, find_policy
from p4gen.program import compose, render
from p4gen.stf import parse_text
from p4gen.stf.parser import COMMANDS
from p4gen.stf.statements import Command, CreateMember
from p4gen.vocabulary.topology import load_topology

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of a document."""
    text = (ROOT / "docs" / document).read_text()
    return re.findall(rf"^```{language}(?: \S+)?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_exist(document: Path) -> None:
    named = re.findall(r"`((?:p4gen|scripts|tests|ptf_tests|docs|topologies)/[\w./-]+)`", document.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_names_in_tables_of_ways_are_defined_where_they_say() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| [^|]* \| ([^|]*\.py`) \| (`[^|]*`) \|$", text, re.MULTILINE)
    assert len(rows) > 10
    unknown = []
    for files, names in rows:
        defined = set[str]()
        for file in re.findall(r"`([^`]*)`", files):
            for node in ast.parse((ROOT / file).read_text()).body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    defined.add(node.name)
                if isinstance(node, ast.ClassDef):
                    defined |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        unknown += [(files, name) for name in re.findall(r"`([^`]*)`", names) if name not in defined]
    assert unknown == []


def test_example_of_a_policy_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = (block for block in blocks("manager.md", "python") if "class RoomiestRoot" in block)
    (tmp_path / "my_policies.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_policies", raising=False)
    policy = find_policy("my_policies:RoomiestRoot")

    topology = load_topology(ROOT / "topologies" / "leaf-spine.yaml")
    spec = EpicSpec()
    free = {switch: 100 * number for number, switch in enumerate(topology.switches)}
    rooms = {switch: SwitchRoom(spec, 4, (slots,)) for switch, slots in free.items()}
    view = FabricView(topology, {}, rooms)
    ranks = (topology.hosts[0], topology.hosts[-1])
    proposed = [candidate.root for candidate in policy.candidates(view, GroupSpec("g", ranks))]
    assert proposed == sorted(topology.switches, key=lambda switch: -free[switch])

    lost = topology.switches[-1]
    down = {link.name: "cut" for link in topology.ports[lost]}
    proposed = [c.root for c in policy.candidates(FabricView(topology, down, rooms), GroupSpec("g", ranks))]
    assert lost not in proposed


def test_example_of_a_policy_is_found_where_the_document_says(tmp_path: Path) -> None:
    (example,) = (block for block in blocks("manager.md", "python") if "class RoomiestRoot" in block)
    (tmp_path / "my_policies.py").write_text(example)
    (line,) = (line for line in "".join(blocks("manager.md", "sh")).splitlines() if "my_policies" in line)
    setting, _, *arguments = shlex.split(line)
    # An address that cannot be listened at comes last of all that is wrong.
    command = [str(Path(sysconfig.get_path("scripts")) / "p4gen"), *arguments, "--listen", "unix:/nowhere/socket"]

    def complaint(**environment: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env={"PATH": os.defpath} | environment,
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode != 0
        return done.stderr

    name, _, value = setting.partition("=")
    assert "my_policies" not in complaint(**{name: value})
    assert "my_policies" in complaint()


def test_examples_of_the_native_engine_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program.p4").write_text(render(compose(EpicSpec(lanes=8, groups=1))).text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names: dict[str, object] = {}
    examples = blocks("native-engine.md", "python")
    for example in examples:
        exec(example, names)
    assert len(examples) == 2
    assert {"model", "sent"} <= names.keys()


def test_example_of_multiwrite_works() -> None:
    (example,) = blocks("multiwrite.md", "python")
    exec(compile(example, "multiwrite.md", "exec"), {})


def test_example_of_scin_works() -> None:
    (example,) = blocks("scin.md", "python")
    exec(compile(example, "scin.md", "exec"), {})


def test_claims_have_the_conditions_of_the_figures() -> None:
    ring = f"2(N - 1)(S/(NB) + {figure_10.STEP} µs)"
    assert ring in (ROOT / "docs" / "scin.md").read_text()


def test_stf_md_lists_every_command_as_the_parser_takes_it() -> None:
    text = (ROOT / "docs" / "stf.md").read_text()
    section = text.partition("## Everything else")[2].partition("Checks, at the point")[0]
    tables = text.partition("## Tables")[2].partition("\n## ")[0]
    shown = [
        command for row in re.findall(r"^\| (`.*?`) \|", section + tables, re.MULTILINE) for command in row.split("`")
    ]
    commands = {command.split()[0]: command for command in shown if re.match(r"[a-z_]+ [A-Z]", command)}
    assert {*COMMANDS, "act_prof_create_member"} <= commands.keys()
    for name in (*COMMANDS, "act_prof_create_member"):
        line = commands[name].replace("ACTION(ARG:VALUE, …)", "action(arg:1)").replace("RATE:BURST", "0.5:1")
        line = re.sub(r"\b(NAME|PROFILE|SET)\b", "name", line)
        if name in COMMANDS and COMMANDS[name][0] != "NAME":
            assert "name" not in line.split()
        (statement,) = parse_text(re.sub(r"\b[A-Z]+\b", "1", line).replace("…", " 2"))
        assert isinstance(statement, CreateMember if name == "act_prof_create_member" else Command)


def test_example_of_freezing_works() -> None:
    (example,) = blocks("simulation.md", "python")
    exec(compile(example, "simulation.md", "exec"), {})
