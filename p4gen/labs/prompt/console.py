"""The console for a lab's reports."""

from __future__ import annotations

from rich.console import Console

WIDTH = 120
"""Columns where there is no terminal."""


def lab_console(*, quiet: bool = False) -> Console:
    """A console on standard output, as wide as the terminal, or else wide enough for a table."""
    console = Console(highlight=False, soft_wrap=True, quiet=quiet)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=True, quiet=quiet, width=WIDTH)
