"""The work of ``p4gen flow confirm``: policies on packets, in labs, beside what the simulator of flows says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from p4gen.cli.defaults import MEMBERS
from p4gen.cli.options import report_console
from p4gen.errors import FailedError
from p4gen.inputs import drawn, parsed
from p4gen.labs.calls import size_text
from p4gen.plan.flow.policies import POLICIES
from p4gen.plan.flow.together import together
from p4gen.vocabulary import units

NEAR: Final = 0.2
"""How far a ratio of the lab's may be from the simulator's, as a share of it."""


_LONGEST_S: Final = 3600


@dataclass(frozen=True)
class Shared:
    """A policy as labs know it and as the simulator does. ``slots``: groups that a switch serves."""

    lab: tuple[str, ...]
    flow: str
    slots: int = 1


CASES: Final[Mapping[str, Shared]] = {
    "rings": Shared(("--policy", "ring", "--fallback"), "ring"),
    "all on switches": Shared((), "spatial", 3),
    "edge-disjoint": Shared(("--policy", "edge-disjoint", "--fallback"), "edge-disjoint"),
    "widest-path": Shared(("--policy", "widest-path", "--fallback"), "spatial"),
    "time-shared": Shared(("--policy", "time-shared"), "temporal"),
}
"""The first one is what the others are compared with."""


@dataclass(frozen=True)
class Confirmed:
    """A policy's outcome: seconds until all groups have made all calls, in a lab and as flows."""

    case: str
    seconds: float
    flow: float
    right: bool
    by_switches: int
    """Calls that switches carried."""
    calls: int
    folder: str


def do(
    target: str,
    members: tuple[str, ...],
    size: str,
    repeat: int,
    bandwidth: str,
    timeout: str,
    lanes: str,
    seed: int | None,
    out: Path,
    as_json: bool,
) -> None:
    """Run the command with these options."""
    bytes_each = parsed("size", units.size, size)
    rate = parsed("bandwidth", units.bandwidth, bandwidth)
    seed = drawn(seed)
    console = report_console(quiet=as_json)
    console.print(f"seed {seed}; AllReduce of {size_text(bytes_each)}, {repeat} times, links of {rate / 1e6:g} Mb/s")
    common = ["tree-3-2", "--target", target, "--lanes", lanes, "--collective", "allreduce", "--size", size]
    common += ["--repeat", str(repeat), "--bandwidth", bandwidth, "--timeout", timeout, "--seed", str(seed)]
    common += ["--deadline", str(_LONGEST_S), "--out", str(out), "--json"]
    found: dict[str, list[Confirmed]] = {}
    for name in members or MEMBERS:
        hosts = MEMBERS[name]
        ranks = len(hosts[0].split(","))
        rows = found[name] = []
        for case, shared in CASES.items():
            said = _lab([*common, *(f"--ranks={each}" for each in hosts), *shared.lab, f"--groups={shared.slots}"])
            flows = together(
                POLICIES[shared.flow],
                groups=len(hosts),
                ranks=ranks,
                slots=shared.slots,
                calls=repeat,
                size=bytes_each,
                bandwidth=rate,
            )
            rows.append(_confirmed(case, said, flows.ended))
            if console.is_terminal:
                console.print(f"  {ranks} ranks, {case}: {rows[-1].seconds:.1f} s")
        _show(ranks, rows, console)
    passed = all(row.right and _near(row, rows[0]) for rows in found.values() for row in rows)
    if as_json:
        told = {name: [_json(row, rows[0]) for row in rows] for name, rows in found.items()}
        click.echo(json.dumps({"seed": seed, "passed": passed, "members": told}))
    sys.exit(0 if passed else 1)


def _lab(arguments: Sequence[str]) -> dict[str, Any]:
    """What a lab reports. Raises ``FailedError`` if it reports nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "p4gen", "lab", *arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise FailedError(f"p4gen lab {' '.join(arguments)}: exit status {done.returncode}") from None
    return found


def _confirmed(case: str, said: Mapping[str, Any], flow: float) -> Confirmed:
    calls = [call for group in said["groups"] for call in group["calls"]]
    carried = sum(not call["ring"] for call in calls)
    return Confirmed(case, said["seconds"], flow, said["passed"], carried, len(calls), said["folder"])


def _ratios(row: Confirmed, rings: Confirmed) -> tuple[float, float]:
    return row.seconds / rings.seconds, row.flow / rings.flow


def _near(row: Confirmed, rings: Confirmed) -> bool:
    mine, flow = _ratios(row, rings)
    return abs(mine / flow - 1) <= NEAR


def _show(ranks: int, rows: Sequence[Confirmed], console: Console) -> None:
    console.print(f"three groups of {ranks} ranks:")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("policy")
    for head in ("lab, s", "flow, s", "lab/rings", "flow/rings", "lab/flow", "by switches"):
        table.add_column(head, justify="right")
    table.add_column("")
    for row in rows:
        mine, flow = _ratios(row, rows[0])
        note = "" if _near(row, rows[0]) else "MISSED"
        table.add_row(
            row.case,
            f"{row.seconds:.1f}",
            f"{row.flow:.1f}",
            f"{mine:.2f}",
            f"{flow:.2f}",
            f"{mine / flow:.2f}",
            f"{row.by_switches} of {row.calls}",
            note if row.right else f"WRONG: {row.folder}",
        )
    console.print(table)


def _json(row: Confirmed, rings: Confirmed) -> dict[str, Any]:
    mine, flow = _ratios(row, rings)
    return {
        "case": row.case,
        "seconds": row.seconds,
        "flow_seconds": row.flow,
        "ratio": mine,
        "flow_ratio": flow,
        "by_switches": row.by_switches,
        "calls": row.calls,
        "right": row.right,
        "near": _near(row, rings),
        "folder": row.folder,
    }
