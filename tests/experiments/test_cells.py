"""The cells of experiments: processes change nothing, and what has been done is not done again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from p4gen.errors import FailedError, InputError, P4genError
from p4gen.experiments.cells import Cell, Runner
from p4gen.experiments.experiment import Order


@dataclass(frozen=True)
class Outcome:
    square: int
    half: float
    words: tuple[str, ...]
    none: int | None
    process: int


def work(number: int) -> Outcome:
    return Outcome(number**2, number / 2, ("a", "b"), None, os.getpid())


def fails(number: int) -> int:
    raise InputError(f"{number} is wrong")


CELLS = [Cell(f"some/{number}", work, (number,)) for number in range(6)]


def squares(found: dict[str, Outcome]) -> list[int]:
    return [outcome.square for outcome in found.values()]


@pytest.mark.parametrize("kept", [False, True])
def test_processes_change_nothing(kept: bool, tmp_path: Path) -> None:
    alone, together = (Runner(jobs, kept=tmp_path / str(jobs) if kept else None).run(CELLS) for jobs in (1, 2))
    assert list(alone) == list(together) == [cell.name for cell in CELLS]
    assert squares(alone) == squares(together) == [0, 1, 4, 9, 16, 25]
    assert {outcome.process for outcome in alone.values()} == {os.getpid()}
    assert os.getpid() not in {outcome.process for outcome in together.values()}


def test_workers_of_a_cluster_change_nothing() -> None:
    pytest.importorskip("distributed", reason="needs Dask")
    found = Runner(scheduler="local:2").run(CELLS)
    assert squares(found) == [0, 1, 4, 9, 16, 25]
    assert os.getpid() not in {outcome.process for outcome in found.values()}


def dies_once(number: int, folder: Path) -> int:
    """The process of cell 3 dies the first time that it is run."""
    mark = folder / "died"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


@pytest.mark.parametrize("where", ["jobs", "scheduler"])
def test_a_worker_that_dies_changes_nothing(where: str, tmp_path: Path) -> None:
    if where == "scheduler":
        pytest.importorskip("distributed", reason="needs Dask")
    runner = Runner(2) if where == "jobs" else Runner(scheduler="local:2")
    found = runner.run([Cell(f"some/{number}", dies_once, (number, tmp_path)) for number in range(8)])
    assert (tmp_path / "died").exists()
    assert found == {f"some/{number}": number**2 for number in range(8)}


def dies(_: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def test_cells_whose_processes_always_die_are_named() -> None:
    with pytest.raises(FailedError, match="processes die before they end a cell: some/0, some/1"):
        Runner(2).run([Cell(f"some/{number}", dies, (number,)) for number in range(2)])


@pytest.mark.parametrize(
    ("address", "cause"), [("local:0", "takes 1 to 64 processes"), ("127.0.0.1:1", "no Dask scheduler answers")]
)
def test_a_scheduler_that_is_none_is_refused(address: str, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs Dask")
    monkeypatch.setattr("p4gen.cluster._SECONDS", 1)
    with pytest.raises(InputError, match=f"scheduler: error: .*{cause}"):
        Runner(scheduler=address).run(CELLS)


def interrupting(at: str) -> Callable[[str], None]:
    def tell(text: str) -> None:
        if text.startswith(at):
            raise KeyboardInterrupt

    return tell


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_goes_on_with_the_missing_cells(jobs: int, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Runner(kept=tmp_path, tell=interrupting("cell 4 ")).run(CELLS)
    before = {file: file.stat().st_ino for file in tmp_path.iterdir()}
    assert [file.name.rpartition("-")[0] for file in sorted(before)] == ["some-0", "some-1", "some-2"]
    said: list[str] = []
    resumed = Runner(jobs, kept=tmp_path, tell=said.append).run(CELLS)
    assert squares(resumed) == [0, 1, 4, 9, 16, 25]
    assert all(text.startswith("3 kept, ") for text in said)
    after = {file: file.stat().st_ino for file in tmp_path.iterdir()}
    assert len(after) == 6
    assert before.items() <= after.items()
    # All that an outcome has comes back from its file.
    assert Runner(kept=tmp_path).run(CELLS) == resumed


def test_outcomes_of_other_work_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = CELLS[0]
    mine = cell.file(tmp_path)
    others = [Cell(cell.name, work, (7,)).file(tmp_path), Cell(cell.name, fails, (0,)).file(tmp_path)]
    monkeypatch.setattr("p4gen.experiments.cells._texts", lambda: "another version")
    assert len({mine, *others, cell.file(tmp_path)}) == 4


@pytest.mark.parametrize("text", ["{}", "[", ""])
def test_an_outcome_that_cannot_be_read_is_named(text: str, tmp_path: Path) -> None:
    CELLS[0].file(tmp_path).write_text(text)
    with pytest.raises(InputError, match=r"cannot read .*some-0-[0-9a-f]{16}.json.*; delete it"):
        Runner(kept=tmp_path).run(CELLS)


def test_an_outcome_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot (read|write)"):
        Runner(kept=tmp_path / "file").run(CELLS)


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_work_raises_ends_the_run(jobs: int) -> None:
    with pytest.raises(P4genError, match="is wrong"):
        Runner(jobs).run([Cell(str(number), fails, (number,)) for number in range(3)])


def test_an_order_may_want_some_cells() -> None:
    order = Order("any", 1, patterns=("some/[34]", "*/0"))
    assert list(order.run(CELLS)) == ["some/0", "some/3", "some/4"]
    with pytest.raises(InputError, match=r"--cells 'other/\*': there is no such cell; there are some/0 to some/5"):
        Order("any", 1, patterns=("some/1", "other/*")).run(CELLS)
