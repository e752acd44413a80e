"""What ``p4gen sim run`` prints of a run: what was sent and lost, and where links are busiest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.table import Table

from p4gen.host.transport.clock import duration_text
from p4gen.net.collectives.simulation import SimResult
from p4gen.net.own import FamilyResult

_BUSIEST: Final = 8


def show_traffic(result: SimResult | FamilyResult, console: Console) -> None:
    """Packets, drops and links."""
    console.print(
        f"{result.sent} packets sent by ranks, {result.resent} of them retransmissions; {result.timeouts} timeouts, "
        f"{result.naks} NAKs, {result.cnps} CNPs; {result.packet_hops} packet-hops in all"
    )
    if result.drops:
        table = Table("dropped", "packets", box=None, pad_edge=False, header_style="bold")
        for reason, count in result.drops.most_common():
            table.add_row(reason, f"{count:,}")
        console.print(table)
    table = Table("busiest links", "packets", "utilisation", "marked", box=None, pad_edge=False, header_style="bold")
    for link in sorted(result.links, key=lambda use: -use.utilisation)[:_BUSIEST]:
        table.add_row(
            link.name, f"{link.packets:,}", f"{link.utilisation:.1%}", f"{link.marked:,}" if link.marked else ""
        )
    console.print(table)


def show_problems(stuck: Iterable[str], result: SimResult | FamilyResult, console: Console) -> None:
    """Why a run did not end, what is wrong with its results, scripts that dropped nothing."""
    stuck = list(stuck)
    if stuck:
        console.print("[red]did not end[/red]")
        for line in stuck:
            console.print(f"  {line}", markup=False)
    for error in result.errors:
        console.print(f"[red]wrong[/red]  {error}")
    for script in result.silent:
        console.print("[red]script[/red]  ", end="")
        console.print(script, markup=False)


def show_own(title: str, result: FamilyResult, repeat: int, console: Console) -> None:
    """A run that a family brings itself."""
    console.print(title, markup=False)
    if result.ended:
        console.print(f"completion time {duration_text(result.duration // repeat)}")
    for line in result.said:
        console.print(line, markup=False)
    show_traffic(result, console)
    show_problems(result.stuck, result, console)
    if result.ok:
        console.print("[green]every rank's results and memory are as NumPy says[/green]")
