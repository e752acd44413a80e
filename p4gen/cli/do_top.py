"""The work of ``p4gen top``: groups, connections and switches of a running manager, live."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from p4gen.cli.defaults import MANAGER_VARIABLE, TOP_INTERVAL_S
from p4gen.cli.options import report_console
from p4gen.errors import FailedError, InputError
from p4gen.manager.api import ManagerError, Status
from p4gen.manager.remote.client import ManagerClient
from p4gen.manager.statistics import Statistics, connection_lines, statistics
from p4gen.switch.address import checked, listens

ADDRESS_FILE = Path("build/lab/manager")
"""Where the lab started last writes its manager's address, under the current directory."""


_ANSWER_S = 10.0


_COLOURS = {"active": "green", "installing": "yellow", "removing": "yellow", "broken": "red"}


_COLUMNS = {
    "calls": "invocations", "sent": "sent", "resent": "resent", "timeouts": "timeouts", "NAKs": "naks", "CNPs": "cnps",
}  # fmt: skip
"""Titles of a group's counters, and their names."""


_WARN = ("resent", "timeouts")


def do(manager: str | None, tls: Path | None, interval: float | None, once: bool, as_json: bool) -> None:
    """Run the command with these options."""
    with ManagerClient(address_of(manager), timeout=_ANSWER_S, tls=tls) as client:
        try:
            if as_json:
                _print_json(client, None if once else interval)
                return
            console = report_console()
            if once or not console.is_terminal:
                console.print(screen(statistics(client.status())), crop=False)
            else:
                _live(client, console, interval or TOP_INTERVAL_S)
        except ManagerError as error:
            raise FailedError(error.diagnostics[0].message) from None
        except KeyboardInterrupt:
            pass  # the usual way to end


def address_of(given: str | None) -> str:
    """The manager's address: the given one, the environment's, or the running lab's. Raises ``InputError``."""
    address = given or os.environ.get(MANAGER_VARIABLE)
    if address:
        return checked(address)
    try:
        newest_first = ADDRESS_FILE.read_text(encoding="utf-8").split()[::-1]
    except OSError:
        newest_first = []
    # A line for each lab that runs; one that was killed may have left its own.
    address = next(filter(listens, newest_first), newest_first[0] if newest_first else "")
    if not address:
        raise InputError(
            f"no manager is known: give --manager ADDRESS, set {MANAGER_VARIABLE}, or start a lab (p4gen lab) from this"
            f" directory, which writes its address to {ADDRESS_FILE}"
        )
    return address


def _looks(client: ManagerClient, interval: float) -> Iterator[Statistics]:
    before: Status | None = None
    due = time.monotonic()
    while True:
        now = client.status()
        yield statistics(now, before)
        before = now
        due = max(due + interval, time.monotonic())
        time.sleep(max(due - time.monotonic(), 0))


def _print_json(client: ManagerClient, interval: float | None) -> None:
    if interval is None:
        click.echo(json.dumps(statistics(client.status())))
        return
    for found in _looks(client, interval):
        click.echo(json.dumps(found))


def _live(client: ManagerClient, console: Console, interval: float) -> None:
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for found in _looks(client, interval):
            live.update(screen(found), refresh=True)


def screen(found: Statistics) -> Group:
    """Tables of groups, switches, connections, what came of RDMA CM, and switches' drops."""
    groups = _table(("group", "state", "gen", "root"), "ranks", "Mb/s", *_COLUMNS)
    for group in found["groups"]:
        groups.add_row(
            Text(group["name"]),
            Text(group["state"], style=_COLOURS.get(group["state"], "")),
            str(group["generation"]),
            Text("ring" if group["ring"] else _roots(group) or "-"),
            str(group["ranks"]),
            "-" if group["mbps"] is None else f"{group['mbps']:.1f}",
            *(_count(group[name], warn=name in _WARN) for name in _COLUMNS.values()),
        )
    parts: list[Table | Text] = [groups if found["groups"] else Text("no groups")]
    parts += [Text(f"  {g['name']}: {g['reason']}", style="red") for g in found["groups"] if g["reason"]]
    parts += [Text(), _switches(found) if found["switches"] else Text("no switches")]
    if found["connections"]:
        parts += [Text(), _connections(found)]
    if found["handshakes"]:
        counts = (f"{what} {number}" for what, number in found["handshakes"].items())
        parts += [Text(), Text(f"RDMA CM: {', '.join(counts)}")]
    if any(switch["drops"] for switch in found["switches"]):
        parts += [Text(), _drops(found)]
    return Group(*parts)


def _table(left: Iterable[str], *right: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for title in left:
        table.add_column(title, no_wrap=True)
    for title in right:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _count(number: int, *, warn: bool) -> Text:
    return Text(str(number), style="yellow" if warn and number else "")


def _switches(found: Statistics) -> Table:
    table = _table(("switch",), "contexts", "slots", "entries", "ticks/s")
    table.add_column("links down to")
    table.add_column("reachable")
    for switch in found["switches"]:
        table.add_row(
            Text(switch["name"]),
            f"{switch['contexts']}/{switch['contexts_total']}",
            f"{switch['slots']}/{switch['slots_total']}",
            str(switch["entries"]),
            f"{switch['ticks_per_second']:.0f}",
            Text(" ".join(switch["links_down"]) or "-", style="red" if switch["links_down"] else ""),
            Text("yes") if switch["reachable"] else Text(f"no: {switch['problem']}", style="red"),
        )
    return table


def _connections(found: Statistics) -> Text:
    """Lines that are not cut to the terminal's width, unless it is a live one."""
    titles, *rows = connection_lines(found["connections"])
    return Text("\n", no_wrap=True, overflow="ignore").join([Text(titles, style="bold"), *map(Text, rows)])


def _drops(found: Statistics) -> Table:
    table = _table(("switch", "drops"), "packets", "per second")
    for switch in found["switches"]:
        rates: dict[str, float] = switch["drops_per_second"] or {}
        for reason, packets in sorted(switch["drops"].items(), key=lambda item: -item[1]):
            rate = f"{rates[reason]:.0f}" if reason in rates else "-"
            table.add_row(Text(switch["name"]), Text(reason), str(packets), rate)
    return table


def _roots(group: Statistics) -> str:
    """The root of a group's tree, or those of all its trees."""
    above = [each["tree"] for each in group["trees"]] or [group["tree"]]
    return " ".join(name for tree in above for name, parent in tree.items() if parent is None)
