"""What the commands of ``p4gen ptf`` share."""

from __future__ import annotations

import random

import click

seed_option = click.option("--seed", type=int, default=None, help="Seed of all random choices.  [drawn, and printed]")
tests_option = click.option(
    "--test", "tests", multiple=True, metavar="MODULE[.CLASS]", help="Only these scenarios; may be repeated."
)


def drawn(seed: int | None) -> int:
    """The seed that is given, or a random one."""
    return random.SystemRandom().randrange(1 << 32) if seed is None else seed
