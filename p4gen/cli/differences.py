"""What differential tests say of a difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from rich.console import Console

from p4gen.difftest.compare import Difference
from p4gen.difftest.events import Packet


class Found(Protocol):
    """The result of a differential test."""

    @property
    def difference(self) -> Difference | None:
        """None if the sides do the same."""
        ...

    @property
    def found_after(self) -> int:
        """The number of packets."""
        ...

    @property
    def reduced(self) -> Sequence[object]:
        """The steps that still show the difference."""
        ...

    @property
    def files(self) -> Sequence[Path]:
        """What reproduces it."""
        ...


def tell_difference(console: Console, result: Found, none: str, *, seeded: bool) -> None:
    """The difference and its files, as good news if a fault is ``seeded``; ``none`` is said where there is none."""
    say = console.print
    if result.difference is None:
        say("[red]the seeded fault was not found[/red]" if seeded else f"[green]{none}[/green]")
        return
    packets = sum(isinstance(step, Packet) for step in result.reduced)
    say(f"[{'green' if seeded else 'red'}]difference[/] after {result.found_after} packets:")
    for line in (result.difference.what, *result.difference.details):
        say(f"  {line}", markup=False)
    say(f"reduced to {packets} packet{'s' * (packets != 1)}:")
    for file in result.files:
        say(f"  {file}")
