"""``p4gen new``: what it writes works with every command, and what it refuses leaves nothing behind."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.errors import InputError
from p4gen.families import family_of
from p4gen.families.registry import FOLDERS
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.program import compose
from p4gen.program.compose import ProgramParts
from p4gen.resources import resource


def p4gen(*args: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4gen", *map(str, args)]
    environment = {name: value for name, value in os.environ.items() if name != FOLDERS} | dict(env or {})
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False, env=environment
    )


def done(*args: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    ran = p4gen(*args, cwd=cwd, env=env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the new family ``rank_counts``."""
    folder = tmp_path_factory.mktemp("new")
    done("new", "rank_counts", cwd=folder)
    return folder


def test_all_files_are_written_under_the_familys_name(place: Path) -> None:
    files = {str(file.relative_to(place)) for file in place.rglob("*") if file.is_file() and file.suffix != ".pyc"}
    assert files >= {
        "rank_counts/__init__.py",
        "rank_counts/spec.py",
        "rank_counts/program.py",
        "rank_counts/conformance.py",
        "rank_counts/templates/count_contributions.p4.j2",
        "rank_counts/suite/test_rank_counts.py",
        "rank_counts/pyproject.toml",
    }
    texts = [(place / file).read_text() for file in sorted(files) if not file.startswith("build")]
    assert not any("new_family" in text or "NewFamily" in text for text in texts)
    assert "class RankCountsSpec(EpicSpec)" in (place / "rank_counts" / "spec.py").read_text()


@pytest.mark.long
def test_it_is_built(place: Path) -> None:
    built = json.loads(done("build", "--family", "rank_counts", "--lanes", "8", "--json", cwd=place))
    assert built["spec"]["family"] == "rank_counts"
    assert [m["name"] for m in built["modules"]].count("CountContributions") == 1
    assert "count_contributions.apply(hdr.payload, meta);" in next((place / built["folder"]).glob("*.p4")).read_text()
    help_text = done("build", "--family", "rank_counts", "--help", cwd=place)
    assert "--repeats ignore|count" in help_text


@pytest.mark.sample(1)
@pytest.mark.parametrize("repeats", ["ignore", "count"])
@pytest.mark.long
def test_its_scenarios_and_epics_pass(place: Path, repeats: str) -> None:
    small = ["--lanes", "8", "--ports", "8", "--fan-in", "4", "--repeats", repeats]
    tests = ["--test", "test_rank_counts", "--test", "test_aggregation.SumOfTwoRanks"]
    report = json.loads(done("ptf", "run", "--family", "rank_counts", *small, *tests, "--json", cwd=place))
    outcomes = {test["name"]: test["outcome"] for run in report["runs"] for test in run["tests"]}
    assert outcomes == {
        "test_rank_counts.ContributionsAreCounted": "passed",
        "test_rank_counts.RepetitionsAreNot": "passed",
        "test_aggregation.SumOfTwoRanks": "passed",
    }
    if repeats == "count":
        again = p4gen("rerun", report["folder"], cwd=place)
        assert again.returncode == 0, again.stderr


@pytest.mark.long
def test_its_scenarios_are_listed_before_epics(place: Path) -> None:
    listed = json.loads(done("ptf", "list", "--family", "rank_counts", "--json", cwd=place))["scenarios"]
    names = [scenario["name"] for scenario in listed if not scenario["of_another_mode"]]
    assert names[0].startswith("test_rank_counts.")
    assert "test_reliability.StalePsnIsIgnored" in names
    assert not any(name.startswith("test_iii_") for name in names)


@pytest.mark.long
def test_its_fault_is_caught_and_one_that_nothing_notices_is_not(place: Path, tmp_path: Path) -> None:
    report = json.loads(done("ptf", "mutate", "--family", "rank_counts", "--json", cwd=place))
    found = [(fault["name"], fault["finding"], fault["caught_by"]) for fault in report["mutations"]]
    assert found == [("repeats-counted", "caught", "test_rank_counts.RepetitionsAreNot")]

    done("new", "blind", cwd=tmp_path)
    suite = tmp_path / "blind" / "suite" / "test_blind.py"
    suite.write_text(suite.read_text().partition("class RepetitionsAreNot")[0])
    missed = p4gen("ptf", "mutate", "--family", "blind", "--json", cwd=tmp_path)
    assert missed.returncode == 1, missed.stderr
    assert json.loads(missed.stdout)["mutations"][0]["finding"] == "survived"


@pytest.mark.long
def test_collectives_over_its_switches_are_right(place: Path) -> None:
    run = ["sim", "run", "tree-3-2", "--family", "rank_counts", "--size", "8K", "--loss", "1%", "--seed", "1"]
    assert "every rank's result equals NumPy's" in done(*run, cwd=place)


