"""The list of the papers' items, and the command that repeats them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from p4gen.cli.app import cli
from p4gen.errors import MissingToolError
from p4gen.experiments.experiment import Check, Experiment, Report
from p4gen.experiments.papers import Extent, Item, Paper, papers
from p4gen.labs.softroce import asked, guest, images
from p4gen.papers.epic.experiments import emulation

PAPERS = papers()
REPEATED = {Extent.WHOLE, Extent.PARTIAL, Extent.BESIDE}


def paper(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["paper", *arguments], standalone_mode=False)


def test_five_papers_are_listed() -> None:
    assert set(PAPERS) == {"epic", "themis", "multiwrite", "scin", "aro"}


@pytest.mark.parametrize("name", PAPERS)
def test_every_item_says_how_far_it_is_repeated(name: str) -> None:
    listed = PAPERS[name]
    names = [item.name for item in listed.item]
    assert len(set(names)) == len(names)
    for item in listed.item:
        repeated = (item.by or item.name) in listed.experiments or item.by.startswith("p4gen ")
        # Of what needs the paper's hardware there may be a model.
        assert repeated or item.extent not in REPEATED, item
        assert not repeated or item.extent in REPEATED | {Extent.HARDWARE}, item
        assert bool(item.why) or item.extent not in (Extent.PARTIAL, Extent.OPEN, Extent.HARDWARE), item
        assert len(item.caption) <= 80
    assert {item.by or item.name for item in listed.item} >= set(listed.experiments)


@pytest.mark.parametrize("name", PAPERS)
def test_every_number_of_a_paper_is_there(name: str) -> None:
    """Tables and figures are numbered from 1; parts of a figure have letters."""
    for kind in ("table", "figure"):
        numbers = [item.name.partition("-")[2] for item in PAPERS[name].item if item.name.startswith(kind)]
        found = sorted({int("".join(filter(str.isdigit, number))) for number in numbers})
        assert found == list(range(1, len(found) + 1))


@pytest.mark.parametrize("name", PAPERS)
def test_scales_are_there(name: str) -> None:
    for each in PAPERS[name].experiments.values():
        assert each.check is None or each.check in each.scales


def test_items_are_listed(tmp_path: Path) -> None:
    every = json.loads(paper("--json").output)
    assert len(every) == sum(len(each.item) for each in PAPERS.values())
    told = paper("themis", "--out", str(tmp_path)).output
    assert "figure-1" in told
    assert "table-31" not in told
    assert "| Figure 1 |" in (tmp_path / "README.md").read_text()


def test_what_does_not_hold_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = Report(
        ("a", "b, %"), (("x|y", 1.5), ("y", None)), (Check("1 is 2", ok=False),), ("none",), {".svg": "<svg/>"}
    )
    item = Item("figure-9", "3", "a figure", Extent.PARTIAL, "half of it")
    wrong = Paper("A: paper", (item,), {"figure-9": Experiment({"only": "nothing"}, lambda _: report, check="only")})
    monkeypatch.setattr("p4gen.cli.do_paper.paper_named", lambda _: wrong)
    result = paper("some", "figure-9", "--seed", "1", "--out", str(tmp_path))
    assert result.return_value == 1
    for text in ("A, Figure 9: a figure", "fails  1 is 2", "1.5"):
        assert text in result.output
    assert (tmp_path / "some" / "figure-9.csv").read_text() == 'a,b %\n"x|y",1.5\n"y",\n'
    page = (tmp_path / "some" / "figure-9.md").read_text()
    for text in (
        "# A, Figure 9: a figure", "Section 3. Partial: half of it. Written by "
        "`p4gen paper some figure-9 --scale only --seed 1`.", "| x&#124;y | 1.5 |", "- **fails**: 1 is 2", "- none",
        "![Figure 9](figure-9.svg)",
    ):  # fmt: skip
        assert text in page
    checked = paper("some", "--check", "--seed", "1", "--out", str(tmp_path))
    assert checked.return_value == 1
    assert "1 repeated, of which fail: figure-9" in checked.output


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["ebic"], "there is no paper 'ebic'; there are aro, epic, multiwrite, scin, themis"),
        (["themis", "figure-9"], "there is no 'figure-9' in the paper on Themis; "),
        (["themis", "figure-9"], "there are figure-1, figure-5, loss, evidence"),
        (["themis", "figure-2"], "figure-2, Overview: Themis-S"),
        (["epic", "table-4"], "hardware: a Tofino testbed with GPUs"),
        (["epic", "table-19", "--scale", "2G"], "table-19 has no scale '2G'; 64K: up to 64 KiB"),
        (["themis", "figure-1", "--scale", "huge"], "figure-1 has no scale 'huge'; small: 8 MiB a node"),
        (["themis", "figure-1", "--cells", "*"], "figure-1 can be judged with all of its cells only"),
        (["epic", "table-6", "--scale", "paper", "--check"], "check: error: repeats all of a paper"),
        (["epic", "--cells", "*"], "cells: error: is for an ITEM"),
        (["themis", "figure-5", "--scale", "quick", "--seed", "1", "--cells", "x"], "there is no such cell; there are"),
    ],
)
def test_wrong_requests_are_refused(arguments: list[str], cause: str) -> None:
    assert cause in str(paper(*arguments).exception)


def test_labs_are_beside_the_papers_testbed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Guests are ten times as slow as p4gen's hosts, which miss the paper's figure in Mode III."""
    commands = []
    by_mpi = {"allreduce": [4096], "barrier": [0]}

    def run(command: list[str], **_: object) -> SimpleNamespace:
        commands.append(command)
        if "--exec" in command:
            collective, largest = command[command.index("--exec") + 1].split()[-2:]
            assert largest == str(64 << 20)
            rows = [{"collective": collective, "size": size, "mean": 90.0} for size in by_mpi.get(collective, ())]
            return SimpleNamespace(returncode=0, stdout="", stderr=f"1 rank runs\n[0] {json.dumps({'rows': rows})}\n")
        paper = {"I": 2.47, "II": 14.74, "III": 15.69}[command[command.index("--mode") + 1]]
        wanted = command[command.index("--collective") + 1] if "--collective" in command else ""
        of = {"mean": 1.5 if "--hosts" in command else 15.0, "paper": paper, "host_us": 40.0, "switch_us": 5.0}
        rows = [{"collective": "barrier", "size": 0} | of, {"collective": "allreduce", "size": 4096} | of]
        rows = [row for row in rows if wanted in ("", row["collective"])]
        return SimpleNamespace(returncode=0, stderr="", stdout=f"seed 1\n{json.dumps({'rows': rows})}\n")

    machine = guest.Machine(images.places("6.12"), tmp_path, guest.TCG)
    monkeypatch.setattr(asked, "machines", lambda _: {"": machine})
    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr(emulation, "has_mpi", lambda: True)
    result = paper("epic", "table-19", "--scale", "64M", "--seed", "1", "--out", str(tmp_path))
    assert result.return_value == 1
    fails = "fails AllReduce by p4gen's hosts: at least the paper's throughput; EPIC-III, 4,096 bytes: 15 for 15.69"
    assert fails in re.sub(r"\s+", " ", result.output)
    sizes = [command[command.index("--size") + 1] for command in commands if "--size" in command]
    assert sizes == [*["64M"] * 5, "4M"] * 3
    assert len(commands) == 3 * 7 + 6
    head, *rows = (tmp_path / "epic" / "table-19.csv").read_text().splitlines()
    assert head.startswith("collective,bytes,solution,labs,Soft-RoCE,paper,labs/paper,Soft-RoCE/paper")
    expected = [f'"{collective}",{size},"{solution}",{ours},{paper},'
        for collective, size, mpi in (("allreduce", 4096, 1.71), ("barrier", 0, 37.81))
        for solution, ours, paper in (
            *((f"EPIC-{mode}", "15,1.5", paper) for mode, paper in (("I", 2.47), ("II", 14.74), ("III", 15.69))),
            ("MPI", "90,", mpi),
        )
    ]  # fmt: skip
    assert [row[: len(start)] for row, start in zip(rows, expected, strict=True)] == expected
    assert "virtual machines with Linux 6.12" in (tmp_path / "epic" / "table-19.md").read_text()


