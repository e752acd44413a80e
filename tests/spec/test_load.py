"""Specs from flags and YAML: every wrong value is refused where it stands."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.families import load_collective, load_spec
from p4gen.papers.epic.spec import Congestion, EpicSpec, Mode, Variant
from p4gen.vocabulary import DType, Icrc, Op, Overflow, Reliability


def refusals(path: Path | None = None, /, **flags: object) -> list[Diagnostic]:
    with pytest.raises(InputError) as caught:
        load_spec(path, flags)
    return list(caught.value.diagnostics)


def test_every_field_has_a_default() -> None:
    spec = load_collective()
    assert spec == EpicSpec()
    assert spec.payload_bytes == 256
    assert spec.slots_per_group == 128  # the power of two >= 2 x 16 x 4


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text("lanes: 32\nop: max\n")
    spec = load_collective(file, {"lanes": 16, "op": None})
    assert (spec.lanes, spec.op) == (16, Op.MAX)


def test_an_empty_file_is_the_default_spec(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text("# nothing\n")
    assert load_spec(file) == EpicSpec()


def test_three_mistakes_make_three_positioned_errors(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text("mode: II\nlanes: 48\nfan_in: 33\nlane: 64\n")
    found = refusals(file)
    assert [d.where for d in found] == [Pos(str(file), 2, 8), Pos(str(file), 3, 9), Pos(str(file), 4, 1)]
    assert "8, 16, 32, 64, 128, 256, 512 or 1024" in found[0].message
    assert "at most 32" in found[1].message
    assert "did you mean 'lanes'?" in found[2].message
    assert "lanes: 48\n           ^" in str(found[0])


def test_a_wrong_flag_is_named() -> None:
    (found,) = refusals(lanes=65)
    assert found.where == "lanes"
    assert "must be 8, 16, 32, 64, 128, 256, 512 or 1024" in found.message


@pytest.mark.parametrize(
    ("flags", "where", "cause"),
    [
        ({"op": "max", "overflow": "wrap"}, "overflow", "op sum or dynamic; max cannot overflow"),
        ({"op": "dynamic", "dtype": "uint32"}, "dtype", "the control message chooses it"),
        ({"op": "dynamic", "dtype": "float16"}, "dtype", "of integers and float32"),
        ({"mode": "I", "reliability": "sack"}, "reliability", "sack is for modes II and III"),
        ({"congestion": "cnp"}, "congestion", "is for modes I and III"),
        ({"variant": "no-nak"}, "variant", "no-nak is a wrong design of mode III"),
        ({"fold": "ordered", "op": "dynamic"}, "op", "in mode II with fold ordered"),
        ({"fold": "ordered", "variant": "stale-arrived"}, "variant", "of mode II with fold arrival"),
        ({"fold": "ordered", "arch": "tna", "lanes": 8}, "fold", "tna has no room for it"),
        ({"mode": "I", "fold": "arrival"}, "fold", "sums that wrap, min, max, of integers"),
        ({"mode": "I", "fold": "arrival", "op": "max", "dtype": "float32"}, "fold", "of integers"),
        ({"mode": "I", "reliability": "sr"}, "reliability", "mode I takes packets in order"),
        ({"mode": "I", "op": "dynamic"}, "op", "in mode I the program has its op"),
        ({"mode": "I", "variant": "no-nak"}, "variant", "no-nak is a wrong design of mode III"),
        ({"mode": "I", "lanes": 1024, "fan_in": 4}, "fan_in", "at most 2048: 2 edges"),
        (
            {"mode": "I", "arch": "tna", "lanes": 16},
            "mode",
            "128 stored lanes are read in a pass, by as many stateful ALUs: 48 there",
        ),
        (
            {"mode": "I", "arch": "t2na", "lanes": 8, "fan_in": 2},
            "mode",
            "3 numbers of a slot in one access (epoch, PSN, bitmap); a stateful ALU of t2na has 2",
        ),
        ({"mode": "III", "fold": "ordered", "op": "dynamic"}, "op", "in mode III with fold ordered"),
        ({"mode": "III", "fold": "ordered", "variant": "no-nak"}, "variant", "of mode III with fold arrival"),
        ({"mode": "III", "fold": "ordered", "lanes": 256, "fan_in": 9}, "fan_in", "2304 registers; fold ordered"),
        ({"mode": "III", "fold": "ordered", "arch": "t2na", "lanes": 8}, "fold", "t2na has no room for it"),
        ({"mode": "III", "variant": "typo"}, "variant", "stale-arrived"),
        ({"ports": 6, "pipelines": 4}, "ports", "6 ports do not divide among 4 pipelines"),
        ({"window": 64, "slots": 256}, "slots", "at least 2 x window x message = 512"),
        ({"window": 1024, "message": 1024}, "window", "at most 65536"),
        ({"groups": 256, "slots": 65536}, "groups", "at most 1048576"),
        (
            {"mode": "III", "groups": 16, "slots": 65536},
            "groups",
            "have 2097152 slots; at most 1048576 are available",
        ),
        ({"slots": 100}, "slots", "power of two"),
        ({"lanes": True}, "lanes", "must be an integer"),
        ({"pipelines": 1.0}, "pipelines", "must be an integer"),
        ({"pipelines": 3}, "pipelines", "must be 1, 2 or 4"),
        ({"mode": "IV"}, "mode", "must be atp, I, II, III, multiwrite, scin, switchml, themis-s, themis-d or themis"),
        ({"mode": "iii"}, "mode", "did you mean 'III'?"),
        ({"mode": "II", "paths": 16}, "paths", "'paths' is a field of themis (--mode themis-s, themis-d or themis)"),
        ({"lanes": 10**20}, "lanes", "is too large a number"),
        ({"ports": "many"}, "ports", "must be an integer"),
        ({"name": "No Good"}, "name", "lower-case"),
        ({"fan_in": 0}, "fan_in", "at least 1"),
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
        ("lanes: 8\n? [a]\n: 1\n", 2, "a name is expected here"),
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
        assert isinstance(load_spec(file), EpicSpec)


@given(window=st.integers(1, 1024), message=st.integers(1, 32))
def test_default_slots_are_the_smallest_power_of_two_that_holds_two_windows(window: int, message: int) -> None:
    slots = EpicSpec(window=window, message=message, groups=1).slots_per_group
    assert slots & (slots - 1) == 0
    assert slots // 2 < 2 * window * message <= slots


def test_what_is_left_open_depends_on_the_mode() -> None:
    two, three = EpicSpec(), EpicSpec(mode=Mode.III)
    assert (two.loss_recovery, three.loss_recovery) == (Reliability.SR, Reliability.GBN)
    assert (two.notifies, three.notifies) == (False, True)
    # Mode III buffers what is broadcast, too.
    assert (two.total_slots, three.total_slots) == (4 * 128, 2 * 4 * 128)
    assert two.resolved()["congestion"] is None
    assert three.resolved()["congestion"] == "cnp"
    assert EpicSpec(op=Op.DYNAMIC).resolved()["overflow"] == "saturate"


@given(
    groups=st.integers(1, 64),
    fan_in=st.integers(1, 32),
    pipelines=st.sampled_from([1, 2, 4]),
    mode=st.sampled_from(Mode),
)
def test_a_bank_holds_what_one_pipeline_needs(groups: int, fan_in: int, pipelines: int, mode: Mode) -> None:
    spec = EpicSpec.model_validate({"groups": groups, "fan_in": fan_in, "pipelines": pipelines, "mode": mode})
    needed = (spec.total_slots, groups, groups * fan_in + 1)
    for words, need in zip((spec.bank_slots, spec.bank_contexts, spec.bank_edges), needed, strict=True):
        assert words >= need
        if pipelines == 1:
            assert words == need
        else:  # an index is the pipeline's number and the low bits
            assert words & (words - 1) == 0
            assert words == 2 or words // 2 < need


def test_names_tell_programs_apart() -> None:
    specs = [
        EpicSpec(),
        EpicSpec(lanes=8),
        EpicSpec(dtype=DType.UINT32),
        EpicSpec(op=Op.MAX),
        EpicSpec(op=Op.DYNAMIC),
        EpicSpec(op=Op.DYNAMIC, overflow=Overflow.WRAP),
        EpicSpec(overflow=Overflow.WRAP),
        EpicSpec(icrc=Icrc.IGNORE),
        EpicSpec(pipelines=2),
        EpicSpec(pipelines=4),
        EpicSpec(reliability=Reliability.GBN),
        EpicSpec(mode=Mode.III),
        EpicSpec(mode=Mode.III, reliability=Reliability.SACK),
        EpicSpec(mode=Mode.III, congestion=Congestion.NONE),
        *(EpicSpec(mode=Mode.III, variant=variant) for variant in Variant),
    ]
    assert len({spec.program for spec in specs}) == len(specs)
    assert all(re.fullmatch("[a-z][a-z0-9_]{0,62}", spec.program) for spec in specs)