@pytest.mark.long
def test_it_is_compared_with_epic_and_with_itself(place: Path) -> None:
    def parts(*flags: str) -> dict[str, str]:
        report = json.loads(done("diff", *flags, "--json", cwd=place))
        return {part["name"]: part["fate"] for part in report["parts"]}

    added = parts("--family", "epic", "--family", "rank_counts")
    assert [name for name, fate in added.items() if fate == "added"] == ["CountContributions"]
    assert added["AggregateData"] == "reused"
    changed = parts("--family", "rank_counts", "--repeats", "ignore", "--repeats", "count")
    assert [name for name, fate in changed.items() if fate == "changed"] == [
        "constants and types",
        "CountContributions",
    ]


def test_an_installed_package_is_found_by_its_entry_point(place: Path, tmp_path: Path) -> None:
    """As ``pip install`` leaves it: a package, and metadata with the entry point that pyproject.toml states."""
    (tmp_path / "p4gen_rank_counts").symlink_to(place / "rank_counts")
    stated = (place / "rank_counts" / "pyproject.toml").read_text()
    (line,) = (line for line in stated.splitlines() if line.startswith("rank_counts ="))
    name, _, target = line.replace('"', "").partition(" = ")
    metadata = tmp_path / "p4gen_rank_counts-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: p4gen-rank_counts\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(f"[p4gen.families]\n{name} = {target}\n")
    env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"}
    built = done("build", "--family", "rank_counts", "--lanes", "8", cwd=tmp_path, env=env)
    assert "build/rank_counts_modeii_sum_int32_x8/manifest.json" in built.splitlines()
    assert "ptf run --family rank_counts --lanes 8 " in built


WRONG = {
    "no identifier": ("my-family", "'my-family' is not a name for a family: .*"),
    "capitals": ("Mine", "'Mine' is not a name for a family: .*"),
    "path": ("a/b", "'a/b' is not a name for a family: .*"),
    "keyword": ("class", "'class' is not a name for a family: .*"),
    "taken": ("epic", "there is a family called epic already: p4gen.papers.epic"),
    "templates": ("shared", "shared is a folder of templates that all families use"),
    "not empty": ("full", "exists, and is not an empty folder"),
    "a file": ("file", "exists, and is not an empty folder"),
}


@pytest.mark.parametrize(("name", "cause"), WRONG.values(), ids=WRONG)
@pytest.mark.sample(2)
def test_bad_input_is_refused_in_a_line_and_nothing_is_written(tmp_path: Path, name: str, cause: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    ran = p4gen("new", name, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert ": error: " in line
    assert cause.removesuffix(".*") in line
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = p4gen("new", "mine", "--in", "file/below", cwd=tmp_path)
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1
    assert "file/below/mine: error: cannot be written" in ran.stderr


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "there" / "mine").mkdir(parents=True)
    written = json.loads(done("new", "mine", "--in", "there", "--json", cwd=tmp_path))
    assert (written["family"], written["folder"]) == ("mine", "there/mine")
    assert all((tmp_path / file).is_file() for file in written["files"])


def test_shells_complete_the_command(tmp_path: Path) -> None:
    env = {"_P4GEN_COMPLETE": "bash_complete", "COMP_WORDS": "p4gen ne", "COMP_CWORD": "1"}
    assert "plain,new" in done(cwd=tmp_path, env=env).splitlines()


def test_the_wheel_has_what_is_copied() -> None:
    """``templates`` goes into the wheel whole; what ``new`` copies is in it, and is itself a family."""
    folder = resource("templates") / "new"
    names = {str(file.relative_to(folder)) for file in folder.rglob("*.py")}
    assert {"__init__.py", "spec.py", "program.py", "conformance.py", "suite/test_new_family.py"} <= names
    for name in names:
        ast.parse((folder / name).read_text())


def test_a_module_after_one_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EpicSpec(mode=Mode.II)
    parts = family_of(spec).facet(ProgramParts).with_module("CountContributions", "meta", after="SendAck")
    monkeypatch.setattr("p4gen.papers.epic.program.FACET", parts)
    with pytest.raises(InputError, match="there is no SendAck, which CountContributions is to come after"):
        compose(spec)


def test_a_module_without_a_template_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EpicSpec(mode=Mode.II)
    parts = family_of(spec).facet(ProgramParts).with_module("CountContributions", "meta", after="Forward")
    monkeypatch.setattr("p4gen.papers.epic.program.FACET", parts)
    with pytest.raises(
        InputError, match=r"modeii_sum_int32_x64: there is no template count_contributions\.p4\.j2 in epic or shared"
    ):
        compose(spec)
