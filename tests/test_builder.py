"""Builds: whole or not at all, the same bytes every time, and clean under our own rules and p4c's."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from p4gen import builder
from p4gen.builder import build
from p4gen.errors import Diagnostic, FailedError, InputError, Pos
from p4gen.p4 import p4c
from p4gen.p4.p4info import parse_text
from p4gen.spec import DType, Icrc, Op, Overflow, ProgramSpec

SMALL = ProgramSpec(lanes=8)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_build_has_program_p4info_and_manifest(tmp_path: Path) -> None:
    built = build(SMALL, tmp_path, use_p4c=False)
    name = SMALL.program
    assert {path.name for path in built.files} == {f"{name}.p4", f"{name}.p4info.txtpb", "manifest.json"}
    info = parse_text((built.folder / f"{name}.p4info.txtpb").read_text())
    assert {table.preamble.alias for table in info.tables} == {
        "addresses",
        "endpoints",
        "invocations",
        "routes",
        "next_hops",
        "edges",
    }
    assert {counter.preamble.name for counter in info.counters} == {
        "IncIngress.drops",
        "IncEgress.drops",
        "IncIngress.aggregate_data.overflows",
    }


def test_the_manifest_agrees_with_the_compiled_program(tmp_path: Path) -> None:
    """Registers and tables of the descriptors are those that the program has, of the same size."""
    built = build(SMALL, tmp_path, use_p4c=False)
    content = json.loads((built.folder / "manifest.json").read_text())
    info = parse_text((built.folder / f"{SMALL.program}.p4info.txtpb").read_text())
    said = sum(r["instances"] * r["entries"] * r["width"] for m in content["modules"] for r in m["registers"])
    there = sum(r.size * r.type_spec.bitstring.bit.bitwidth for r in info.registers)
    assert said == there == content["state_bits"]
    sizes = {t["name"]: t["entries"] for m in content["modules"] for t in m["tables"]}
    assert sizes == {t.preamble.alias: t.size for t in info.tables}


def test_two_builds_are_byte_identical(tmp_path: Path) -> None:
    first = contents(build(SMALL, tmp_path / "a", use_p4c=False).folder)
    second = contents(build(SMALL, tmp_path / "b", use_p4c=False).folder)
    assert first == second


def test_a_failed_build_leaves_the_previous_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(build(SMALL, tmp_path, use_p4c=False).folder)
    complaint = [Diagnostic(Pos("x.p4", 1, 1), "no")]
    monkeypatch.setattr(builder, "lint", lambda program: complaint)
    with pytest.raises(FailedError, match="breaks a rule"):
        build(SMALL, tmp_path, use_p4c=False)
    assert contents(tmp_path / SMALL.program) == before
    assert [path.name for path in tmp_path.iterdir()] == [SMALL.program]


def test_positions_name_the_final_file(tmp_path: Path) -> None:
    built = build(SMALL, tmp_path, use_p4c=False)
    assert built.compiled.program.tables[0].pos.file == str(built.program)


def test_an_output_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        build(SMALL, tmp_path / "file", use_p4c=False)


SPECS = [
    *(
        ProgramSpec.model_validate({"lanes": lanes, "dtype": dtype, "op": op, "overflow": overflow})
        for lanes, dtype, (op, overflow) in itertools.product(
            (8, 32),
            DType,
            [(Op.SUM, None), (Op.SUM, Overflow.WRAP), (Op.MIN, None), (Op.MAX, None)],
        )
    ),
    ProgramSpec(lanes=64),
    ProgramSpec(lanes=128, op=Op.MAX, dtype=DType.UINT32),
    ProgramSpec(lanes=256),
    ProgramSpec(lanes=16, icrc=Icrc.IGNORE),
    ProgramSpec(lanes=16, window=1, message=1, groups=1, fan_in=1, ports=1),
    ProgramSpec(lanes=16, window=64, message=16, groups=16),
    ProgramSpec(lanes=16, slots=65536, groups=16, fan_in=2),
    ProgramSpec(lanes=16, window=3, message=5, fan_in=5, groups=3, ports=510),
]


def spec_id(spec: ProgramSpec) -> str:
    return f"{spec.program}-{spec.slots_per_group}x{spec.groups}-fanin{spec.fan_in}"


@pytest.mark.parametrize("spec", SPECS, ids=spec_id)
def test_every_spec_compiles_and_keeps_the_rules(spec: ProgramSpec, tmp_path: Path) -> None:
    build(spec, tmp_path, use_p4c=False)


@pytest.mark.skipif(p4c.find() is None, reason=f"{p4c.COMPILER} is not on PATH")
@pytest.mark.parametrize("spec", SPECS, ids=spec_id)
def test_p4c_accepts_every_spec_without_a_warning_and_agrees_on_p4info(spec: ProgramSpec, tmp_path: Path) -> None:
    assert build(spec, tmp_path).p4c is not None
    assert (tmp_path / spec.program / f"{spec.program}.json").exists()


FAKE = """#!/bin/sh
case $1 in --version) echo 'Version 9.9'; exit;; esac
{action}
"""


@pytest.mark.parametrize(
    ("action", "cause"),
    [
        ('echo \'warning: unused\' >&2; touch "$2" "$4"', "something to say"),
        ("echo 'error: no' >&2; exit 1", "refused"),
        ('echo > "$4"; echo \'pkg_info { arch: "psa" }\' > "$2"', "P4Info differs"),
    ],
)
def test_what_p4c_says_fails_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, cause: str
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / p4c.COMPILER).write_text(FAKE.format(action=action))
    (tools / p4c.COMPILER).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    with pytest.raises(FailedError, match=cause):
        build(SMALL, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
