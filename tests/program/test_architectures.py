"""An architecture in a folder of one's own, with its own package, header, model and limits: Mode II is built for it and
works, Mode III is refused with the reason."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from test_families import p4gen, sources

from p4gen import arch
from p4gen.arch import Feature
from p4gen.arch.registry import FOLDERS, registry
from p4gen.builder import build
from p4gen.choices import ENGINES
from p4gen.families import load_spec
from p4gen.p4.compile import compile_file
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.program import compose
from p4gen.ptf.family import conformance_of
from p4gen.switch.device import Device
from p4gen.vocabulary import Reliability

INIT = '''
    """BMv2's architecture, as a switch that can neither clone nor take more than 64 ports."""

    from dataclasses import dataclass
    from pathlib import Path
    from typing import ClassVar

    from p4gen.arch import Feature
    from p4gen.chips.v1model import ARCHITECTURE as V1MODEL, V1Model


    @dataclass(frozen=True)
    class Plain(V1Model):
        """Other names, and a drop without mark_to_drop."""

        METADATA: ClassVar[str] = "standard"

        def constants(self, uses):
            return (*super().constants(uses), "const bit<9>  NOWHERE             = 511;")

        def drop(self, stage="ingress"):
            if stage == "egress":
                return super().drop(stage)
            return f"{self.multicast('0')} {self.send('NOWHERE')}"

        def write(self, register, index, value):
            return f"{register}.write(index = {index}, value = {value});"


    ARCHITECTURE = Plain(
        name="plain",
        title="v1model without clones",
        package=__name__,
        main="PlainSwitch",
        includes=("core.p4", "plain.p4"),
        targets=("embedded",),
        features=V1MODEL.features - {Feature.CLONE, Feature.EGRESS_CLONE},
        ports=64,
        cpu_port=64,
        template_folder=Path(__file__).parent / "templates",
        prelude=Path(__file__).parent,
        base=V1MODEL,
    )
'''
DEPARSER = """
    control PlainDeparser(packet_out packet, in headers_t hdr) {
        apply { packet.emit(hdr); }
    }

    PlainSwitch(PacketParser(), VerifyIpv4Checksum(), IncIngress(), IncEgress(), UpdateIpv4Checksum(),
                PlainDeparser()) main;
"""
HEADER = """
    #include <v1model.p4>

    package PlainSwitch<H, M>(
        Parser<H, M> p, VerifyChecksum<H, M> vr, Ingress<H, M> ig, Egress<H, M> eg, ComputeChecksum<H, M> ck,
        Deparser<H> dep);
"""
MODEL = '''
    """v1model's processing, with fewer ports."""

    from p4gen.model.behaviour import Behaviour
    from p4gen.chips.v1model.switch import V1Model


    class PlainModel(V1Model):
        """Loses frames that arrive beyond the CPU port, 64."""

        def process(self, port, packet, trace=None):
            return super().process(port, packet, trace) if port <= 64 else []


    FACET = Behaviour(PlainModel)
'''
TOOLCHAIN = '''
    """The rules of v1model's programs, and a limit of its own."""

    from p4gen.errors import Diagnostic
    from p4gen.p4.lint.rules import lint
    from p4gen.p4.toolchain import Toolchain


    def limits(program, places):
        return [Diagnostic(e.pos, "plain has no meters") for e in program.externs if e.extern == "meter"]


    FACET = Toolchain(lint, limits)
