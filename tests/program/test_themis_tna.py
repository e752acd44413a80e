"""Programs of Themis for TNA and T2NA: they build, say what they lack, and pass scenarios on the model of Tofino."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p4gen.builder import build
from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.p4 import ir
from p4gen.p4.compile import compile_text
from p4gen.p4.resources import Resources
from p4gen.papers.themis.control import clone_sessions
from p4gen.papers.themis.spec import Evidence, ThemisSpec
from p4gen.program import compose, render
from p4gen.ptf.family import conformance_of
from p4gen.vocabulary import Icrc

ARCHITECTURES = ("tna", "t2na")


def of(arch: str, **fields: object) -> ThemisSpec:
    return ThemisSpec.model_validate({"arch": arch, "mode": "themis-s", **fields})


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("fields", [{}, {"spread": "psn", "paths": 256}, {"spread": "ecmp"}], ids=str)
def test_programs_of_the_source_build(arch: str, fields: dict[str, object], tmp_path: Path) -> None:
    """``build`` refuses warnings, broken rules, and modules that do not say what they do."""
    built = build(of(arch, **fields), tmp_path)
    program = built.compiled.program
    assert (program.package, program.arch) == ("Switch", arch)
    manifest = json.loads((built.folder / "manifest.json").read_text())
    assert "any_number_of_next_hops" in manifest["capabilities"]
    templates = {module["name"]: module["template"] for module in manifest["modules"]}
    assert templates["Forward"] == "shared/tna/forward.p4.j2"
    assert templates.get("FindFlow", "themis/tna/find_flow.p4.j2") == "themis/tna/find_flow.p4.j2"


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    "fields",
    [
        {"mode": "themis"},
        {"mode": "themis-d", "icrc": "ignore"},
        {"mode": "themis-d", "paths": 64, "connections": 1024},
    ],
    ids=str,
)
def test_programs_of_the_destination_build(arch: str, fields: dict[str, object], tmp_path: Path) -> None:
    built = build(of(arch, **fields), tmp_path)
    actions: dict[str, int] = {}
    for extern in built.compiled.program.externs:
        if extern.extern == "RegisterAction":
            register = extern.arguments["reg"]
            assert isinstance(register, ir.ExternInstance)
            actions[register.name] = actions.get(register.name, 0) + 1
    assert len(actions) == 7
    assert max(actions.values()) <= 4
    manifest = json.loads((built.folder / "manifest.json").read_text())
    assert manifest["capabilities"].keys() == {"any_number_of_next_hops", "closed_gaps"}
    assert manifest["themis"]["most_passes"] == 1


def test_evidence_is_by_class() -> None:
    assert of("tna", mode="themis").evidence is Evidence.CLASSES
    assert of("tna", mode="themis", queue=16).evidence is Evidence.QUEUE
    assert of("tna").evidence is Evidence.QUEUE
    assert ThemisSpec().evidence is Evidence.QUEUE


@pytest.mark.parametrize(("arch", "port"), [("tna", 68), ("t2na", 6)])
def test_what_shows_a_loss_recirculates(arch: str, port: int) -> None:
    """Its copy is cut behind the BTH of a request with a tag, and what ingress tells is in front of it."""
    (session,) = clone_sessions(of(arch, mode="themis"))
    assert [replica.port for replica in session.replicas] == [port]
    assert session.packet_length == 14 + 14 + 4 + 20 + 8 + 12


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"spread": "random"}, "there is no spread random"),
        ({"spread": "flowlet"}, "there is no spread flowlet"),
        ({"spread": "adaptive"}, "there is no spread adaptive"),
        ({"tiers": 3}, "tiers 3 shifts a hash by a number of an entry"),
        ({"cm": "copy"}, "cm copy needs a management datagram of 2048 bits"),
        ({"pipelines": 2}, "pipelines is 1"),
        ({"mode": "themis", "queue_banks": 16}, "queue_banks 16: a NACK takes at most 8 PSNs along"),
        ({"mode": "themis", "queue": 128, "psn_bits": 16}, "a queue keeps 24 bits of each PSN: leave psn_bits out"),
        ({"mode": "themis", "queue": 512}, "1600 connections of 64 rows have 102400 words in a bank"),
        ({"mode": "themis", "queue": 16, "variant": "late-compensation"}, "is a design of v1model's queue"),
        ({"mode": "themis", "blocked": "ack"}, "use blocked drop"),
        ({"mode": "themis-d", "ports": 65}, "65 ports are of 2 pipes, each with registers of its own"),
        ({"mode": "themis", "connections": 4097}, "65552 classes; a register has at most 65536 words"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(arch: str, fields: dict[str, object], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        compose(of(arch, **fields))


def test_the_icrc_is_kept() -> None:
    """Of Themis's packets only headers are checked: no other default is needed than v1model's."""
    assert of("tna").icrc is Icrc.RECOMPUTE


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_names_tell_the_architecture(arch: str) -> None:
    assert of(arch).program == f"themis_s_{arch}_n16"
    assert ThemisSpec.model_validate({"mode": "themis-s"}).program == "themis_s_n16"


def test_a_table_is_applied_once() -> None:
    """p4c's back end for Tofino refuses a table that is applied in two places."""
    text = render(compose(of("tna")), line_directives=False).text
    assert text.count("data_flows.apply()") == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.long
