"""The base of every verb: its help, its examples, its options in groups. It imports nothing of p4gen, so that verbs
start quickly."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import click


class GroupedOption(click.Option):
    """An option in its own section of ``--help``."""

    def __init__(self, *args: Any, group: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class Verb(click.Command):
    """A command whose ``--help`` has its options in groups, and ends with examples: (arguments, what they do)."""

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then each group's."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                group = parameter.group if isinstance(parameter, GroupedOption) else ""
                groups.setdefault(group or "Options", []).append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write_dl([(f"{ctx.command_path} {words}".rstrip(), what) for words, what in self.examples])


verb = functools.partial(click.command, cls=Verb)
"""``click.command`` for a verb; ``examples`` are (arguments, what they do)."""


class FiniteRange(click.FloatRange):
    """A number within bounds, without ``nan`` and ``inf``, which ``click.FloatRange`` accepts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


SEED = click.IntRange(0, (1 << 64) - 1)
"""A seed of random number generators."""
