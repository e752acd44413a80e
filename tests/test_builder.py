"""Builds: whole or not at all, the same bytes every time, and clean under our own rules and p4c's."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from p4gen import builder
from p4gen.builder import build
from p4gen.chips.v1model import toolchain
from p4gen.errors import Diagnostic, FailedError, InputError, Pos
from p4gen.p4 import p4c
from p4gen.p4.compile import compile_text
from p4gen.p4.info.text import parse_text
from p4gen.p4.lint.rules import lint, pipelines
from p4gen.papers.epic.spec import EpicSpec, Mode, Variant
from p4gen.program import Composition, Rendered, compose, render

SMALL = EpicSpec(lanes=8)


FAKE = """#!/bin/sh
case $1 in --version) echo 'Version 9.9'; exit;; esac
{action}
"""


def stand_in(action: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a compiler on PATH that does ``action`` with p4c's arguments: --p4runtime-files P4INFO -o JSON SOURCE."""
    tools = folder / "bin"
    tools.mkdir()
    (tools / p4c.COMPILER).write_text(FAKE.format(action=action))
    (tools / p4c.COMPILER).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_build_has_program_p4info_and_manifest(tmp_path: Path) -> None:
    built = build(SMALL, tmp_path, use_p4c=False)
    name = SMALL.program
    assert {path.name for path in built.files} == {f"{name}.p4", f"{name}.p4info.txtpb", f"{name}.lua", "manifest.json"}
    info = parse_text((built.folder / f"{name}.p4info.txtpb").read_text())
    assert {table.preamble.alias for table in info.tables} == {
        "addresses", "endpoints", "entrances", "contexts", "patterns", "flows", "neighbours", "routes", "next_hops",
        "edges",
    }  # fmt: skip
    assert {counter.preamble.name for counter in info.counters} == {
        "IncIngress.drops",
        "IncEgress.drops",
        "IncIngress.aggregate_data.overflows",
    }


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mode": "III"},
        {"mode": "II", "pipelines": 4, "reliability": "gbn", "op": "dynamic"},
        {"mode": "III", "pipelines": 2, "reliability": "sack", "op": "dynamic", "groups": 3, "fan_in": 5},
    ],
    ids=str,
)
def test_the_manifest_agrees_with_the_compiled_program(fields: dict[str, object], tmp_path: Path) -> None:
    """Registers and tables of the descriptors are those that the program has, of the same size."""
    spec = EpicSpec.model_validate({"lanes": 8} | fields)
    built = build(spec, tmp_path, use_p4c=False)
    content = json.loads((built.folder / "manifest.json").read_text())
    info = parse_text((built.folder / f"{spec.program}.p4info.txtpb").read_text())
    said = [(r["instances"], r["entries"], r["width"]) for m in content["modules"] for r in m["registers"]]
    there = Counter((r.size, r.type_spec.bitstring.bit.bitwidth) for r in info.registers)
    expected: Counter[tuple[int, int]] = Counter()
    for instances, entries, width in said:
        expected[entries, width] += instances
    assert there == expected
    assert content["state_bits"] == sum(size * width * count for (size, width), count in there.items())
    sizes = {t["name"]: t["entries"] for m in content["modules"] for t in m["tables"]}
    assert sizes == {t.preamble.alias: t.size for t in info.tables}


def test_two_builds_are_byte_identical(tmp_path: Path) -> None:
    first = contents(build(SMALL, tmp_path / "a", use_p4c=False).folder)
    second = contents(build(SMALL, tmp_path / "b", use_p4c=False).folder)
    assert first == second


@pytest.mark.skipif(p4c.find() is None, reason=f"{p4c.COMPILER} is not on PATH")
def test_two_builds_with_p4c_are_byte_identical(tmp_path: Path) -> None:
    first = contents(build(SMALL, tmp_path / "a").folder)
    assert f"{SMALL.program}.json" in first
    assert contents(build(SMALL, tmp_path / "b").folder) == first


