"""The reuse report: what is the same in two programs, and what p4gen diff says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from p4gen.cli.diff import command
from p4gen.papers.epic.program import REUSE
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.program import compose, render
from p4gen.program.reuse import Comparison, Count, Fate, Part, compare
from p4gen.vocabulary import Op

TWO, THREE = EpicSpec(), EpicSpec(mode=Mode.III)


def by_fate(before: EpicSpec, after: EpicSpec) -> dict[Fate, set[str]]:
    found: dict[Fate, set[str]] = {fate: set() for fate in Fate}
    for compared in compare(before, after).parts:
        found[compared.fate].add(compared.part.name)
    return found


def test_a_program_reuses_all_of_itself() -> None:
    reuse = compare(THREE, THREE)
    assert {c.fate for c in reuse.parts} == {Fate.REUSED}
    for count in (reuse.modules, reuse.reused_lines, reuse.kept_lines, reuse.template_lines):
        assert count.share == count.share_after == 1


def test_parts_make_up_the_whole_program() -> None:
    """But for directives and the empty lines between parts."""
    reuse = compare(TWO, THREE)
    for spec, parts in ((TWO, [c.before for c in reuse.parts]), (THREE, [c.after for c in reuse.parts])):
        lines = [line for line in render(compose(spec)).text.splitlines() if line and not line.startswith("#line")]
        there = [line for part in parts if part for line in part.lines if line]
        assert sorted(there) == sorted(lines)
        assert {p.name for p in parts if p and p.module} == {module.name for module in compose(spec).modules}


def test_from_mode_ii_to_mode_iii() -> None:
    fates = by_fate(TWO, THREE)
    assert {"ValidatePacket", "CheckIcrc", "SetIcrc", "AggregateData", "Forward"} <= fates[Fate.REUSED]
    assert {"LookupTable", "CheckDuplicate", "ReplicateData", "IncIngress, IncEgress"} <= fates[Fate.CHANGED]
    assert {"CheckRange", "CheckOrder", "ReceiveAck", "SendAck", "Retransmission"} <= fates[Fate.ADDED]
    assert fates[Fate.REMOVED] == {"ReflectAck", "CombineAcks"}
    # And back again: the other way round.
    back = by_fate(THREE, TWO)
    assert (back[Fate.ADDED], back[Fate.REMOVED]) == (fates[Fate.REMOVED], fates[Fate.ADDED])


def test_about_as_much_is_reused_as_in_the_paper() -> None:
    reuse = compare(TWO, THREE)
    assert abs(reuse.template_lines.share_after - REUSE[1]) < 0.15
    assert reuse.reused_lines.share < reuse.kept_lines.share < 1


def test_another_reduction_changes_little() -> None:
    fates = by_fate(TWO, EpicSpec(op=Op.MAX))
    assert fates[Fate.ADDED] == fates[Fate.REMOVED] == set()
    assert "AggregateData" in fates[Fate.CHANGED]
    assert "LookupTable" in fates[Fate.REUSED]


def test_counts_and_diffs_of_a_changed_part() -> None:
    before = Part("X", True, "epic/forward.p4.j2", 4, ("one", "two", "three"))
    after = Part("X", True, "epic/forward.p4.j2", 4, ("one", "2", "three", "four"))
    compared = Comparison(before, after)
    assert (compared.fate, compared.kept) == (Fate.CHANGED, 2)
    changed = [line for line in compared.diff() if line[:2] not in ("--", "++", "@@")]
    assert changed == [" one", "-two", "+2", " three", "+four"]
    assert Comparison(None, after).fate is Fate.ADDED
    assert Comparison(before, None).kept == 0
    assert Count(1, 4, 0).share == 0.25
    assert Count(0, 0, 0).share_after == 0


def diff(*args: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(command, list(map(str, args)))
    return done.exit_code, done.output


def test_the_report_has_a_row_for_every_part_and_quotes_the_paper() -> None:
    status, output = diff("--mode", "II", "--mode", "III", "--lanes", "8")
    assert status == 0
    assert "from modeii_sum_int32_x8 (--mode II --lanes 8)" in output
    assert "with 61% reuse" in output
    rows = [line.split() for line in output.splitlines()]
    assert ["ReflectAck", "removed", "epic/reflect_ack.p4.j2"] in [row[:3] for row in rows]
    reuse = compare(EpicSpec(lanes=8), EpicSpec(mode=Mode.III, lanes=8))
    assert f"modules with the same text: {reuse.modules.same} of {reuse.modules.of_before} before" in output
    reused = [row for row in rows if row[1:2] == ["reused"] and row[2].startswith(("epic/", "shared/"))]
    reused = [row for row in reused if row[0] not in ("constants", "headers", "PacketParser", "InvariantCrc")]
    assert len(reused) == reuse.modules.same


def test_json_has_everything_and_the_diff_where_wanted() -> None:
    status, output = diff("--mode", "II", "--mode", "III", "--json", "--diff")
    content = json.loads(output)
    assert status == 0
    assert (content["before"]["mode"], content["after"]["mode"]) == ("II", "III")
    parts = {part["name"]: part for part in content["parts"]}
    assert parts["CheckOrder"]["lines_before"] is None
    assert "diff" not in parts["ValidatePacket"]
    assert parts["LookupTable"]["diff"].startswith("--- a/epic/lookup_table.p4.j2")
    assert content["paper"]["share"] == REUSE[1]
    assert content["modules"]["same"] == sum(p["fate"] == "reused" and p["module"] for p in content["parts"])


def test_a_diff_is_shown_of_changed_parts_only() -> None:
    status, output = diff("--op", "sum", "--op", "max", "--lanes", "8", "--diff")
    assert status == 0
    assert "--- a/epic/aggregate_data.p4.j2" in output
    assert "a/epic/lookup_table.p4.j2" not in output


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_architectures_share_templates_of_modules(arch: str) -> None:
    fields = {"lanes": 16, "icrc": "ignore"}
    reuse = compare(EpicSpec.model_validate(fields), EpicSpec.model_validate(fields | {"arch": arch}))
    shared, _ = reuse.same_templates
    assert {*shared} >= {"LookupTable", "AnswerArp", "ReplicateData", "ReflectAck", "TranslateHeader"}


def test_two_files_are_two_programs(tmp_path: Path) -> None:
    for name, text in (("a.yaml", "mode: II\nlanes: 8\n"), ("b.yaml", "mode: III\nlanes: 8\nreliability: sack\n")):
        (tmp_path / name).write_text(text)
    status, output = diff(tmp_path / "a.yaml", tmp_path / "b.yaml")
    assert status == 0
    assert "to   modeiii_sum_int32_x8_sack" in output
    status, output = diff(tmp_path / "a.yaml", "--pipelines", "1", "--pipelines", "4")
    assert status == 0
    assert "to   modeii_sum_int32_x8_p4" in output


@pytest.mark.parametrize(
    ("args", "cause"),
    [
        ((), "give a flag twice"),
        (("--mode", "III"), "give a flag twice"),
        (("--mode", "II", "--mode", "III", "--mode", "II"), "two programs are compared, not 3"),
        (("a", "b", "c"), "two programs are compared, not 3"),
    ],
)
def test_wrong_usage_says_what_to_type(args: tuple[str, ...], cause: str) -> None:
    status, output = diff(*args)
    assert status == 2
    assert cause in output
