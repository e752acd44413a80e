"""What the commands of ``p4gen ptf`` share."""

from __future__ import annotations

import click

tests_option = click.option(
    "--test", "tests", multiple=True, metavar="MODULE[.CLASS]", help="Only these scenarios; may be repeated."
)