def test_what_p4c_is_told_does_not_depend_on_where_it_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """p4c writes the name of its input into its output, and so does this one."""
    plain = build(SMALL, tmp_path / "plain", use_p4c=False).folder
    info = plain / f"{SMALL.program}.p4info.txtpb"
    action = f'test -e "$5" && cp {info} "$2" && printf \'{{"program": "%s"}}\' "$5" >"$4"'
    stand_in(action, tmp_path, monkeypatch)
    first = contents(build(SMALL, tmp_path / "a").folder)
    assert json.loads(first[f"{SMALL.program}.json"]) == {"program": f"{SMALL.program}.p4"}
    monkeypatch.chdir(tmp_path)
    assert contents(build(SMALL, Path("b")).folder) == first


def test_a_failed_build_leaves_the_previous_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(build(SMALL, tmp_path, use_p4c=False).folder)
    complaint = [Diagnostic(Pos("x.p4", 1, 1), "no")]
    refusing = replace(toolchain.FACET, lint=lambda program, pipelines: complaint)
    monkeypatch.setattr(toolchain, "FACET", refusing)
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


def test_the_rule_of_banks_is_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EpicSpec(lanes=8, pipelines=2)
    right = render

    def wrong(composition: Composition, *, line_directives: bool) -> Rendered:
        rendered = right(composition, line_directives=line_directives)
        return replace(rendered, text=rendered.text.replace("meta.lookup.pipeline ++ (base +", "1w1 ++ (base +"))

    monkeypatch.setattr(builder, "render", wrong)
    with pytest.raises(FailedError, match="slots' is read at an index that is not provably"):
        build(spec, tmp_path, use_p4c=False)


Fields = dict[str, object]
NUMBERS: tuple[Fields, ...] = (
    {"op": "sum"},
    {"op": "sum", "dtype": "uint32"},
    {"op": "sum", "overflow": "wrap"},
    {"op": "min"},
    {"op": "max", "dtype": "uint32"},
    {"op": "dynamic"},
    {"op": "dynamic", "overflow": "wrap"},
)
KINDS: tuple[Fields, ...] = (
    *(Fields(mode="II", reliability=r) for r in ("sr", "gbn")),
    *(Fields(mode="III", reliability=r, congestion=c) for r in ("gbn", "sr", "sack") for c in ("cnp", "none")),
)
MODE_I: tuple[Fields, ...] = (
    *(Fields(fold="ordered") | numbers for numbers in NUMBERS if numbers["op"] != "dynamic"),
    *(Fields(fold="arrival") | numbers for numbers in ({"overflow": "wrap"}, {"op": "min"}, {"op": "max"})),
    {"congestion": "none"},
    {"reliability": "gbn", "dtype": "float32"},
    {"dtype": "float32", "op": "min"},
    *(Fields(dtype=dtype, op=op) for dtype in ("float16", "bfloat16") for op in ("sum", "min")),
)
VARIANTS: tuple[Fields, ...] = (
    {"mode": "II", "variant": Variant.STALE_ARRIVED},
    *(Fields(mode="III", variant=variant) for variant in Variant),
)
WRITES: tuple[Fields, ...] = (
    *(Fields(mode=mode, verb="write", message=message) for mode in Mode for message in (1, 4)),
    {"mode": "III", "verb": "write", "reliability": "sack", "pipelines": 2},
    {"mode": "II", "verb": "write", "ip": "both", "icrc": "set"},
)
SIZES: tuple[Fields, ...] = (
    {"lanes": 64},
    {"lanes": 64, "mode": "III"},
    {"lanes": 64, "mode": "III", "pipelines": 4, "reliability": "sack", "op": "dynamic"},
    {"lanes": 256},
    {"lanes": 256, "mode": "III", "op": "dynamic"},
    {"lanes": 256, "mode": "I", "fan_in": 8, "pipelines": 2},
    {"lanes": 16, "fold": "ordered", "dtype": "float16", "pipelines": 2},
    {"lanes": 16, "icrc": "ignore"},
    {"lanes": 16, "icrc": "ignore", "mode": "III", "pipelines": 2},
    *(
        {"lanes": 16, "mode": mode, "pipelines": pipelines} | size
        for mode in Mode
        for pipelines in (1, 2)
        for size in (
            {"window": 1, "message": 1, "groups": 1, "fan_in": 1, "ports": 2},
            {"window": 64, "message": 16, "groups": 8},
            {"slots": 65536, "groups": 4, "fan_in": 2},
            {"window": 3, "message": 5, "fan_in": 5, "groups": 3, "ports": 510},
        )
    ),
)
SMALL_SIZE: dict[str, object] = {"lanes": 8, "fan_in": 4}