def test_what_a_machine_has_no_tools_for_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    row = {"collective": "allreduce", "size": 4096, "mean": 15.0, "paper": 2.47, "host_us": 40.0, "switch_us": 5.0}
    answer = SimpleNamespace(returncode=0, stderr="", stdout=json.dumps({"rows": [row]}))

    def lacking(_: object) -> None:
        raise MissingToolError("there is no QEMU")

    monkeypatch.setattr(asked, "machines", lacking)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: answer)
    monkeypatch.setattr(emulation, "has_mpi", lambda: False)
    assert paper("epic", "table-19", "--seed", "1", "--out", str(tmp_path)).return_value == 0
    page = (tmp_path / "epic" / "table-19.md").read_text()
    assert "| allreduce | 4,096 | EPIC-I | 15 | not run | 2.47 | 6.073 |  | 40 | 5 |" in page
    assert "- Soft-RoCE is not run: there is no QEMU" in page
    assert "- MPI is not run: it needs mpi4py and MPICH" in page
    answer.returncode, answer.stderr = 3, "no Mininet"
    missing = paper("epic", "table-19", "--seed", "2", "--out", str(tmp_path)).exception
    assert isinstance(missing, MissingToolError)
    assert "EPIC-I, p4gen, allreduce: no Mininet" in str(missing)


def test_the_list_in_the_documents_is_the_one_of_today(tmp_path: Path) -> None:
    paper("--out", str(tmp_path))
    kept = Path(__file__).parents[2] / "docs" / "results" / "README.md"
    assert kept.read_text() == (tmp_path / "README.md").read_text(), "p4gen paper --out docs/results"
