"""The simulations of a figure that consists of many. The outcome of each is kept in a file.

A file's name has the digest of everything that the outcome depends on: the texts of the programs, the configuration
with its seed, and the version of p4gen. So an interrupted figure goes on with the missing cells.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from p4gen.errors import InputError
from p4gen.net.traffic.traffic import TrafficConfig
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.program import compose, render
from p4gen.version import __version__
from p4gen.vocabulary import ProgramSpec

_OTHERWISE: Final = ("topology", "program", "core", "programs")
"""Fields of the configuration that a digest has in another form."""


@lru_cache(maxsize=64)
def _text(spec: ProgramSpec) -> str:
    """A program without the lines that name places in templates."""
    return render(compose(spec), line_directives=False).text


@dataclass(frozen=True)
class Cell:
    """One simulation of a figure."""

    name: str
    """Its parts are separated by slashes: ``allreduce/900/4/themis``."""
    config: TrafficConfig

    def file(self, folder: Path) -> Path:
        """The path in ``folder`` of the file that keeps its outcome."""
        config = self.config
        given = [
            f"{each.name}={value!r}"
            for each in fields(config)
            if each.name not in _OTHERWISE and (value := getattr(config, each.name)) != each.default
        ]
        network = config.topology.model_dump_json(exclude_defaults=True)
        texts = (f"{switch} {_text(config.spec_of(switch))}" for switch in config.topology.switches)
        digest = hashlib.sha256("\0".join([__version__, *given, network, *texts]).encode())
        return folder / f"{self.name.replace('/', '-')}-{digest.hexdigest()[:16]}.json"


@dataclass(frozen=True)
class CellResult:
    """The outcome of a cell, as its file keeps it."""

    time: int
    """The time, in ps, until the slowest group had ended."""
    errors: tuple[str, ...]
    sent: int
    spurious: float
    naks: int
    cnps: int
    lost: int
    timeouts: int
    hops: int


def perform(cell: Cell, kept: Path | None = None, progress: Callable[[int, int], None] | None = None) -> CellResult:
    """The outcome of a cell: from its file in ``kept``, or simulated and then written there.

    Raises ``InputError`` if the file cannot be read or written.
    """
    file = cell.file(kept) if kept is not None else None
    if file is not None and (found := _read(file)) is not None:
        return found
    result = TrafficSimulation(cell.config).run(progress)
    total = result.total
    outcome = CellResult(
        time=max(result.groups),
        errors=(*result.errors, *result.stuck),
        sent=total("sent"),
        spurious=result.spurious,
        naks=total("naks"),
        cnps=total("cnps"),
        lost=total("lost"),
        timeouts=total("timeouts"),
        hops=result.packet_hops,
    )
    if file is not None:
        _write(file, outcome)
    return outcome


def earlier(cells: Sequence[Cell], kept: Path | None) -> int:
    """The number of cells whose outcomes are kept, so that they need not be simulated."""
    return sum(cell.file(kept).exists() for cell in cells) if kept is not None else 0


def perform_all(
    cells: Sequence[Cell], jobs: int, kept: Path | None, doing: Callable[[str], None]
) -> dict[str, CellResult]:
    """The outcomes of all cells by name, ``jobs`` of them simulated at a time."""
    if jobs == 1:
        outcomes = {}
        for number, cell in enumerate(cells, 1):
            where = f"cell {number} of {len(cells)}: {cell.name}"
            doing(where)

            def progress(done: int, total: int, where: str = where) -> None:
                doing(f"{where}, {done / max(1, total):.0%}")

            outcomes[cell.name] = perform(cell, kept, progress)
        return outcomes
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        doing(f"{len(cells)} cells in {jobs} processes")
        futures = {pool.submit(perform, cell, kept): cell.name for cell in cells}
        found: dict[str, CellResult] = {}
        try:
            for future in as_completed(futures):
                found[futures[future]] = future.result()
                doing(f"{len(found)} of {len(cells)} cells, {jobs} at a time")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {cell.name: found[cell.name] for cell in cells}


def _read(file: Path) -> CellResult | None:
    """The outcome in a file; None if there is no such file."""
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
        return CellResult(**read | {"errors": tuple(read["errors"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"cannot read {file}, a simulation's outcome; delete it to repeat the simulation") from error


def _write(file: Path, outcome: CellResult) -> None:
    """Write the file atomically: it has the whole outcome, or does not exist."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=".")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as text:
                text.write(json.dumps(asdict(outcome)) + "\n")
            os.replace(name, file)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error
