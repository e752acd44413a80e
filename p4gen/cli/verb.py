"""The base of every verb: its help, its examples, its options in groups. It imports little of p4gen, so that verbs
start quickly."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from p4gen.errors import Option, P4genError
from p4gen.inputs import SEEDS

_WORDS: Final = f"{__name__}.words"
_ALL: Final = f"{__name__}.all"


class GroupedOption(click.Option):
    """An option in its own section of ``--help``."""

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group

    def record_for(self, ctx: click.Context, given: Mapping[str, str]) -> tuple[str, str] | None:
        """The option's line in the help of a command line with these options, by name; None if it does not go with
        them."""
        return self.get_help_record(ctx)


class Verb(click.Command):
    """A command whose ``--help`` has its options in groups, and ends with examples: (arguments, what they do).

    Help lists the options that go with the rest of the command line, as in ``--mode III --help``; ``--help-all`` lists
    all of them.
    """

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments; help needs them as they were given."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors that name an option name its flag."""
        try:
            return super().invoke(ctx)
        except P4genError as error:
            error.place(lambda where: self._flag(where) if isinstance(where, Option) else where)
            raise

    def _flag(self, option: Option) -> str:
        """The flag that gives an option; options whose flag has another name are known by the parameter's."""
        flags = (each.opts[0] for each in self.params if each.name == option and each.opts[0].startswith("--"))
        return next(flags, f"--{option.replace('_', '-')}")

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, and ``--help-all`` where help may leave options out."""
        found = super().get_params(ctx)
        if not any(isinstance(each, GroupedOption) for each in found):
            return found
        everything = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_help_all,
            help="Show also the options of other modes and families, and exit.",
        )
        return [*found[:-1], everything, *found[-1:]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then each group's."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        given = _given(ctx.meta.get(_WORDS, ()))
        left = 0
        for parameter in self.get_params(ctx):
            group, record = "Options", parameter.get_help_record(ctx)
            if isinstance(parameter, GroupedOption):
                group = parameter.group
                if _ALL not in ctx.meta:
                    record = parameter.record_for(ctx, given)
                    left += record is None
            if record is not None:
                groups.setdefault(group, []).append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        if left:
            formatter.write_paragraph()
            formatter.write_text(
                f"{left} options of other modes and families are left out: add --mode NAME or --family NAME, or use "
                "--help-all."
            )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verb's examples behind the rest of the help."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write_dl([(f"{ctx.command_path} {words}".rstrip(), what) for words, what in self.examples])


def _given(words: Sequence[str]) -> dict[str, str]:
    """The values of options on a command line, by name, as far as they are written ``--name value`` or
    ``--name=value``."""
    found = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
            found[name.replace("-", "_")] = value if sign else following
    return found


def _help_all(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


verb = functools.partial(click.command, cls=Verb)
"""``click.command`` for a verb; ``examples`` are (arguments, what they do)."""


class FiniteRange(click.FloatRange):
    """A number within bounds, without ``nan`` and ``inf``, which ``click.FloatRange`` accepts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails if it is not finite, or out of bounds."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


SEED = click.IntRange(0, SEEDS - 1)
"""A seed of random number generators."""
