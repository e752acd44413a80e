"""How the command line says that something is wrong: ``WHERE: error: CAUSE``, whoever noticed it.

``WHERE`` is a position in a file, a flag, or the command. Usage errors have a second line, which says where help is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import click

_LONGEST = 400
"""Characters of a message: what users type may be longer than what they read."""
_NOT_ONE_OF = re.compile(r"'(.*)' is not one of ", re.DOTALL)


def near(word: str, words: Iterable[str]) -> str:
    """``; did you mean 'that'?``, where one of ``words`` is nearly ``word``."""
    found = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean '{found[0]}'?" if found else ""


def usage_error(error: click.ClickException) -> list[str]:
    """The lines that say what is wrong with a command line."""
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
    return [*lines, f"  {who} --help says what there is"] if isinstance(error, click.UsageError) else lines


def _name(parameter: click.Parameter | None) -> str:
    if parameter is None:
        return ""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.human_readable_name.strip("[]")


def _tidy(message: str) -> str:
    """On one line, without a capital at its beginning or a full stop at its end, and not too long."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message.rstrip(".").replace("\n", " "))
    if text[1:2].islower():
        text = text[0].lower() + text[1:]
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
