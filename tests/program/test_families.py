"""A family in a folder of one's own: found, built, and nothing outside of its folder is touched."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from patience import PATIENCE_S

from p4gen.builder import build
from p4gen.cli.app import cli
from p4gen.cli.options import arguments_of
from p4gen.errors import InputError
from p4gen.families import Facet, add_folder, families, family_of, load_spec
from p4gen.families import family as family_module
from p4gen.families.registry import FOLDERS, forget
from p4gen.groups.family import GroupEntries
from p4gen.model import Model
from p4gen.model.entries import Action, Entry, Exact
from p4gen.program import ProgramParts, compose
from p4gen.ptf.family import Conformance
from p4gen.rocev2.headers import Ethernet, IPv4

ROOT = Path(__file__).parents[2]

INIT = '''
    """A gate: IPv4 packets pass to the hosts that a table knows, and no others."""

    from pathlib import Path
    from typing import Annotated, Literal

    from pydantic import Field

    from p4gen.families import Family
    from p4gen.vocabulary import ProgramSpec


    class GateSpec(ProgramSpec):
        """A gate."""

        family: Annotated[Literal["gate"], Field(description="the family of programs")] = "gate"
        known: Annotated[int, Field(ge=1, le=1024, description="hosts that the gate knows")] = 16


    FAMILY = Family("gate", "A gate", GateSpec, __name__, Path(__file__).parent / "templates")
'''

PROGRAM = '''
    """What a gate's programs consist of."""

    from p4gen.program import Ipv4Checksum, ProgramParts
    from p4gen.rocev2 import layouts

    FACET = ProgramParts(
        headers=lambda spec: (layouts.ETHERNET, layouts.IPV4),
        flows=lambda spec: ("gate/ingress.p4.j2", "gate/egress.p4.j2"),
        templates=lambda composition: (
            "gate/start.p4.j2",
            "shared/headers.p4.j2",
            "gate/parser.p4.j2",
            composition.arch.template("checksum"),
        ),
        names=lambda composition: {
            "arrival": "A gate",
            "ipv4_checksum": Ipv4Checksum("hdr.ipv4.isValid()", "nobody", "hdr.ipv4.isValid()"),
        },
    )
