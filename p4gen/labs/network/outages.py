"""Links that fail at given times, and recover."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.console import Console

from p4gen.errors import P4genError
from p4gen.labs.session import Lab


def fail_links(lab: Lab, outages: Iterable[tuple[str, str, float, float]], console: Console) -> None:
    """Bring links (two nodes) down and up again at the given seconds from now (up at 0: never), and report it."""
    began = time.monotonic()
    events = []
    for a, b, start, end in outages:
        events += [(start, a, b, False), (end, a, b, True)] if end else [(start, a, b, False)]
    for at, a, b, up in sorted(events):
        time.sleep(max(0.0, began + at - time.monotonic()))
        try:
            lab.network.set_link(a, b, up=up)
            console.print(f"after {time.monotonic() - began:.2f} s: {a}-{b} is {'up' if up else 'down'}")
        except P4genError as error:
            console.print(f"[red]{a}-{b}: {error.diagnostics[0].message}[/red]")
