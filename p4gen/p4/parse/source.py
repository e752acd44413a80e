"""Source text after preprocessing, positions within it, and the collection of diagnostics.

The front end works on one text, the preprocessor's output, and names places in it by offset. An
offset is turned into a ``Pos`` only where one is reported or put into the IR.

``Pos`` is always the place in the file that was read: the ``.p4`` file, or a header it includes.
Where a ``#line`` directive says that this line was made from another file (a template), the
presumed place is kept too, and a diagnostic names it in a note.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from p4gen.errors import Diagnostic, InputError, Pos


class P4Error(InputError):
    """The P4 program is wrong, or uses what this front end does not support."""


@dataclass(frozen=True)
class Line:
    """Where one line of preprocessed text came from. ``columns`` maps offsets in the line to
    columns of the file (pairs, ascending) where macros moved its tokens."""

    file: str
    number: int
    columns: tuple[tuple[int, int], ...] | None = None
    origin: tuple[str, int] | None = None


@dataclass(frozen=True)
class Source:
    """Preprocessed text: ``starts[i]`` is the offset of the line described by ``lines[i]``."""

    text: str
    starts: Sequence[int]
    lines: Sequence[Line]
    files: Mapping[str, Sequence[str]]
    _cache: dict[int, Pos] = field(default_factory=dict, repr=False, compare=False)

    def pos(self, offset: int) -> Pos:
        """The place in the file read that the text at ``offset`` came from."""
        found = self._cache.get(offset)
        if found is None:
            line, column = self._locate(offset)
            found = self._cache[offset] = Pos(line.file, line.number, column)
        return found

    def known(self) -> list[tuple[int, Pos]]:
        """The offsets for which ``pos`` was called so far, each with its place."""
        return list(self._cache.items())

    def origin(self, offset: int) -> Pos | None:
        """The place that a ``#line`` directive gives for ``offset``, if one does."""
        line, _ = self._locate(offset)
        return Pos(line.origin[0], line.origin[1], 1) if line.origin else None

    def line_text(self, pos: Pos) -> str | None:
        """The line of the file that ``pos`` is in, as it was written."""
        lines = self.files.get(pos.file)
        return lines[pos.line - 1].rstrip() if lines is not None and 0 < pos.line <= len(lines) else None

    def _locate(self, offset: int) -> tuple[Line, int]:
        index = max(bisect_right(self.starts, offset) - 1, 0)
        line = self.lines[index]
        within = offset - self.starts[index]
        if line.columns is None:
            return line, within + 1
        at = bisect_right(line.columns, (within, 1 << 30)) - 1
        return line, line.columns[max(at, 0)][1]


class Reported(Exception):  # noqa: N818 - not an error of its own: that is on record
    """Raised after an error has been recorded, to leave the construct that has no meaning because of it."""


class Reporter:
    """Collects the errors and warnings of one run, each once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: dict[tuple[int, str], Diagnostic] = {}
        self.failed = False

    def error(self, at: int, message: str, *notes: tuple[int, str]) -> None:
        """Record an error at offset ``at``; ``notes`` point at other declarations involved."""
        self.failed = True
        self._add(at, message, "error", notes)

    def fail(self, at: int, message: str, *notes: tuple[int, str]) -> NoReturn:
        """Record an error and leave the construct."""
        self.error(at, message, *notes)
        raise Reported

    @property
    def count(self) -> int:
        """The number of errors and warnings so far."""
        return len(self._found)

    def warn(self, at: int, message: str, *notes: tuple[int, str]) -> None:
        """Record a warning at offset ``at``; ``notes`` point at other declarations involved."""
        self._add(at, message, "warning", notes)

    def _add(self, at: int, message: str, severity: str, notes: tuple[tuple[int, str], ...]) -> None:
        if (at, message) in self._found:
            return
        pos = self.source.pos(at)
        places = [(self.source.pos(offset), text) for offset, text in notes]
        origin = self.source.origin(at)
        if origin is not None:
            places.append((origin, "this line was generated from here"))
        self._found[at, message] = Diagnostic(pos, message, severity, tuple(places), self.source.line_text(pos))

    def warnings(self) -> list[Diagnostic]:
        """The warnings so far, in order of position."""
        return [d for _, d in sorted(self._found.items()) if d.severity == "warning"]

    def errors(self) -> list[Diagnostic]:
        """The errors so far, in order of position."""
        return [d for _, d in sorted(self._found.items()) if d.severity == "error"]

    def raise_if_failed(self) -> None:
        """Raise ``P4Error`` with everything found, if there is an error among it."""
        if self.failed:
            raise P4Error(*(d for _, d in sorted(self._found.items())))


class Quiet(Reporter):
    """Takes the errors of a trial parse, which are not the program's."""


@contextmanager
def not_too_deep(name: str) -> Iterator[None]:
    """Raise ``P4Error`` in place of a ``RecursionError``: the program ``name`` is nested too deeply."""
    try:
        yield
    except RecursionError:
        raise P4Error(Diagnostic(name, "the program is nested too deeply for this compiler")) from None
