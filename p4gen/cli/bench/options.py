"""What the commands of ``p4gen bench`` share: programs, of which there may be several, and the load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from p4gen.cli.options import spec_flags

F = TypeVar("F", bound=Callable[..., Any])


def programs(function: F) -> F:
    """Files with specs and flags, each of which may be given several times: for several programs."""
    files = click.argument("spec_files", metavar="[SPEC.yaml ...]", nargs=-1, type=click.Path(path_type=Path))
    return files(spec_flags(function, multiple=True))


packets_option = click.option(
    "--packets", type=click.IntRange(min=8), default=12_000, show_default=True, help="Packets of the load."
)
seed_option = click.option("--seed", type=int, default=1, show_default=True, help="Seed of what is drawn.")
