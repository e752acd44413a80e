"""Options that need nothing of p4gen, for verbs that are to start quickly."""

from __future__ import annotations

import click

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