'''

START = """
    // {{ spec.program }}: a gate that knows {{ spec.known }} hosts.
    #include <core.p4>
    #include <v1model.p4>

    const bit<16> ETHERTYPE_IPV4 = 0x0800;

    enum bit<8> drop_t {
        NONE = 0,
    {% for row in drops|drop_rows %}
        {{ row }}
    {% endfor %}
    }
    const bit<32> DROP_REASONS = {{ drops|length + 1 }};

    typedef bit<48> mac_addr_t;
    typedef bit<32> ipv4_addr_t;
"""

PARSER = """
    struct metadata_t {
        drop_t drop;
    }

    parser PacketParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
        state start {
            packet.extract(hdr.ethernet);
            transition select(hdr.ethernet.ether_type) {
                ETHERTYPE_IPV4: parse_ipv4;
                default: accept;
            }
        }

        state parse_ipv4 {
            packet.extract(hdr.ipv4);
            transition accept;
        }
    }
"""

GATE = """
    //@ purpose lets packets for known hosts pass
    //@ drops unknown: a packet for a host that the gate does not know
    control Gate(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std_meta) {
        action unknown() { meta.drop = drop_t.Gate_unknown; }

        action pass(bit<9> port) {
            std_meta.egress_spec = port;
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        }

        table hosts {
            key = { hdr.ipv4.dst_addr: exact; }
            actions = { pass; @defaultonly unknown; }
            const default_action = unknown;
            size = {{ spec.known }};
        }

        apply {
            if (hdr.ipv4.isValid()) {
                hosts.apply();
            } else {
                unknown();
            }
        }
    }
"""

EGRESS = """
    if (meta.drop != drop_t.NONE) { drops.count((bit<32>)(bit<8>)meta.drop); }
"""

INGRESS = """
    meta.drop = drop_t.NONE;
    gate.apply(hdr, meta, std_meta);
    if (meta.drop != drop_t.NONE) {
        drops.count((bit<32>)(bit<8>)meta.drop);
        mark_to_drop(std_meta);
    }
"""

FILES = {
    "__init__.py": INIT,
    "program.py": PROGRAM,
    "templates/start.p4.j2": START,
    "templates/parser.p4.j2": PARSER,
    "templates/gate.p4.j2": GATE,
    "templates/ingress.p4.j2": INGRESS,
    "templates/egress.p4.j2": EGRESS,
}


def write(folder: Path, **changed: str) -> Path:
    """The gate's folder; ``changed`` has other texts for some of its Python files."""
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(changed.get(file.stem.strip("_"), text)).lstrip())
    return folder


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The gate's folder; nobody knows of it before the test and after it."""
    monkeypatch.setenv(FOLDERS, "")
    yield write(tmp_path / "gate")
    for name in [name for name in sys.modules if name.startswith("p4gen_family_")]:
        del sys.modules[name]
    forget()


def p4gen(*args: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4gen", *map(str, args)]
    environment = {name: value for name, value in os.environ.items() if name != FOLDERS} | dict(env or {})
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False, env=environment
    )


def sources() -> dict[Path, int]:
    """All files of p4gen but compiled ones, and when each was changed."""
    folders = (ROOT / "p4gen", ROOT / "templates", ROOT / "ptf_tests")
    return {
        file: file.stat().st_mtime_ns
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_a_family_in_a_folder_is_built_and_works_and_touches_nothing_else(gate: Path, tmp_path: Path) -> None:
    before = sources()
    family = add_folder(gate)
    assert list(families())[-1] == family.name == "gate"
    spec = load_spec(flags={"family": "gate", "known": 8})
    assert family_of(spec) is family
    built = build(spec, tmp_path / "build")  # compiles without a warning, and breaks no rule of the house
    assert built.manifest["spec"]["known"] == 8
    assert [module["name"] for module in built.manifest["modules"]] == ["Gate"]
    assert '"templates/gate/gate.p4.j2"' in built.program.read_text()

    model = Model(built.compiled.program)
    model.insert(Entry("hosts", {"hdr.ipv4.dst_addr": Exact(0x0A000001)}, Action("pass", {"port": 3})))
    there, elsewhere = (packet(address) for address in (0x0A000001, 0x0A000002))
    assert model.process(0, there) == [(3, packet(0x0A000001, ttl=63))]
    assert model.process(0, elsewhere) == []
    assert model.counter("IncIngress.drops", 1).packets == 1
    assert sources() == before


def packet(address: int, ttl: int = 64) -> bytes:
    ip = IPv4(0x0A0000FE, address, protocol=17, ttl=ttl, total_length=20)
    return Ethernet(1, 2).pack() + replace(ip, checksum=ip.right_checksum()).pack()


@pytest.mark.parametrize("way", ["--family PATH", "--family=PATH", FOLDERS, "YAML"])
@pytest.mark.long
def test_the_command_line_finds_it_by_path_and_by_name(gate: Path, tmp_path: Path, way: str) -> None:
    env: dict[str, str] = {}
    match way:
        case "--family PATH":
            arguments = ["--family", "./gate", "--known", "32"]
        case "--family=PATH":
            arguments = [f"--family={gate}", "--known", "32"]
        case "YAML":
            (tmp_path / "spec.yaml").write_text("family: gate\nknown: 32\n")
            arguments, env = ["spec.yaml"], {FOLDERS: str(gate)}
        case _:
            arguments, env = ["--family", "gate", "--known", "32"], {FOLDERS: str(gate)}
    done = p4gen("build", *arguments, "--json", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["spec"]["known"] == 32
    assert (tmp_path / "build" / "gate" / "gate.p4").exists()


def test_what_to_type_next_names_the_folder(gate: Path, tmp_path: Path) -> None:
    done = p4gen("build", "--family", gate, cwd=tmp_path)
    assert f"ptf run --family {gate}" in done.stdout, done.stderr


def test_a_run_with_a_family_in_a_folder_can_be_repeated(
    tmp_path: Path, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``p4gen rerun`` calls the command with the arguments that a run has recorded."""
    # A command's options are those of the families that are known when its module is loaded.
    monkeypatch.delitem(sys.modules, "p4gen.cli.build", raising=False)
    place = gate.rename(tmp_path / "a gate")
    add_folder(place)
    arguments = arguments_of(load_spec(flags={"family": "gate", "known": 8}))
    assert arguments == ["--family", str(place), "--known", "8"]
    os.environ[FOLDERS] = ""
    forget()
    assert not cli.main(["build", *arguments, "--out", str(tmp_path / "build")], standalone_mode=False)
    assert (tmp_path / "build" / "gate" / "manifest.json").exists()


@pytest.mark.long
def test_help_has_the_flags_of_all_families(gate: Path, tmp_path: Path) -> None:
    done = p4gen("build", "--family", gate, "--help", cwd=tmp_path)
    assert "--known" in done.stdout
    assert "--mode" in done.stdout
    assert "--known" not in p4gen("build", "--help", cwd=tmp_path).stdout


HERE = ("--family", "./gate")
BROKEN: dict[str, tuple[dict[str, str], tuple[str, ...], str]] = {
    "unknown": (
        {},
        ("--family", "gaet"),
        r"--family: error: family = 'gaet': there is no such family; the families are atp, epic.*",
    ),
    "no folder": ({}, ("--family", "./nowhere"), r"nowhere: error: not a family: it has no __init__\.py"),
    "no family": (
        {"init": "FAMILY = 3\n"},
        HERE,
        r"gate/__init__\.py: error: FAMILY is not a p4gen\.families\.family\.Family",
    ),
    "no facet": ({"program": "FACET = None\n"}, HERE, r"p4gen: error: .*program\.FACET is not a ProgramParts"),
    "syntax": (
        {"init": "FAMILY = (\n"},
        HERE,
        r".*gate/__init__\.py:1:10: error: SyntaxError: '\(' was never closed",
    ),
    "import": (
        {"program": "FACET = 1\nimport nothing_of_that_name\n"},
        HERE,
        r".*gate/program\.py:2:1: error: ModuleNotFoundError: No module named 'nothing_of_that_name'",
    ),
    "taken": (
        {"init": INIT.replace('"gate"', '"epic"')},
        HERE,
        r"p4gen: error: there are two families called epic: .*",
    ),
    "field": ({}, (*HERE, "--known", "0"), r"--known: error: known = 0: must be at least 1 .*"),
    "another's field": ({}, (*HERE, "--mode", "II"), r"--mode: error: 'mode' is a field of .*epic, .* and themis .*"),
}


@pytest.mark.parametrize(("changed", "arguments", "message"), BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_said_in_a_line(
    tmp_path: Path, changed: dict[str, str], arguments: tuple[str, ...], message: str
) -> None:
    write(tmp_path / "gate", **changed)
    done = p4gen("build", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) <= 2
    assert re.fullmatch(message, done.stderr.splitlines()[0]), done.stderr
    assert not (tmp_path / "build").exists()


def test_a_field_of_a_family_without_modes_is_said_to_be_its_own(gate: Path, tmp_path: Path) -> None:
    done = p4gen("build", "--mode", "II", "--known", "1", cwd=tmp_path, env={FOLDERS: str(gate)})
    assert (done.returncode, done.stderr) == (2, "--known: error: 'known' is a field of gate, not of epic\n")


@pytest.mark.long
def test_a_missing_template_and_a_wrong_one_are_named(gate: Path, tmp_path: Path) -> None:
    (gate / "templates" / "gate.p4.j2").write_text("control Gate() {\n    {{ nothing }}\n}\n")
    done = p4gen("build", "--family", gate, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"{gate}/templates/gate.p4.j2:2:1: error: 'nothing' is undefined\n")
    (gate / "templates" / "gate.p4.j2").unlink()
    done = p4gen("build", "--family", gate, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "p4gen: error: gate: there is no template gate.p4.j2 in gate or shared\n",
    )


@pytest.mark.long
def test_a_drop_that_is_not_declared_is_named(gate: Path, tmp_path: Path) -> None:
    (gate / "templates" / "gate.p4.j2").write_text(dedent(GATE).replace("drops unknown", "drops other"))
    done = p4gen("build", "--family", gate, cwd=tmp_path)
    assert done.returncode == 2
    assert "enum drop_t has no member 'Gate_unknown'" in done.stderr
    assert not (tmp_path / "build" / "gate").exists()


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("//@ drop unknown: it", "no declaration is called 'drop': paper, purpose, tells, drops, uses, table, keeps"),
        ("//@ drops unknown", "'unknown' is not of the form of //@ drops (p4gen/program/declared.py)"),
        ("//@ table hosts[many]: hosts", "size 'many': 'GateSpec' object has no attribute 'many'"),
        ("//@ keeps seen[known]: hosts", "the family says no layout of words of seen: write bit<...> for a number"),
        ("//@ uses magic", "there is no feature 'magic' of architectures"),
    ],
)
def test_a_wrong_declaration_is_named_with_its_line(gate: Path, line: str, cause: str) -> None:
    (gate / "templates" / "gate.p4.j2").write_text(f"\n{line}\n{dedent(GATE)}")
    add_folder(gate)
    with pytest.raises(InputError) as caught:
        compose(load_spec(flags={"family": "gate"}))
    assert str(caught.value.diagnostics[0]) == f"gate/gate.p4.j2:2:1: error: {cause}"


MODULES = {"Conformance": "conformance", "Traffic": "traffic", "Benchmark": "bench"}


@pytest.mark.parametrize(("verb", "facet"), [("ptf", "Conformance"), ("difftest", "Traffic"), ("bench", "Benchmark")])
@pytest.mark.long
def test_tests_need_what_the_family_does_not_say(gate: Path, tmp_path: Path, verb: str, facet: str) -> None:
    done = p4gen(verb, "--family", gate, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"p4gen: error: the family gate has no {MODULES[facet]}.py: it does not provide {facet}\n"


@pytest.mark.long
def test_a_verb_names_the_facet_that_is_missing(tmp_path: Path) -> None:
    """A family whose programs take part in collectives, as far as its spec goes."""
    folder = write(tmp_path / "gate", init=INIT.replace("ProgramSpec", "CollectiveSpec"))
    done = p4gen("bench", "--family", folder, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "p4gen: error: the family gate has no bench.py: it does not provide Benchmark\n"


@pytest.mark.parametrize("kind", [GroupEntries, Conformance])
def test_a_facet_that_is_missing_is_named(gate: Path, kind: type[Facet]) -> None:
    family = add_folder(gate)
    assert family.answers(ProgramParts)
    assert not family.answers(kind)
    cause = rf"the family gate has no {kind.module}\.py: it does not provide {kind.__name__}"
    with pytest.raises(InputError, match=cause):
        family.facet(kind)


def test_modes_are_named_in_epics_folder_only() -> None:
    named = re.compile(r"\bMode\.(II|III)\b")
    found = {file for file in (ROOT / "p4gen").rglob("*.py") if named.search(file.read_text(encoding="utf-8"))}
    epic = ROOT / "p4gen" / "papers" / "epic"
    assert found
    assert sorted(str(file) for file in found if epic not in file.parents) == []


def test_papers_say_which_spec_their_facets_take() -> None:
    """Then mypy finds a function that takes another one."""
    files = (ROOT / "p4gen" / "papers").rglob("*.py")
    found = {
        line for file in files for line in re.findall(r"^FACET\b.*", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(found) > 30
    form = r"FACET: \w+\[\w+Spec\] = |FACET: Final = Experiments\("
    assert [line for line in found if not re.match(form, line)] == []


def test_the_table_of_facets_is_true() -> None:
    facet = r"class (\w+)\(Facet(?:, Generic\[OwnSpec\])?\):"
    stated = re.compile(rf'^{facet}.*?^    module: ClassVar\[str\] = "(\w+)"', re.MULTILINE | re.DOTALL)
    texts = (file.read_text(encoding="utf-8") for file in (ROOT / "p4gen").rglob("*.py"))
    found = {pair for text in texts for pair in stated.findall(text)}
    assert ("ProgramParts", "program") in found
    listed = re.findall(r"^``(\w+)`` .* ``(\w+)\.py``$", str(family_module.__doc__), re.MULTILINE)
    assert sorted(listed) == sorted(found)
