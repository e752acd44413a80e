"""The cells of an experiment: runs that are independent of each other, and whose outcomes are kept in files.

A file's name has the digest of all that an outcome depends on: the cell's work with its arguments, and the texts of
p4gen and its templates. So an interrupted experiment goes on with the missing cells, and a change of p4gen repeats all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

import p4gen
from p4gen.cluster import connected
from p4gen.errors import FailedError, InputError
from p4gen.resources import resource
from p4gen.stored import put

T = TypeVar("T")


@dataclass(frozen=True)
class Cell(Generic[T]):
    """One run of an experiment."""

    name: str
    """Its parts are separated by slashes: ``allreduce/900/4/themis``."""
    work: Callable[..., T]
    """A function of a module, whose outcome its annotation names: a dataclass, or a number."""
    arguments: tuple[Any, ...]
    """Values whose ``repr`` says all that matters about them, and that can be sent to another process."""

    def file(self, folder: Path) -> Path:
        """The path in ``folder`` of the file that keeps its outcome."""
        asked = f"{_texts()} {self.work.__module__}.{self.work.__qualname__}{self.arguments!r}"
        digest = hashlib.sha256(asked.encode()).hexdigest()
        return folder / f"{self.name.replace('/', '-').replace(' ', '_')}-{digest[:16]}.json"

    def form(self) -> TypeAdapter[T]:
        """The form of its outcome."""
        return TypeAdapter(get_type_hints(self.work)["return"])


@dataclass(frozen=True)
class Runner:
    """Where cells run, and where their outcomes are kept."""

    jobs: int = 1
    """Processes that work at the same time."""
    scheduler: str | None = None
    """The address of a Dask scheduler, whose workers run the cells; or local:N (``p4gen.cluster``)."""
    kept: Path | None = None
    """The folder in which finished cells are kept and looked for."""
    tell: Callable[[str], None] = lambda _: None
    """Called with a line about what runs."""

    def run(self, cells: Sequence[Cell[T]]) -> dict[str, T]:
        """The outcomes of all cells by name: from files, or of work that is done now and then kept.

        Raises ``InputError`` if a file cannot be read or written, and what the work raises.
        """
        found: dict[str, T] = {}
        for cell in cells:
            if self.kept is not None and (outcome := _read(cell, self.kept)) is not None:
                found[cell.name] = outcome
        missing = [cell for cell in cells if cell.name not in found]
        for cell, outcome in self._work(missing, len(found)):
            found[cell.name] = outcome
            if self.kept is not None:
                _write(cell, outcome, self.kept)
        return {cell.name: found[cell.name] for cell in cells}

    def _work(self, cells: Sequence[Cell[T]], kept: int) -> Iterator[tuple[Cell[T], T]]:
        """Each cell with its outcome, as soon as it has one."""
        before = f"{kept} kept, " if kept else ""
        if self.scheduler is not None:
            yield from self._by_dask(cells, before)
        elif self.jobs == 1 or len(cells) < 2:
            for number, cell in enumerate(cells, 1):
                self.tell(f"{before}cell {number} of {len(cells)}: {cell.name}")
                yield cell, cell.work(*cell.arguments)
        else:
            yield from self._by_processes(cells, before)

    def _by_processes(self, cells: Sequence[Cell[T]], before: str) -> Iterator[tuple[Cell[T], T]]:
        """A process that dies takes all others of its pool with it. Then another pool has the cells that are left, as
        long as one ends at least."""
        left = {cell.name: cell for cell in cells}
        while left:
            count = len(left)
            with ProcessPoolExecutor(self.jobs, get_context("spawn")) as pool:
                futures = {pool.submit(cell.work, *cell.arguments): cell for cell in left.values()}
                try:
                    for future in as_completed(futures):
                        self.tell(f"{before}{len(cells) - len(left)} of {len(cells)} cells, {self.jobs} at a time")
                        outcome = future.result()
                        yield left.pop(futures[future].name), outcome
                except BrokenProcessPool:
                    if len(left) == count:
                        raise FailedError(f"processes die before they end a cell: {', '.join(left)}") from None
                    self.tell(f"{before}a process has died; {len(left)} cells are left")
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise

    def _by_dask(self, cells: Sequence[Cell[T]], before: str) -> Iterator[tuple[Cell[T], T]]:
        assert self.scheduler is not None
        with connected(self.scheduler, "scheduler") as client:
            from distributed import as_completed as ended  # noqa: PLC0415 - an extra

            futures = {client.submit(cell.work, *cell.arguments, pure=False): cell for cell in cells}
            for number, future in enumerate(ended(futures)):
                self.tell(f"{before}{number} of {len(cells)} cells, by {self.scheduler}")
                yield futures[future], future.result()


@cache
def _texts() -> str:
    """A digest of p4gen's modules and templates."""
    digest = hashlib.sha256()
    for folder in (Path(p4gen.__file__).parent, resource("templates")):
        for file in sorted(folder.rglob("*")):
            if file.suffix in {".py", ".j2", ".toml", ".yaml", ".p4"}:
                digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _read(cell: Cell[T], folder: Path) -> T | None:
    """The outcome in a cell's file; None if there is no such file."""
    file = cell.file(folder)
    try:
        return cell.form().validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise InputError(f"cannot read {file}, the outcome of a cell; delete it to repeat the cell") from error


def _write(cell: Cell[T], outcome: T, folder: Path) -> None:
    """Write the file atomically: it has the whole outcome, or does not exist."""
    file = cell.file(folder)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        put(file, cell.form().dump_json(outcome) + b"\n")
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error
