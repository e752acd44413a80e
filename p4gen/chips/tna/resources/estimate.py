"""The report of the model on a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Final

from p4gen.chips.tna.resources.access import Place, width
from p4gen.chips.tna.resources.chips import CHIPS, TOFINO, TOFINO2, Chip
from p4gen.chips.tna.resources.extracted import headers_of
from p4gen.chips.tna.resources.graph import Gress, gress_of
from p4gen.chips.tna.resources.phv import live
from p4gen.chips.tna.resources.schedule import Placement, place
from p4gen.p4 import ir
from p4gen.p4.resources import Amount, Report
from p4gen.p4.types import Fields

ROWS: Final = {
    "hash bits": "hash_bits",
    "gateways": "gateways",
    "SRAM": "srams",
    "TCAM": "tcams",
    "VLIW": "vliw",
    "map RAM": "map_rams",
    "meter ALU": "salus",
    "statistics ALU": "stats",
    "logical tables": "tables",
}
"""The rows of a report that stages have, and their fields in ``StageLimits``."""
PHV: Final = "PHV"
STAGES: Final = "stages"
_QUEUE_BITS_OF_TOFINO2: Final = 7
_GRESSES: Final = ("ingress", "egress", "ghost")


def estimate(program: ir.Program) -> tuple[Report, ...]:
    """Estimate a program: a report for each pipe."""
    pipes = sorted({block.partition(".")[0] for block in program.blocks})
    return tuple(_pipe(program, pipe, chip_of(program)) for pipe in pipes)


def chip_of(program: ir.Program) -> Chip:
    """The chip that a program is for. TNA is for both: the widths of queues tell them apart."""
    for block in program.blocks.values():
        for param in block.params:
            queue = param.variable.type.get("egress_qid") if isinstance(param.variable.type, Fields) else None
            if queue is not None and width(queue.type) == _QUEUE_BITS_OF_TOFINO2:
                return TOFINO2
    return CHIPS.get(program.arch, TOFINO)


def _pipe(program: ir.Program, pipe: str, chip: Chip) -> Report:
    gresses: list[Gress] = []
    phv: Counter[str] = Counter()
    for name in _GRESSES:
        control = program.blocks.get(f"{pipe}.{name}")
        if not isinstance(control, ir.Control):
            continue
        roots = {p.variable: Place((name, str(p.variable.type)), "", p.variable.type) for p in control.params}
        gress = gress_of(name, control, roots)
        gresses.append(gress)
        parser = program.blocks.get(f"{pipe}.{name}_parser")
        phv.update(live(gress, roots.values(), headers_of(parser, gress), chip))
    nodes = [node for gress in gresses for node in gress.nodes]
    owners = {i: i.owner for i in program.externs if i.owner and i.owner not in {t.name for t in program.tables}}
    placed = place(nodes, owners, chip)
    rows = {
        row: Amount(sum(getattr(s, field) for s in placed.stages), chip.stages * getattr(chip.stage, field))
        for row, field in ROWS.items()
    }
    rows[PHV] = Amount(sum(phv.values()), chip.phv_bits)
    rows[STAGES] = Amount(len(placed.stages), chip.stages)
    return Report(
        source="p4gen's model",
        target=chip.name,
        pipe=program.pipes.get(pipe, pipe),
        rows=rows,
        modules=_modules(placed, phv),
        excess=tuple(_excess(placed, chip)),
        doubts=tuple(_doubts(placed, rows, chip)),
    )


def _modules(placed: Placement, phv: Mapping[str, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for module, need in placed.modules.items():
        amounts = {row: getattr(need, field) for row, field in ROWS.items()}
        found[module] = {row: amount for row, amount in amounts.items() if amount}
    for unit in placed.units:
        for module in {node.module for node in unit.nodes}:
            of_module = found.setdefault(module, {})
            of_module["last stage"] = max(of_module.get("last stage", 0), unit.last)
    for module, bits in phv.items():
        found.setdefault(module, {})[PHV] = bits
    return found


def _excess(placed: Placement, chip: Chip) -> Iterator[str]:
    """Excesses that no placement can change: totals of memories' ALUs and RAMs, and memories that are too large for a
    stage."""
    limits = chip.stage
    for unit in placed.units:
        for held, (module, need) in unit.memories.items():
            if need.map_rams > limits.map_rams:
                yield (
                    f"{chip.arch}: {module or 'the program'}: {held.name} needs {need.map_rams} map RAMs in one stage;"
                    f" {limits.map_rams} there are"
                )
    for what, field in (("stateful ALUs", "salus"), ("map RAMs", "map_rams")):
        total, each = sum(getattr(s, field) for s in placed.stages), getattr(limits, field)
        if total > chip.stages * each:
            yield (
                f"{chip.arch}: {total} {what} need {ceil(total / each)} stages; {chip.stages} there are."
                f" {_takers(placed, field)}"
            )
    yield from _crowded(placed, chip)
    for conflict in placed.conflicts:
        yield f"{chip.arch}: {conflict}"


def _crowded(placed: Placement, chip: Chip) -> Iterator[str]:
    """Memories of one size of which a stage holds fewer than it has ALUs for."""
    sizes = Counter(need.map_rams for u in placed.units for _, need in u.memories.values() if need.salus)
    for size, count in sizes.items():
        together = min(chip.stage.map_rams // size, chip.stage.salus) if size else 0
        if 0 < together < chip.stage.salus and ceil(count / together) > chip.stages:
            yield (
                f"{chip.arch}: {count} registers with {size} map RAMs each need {ceil(count / together)} stages;"
                f" {chip.stages} there are. {_takers(placed, 'map_rams')}"
            )


def _doubts(placed: Placement, rows: Mapping[str, Amount], chip: Chip) -> Iterator[str]:
    """Excesses of this placement, a sentence each."""
    if len(placed.stages) > chip.stages:
        late = sorted({n.module for u in placed.units if u.last >= chip.stages for n in u.nodes})
        shown = ", ".join(late[:3]) + (f" and {len(late) - 3} more" if len(late) > 3 else "")
        yield f"{chip.arch}: {len(placed.stages)} stages are needed; {chip.stages} there are. Beyond them: {shown}"
    for row in (*ROWS, PHV):
        amount = rows[row]
        if amount.used > amount.available and row not in ("meter ALU", "map RAM"):
            field = ROWS.get(row)
            most = f". {_takers(placed, field)}" if field else ""
            yield f"{chip.arch}: {row}: {amount.used} are needed; {amount.available} there are{most}"


def _takers(placed: Placement, field: str) -> str:
    """The modules that take the most; instances of one control, ``lane_0`` to ``lane_63``, count together."""
    found: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for module, need in placed.modules.items():
        amount = getattr(need, field)
        if amount:
            name = module.rstrip("0123456789") or module
            found[name] += amount
            count[name] += 1
    named = (f"{n}{f'… ({count[n]} instances)' if count[n] > 1 else ''} {a}" for n, a in found.most_common(3))
    return "Most by " + ", ".join(named)
