"""The seed of a command: given, or that of the environment, or drawn. It imports nothing of p4gen, see ``verb``."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import click

from p4gen.cli.verb import SEED

VARIABLE: Final = "P4GEN_SEED"
"""The environment variable with the seed of commands that are not given one, such as all of a script."""


def seed_option(what: str) -> Callable[[Any], Any]:
    """The option ``--seed`` of a command; ``what`` ends the help's sentence "Seed of …". See ``drawn``."""
    return click.option(
        "--seed", type=SEED, default=None, envvar=VARIABLE, help=f"Seed of {what}  [{VARIABLE}, or drawn; printed]"
    )


def drawn(seed: int | None) -> int:
    """The value of the option, or a random seed if there is none."""
    return random.SystemRandom().randrange(1 << 32) if seed is None else seed
