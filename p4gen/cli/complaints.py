"""The form of all error messages of the command line: ``WHERE: error: CAUSE``.

``WHERE`` is a position in a file, a flag, or the command. Usage errors have a second line, which points to the help.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import click

_LONGEST = 400
"""Characters of a message; longer input is shortened."""
_NOT_ONE_OF = re.compile(r"'(.*)' is not one of ", re.DOTALL)


def near(word: str, words: Iterable[str]) -> str:
    """``; did you mean 'that'?`` if one of ``words`` is similar to ``word``."""
    found = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean '{found[0]}'?" if found else ""


def usage_error(error: click.ClickException) -> list[str]:
    """The lines that report an error in a command line."""
    context = getattr(error, "ctx", None)
    who = context.command_path if context is not None else "p4gen"
    where, message = who, error.format_message()
    if isinstance(error, click.NoSuchOption):
        options = [option for p in context.command.params for option in p.opts] if context is not None else []
        message = f"no such option '{error.option_name}'{near(error.option_name, [*options, '--help'])}"
    elif isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        where, message = _name(error.param) or who, error.message
        wrong = _NOT_ONE_OF.match(message)
        if wrong and error.param is not None and isinstance(error.param.type, click.Choice):
            message = message.rstrip(".") + near(wrong[1], map(str, error.param.type.choices))
    lines = [f"{where}: error: {_tidy(message)}"]
    return [*lines, f"  {who} --help lists what is possible"] if isinstance(error, click.UsageError) else lines


def _name(parameter: click.Parameter | None) -> str:
    if parameter is None:
        return ""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.human_readable_name.strip("[]")


def _tidy(message: str) -> str:
    """A message on one line, without a capital at its beginning or a full stop at its end, and not too long."""
    text = "".join(
        c if c.isprintable() else repr(c)[1:-1] for c in message.rstrip(".").replace("\n\t", " ").replace("\n", " ")
    )
    if text[1:2].islower():
        text = text[0].lower() + text[1:]
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
