"""Specs from flags and YAML: every wrong value is refused where it stands."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.spec import DType, Icrc, Op, Overflow, ProgramSpec, load_spec


def refusals(path: Path | None = None, /, **flags: object) -> list[Diagnostic]:
    with pytest.raises(InputError) as caught:
        load_spec(path, flags)
    return list(caught.value.diagnostics)


def test_every_field_has_a_default() -> None:
    spec = load_spec()
    assert spec == ProgramSpec()
    assert spec.payload_bytes == 256
    assert spec.slots_per_group == 128  # the power of two >= 2 x 16 x 4


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text("lanes: 32\nop: max\n")
    spec = load_spec(file, {"lanes": 16, "op": None})
    assert (spec.lanes, spec.op) == (16, Op.MAX)


def test_an_empty_file_is_the_default_spec(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text("# nothing\n")
    assert load_spec(file) == ProgramSpec()


def test_three_mistakes_make_three_positioned_errors(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text("mode: II\nlanes: 48\nfan_in: 33\nlane: 64\n")
    found = refusals(file)
    assert [d.where for d in found] == [Pos(str(file), 2, 8), Pos(str(file), 3, 9), Pos(str(file), 4, 1)]
    assert "8, 16, 32, 64, 128 or 256" in found[0].message
    assert "at most 32" in found[1].message
    assert "did you mean 'lanes'?" in found[2].message
    assert "lanes: 48\n           ^" in str(found[0])


def test_a_wrong_flag_is_named() -> None:
    (found,) = refusals(lanes=65)
    assert found.where == "--lanes"
    assert "must be 8, 16, 32, 64, 128 or 256" in found.message


@pytest.mark.parametrize(
    ("flags", "where", "cause"),
    [
        ({"op": "max", "overflow": "wrap"}, "--overflow", "op sum only"),
        ({"window": 64, "slots": 256}, "--slots", "at least 2 x window x message = 512"),
        ({"window": 1024, "message": 1024}, "--window", "at most 65536"),
        ({"groups": 256, "slots": 65536}, "--groups", "1048576 at most"),
        ({"slots": 100}, "--slots", "power of two"),
        ({"lanes": True}, "--lanes", "must be an integer"),
        ({"pipelines": 1.0}, "--pipelines", "must be an integer"),
        ({"pipelines": 2}, "--pipelines", "this version generates for one"),
        ({"mode": "III"}, "--mode", "this version generates II"),
        ({"ports": "many"}, "--ports", "must be an integer"),
        ({"name": "No Good"}, "--name", "lower-case"),
        ({"fan_in": 0}, "--fan-in", "at least 1"),
    ],
)
def test_refusals_say_what_and_why(flags: dict[str, object], where: str, cause: str) -> None:
    (found,) = refusals(**flags)
    assert found.where == where
    assert cause in found.message


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        ("- a\n- b\n", 1, "mapping"),
        ("lanes: [\n", 2, "not valid YAML"),
        ("lanes: 8\nlanes: 16\n", 2, "given twice"),
        ("lanes: 8\n? [a]\n: 1\n", 2, "unknown field"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, line: int, cause: str) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(text)
    found = refusals(file)[0]
    assert isinstance(found.where, Pos)
    assert found.where.line == line
    assert cause in found.message


def test_a_missing_file_and_one_that_is_not_text(tmp_path: Path) -> None:
    assert "cannot read" in refusals(tmp_path / "none.yaml")[0].message
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refusals(tmp_path / "x.yaml")[0].message


@given(st.text(max_size=200))
def test_no_text_ends_in_anything_but_a_spec_or_a_refusal(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("spec") / "spec.yaml"
    file.write_text(text, encoding="utf-8", errors="ignore")
    with contextlib.suppress(InputError):
        assert isinstance(load_spec(file), ProgramSpec)


@given(window=st.integers(1, 1024), message=st.integers(1, 32))
def test_default_slots_are_the_smallest_power_of_two_that_holds_two_windows(window: int, message: int) -> None:
    slots = ProgramSpec(window=window, message=message, groups=1).slots_per_group
    assert slots & (slots - 1) == 0
    assert slots // 2 < 2 * window * message <= slots


def test_names_tell_programs_apart() -> None:
    specs = [
        ProgramSpec(),
        ProgramSpec(lanes=8),
        ProgramSpec(dtype=DType.UINT32),
        ProgramSpec(op=Op.MAX),
        ProgramSpec(overflow=Overflow.WRAP),
        ProgramSpec(icrc=Icrc.IGNORE),
    ]
    assert len({spec.program for spec in specs}) == len(specs)