def specs(*fields: dict[str, object]) -> list[EpicSpec]:
    return [EpicSpec.model_validate(SMALL_SIZE | given) for given in fields]


EVERY = [
    *specs(*({"pipelines": p} | kind | numbers for p in (1, 2, 4) for kind in KINDS for numbers in NUMBERS)),
    *specs(*({"pipelines": p} | variant | numbers for p in (1, 2) for variant in VARIANTS for numbers in NUMBERS[::5])),
    *specs(*({"mode": "I", "pipelines": p} | numbers for p in (1, 2, 4) for numbers in MODE_I)),
    *specs(*({"mode": "III", "reliability": r} | v for r in ("sr", "sack") for v in VARIANTS[1:])),
    *specs(*({"ip": ip, "pipelines": p} | kind for ip in ("6", "both") for p in (1, 2) for kind in KINDS)),
    *specs(*WRITES),
    *specs(*SIZES),
]
# Each value with each other one that is likely to have to do with it: p4c takes seconds for a program.
CHOSEN = [
    *specs(*({"pipelines": p} | kind for p in (1, 2, 4) for kind in KINDS)),
    *specs(*({"mode": mode} | numbers for mode in ("II", "III") for numbers in NUMBERS[1:])),
    *specs(*({"mode": "I"} | numbers for numbers in MODE_I), {"mode": "I", "pipelines": 2}),
    *specs(*({"ip": ip, **kind} for ip in ("6", "both") for kind in KINDS)),
    *specs(*({"op": "dynamic", "pipelines": 2} | kind for kind in KINDS[::2])),
    *specs(*VARIANTS),
    *specs(*WRITES),
    *specs(*SIZES),
]


def spec_id(spec: EpicSpec) -> str:
    return f"{spec.program}-{spec.slots_per_group}x{spec.groups}-fanin{spec.fan_in}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Without --full, a spec of every kind."""
    if "any_spec" in metafunc.fixturenames:
        metafunc.parametrize("any_spec", EVERY if metafunc.config.getoption("--full") else CHOSEN, ids=spec_id)


@pytest.mark.sample(40)
def test_every_spec_compiles_and_keeps_the_rules(any_spec: EpicSpec) -> None:
    """What ``build`` does, without files: no warning, nothing that the lint finds, the same text twice."""
    spec = any_spec
    text = render(compose(spec)).text
    assert render(compose(spec)).text == text
    compiled = compile_text(text, "program.p4")
    assert compiled.warnings == ()
    assert lint(compiled.program, spec.pipelines) == []
    assert pipelines(compiled.program) == spec.pipelines
    assert not compiled.beyond_targets
    constants = re.findall(r"^const .* (\w+) += ", text, re.MULTILINE)
    assert {name for name in constants if len(re.findall(rf"\b{name}\b", text)) == 1} == set(), "p4c warns of these"


@pytest.mark.skipif(p4c.find() is None, reason=f"{p4c.COMPILER} is not on PATH")
@pytest.mark.parametrize("spec", CHOSEN, ids=spec_id)
def test_p4c_accepts_every_spec_without_a_warning_and_agrees_on_p4info(spec: EpicSpec, tmp_path: Path) -> None:
    assert build(spec, tmp_path).p4c is not None
    assert (tmp_path / spec.program / f"{spec.program}.json").exists()
    ours = (tmp_path / spec.program / f"{spec.program}.p4info.txtpb").read_text()
    assert ours == (tmp_path / spec.program / f"{spec.program}.p4c.p4info.txtpb").read_text()


@pytest.mark.parametrize(
    ("action", "cause"),
    [
        ('echo \'warning: unused\' >&2; touch "$2" "$4"', "but printed"),
        ("echo 'error: no' >&2; exit 1", "refused"),
        ('echo > "$4"; echo \'pkg_info { arch: "psa" }\' > "$2"', "P4Info differs"),
    ],
)
def test_what_p4c_says_fails_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, cause: str
) -> None:
    stand_in(action, tmp_path, monkeypatch)
    with pytest.raises(FailedError, match=cause):
        build(SMALL, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
