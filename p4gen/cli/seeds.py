"""The seed of a command: given, or that of the environment, or drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from p4gen.cli.verb import SEED

VARIABLE: Final = "P4GEN_SEED"
"""The environment variable with the seed of commands that are not given one, such as all of a script."""


def seed_option(what: str) -> Callable[[Any], Any]:
    """The option ``--seed`` of a command; ``what`` ends the help's sentence "Seed of …". See ``p4gen.inputs.drawn``."""
    return click.option(
        "--seed", type=SEED, default=None, envvar=VARIABLE, help=f"Seed of {what}  [{VARIABLE}, or drawn; printed]"
    )
