"""An architecture in a folder of one's own: Mode II is built for it and works, Mode III is refused with the reason."""

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
from p4gen.errors import FailedError
from p4gen.families import load_spec
from p4gen.families.epic import modules
from p4gen.families.epic.spec import EpicSpec, Mode
from p4gen.program import compose, render, undeclared_features
from p4gen.ptf.family import conformance_of
from p4gen.spec import Reliability

INIT = '''
    """BMv2's architecture, as a switch that can neither clone nor take more than 64 ports."""

    from dataclasses import dataclass
    from pathlib import Path
    from typing import ClassVar

    from p4gen.arch import Feature
    from p4gen.arch.v1model import ARCHITECTURE as V1MODEL, V1Model


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
        main="V1Switch",
        includes=("core.p4", "v1model.p4"),
        targets=("embedded",),
        features=V1MODEL.features - {Feature.CLONE, Feature.EGRESS_CLONE},
        ports=64,
        cpu_port=64,
        template_folder=Path(__file__).parent / "templates",
        base=V1MODEL,
    )
'''
DEPARSER = """
    control PlainDeparser(packet_out packet, in headers_t hdr) {
        apply { packet.emit(hdr); }
    }

    V1Switch(PacketParser(), VerifyIpv4Checksum(), IncIngress(), IncEgress(), UpdateIpv4Checksum(),
             PlainDeparser()) main;
"""


def write(folder: Path, init: str = INIT) -> Path:
    (folder / "templates").mkdir(parents=True)
    (folder / "__init__.py").write_text(dedent(init).lstrip())
    (folder / "templates" / "deparser.p4.j2").write_text(dedent(DEPARSER).lstrip())
    return folder


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
    assert list(arch.architectures()) == ["v1model", "plain"]
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
    assert "std_meta" not in text
    assert sources() == before


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


def test_mode_iii_is_refused_with_the_modules_and_the_feature(plain: Path, tmp_path: Path) -> None:
    done = p4gen("build", "--arch", "./plain", "--mode", "III", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert [re.sub(r"^p4gen: error: modeiii_sum_int32_x64_plain: ", "", line) for line in lines] == [
        "Retransmission and SendAck need clones of arriving packets, which the architecture plain does not have",
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
    assert done.stderr.splitlines() == [
        "p4gen: error: modeiii_sum_int32_x64_bare: Retransmission and SendAck need clones of arriving packets, "
        "which the architecture bare does not have"
    ]


WRONG = {
    "unknown": (("--arch", "plian"), r"--arch: error: arch = 'plian': must be v1model .*"),
    "no folder": (("--arch", "./nowhere"), r"nowhere: error: not an architecture: it has no __init__\.py"),
    "too many ports": (
        ("--arch", "./plain", "--ports", "65"),
        r"--ports: error: ports = 65: must be at most 64 for plain",
    ),
    "no architecture": (
        ("--arch", "./empty"),
        r"empty/__init__\.py: error: ARCHITECTURE is not an p4gen\.arch\.Architecture",
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


def test_a_target_that_does_not_run_its_programs_is_refused(plain: Path, tmp_path: Path) -> None:
    done = p4gen("ptf", "run", "--arch", "./plain", "--target", "bmv2", "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    cause = "bmv2 does not run programs for plain; they run on embedded"
    assert done.stderr.splitlines()[-1] == f"--target: error: {cause}"
    assert not (tmp_path / "build").exists()


def test_help_and_schema_list_the_architectures(plain: Path, tmp_path: Path) -> None:
    env = {FOLDERS: str(plain)}
    assert "--arch v1model|plain" in p4gen("build", "--help", cwd=tmp_path, env=env).stdout
    schema = json.loads(p4gen("schema", cwd=tmp_path, env=env).stdout)
    assert schema["properties"]["arch"]["enum"] == ["v1model", "plain"]
    assert "--arch v1model " in p4gen("build", "--help", cwd=tmp_path).stdout


def test_what_to_type_next_names_the_folder(plain: Path, tmp_path: Path) -> None:
    done = p4gen("build", "--arch", "./plain", "--lanes", "8", cwd=tmp_path)
    assert f"ptf run --mode II --arch {plain} --lanes 8" in done.stdout, done.stderr


def test_a_module_must_declare_the_features_that_its_template_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = EpicSpec(mode=Mode.III, lanes=8)
    composition = compose(spec)
    assert undeclared_features(composition, render(composition)) == []
    monkeypatch.setitem(vars(modules.SEND_ACK), "uses", ())
    message = "SendAck uses clones of arriving packets, which it does not declare"
    composition = compose(spec)
    assert undeclared_features(composition, render(composition)) == [message]
    with pytest.raises(FailedError, match="modules do not say what they do") as caught:
        build(spec, tmp_path / "build")
    assert message in str(caught.value.diagnostics)


@pytest.mark.parametrize("mode", Mode)
def test_what_programs_use_is_declared_by_someone(mode: Mode) -> None:
    assert (
        compose(EpicSpec(mode=mode, lanes=8)).uses
        == {
            Mode.II: {Feature.MULTICAST, Feature.PACKET_CRC},
            Mode.III: {
                Feature.MULTICAST,
                Feature.CLONE,
                Feature.EGRESS_CLONE,
                Feature.RECIRCULATION,
                Feature.TICKS,
                Feature.PACKET_CRC,
            },
        }[mode]
    )


def test_statements_of_v1model_are_written_by_its_folder_only() -> None:
    own = re.compile(
        r"std_meta|standard_metadata_t|mark_to_drop|preserving_field_list|CounterType|HashAlgorithm|register<|v1model"
        r"|\.(read|write)\("
    )
    templates = Path(__file__).parents[2] / "templates"
    found = [
        f"{file.relative_to(templates)}:{number}: {line.strip()}"
        for file in sorted(templates.rglob("*.p4.j2"))
        if "arch" not in file.relative_to(templates).parts
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if own.search(re.sub(r"\barch\.(read|write)\(", "", line))
    ]
    assert found == []
