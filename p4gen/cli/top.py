"""``p4gen top``: groups and switches of a running manager, live."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from p4gen.cli.options import report_console
from p4gen.errors import FailedError, InputError
from p4gen.manager.api import ManagerError, Status
from p4gen.manager.client import ManagerClient
from p4gen.manager.figures import Figures, figures

ADDRESS_FILE = Path("build/lab/manager")
"""Where the lab that was started last writes its manager's address, under the current directory."""
VARIABLE = "P4GEN_MANAGER"
DEFAULT_INTERVAL_S = 1.0
_ANSWER_S = 10.0
_COLOURS = {"active": "green", "installing": "yellow", "removing": "yellow", "broken": "red"}
_MOST_DROPS = 4
"""Reasons for drops that a switch's row shows, the most frequent ones."""


@click.command()
@click.option("--manager", metavar="ADDRESS", help=f"Of the manager.  [${VARIABLE}, else that of the lab that runs]")
@click.option(
    "--interval", metavar="S", type=click.FloatRange(0.05), help=f"Seconds between two looks.  [{DEFAULT_INTERVAL_S:g}]"
)
@click.option("--once", is_flag=True, help="Look once, print it and end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; with --interval one in each line, for ever.")
def command(manager: str | None, interval: float | None, once: bool, as_json: bool) -> None:
    """Show groups, rates, retransmissions and what switches drop, live.

    A group's rate is its algorithm throughput: the data of the calls that its ranks have finished, over the time.
    """
    with ManagerClient(address_of(manager), timeout=_ANSWER_S) as client:
        try:
            if as_json:
                _print_json(client, None if once else interval)
                return
            console = report_console()
            if once or not console.is_terminal:
                console.print(screen(figures(client.status())))
            else:
                _live(client, console, interval or DEFAULT_INTERVAL_S)
        except ManagerError as error:
            raise FailedError(error.diagnostics[0].message) from None
        except KeyboardInterrupt:
            pass  # the usual way to end it


def address_of(given: str | None) -> str:
    """The manager's address: what is given, the environment's, or the running lab's. Raises ``InputError``."""
    address = given or os.environ.get(VARIABLE)
    if address:
        return address
    try:
        address = ADDRESS_FILE.read_text(encoding="utf-8").strip()
    except OSError:
        address = ""
    if not address:
        raise InputError(
            f"no manager is known: give --manager ADDRESS, or set {VARIABLE}, or start a lab (p4gen lab) from this"
            f" directory, which writes its address to {ADDRESS_FILE}"
        )
    return address


def _looks(client: ManagerClient, interval: float) -> Iterator[Figures]:
    before: Status | None = None
    due = time.monotonic()
    while True:
        now = client.status()
        yield figures(now, before)
        before = now
        due = max(due + interval, time.monotonic())
        time.sleep(max(due - time.monotonic(), 0))


def _print_json(client: ManagerClient, interval: float | None) -> None:
    if interval is None:
        click.echo(json.dumps(figures(client.status())))
        return
    for found in _looks(client, interval):
        click.echo(json.dumps(found))


def _live(client: ManagerClient, console: Console, interval: float) -> None:
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for found in _looks(client, interval):
            live.update(screen(found), refresh=True)


# --- the screen ---


def screen(found: Figures) -> Group:
    """Two tables: groups, switches."""
    groups = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("group", "state", "gen", "root"):
        groups.add_column(title, no_wrap=True)
    for title in ("ranks", "Mb/s", "calls", "sent", "resent", "timeouts", "NAKs", "CNPs"):
        groups.add_column(title, justify="right", no_wrap=True)
    for group in found["groups"]:
        groups.add_row(
            Text(group["name"]),
            Text(group["state"], style=_COLOURS.get(group["state"], "")),
            str(group["generation"]),
            Text(group["root"] or "-"),
            str(group["ranks"]),
            _rate(group["mbps"]),
            *(str(group[name]) for name in ("invocations", "sent")),
            *(Text(str(group[name]), style="yellow" if group[name] else "") for name in ("resent", "timeouts")),
            *(str(group[name]) for name in ("naks", "cnps")),
        )
    parts: list[Table | Text] = [groups if found["groups"] else Text("no groups")]
    parts += [Text(f"  {g['name']}: {g['reason']}", style="red") for g in found["groups"] if g["reason"]]
    parts += [Text(), _switches(found)]
    return Group(*parts)


def _switches(found: Figures) -> Table | Text:
    if not found["switches"]:
        return Text("no switches")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("switch", no_wrap=True)
    table.add_column("reachable", no_wrap=True)
    for title in ("contexts", "slots", "entries", "ticks/s"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("links down")
    table.add_column("drops (per second)")
    for switch in found["switches"]:
        reachable = Text("yes") if switch["reachable"] else Text(f"no: {switch['problem']}", style="red")
        table.add_row(
            Text(switch["name"]),
            reachable,
            f"{switch['contexts']}/{switch['contexts_total']}",
            f"{switch['slots']}/{switch['slots_total']}",
            str(switch["entries"]),
            f"{switch['ticks_per_second']:.0f}",
            Text(" ".join(switch["links_down"]) or "-", style="red" if switch["links_down"] else ""),
            Text(_drops(switch)),
        )
    return table


def _drops(switch: Figures) -> str:
    counts: dict[str, int] = switch["drops"]
    rates: dict[str, float] = switch["drops_per_second"] or {}
    most = sorted(counts, key=lambda name: -counts[name])
    shown = [f"{name} {counts[name]}" + (f" ({rates[name]:.0f})" if name in rates else "") for name in most]
    more = f", {len(most) - _MOST_DROPS} more" if len(most) > _MOST_DROPS else ""
    return ", ".join(shown[:_MOST_DROPS]) + more if shown else "-"


def _rate(mbps: float | None) -> str:
    return "-" if mbps is None else f"{mbps:.1f}"
