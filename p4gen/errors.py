"""Errors that p4gen reports to its user: one line of cause and, where there is one, a position.

Library code raises these; only ``p4gen.cli`` prints them and turns them into exit codes.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final


@dataclass(frozen=True, slots=True, order=True)
class Pos:
    """A position in a source file; ``line`` and ``column`` count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Option(str):
    """The name of an option, as the place of a diagnostic: an argument of a function, or a flag of the command line."""

    __slots__ = ()


_LONGEST_MESSAGE: Final = 1000
"""Characters of a line of a message."""
_LONGEST_LINE: Final = 200
"""Characters of a source line that are shown, around the place that is meant."""


def _readable(message: str) -> str:
    """Lines that quote a user's endless word lose their middle."""
    half = _LONGEST_MESSAGE // 2
    return "\n".join(
        line if len(line) <= _LONGEST_MESSAGE else f"{line[:half]}…{line[-half:]}" for line in message.split("\n")
    )


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One complaint about an input: where (a ``Pos``, an ``Option``, or other words), and why."""

    where: Pos | str | None
    message: str
    severity: str = "error"
    notes: tuple[tuple[Pos, str], ...] = ()
    source_line: str | None = None

    def __str__(self) -> str:
        head = f"{self.where}: " if self.where is not None else ""
        lines = [f"{head}{self.severity}: {_readable(self.message)}"]
        if self.source_line is not None and isinstance(self.where, Pos):
            start = max(0, self.where.column - 1 - _LONGEST_LINE // 2)
            part = "".join(c if c.isprintable() or c == "\t" else " " for c in self.source_line[start:][:_LONGEST_LINE])
            lines.append(f"    {part}")
            # Tabs stay tabs so that the caret lands under its character.
            indent = "".join("\t" if c == "\t" else " " for c in part[: self.where.column - 1 - start])
            lines.append(f"    {indent}^")
        lines.extend(f"{pos}: note: {text}" for pos, text in self.notes)
        return "\n".join(lines)


_MOST: Final = 20
"""Diagnostics that are printed of one error."""


class P4genError(Exception):
    """The base of p4gen's own errors; carries one or more diagnostics."""

    exit_code: ClassVar[int] = 2

    def __init__(self, *diagnostics: Diagnostic | str) -> None:
        self.diagnostics = tuple(d if isinstance(d, Diagnostic) else Diagnostic(None, d) for d in diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))

    def lines(self, who: str = "p4gen") -> list[str]:
        """What a user is told: the first diagnostics, and how many more there are. ``who`` says it where there is no
        position."""
        found = [str(d) if d.where else f"{who}: {d}" for d in self.diagnostics[:_MOST]]
        more = len(self.diagnostics) - _MOST
        return [*found, f"{who}: error: and {more:,} more errors"] if more > 0 else found

    def place(self, shown: Callable[[Pos | str | None], Pos | str | None]) -> None:
        """Name the places of all diagnostics as ``shown`` says."""
        self.diagnostics = tuple(replace(d, where=shown(d.where)) for d in self.diagnostics)
        self.args = ("\n".join(str(d) for d in self.diagnostics),)

    @property
    def reason(self) -> str:
        """The messages alone, a line each: to be quoted in another error's."""
        return "\n".join(d.message for d in self.diagnostics)

    def __reduce__(self) -> tuple[type[P4genError], tuple[Diagnostic, ...]]:
        """Errors travel between processes with their diagnostics, not with their text."""
        return type(self), self.diagnostics


class InputError(P4genError):
    """What the user asked for, or handed in, is wrong (exit 2)."""


class FailedError(P4genError):
    """What was asked for was tried and does not hold (exit 1)."""

    exit_code: ClassVar[int] = 1


class MissingToolError(P4genError):
    """A tool that this verb needs is not on this machine (exit 3)."""

    exit_code: ClassVar[int] = 3


_FULL_OR_READ_ONLY = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def storage_trouble(error: OSError) -> str | None:
    """What to say of an error that only a place to write to can mend: a disk that is full, or may not be written. None
    for any other, which may be a defect."""
    if error.errno not in _FULL_OR_READ_ONLY:
        return None
    return f"{error.filename}: {error.strerror}" if error.filename else f"cannot write: {error.strerror}"
