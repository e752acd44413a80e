"""What documents show is true."""

import re
import sys
from pathlib import Path

import pytest

from p4gen.manager.api import GroupSpec
from p4gen.manager.policy import FabricView, SwitchRoom, find_policy
from p4gen.spec import ProgramSpec
from p4gen.spec.topology import load_topology

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of a document."""
    text = (ROOT / "docs" / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_exist(document: Path) -> None:
    named = re.findall(r"`((?:p4gen|scripts|tests|ptf_tests|docs|topologies)/[\w./-]+)`", document.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_example_of_a_policy_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = (block for block in blocks("manager.md", "python") if "class RoomiestRoot" in block)
    (tmp_path / "my_policies.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_policies", raising=False)
    policy = find_policy("my_policies:RoomiestRoot")

    topology = load_topology(ROOT / "topologies" / "leaf-spine.yaml")
    spec = ProgramSpec()
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