'''
HUB = """
    #include <core.p4>
    #include <plain.p4>
    header byte_t { bit<8> value; }
    struct headers_t { byte_t first; }
    struct metadata_t { }
    parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
        state start { packet.extract(hdr.first); transition accept; }
    }
    control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
    control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }
    control Turn(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
        apply { hdr.first.value = hdr.first.value / 2; standard.egress_spec = 9w7; }
    }
    control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
    control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
    PlainSwitch(Parse(), Verify(), Turn(), Leave(), Compute(), Deparse()) main;
"""


def write(folder: Path, init: str = INIT) -> Path:
    (folder / "templates").mkdir(parents=True)
    files = {"__init__.py": init, "model.py": MODEL, "toolchain.py": TOOLCHAIN, "plain.p4": HEADER}
    for name, text in {**files, "templates/deparser.p4.j2": DEPARSER}.items():
        (folder / name).write_text(dedent(text).lstrip())
    return folder


def hub(folder: Path, old: str = "", new: str = "") -> Path:
    """A program for it that no family made: what arrives leaves at port 7, with half of its first byte."""
    file = folder / "hub.p4"
    file.write_text(dedent(HUB.replace(old, new) if old else HUB).lstrip())
    return file


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of an architecture that nobody knows before the test and after it."""
    monkeypatch.setenv(FOLDERS, "")
    registry.forget()
    yield write(tmp_path / "plain")
    for name in [name for name in sys.modules if name.startswith("p4gen_arch_")]:
        del sys.modules[name]
    registry.forget()


def test_mode_ii_is_built_for_it_and_nothing_else_is_touched(plain: Path, tmp_path: Path) -> None:
    before = sources()
    added = arch.add_folder(plain)
    assert list(arch.architectures()) == ["t2na", "tna", "v1model", "plain"]
    spec = load_spec(flags={"arch": "plain", "lanes": 8, "pipelines": 2})
    assert spec.architecture is added
    assert spec.program == "modeii_sum_int32_x8_p2_plain"
    built = build(spec, tmp_path / "build")  # compiles without a warning, and breaks no rule of the house
    text = built.program.read_text()
    assert built.manifest["spec"]["arch"] == "plain"
    assert "standard.mcast_grp = 0; standard.egress_spec = NOWHERE;" in text
    assert "slots.write(index = meta.flow.slot, value = word);" in text
    assert '"templates/arch/plain/deparser.p4.j2"' in text
    assert '"templates/arch/v1model/pipelines.p4.j2"' in text
    assert "#include <plain.p4>" in text
    assert "PlainSwitch(PacketParser()" in text
    assert "std_meta" not in text
    assert "V1Switch" not in text
    assert built.compiled.program.package == "PlainSwitch"
    assert built.compiled.p4info.pkg_info.arch == "plain"
    assert built.compiled.p4info.tables
    assert sources() == before


@pytest.mark.long
def test_the_conformance_suite_passes_on_it(plain: Path, tmp_path: Path) -> None:
    """Results, recirculation, and routing; other processes find the architecture, too."""
    scenarios = "test_aggregation.SumOfTwoRanks", "test_pipelines.PartialResultsAreMerged", "test_forwarding"
    chosen = [word for scenario in scenarios for word in ("--test", scenario)]
    done = p4gen("ptf", "run", "--arch", "./plain", "--lanes", "8", "--pipelines", "2", *chosen, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["passed"] is True


def test_all_programs_that_the_suite_runs_on_are_for_it(plain: Path) -> None:
    arch.add_folder(plain)
    spec = load_spec(flags={"arch": "plain", "lanes": 8})
    facet = conformance_of(spec)
    programs = [run.spec for run in facet.runs(spec)]
    programs += facet.every_program(spec)
    programs += [mutated.spec for mutated in facet.mutated(spec, (Reliability.SR,), (1, 2))]
    assert len(programs) > 20
    assert {program.arch for program in programs} == {"plain"}


def test_its_own_model_runs_its_programs(plain: Path, tmp_path: Path) -> None:
    """From each command's arguments: the program's package is what leads to the model."""
    program, env = str(hub(tmp_path)), {FOLDERS: str(plain)}
    packets = "--packet", "64:2a00", "--packet", "65:2a00"
    done = p4gen("run", program, *packets, "--json", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert [packet["outputs"] for packet in json.loads(done.stdout)["packets"]] == [[{"port": 7, "packet": "1500"}], []]
    unknown = p4gen("run", program, *packets, cwd=tmp_path)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "hub.p4:2:1: error: cannot find the file to include: plain.p4" in unknown.stderr
    arch.add_folder(plain)
    device = Device(1, programs=[compiled := compile_file(program)])
    device.commit(device.load(compiled.p4info, b""))
    assert device.send(3, b"\x2a") == [(7, b"\x15")]
    assert device.send(70, b"\x2a") == []


@pytest.mark.long
def test_without_a_model_of_its_own_the_one_it_builds_on_runs_them(plain: Path, tmp_path: Path) -> None:
    (plain / "model.py").unlink()
    program, env = str(hub(tmp_path)), {FOLDERS: str(plain)}
    for engine in ENGINES:
        done = p4gen("run", program, "--packet", "65:2a00", "--engine", engine, cwd=tmp_path, env=env)
        assert (done.returncode, done.stderr) == (0, "")
        assert "  7:1500\n" in done.stdout
    scenario = "--test", "test_aggregation.SumOfTwoRanks"
    done = p4gen("ptf", "run", "--arch", "./plain", "--lanes", "8", "--engine", "jit", *scenario, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_engine_that_it_does_not_have_is_refused(plain: Path, tmp_path: Path) -> None:
    program, env = str(hub(tmp_path)), {FOLDERS: str(plain)}
    done = p4gen("run", program, "--packet", "3:2a00", "--engine", "jit", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().endswith("hub.p4:1:1: error: the engine jit does not run PlainSwitch; interp does")


@pytest.mark.long
def test_programs_are_checked_against_its_limits(plain: Path, tmp_path: Path) -> None:
    env = {FOLDERS: str(plain)}
    done = p4gen("check", str(hub(tmp_path)), cwd=tmp_path, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    local = "inout standard_metadata_t standard) {\n        apply { hdr.first"
    program = hub(tmp_path, local, local.replace("{", "{ meter(8, MeterType.packets) rates;", 1))
    done = p4gen("check", str(program), cwd=tmp_path, env=env)
    assert done.returncode == 1
    assert re.search(r"hub\.p4:11:\d+: error: plain has no meters", done.stderr), done.stderr
    done = p4gen("check", str(hub(tmp_path, "/ 2", "/ 3")), cwd=tmp_path, env=env)
    assert done.returncode == 1
    assert "'/' needs operands known at compile time" in done.stderr


def test_a_package_with_other_blocks_is_refused(plain: Path, tmp_path: Path) -> None:
    (plain / "plain.p4").write_text(dedent(HEADER).replace("Deparser<H> dep", "Deparser<H> last"))
    done = p4gen("run", str(hub(tmp_path)), "--packet", "3:2a00", cwd=tmp_path, env={FOLDERS: str(plain)})
    assert (done.returncode, done.stdout) == (2, "")
    runs = "Switch and MultiParserSwitch and V1Switch and PlainSwitch"
    cause = f"the behavioural model runs {runs}, not a package of that name with other blocks"
    assert done.stderr.strip().endswith(f"hub.p4:1:1: error: {cause}")


def test_mode_iii_is_refused_with_the_modules_and_the_feature(plain: Path, tmp_path: Path) -> None:
    done = p4gen("build", "--arch", "./plain", "--mode", "III", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert [re.sub(r"^p4gen: error: modeiii_sum_int32_x64_plain: ", "", line) for line in lines] == [
        "Retransmission and SendAck and the flow of egress need clones of arriving packets, "
        "which the architecture plain does not have",
        "the flow of egress needs clones of departing packets, which the architecture plain does not have",
    ]
    assert not (tmp_path / "build").exists()


def test_an_architecture_without_clones_need_not_say_how_they_are_written(plain: Path, tmp_path: Path) -> None:
    names = "clone", "clone_again", "cloned_on_arrival", "cloned_on_departure"
    without = "\n".join(f"        {name} = Architecture.{name}" for name in names)
    text = INIT.replace('"plain"', '"bare"').replace("import Feature", "import Architecture, Feature")
    text = text.replace("        def constants", f"{without}\n\n        def constants")
    write(tmp_path / "bare", init=text)
    done = p4gen("build", "--arch", "./bare", "--mode", "III", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == ["p4gen: error: the architecture bare does not have clones of arriving packets"]


WRONG = {
    "unknown": (("--arch", "plian"), r"--arch: error: arch = 'plian': must be t2na or tna or v1model .*"),
    "no folder": (("--arch", "./nowhere"), r"nowhere: error: not an architecture: it has no __init__\.py"),
    "too many ports": (
        ("--arch", "./plain", "--ports", "65"),
        r"--ports: error: ports = 65: must be at most 64 for plain",
    ),
    "no architecture": (
        ("--arch", "./empty"),
        r"empty/__init__\.py: error: ARCHITECTURE is not an p4gen\.arch\.architecture\.Architecture",
    ),
    "taken": (("--arch", "./taken"), r"p4gen: error: there are two architectures called v1model: in .*"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_a_line(plain: Path, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    write(tmp_path / "empty", init="")
    write(tmp_path / "taken", init=INIT.replace('name="plain"', 'name="v1model"'))
    done = p4gen("build", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(message, done.stderr.splitlines()[0]), done.stderr
    assert not (tmp_path / "build").exists()


@pytest.mark.long
def test_a_target_that_does_not_run_its_programs_is_refused(plain: Path, tmp_path: Path) -> None:
    done = p4gen("ptf", "run", "--arch", "./plain", "--target", "bmv2", "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    cause = "bmv2 does not run programs for plain; they run on embedded"
    assert done.stderr.splitlines()[-1] == f"--target: error: {cause}"
    assert not (tmp_path / "build").exists()


@pytest.mark.long
def test_help_and_schema_list_the_architectures(plain: Path, tmp_path: Path) -> None:
    env = {FOLDERS: str(plain)}
    assert "--arch t2na|tna|v1model|plain" in p4gen("build", "--help", cwd=tmp_path, env=env).stdout
    schema = json.loads(p4gen("schema", cwd=tmp_path, env=env).stdout)
    assert schema["properties"]["arch"]["enum"] == ["t2na", "tna", "v1model", "plain"]
    assert "--arch t2na|tna|v1model " in p4gen("build", "--help", cwd=tmp_path).stdout


def test_what_to_type_next_names_the_folder(plain: Path, tmp_path: Path) -> None:
    done = p4gen("build", "--arch", "./plain", "--lanes", "8", cwd=tmp_path)
    assert f"ptf run --mode II --arch {plain} --lanes 8" in done.stdout, done.stderr


def test_features_that_templates_use_count_as_their_modules_own() -> None:
    (send_ack,) = (m for m in compose(EpicSpec(mode=Mode.III, lanes=8)).modules if m.name == "SendAck")
    assert send_ack.uses == {Feature.CLONE}


@pytest.mark.parametrize("mode", Mode)
def test_programs_use_the_features_of_their_modules_and_flows(mode: Mode) -> None:
    both = {Feature.MULTICAST, Feature.PACKET_CRC}
    answering = {Feature.CLONE, Feature.EGRESS_CLONE, Feature.RECIRCULATION, Feature.TICKS}
    assert compose(EpicSpec(mode=mode, lanes=8)).uses == (both | answering if mode.augmented else both)


def test_statements_of_v1model_are_written_by_its_folder_only() -> None:
    own = re.compile(
        r"std_meta|standard_metadata_t|mark_to_drop|preserving_field_list|CounterType|HashAlgorithm\b|register<|v1model"
        r"|\.(read|write)\("
    )
    templates = Path(__file__).parents[2] / "templates"
    found = [
        f"{file.relative_to(templates)}:{number}: {line.strip()}"
        for file in sorted(templates.rglob("*.p4.j2"))
        if not {"arch", "tna", "t2na"}
        & set(file.relative_to(templates).parts)  # those of an architecture may be written in it
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if own.search(re.sub(r"\barch\.(read|write)\(", "", line))
    ]
    assert found == []
