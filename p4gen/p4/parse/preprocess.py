"""The C preprocessor of P4 programs (P4_16 specification 6.1), with true positions.

Directives and files are handled here, line by line, so that every token keeps its line and
column; pcpp expands macros and evaluates ``#if`` conditions, on the few lines that need it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pcpp.preprocessor import Preprocessor as Pcpp

from p4gen.arch import architectures
from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.inputs import read_text
from p4gen.p4.parse.source import Line, P4Error, Source

_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_DIRECTIVE = re.compile(r"\s*#\s*([A-Za-z_]+|\d+)?(.*)", re.DOTALL)
_INVALID = re.compile(r"\{\s*#\s*\}")
_INCLUDE = re.compile(r'\s*(?:"([^"]+)"|<([^>]+)>)\s*$')
_LINE = re.compile(r'\s*(\d+)(?:\s+"([^"]*)")?')
_NAME = re.compile(r"[A-Za-z_]\w*")
_MAX_DEPTH = 64
_SHOWN = 100
"""Characters of a file's name in a message."""
_CONDITIONALS = {"if", "ifdef", "ifndef", "elif", "else", "endif"}
PRELUDE = "<p4gen>/"
"""The prefix, in positions, of the names of headers that come with p4gen or with an architecture."""


class _Macros(Pcpp):  # type: ignore[misc]
    """pcpp as a macro engine. It stores its error message instead of writing it to stderr."""

    def __init__(self) -> None:
        super().__init__()
        self.complaint: str | None = None
        # Remove pcpp's predefined macros (date, time), which P4 does not have.
        self.macros.clear()

    def on_error(self, file: str, line: int, msg: str) -> None:
        self.complaint = self.complaint or msg


TARGET = "__TARGET_BMV2__"
"""A macro that p4c and this front end define for BMv2; this one does unless another target's is given, such as
``__TARGET_TOFINO__=2``."""


def preprocess(
    name: str, text: str, defines: Iterable[str] = (), includes: Iterable[str | Path] = (), folder: Path | None = None
) -> Source:
    """Preprocess ``text``, called ``name`` in positions.

    ``defines`` are ``NAME`` or ``NAME=value``; ``includes`` are folders searched before the
    package's prelude, after ``folder`` (where the file is) for the ``"…"`` form.
    Raises ``P4Error`` for malformed directives and files that cannot be read.
    """
    run = _Run([Path(i) for i in includes])
    defines = list(defines)
    own = [] if any(d.startswith("__TARGET_") for d in defines) else [TARGET]
    for define in (*own, *defines):
        macro, _, value = define.partition("=")
        if not _NAME.fullmatch(macro.split("(")[0]):
            raise P4Error(Diagnostic(f"-D{define}", "a macro's name must be an identifier"))
        run.engine.define(f"{macro} {value or 1}")
    run.file(name, text, folder, 0)
    if not run.lines:
        run.emit("", Line(name, 1))
    return Source("\n".join(run.out) + "\n", run.starts, run.lines, run.files)


