"""What ``p4gen sim run`` prints of a run: what was sent and lost, and where links are busiest."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.table import Table

from p4gen.net.result import RunResult

_BUSIEST: Final = 8


def _show_traffic(result: RunResult, console: Console) -> None:
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
    paused = any(link.pauses for link in result.links)
    columns = ("busiest links", "packets", "utilisation", "marked", *(("pauses", "paused") if paused else ()))
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for link in sorted(result.links, key=lambda use: -use.utilisation)[:_BUSIEST]:
        pauses = (f"{link.pauses:,}", f"{link.paused:.1%}") if link.pauses else ()
        marked = f"{link.marked:,}" if link.marked else ""
        table.add_row(link.name, f"{link.packets:,}", f"{link.utilisation:.1%}", marked, *pauses)
    console.print(table)


def show_end(result: RunResult, console: Console) -> None:
    """Why a run did not end, what is wrong with its results, scripts that dropped nothing; or that nothing is."""
    if result.stuck:
        console.print("[red]did not end[/red]")
        for line in result.stuck:
            console.print(f"  {line}", markup=False)
    for error in result.errors:
        console.print(f"[red]wrong[/red]  {error}")
    for overrun in result.overruns:
        console.print(f"[yellow]lossy[/yellow]  {overrun}")
    for script in result.silent:
        console.print("[red]script[/red]  ", end="")
        console.print(script, markup=False)
    if result.ok:
        console.print(f"[green]{result.verdict}[/green]")


def show(title: str, result: RunResult, console: Console) -> None:
    """Print a run's title, its lines, its traffic, and whether it has ended and is right."""
    console.print(title, markup=False)
    for line in result.lines:
        console.print(line, markup=False)
    _show_traffic(result, console)
    show_end(result, console)
