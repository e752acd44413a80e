"""Groups of commands, whose modules are loaded only when a command is called."""

from __future__ import annotations

import importlib
import os.path
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from p4gen.cli.complaints import near


class Commands(click.Group):
    """Commands by name: each is the ``command`` of the module of its name in ``package``.

    A command line that names none is one of ``default``, if the group has that. ``flags`` are those that asked for a
    command before it had a name: ``--list``, or ``--sweep=`` for a flag whose value is now the first argument.
    ``sections`` are the titles under which help lists the commands.
    """

    def __init__(
        self,
        *args: Any,
        package: str,
        about: Mapping[str, str],
        default: str = "",
        flags: Mapping[str, str] | None = None,
        sections: Mapping[str, Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.package, self.about, self.default, self.flags = package, about, default, flags or {}
        self.sections = sections or {"Commands": tuple(about)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of ``about``."""
        return list(self.about)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, whose module is loaded now."""
        if cmd_name not in self.about:
            return None
        command = importlib.import_module(f"{self.package}.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, after the name of the default command where they name none."""
        # A shell that asks what can follow the group's name gets both: names, and the default command's arguments.
        asked = ctx.resilient_parsing and not args
        if self.default and not asked and (not args or args[0] not in (*self.about, *ctx.help_option_names)):
            args = self._named(ctx, args)
        return super().parse_args(ctx, args)

    def _named(self, ctx: click.Context, args: list[str]) -> list[str]:
        for i, word in enumerate(args):
            flag, _, value = word.partition("=")
            if word in self.flags:
                return [self.flags[word], *args[:i], *args[i + 1 :]]
            if f"{flag}=" in self.flags:
                values, after = ([value], i + 1) if "=" in word else (args[i + 1 : i + 2], i + 2)
                return [self.flags[f"{flag}="], *values, *args[:i], *args[after:]]
        if args and not args[0].startswith("-") and near(args[0], self.about) and not os.path.exists(args[0]):
            self._unknown(ctx, args[0])
        return [self.default, *args]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names; the error suggests a similar name."""
        if args and args[0] and args[0] not in self.about and not args[0].startswith("-"):
            self._unknown(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _unknown(self, ctx: click.Context, name: str) -> None:
        if not ctx.resilient_parsing:
            ctx.fail(f"there is no command '{name}'{near(name, self.about)}")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names with their summaries, without loading any, and the default command's arguments; otherwise options."""
        found = [CompletionItem(name, help=text) for name, text in self.about.items() if name.startswith(incomplete)]
        default = self.get_command(ctx, self.default)
        if default is None:
            return super().shell_complete(ctx, incomplete) if incomplete.startswith("-") else found
        with default.make_context(self.default, [], parent=ctx, resilient_parsing=True) as context:
            if incomplete.startswith("-"):
                return default.shell_complete(context, incomplete)
            arguments = (each for each in default.params if isinstance(each, click.Argument))
            return [*found, *(item for each in [*arguments][:1] for item in each.shell_complete(context, incomplete))]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the commands do, and which one is the default."""
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.about[name]) for name in names])
        if self.default:
            path = ctx.command_path
            formatter.write_paragraph()
            formatter.write_text(
                f"'{path} ...' without the name of a command is '{path} {self.default} ...'. "
                f"'{path} COMMAND --help' lists the options of a command."
            )
