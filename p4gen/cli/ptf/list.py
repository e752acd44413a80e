"""``p4gen ptf list``: the scenarios that apply to a program."""

from __future__ import annotations

from typing import Any

from p4gen.cli.options import json_option, spec_options
from p4gen.cli.ptf.options import tests_option
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("--mode III", "all that apply, and what each shows"),
        ("--mode II --test test_order --json", "those of one file, as JSON"),
    ]
)
@spec_options
@json_option
@tests_option
def command(**options: Any) -> None:
    """List the scenarios that apply to a program, and those that need another one, with the reason."""
    from p4gen.cli.ptf.do_list import do  # noqa: PLC0415 - wrong options are refused without it

    do(**options)
