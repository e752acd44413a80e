"""Counterexamples: what is written, played again, and as a scenario on a switch."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.p4 import p4c

WRONG = (
    "star-2", "--mode", "III", "--variant", "psn-recycling", "--flow", "acks", "--window", "1", "--packets", "4",
    "--loss", "0",
)  # fmt: skip


def p4gen(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["verify", *arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The counterexample of a wrong design."""
    folder = tmp_path_factory.mktemp("counterexample")
    result = p4gen(*WRONG, "--out", str(folder))
    assert result.exit_code == 1, result.output
    # Both ranks do the same, so either run is a shortest one.
    error = r"violated: results: rank [01], call 1 \(allreduce\): remote invalid request error; 7 events"
    assert re.search(error, result.output), result.output
    return folder


@pytest.mark.long
def test_a_counterexample_has_words_a_capture_a_drawing_a_schedule_and_a_scenario(folder: Path) -> None:
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "trace.txt",
        "trace.pcapng",
        "ladder.svg",
        "schedule.yaml",
        "test_counterexample.py",
    }
    trace = (folder / "trace.txt").read_text(encoding="utf-8")
    assert re.search(r"(h[01])>s0: CONTROL 5 arrives; sends s0>\1 NAK 1 5; drops CheckDuplicate.stale", trace)


def test_a_schedule_violates_the_same_again(folder: Path) -> None:
    result = p4gen("replay", str(folder / "schedule.yaml"))
    assert result.exit_code == 0, result.output
    assert "violated: results" in result.output


@pytest.mark.parametrize("target", ["embedded", "bmv2"])
@pytest.mark.long
def test_the_scenario_tells_the_wrong_program_from_the_sound_one(
    folder: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if target == "bmv2" and not (shutil.which("simple_switch_grpc") and p4c.find()):
        pytest.skip("simple_switch_grpc and p4c are not on PATH")
    monkeypatch.chdir(folder.parent)
    result = p4gen("replay", f"{folder.name}/schedule.yaml", "--target", target)
    assert result.exit_code == 0, result.output
    assert "the scenario fails with this program, passes with the sound one" in result.output


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (("deliver h0>s0 0", "deliver h9>s0 0"), "that cannot happen here"),
        (("p4gen schedule 1", "something else"), "the format is 'something else'"),
        (("packets: 4", "pockets: 4"), "is not a schedule of `p4gen verify`"),
    ],
)
@pytest.mark.long
def test_a_wrong_schedule_is_refused(folder: Path, tmp_path: Path, change: tuple[str, str], cause: str) -> None:
    path = tmp_path / "schedule.yaml"
    path.write_text((folder / "schedule.yaml").read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(cause)):
        CliRunner().invoke(cli, ["verify", "replay", str(path)], catch_exceptions=False)


def test_json_has_the_counts(tmp_path: Path) -> None:
    result = p4gen("star-2", "--mode", "III", "--packets", "2", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["complete"]
    assert found["problem"] is None
    assert found["distinct"] > 100


def test_a_search_without_enough_time_is_incomplete() -> None:
    result = p4gen("star-2", "--mode", "III", "--time", "0.001")
    assert result.exit_code == 3, result.output
    assert "incomplete" in result.output


@pytest.mark.long
def test_a_simulation_plays_a_schedule(folder: Path, tmp_path: Path) -> None:
    schedule, capture, ladder = folder / "schedule.yaml", tmp_path / "run.pcapng", tmp_path / "run.svg"
    sim = ["sim", "run", "--schedule", str(schedule)]
    result = CliRunner().invoke(cli, [*sim, "--capture", str(capture), "--ladder", str(ladder)])
    assert result.exit_code == 1, result.output
    *_, events = (folder / "trace.txt").read_text(encoding="utf-8").split("\n\n")
    assert events in result.output
    assert "violated  results" in result.output
    assert capture.read_bytes() == (folder / "trace.pcapng").read_bytes()
    assert ladder.read_bytes() == (folder / "ladder.svg").read_bytes()
    report = json.loads(CliRunner().invoke(cli, [*sim, "--json"]).stdout)
    assert report == {"passed": False, "events": 7, "violated": ["results"], "ended": False}


@pytest.mark.parametrize(("given", "named"), [(["star-2"], "TOPOLOGY"), (["--loss", "1%"], "--loss")])
@pytest.mark.long
def test_a_schedule_says_what_runs(folder: Path, given: list[str], named: str) -> None:
    result = CliRunner().invoke(cli, ["sim", "run", *given, "--schedule", str(folder / "schedule.yaml")])
    assert result.exit_code == 2
    assert f"{named} does not go with --schedule" in result.output