def test_the_source_passes_its_scenarios(arch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["ptf", "run", "--mode", "themis-s", "--arch", arch, "--out", str(tmp_path)]
    assert int(cli.main(command, standalone_mode=False) or 0) == 0
    assert "\n20 passed, 0 failed" in capsys.readouterr().out


@pytest.mark.sample(1)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.long
def test_the_destination_passes_its_scenarios(arch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sample; ``p4gen ptf run`` has all of them."""
    chosen = (
        "test_classes.OnePassTells",
        "test_classes.ClassesAcrossTheWrap",
        "test_ends.ForgedAckDisarmsNothing",
        "test_compensation.CompensatedNackIsTheNics",
        "test_compensation.CompensatedNackIsTagged",
        "test_spray.SprayFollowsPsn",
    )
    command = ["ptf", "run", "--mode", "themis", "--arch", arch, "--out", str(tmp_path)]
    command += [word for name in chosen for word in ("--test", name)]
    assert int(cli.main(command, standalone_mode=False) or 0) == 0
    assert "\n6 passed, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize("evidence", Evidence)
def test_the_destination_has_room_on_tofino(evidence: Evidence) -> None:
    """By p4gen's model. No table of Forward is in a block, for which tables behind it would wait."""
    spec = of("tna", mode="themis", evidence=evidence)
    text = render(compose(spec), line_directives=False).text
    (report,) = spec.architecture.facet(Resources).estimate(compile_text(text, "t.p4").program)
    assert report.excess == ()
    assert "if (hdr.ipv4.isValid()) { routes.apply(); }" in text


@pytest.mark.parametrize(
    ("arch", "fields", "marked"),
    [
        ("tna", {"mode": "themis-d"}, True),
        ("tna", {"mode": "themis"}, True),
        ("tna", {"mode": "themis-d", "evidence": "queue"}, False),
        ("tna", {"mode": "themis-s"}, False),
        ("t2na", {"mode": "themis-d"}, False),
    ],
    ids=str,
)
def test_what_p4c_did_not_place_is_called_an_experiment(arch: str, fields: dict[str, object], marked: bool) -> None:
    composition = compose(of(arch, **fields))
    assert composition.experiment is marked
    assert ("placed it in 13 stages" in (composition.report or "")) is marked


@pytest.mark.long
def test_a_nack_walks_through_a_queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sample; ``p4gen ptf run`` has all of them."""
    chosen = ("OldestRowIsPartlyNew", "WalkEndsEarly", "EveryVerdictIsCounted")
    command = ["ptf", "run", "--mode", "themis-d", "--arch", "tna", "--out", str(tmp_path)]
    command += ["--queue", "16", "--queue-banks", "4", "--paths", "4", "--connections", "4", "--ports", "8"]
    command += [word for name in chosen for word in ("--test", f"test_psn_queue.{name}")]
    assert int(cli.main(command, standalone_mode=False) or 0) == 0
    assert "\n3 passed, 0 failed" in capsys.readouterr().out


def test_a_queue_of_tofino_keeps_whole_psns(tmp_path: Path) -> None:
    manifest = json.loads(
        (build(of("t2na", mode="themis-d", evidence="queue"), tmp_path).folder / "manifest.json").read_text()
    )
    assert manifest["capabilities"].keys() == {"any_number_of_next_hops"}
    assert manifest["themis"]["most_passes"] == 128 // 8 + 2
    registers = {each["name"]: each for module in manifest["modules"] for each in module["registers"]}
    assert (registers["bank_*.psns"]["instances"], registers["bank_*.psns"]["width"]) == (8, 32)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_each_fault_fits_its_program(arch: str) -> None:
    seeding = conformance_of(ThemisSpec(arch=arch)).seeding(ThemisSpec(arch=arch))
    texts = {name: render(compose(ThemisSpec.model_validate(fields))).text for name, fields in seeding.programs.items()}
    for mutation in seeding.mutations:
        assert mutation.apply(texts[mutation.program]) != texts[mutation.program]
