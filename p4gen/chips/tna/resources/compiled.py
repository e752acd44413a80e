"""Reports of p4c's Tofino back end: ``resources.json``, ``phv.json`` and ``metrics.json``.

p4c writes the first two with ``-g``, into ``logs`` of each pipe's folder. Amounts are counted as its own
``create_mau_resources.py`` counts them, whose columns are those of EPIC's Table 17.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from p4gen.chips.tna.resources.chips import Chip
from p4gen.chips.tna.resources.estimate import PHV, STAGES, chip_of
from p4gen.errors import Diagnostic, InputError
from p4gen.inputs import read_text
from p4gen.p4 import ir
from p4gen.p4.resources import Amount, Report
from p4gen.p4.walk import used_by

RESOURCES: Final = "resources.json"
METRICS: Final = "metrics.json"
SCHEMA: Final = "2.4."
"""The version of ``resources.json`` that this reads."""
OTHERS: Final = "(compiler)"
"""The module of objects that the compiler made by itself."""
_UNUSED: Final = "--UNUSED--"


@dataclass(frozen=True)
class _Column:
    """The form of a stage's resource in ``resources.json``."""

    row: str
    key: str
    units: str
    size: tuple[str, ...]
    """Fields whose product is the amount of a stage."""


_COLUMNS: Final = (
    _Column("hash bits", "hash_bits", "bits", ("nBits", "nFunctions")),
    _Column("gateways", "gateways", "gateways", ("nRows", "nUnits")),
    _Column("SRAM", "rams", "srams", ("nRows", "nColumns")),
    _Column("TCAM", "tcams", "tcams", ("nRows", "nColumns")),
    _Column("VLIW", "vliw", "instructions", ("size",)),
    _Column("map RAM", "map_rams", "maprams", ("nRows", "nUnits")),
    _Column("meter ALU", "meter_alus", "meters", ("nAlus",)),
    _Column("statistics ALU", "statistic_alus", "stats", ("nAlus",)),
    _Column("logical tables", "logical_tables", "ids", ("size",)),
)
_METRICS: Final = {"SRAM": "srams", "TCAM": "tcams", "map RAM": "map_rams", "logical tables": "logical_tables"}


def compiled(program: ir.Program, folder: Path) -> tuple[Report, ...]:
    """A report for each pipe with p4c's own reports below ``folder``, its output.

    Raises ``InputError`` if there are none, or one is not as p4c writes it.
    """
    chip = chip_of(program)
    files = sorted(folder.rglob(RESOURCES)) or sorted(folder.rglob(METRICS))
    if not files:
        raise InputError(Diagnostic(str(folder), f"no {RESOURCES} and no {METRICS}: compile with p4c -g"))
    return tuple(_report(program, chip, file) for file in files)


def _report(program: ir.Program, chip: Chip, file: Path) -> Report:
    report = _load(file)
    home = file.parent.parent if file.parent.name == "logs" else file.parent
    rows: dict[str, Amount] = {}
    modules: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    try:
        if file.name == METRICS:
            mau = report["mau"]
            rows = {r: Amount(mau[k], chip.stages * _each(chip, r)) for r, k in _METRICS.items()}
            rows[PHV] = Amount(_phv_of_metrics(report["phv"]), chip.phv_bits)
        else:
            version = str(report["schema_version"])
            if not version.startswith(SCHEMA):
                raise InputError(Diagnostic(str(file), f"schema {version} of {RESOURCES}; {SCHEMA}x is known"))
            rows = _stages(report["resources"]["mau"], _Owners(program), modules)
            phv = file.with_name("phv.json")
            if phv.is_file():
                rows[PHV] = Amount(_phv(_load(phv)), chip.phv_bits)
        source = f"p4c {report['compiler_version']}{_failed(home.parent / 'manifest.json')}"
    except (KeyError, TypeError, AttributeError) as problem:
        raise InputError(Diagnostic(str(file), f"not as p4c writes it: {problem!r}")) from None
    return Report(source, chip.name, home.name, rows, {m: dict(found) for m, found in modules.items()})


def _failed(manifest: Path) -> str:
    """A remark on the reports about a program on which p4c gave up: they contain only what p4c had done by then."""
    whole = not manifest.is_file() or _load(manifest).get("compilation_succeeded") is not False
    return "" if whole else ", whose compilation failed"


def _load(file: Path) -> Any:
    try:
        found = json.loads(read_text(file, limit=1 << 30))
    except json.JSONDecodeError as problem:
        raise InputError(Diagnostic(f"{file}:{problem.lineno}:{problem.colno}", f"no JSON: {problem.msg}")) from None
    if not isinstance(found, dict):
        raise InputError(Diagnostic(str(file), "not as p4c writes it: no object"))
    return found


def _each(chip: Chip, row: str) -> int:
    return {
        "SRAM": chip.stage.srams,
        "TCAM": chip.stage.tcams,
        "map RAM": chip.stage.map_rams,
        "logical tables": chip.stage.tables,
    }[row]


def _stages(mau: Mapping[str, Any], owners: _Owners, modules: dict[str, dict[str, int]]) -> dict[str, Amount]:
    """The rows of all stages; ``modules`` gets the modules' shares."""
    used: dict[str, int] = defaultdict(int)
    available: dict[str, int] = {}
    last = 0
    for stage in mau["mau_stages"]:
        for column in _COLUMNS:
            found = stage[column.key]
            units: Sequence[Mapping[str, Any]] = found[column.units]
            used[column.row] += len(units)
            size = 1
            for factor in column.size:
                size *= found[factor]
            # Stages that hold nothing are left out.
            available[column.row] = size * mau["nStages"]
            for unit in units:
                for module in {owners.of(name) for name in _users(unit)}:
                    modules[module][column.row] += 1
        if stage["logical_tables"]["ids"]:
            last = max(last, stage["stage_number"] + 1)
    rows = {c.row: Amount(used[c.row], available.get(c.row, 0)) for c in _COLUMNS}
    rows[STAGES] = Amount(last, mau["nStages"])
    return rows


def _users(unit: Mapping[str, Any]) -> Iterator[str]:
    """The tables that use a unit, in any of the forms that reports have."""
    for key in ("used_by_table", "table_name"):
        if key in unit:
            yield unit[key]
            return
    for usage in (*unit.get("usages", ()), *(u for c in unit.get("color_usages", ()) for u in c["usages"])):
        if usage["used_by"] != _UNUSED:
            yield usage["used_by"]


class _Owners:
    """The module that declares an object in p4c's reports: that of the control with the longest matching name."""

    def __init__(self, program: ir.Program) -> None:
        reached = (
            b for block in program.blocks.values() if isinstance(block, ir.Control) for b in used_by(block).blocks
        )
        self.names = sorted({block.name for block in reached}, key=len, reverse=True)

    def of(self, name: str) -> str:
        """The module; ``OTHERS`` for an object without a name in the program."""
        plain = name.removeprefix(".")
        return next((n for n in self.names if plain == n or plain.startswith(f"{n}.")), OTHERS)


def _phv(report: Mapping[str, Any]) -> int:
    """Bits of containers in use, without tagalong ones, which stages cannot read."""
    return sum(c["bit_width"] for c in report["containers"] if c["container_type"] != "tagalong" and c["slices"])


def _phv_of_metrics(report: Mapping[str, Any]) -> int:
    kinds = ("normal", "mocha", "dark")
    return sum(c["bit_width"] * c["containers_occupied"] for kind in kinds for c in report.get(kind, ()))