class _Run:
    """One preprocessing run: the macros so far and the output so far."""

    def __init__(self, includes: list[Path]) -> None:
        self.includes = includes
        self.engine = _Macros()
        self.out: list[str] = []
        self.starts: list[int] = []
        self.lines: list[Line] = []
        self.files: dict[str, list[str]] = {}
        self.size = 0
        self.pattern: re.Pattern[str] | None = None
        self.stale = True

    def error(self, name: str, number: int, column: int, message: str) -> P4Error:
        lines = self.files.get(name, [])
        text = lines[number - 1].rstrip() if 0 < number <= len(lines) else None
        return P4Error(Diagnostic(Pos(name, number, column), message, source_line=text))

    def emit(self, text: str, line: Line) -> None:
        self.out.append(text)
        self.starts.append(self.size)
        self.lines.append(line)
        self.size += len(text) + 1

    def macro_pattern(self) -> re.Pattern[str] | None:
        """Matches a use of any macro defined; rebuilt when the definitions change."""
        if self.stale:
            self.pattern = re.compile(rf"\b(?:{'|'.join([*self.engine.macros, '__LINE__', '__FILE__'])})\b")
            self.stale = False
        return self.pattern

    def file(self, name: str, text: str, folder: Path | None, depth: int) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        raw = text.split("\n")
        self.files[name] = raw
        blanked, in_string = self.blank_comments(name, text)
        clean = blanked.split("\n")
        # Each conditional in force: is this branch taken, was one taken, is the whole in a live region.
        stack: list[tuple[bool, bool, bool]] = []
        opened: list[int] = []
        origin: tuple[str, int] | None = None
        numbered = iter(range(len(clean)))
        for index in numbered:
            line = clean[index]
            live = not stack or stack[-1][0]
            if index in in_string and (not line or line.lstrip().startswith("#") or not live):
                # Whatever becomes of the line, it is a line of the string.
                self.emit("", Line(name, index + 1))
            if "#" in line and line.lstrip().startswith("#") and not line.lstrip().startswith("#}"):
                whole, used = _join(clean, index)
                for _ in range(used):
                    next(numbered, None)
                match = _DIRECTIVE.match(whole)
                directive, rest = (match.group(1) or "", match.group(2)) if match else ("", "")
                column = len(line) - len(line.lstrip()) + 1
                if directive in _CONDITIONALS:
                    self.conditional(name, index + 1, column, directive, rest, stack, opened)
                elif live and (directive == "line" or directive.isdigit()):
                    moved = _LINE.match(rest if directive == "line" else directive + rest)
                    if moved is None:
                        raise self.error(name, index + 1, column, "#line needs a line number")
                    where = moved.group(2) or (origin[0] if origin else name)
                    origin = (where, int(moved.group(1)) - index - used - 2)
                elif live:
                    self.directive(name, index + 1, column, directive, rest, folder, depth)
                continue
            if not live:
                continue
            presumed = (origin[0], origin[1] + index + 1) if origin else None
            pattern = self.macro_pattern()
            if line.endswith("\\"):
                line = line[:-1]
            if pattern is None or not pattern.search(line):
                if line:
                    self.emit(line, Line(name, index + 1, None, presumed))
                continue
            line = self.whole_call(line, clean, numbered)
            self.expand(name, index + 1, line, presumed)
        if opened:
            raise self.error(name, opened[-1], 1, "this conditional has no #endif")

    def blank_comments(self, name: str, text: str) -> tuple[str, set[int]]:
        """``text`` with blanks for its comments, and the indices of the lines that begin within a string."""
        in_string: set[int] = set()

        def blank(match: re.Match[str]) -> str:
            found = match.group()
            if found[0] == '"':
                first = text.count("\n", 0, match.start()) if "\n" in found else 0
                in_string.update(range(first + 1, first + 1 + found.count("\n")))
                return found
            if found.startswith("/*") and not (found.endswith("*/") and len(found) >= 4):
                before = text[: match.start()]
                number = before.count("\n") + 1
                column = match.start() - (before.rfind("\n") + 1) + 1
                raise self.error(name, number, column, "this comment is never closed")
            return _BLANK.sub(" ", found)

        return _COMMENT.sub(blank, text), in_string

    def whole_call(self, line: str, lines: list[str], numbered: Iterator[int]) -> str:
        """``line`` with as many following lines as it takes to close its parentheses, where it
        calls a function-like macro."""
        calls = any((m := self.engine.macros.get(n)) is not None and m.arglist is not None for n in _NAME.findall(line))
        while calls and line.count("(") > line.count(")"):
            index = next(numbered, None)
            if index is None or lines[index].lstrip().startswith("#"):
                break
            line += " " + lines[index]
        return line

    def expand(self, name: str, number: int, line: str, origin: tuple[str, int] | None) -> None:
        line = re.sub(r"\b__LINE__\b", str(number), re.sub(r"\b__FILE__\b", lambda _: f'"{name}"', line))
        tokens = self.engine.tokenize(line)
        for token in tokens:
            token.place = token.lexpos + 1
        ours = {id(t): t.place for t in tokens}
        try:
            expanded = self.engine.expand_macros(tokens)
        except Exception as problem:  # pcpp raises bare exceptions on malformed uses
            raise self.error(name, number, 1, f"cannot expand the macros on this line: {problem}") from None
        self.complain(name, number, 1)
        parts: list[str] = []
        columns: list[tuple[int, int]] = []
        size, last = 0, 1
        macros = [m.start() + 1 for m in (self.pattern.finditer(line) if self.pattern else ())]
        for token in expanded:
            if id(token) in ours:
                last = ours[id(token)]
                place = last
            else:
                # A token that a macro made stands at the macro's name.
                place = next((m for m in macros if m >= last), last)
            columns.append((size, place))
            value = str(token.value)
            parts.append(value)
            size += len(value)
        text = "".join(parts).replace("\n", " ")
        self.emit(text, Line(name, number, tuple(columns) or None, origin))

    def complain(self, name: str, number: int, column: int) -> None:
        if self.engine.complaint is not None:
            message, self.engine.complaint = self.engine.complaint, None
            raise self.error(name, number, column, f"preprocessor: {message}")

    def conditional(
        self, name: str, number: int, column: int, directive: str, rest: str,
        stack: list[tuple[bool, bool, bool]], opened: list[int],
    ) -> None:  # fmt: skip
        if directive in ("if", "ifdef", "ifndef"):
            live = not stack or stack[-1][0]
            taken = live and self.holds(name, number, column, directive, rest)
            stack.append((taken, taken, live))
            opened.append(number)
            return
        if not stack:
            raise self.error(name, number, column, f"#{directive} without #if")
        _, done, live = stack.pop()
        if directive == "endif":
            opened.pop()
        elif directive == "else":
            stack.append((live and not done, True, live))
        else:
            taken = live and not done and self.holds(name, number, column, "if", rest)
            stack.append((taken, done or taken, live))

    def holds(self, name: str, number: int, column: int, directive: str, rest: str) -> bool:
        if directive != "if":
            macro = _NAME.match(rest.strip())
            if macro is None:
                raise self.error(name, number, column, f"#{directive} needs a name")
            return (macro.group() in self.engine.macros) == (directive == "ifdef")
        try:
            value = self.engine.evalexpr(self.engine.tokenize(rest.strip()))[0]
        except Exception as problem:  # pcpp's evaluator raises whatever its parser meets
            raise self.error(name, number, column, f"cannot evaluate this condition: {problem}") from None
        self.complain(name, number, column)
        return bool(value)

    def directive(
        self, name: str, number: int, column: int, directive: str, rest: str, folder: Path | None, depth: int
    ) -> None:
        match directive:
            case "include":
                self.include(name, number, column, rest, folder, depth)
            case "define" | "undef":
                if not _NAME.match(rest.strip()):
                    raise self.error(name, number, column, f"#{directive} needs a name")
                tokens: list[Any] = self.engine.tokenize(rest.strip())
                (self.engine.define if directive == "define" else self.engine.undef)(tokens)
                self.complain(name, number, column)
                self.stale = True
            case "error":
                raise self.error(name, number, column, f"#error {rest.strip()}")
            case "" | "pragma" | "warning":
                pass
            case _:
                raise self.error(name, number, column, f"unknown preprocessor directive #{directive}")

    def include(self, name: str, number: int, column: int, rest: str, folder: Path | None, depth: int) -> None:
        match = _INCLUDE.match(rest)
        if match is None:
            rest = "".join(str(t.value) for t in self.engine.expand_macros(self.engine.tokenize(rest.strip())))
            match = _INCLUDE.match(rest)
        if match is None:
            raise self.error(name, number, column, '#include needs "file" or <file>')
        if depth >= _MAX_DEPTH:
            raise self.error(name, number, column, f"files include each other more than {_MAX_DEPTH} deep")
        quoted, angled = match.groups()
        wanted = quoted or angled
        places = ([folder] if quoted and folder is not None else []) + self.includes
        for place in places:
            path = place / wanted
            if self.is_file(path, name, number, column):
                self.file(str(path), _read(path, self.error(name, number, column, "")), path.parent, depth + 1)
                return
        for prelude in _preludes():
            header = prelude / wanted
            if "/" not in wanted and header.is_file():
                self.file(PRELUDE + wanted, header.read_text(encoding="utf-8"), None, depth + 1)
                return
        raise self.error(name, number, column, f"cannot find the file to include: {_shortened(wanted)}")

    def is_file(self, path: Path, name: str, number: int, column: int) -> bool:
        try:
            return path.is_file()
        except OSError as problem:  # a name that is too long, for one
            reason = f"cannot include {_shortened(path.name)}: {problem.strerror}"
            raise self.error(name, number, column, reason) from None


def _shortened(name: str) -> str:
    return name if len(name) <= _SHOWN else name[:_SHOWN] + "…"


def _preludes() -> Iterator[Path]:
    """The folders of the headers that come with p4gen and with architectures."""
    yield Path(__file__).parents[1] / "prelude"
    yield from (arch.prelude for arch in architectures().values() if arch.prelude is not None)


_BLANK = re.compile(r"[^\n]")


def _join(lines: list[str], index: int) -> tuple[str, int]:
    """The directive at ``index`` with its continuation lines, and how many of those there are."""
    line, used = lines[index], 0
    while line.endswith("\\") and index + used + 1 < len(lines):
        used += 1
        line = line[:-1] + " " + lines[index + used]
    return line, used


def _read(path: Path, at: P4Error) -> str:
    try:
        return read_text(path)
    except InputError as problem:
        where = at.diagnostics[0]
        reason = f"cannot include {path}: {problem.reason}"
        raise P4Error(Diagnostic(where.where, reason, source_line=where.source_line)) from None
