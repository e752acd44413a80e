"""Templates: where they are, how Jinja renders one, and from which of its lines each line of text comes."""

from __future__ import annotations

import marshal
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import (
    BaseLoader,
    BytecodeCache,
    Environment,
    FileSystemLoader,
    PrefixLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
)
from jinja2.bccache import Bucket

from p4gen import stored
from p4gen.arch import Architecture, Feature
from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.program.module import DropReason

Folders = tuple[tuple[str, Path], ...]
"""Folders of templates, by the first part of the templates' names."""
Origin = tuple[str, int]
"""A template, and a line in it."""
Line = tuple[str, Origin]
"""A line of P4, and where it comes from."""
COMMON = ("shared", "arch")
"""Folders of templates that every family may use: parts that no paper knows, and architectures."""
_MARK = "\x00{}:{}\x01"
"""Behind a line that leaves text: its template, and its number there."""
_MARKS = re.compile("\x00([^:]+):(\\d+)\x01")
_ROW = 112
"""Columns that a row of like declarations may take."""
_CONTROL_LINE = re.compile(r"\s*\{%.*%\}\s*$")


class Recorded:
    """The architecture as a template sees it; remembers which of its features the template uses."""

    def __init__(self, arch: Architecture) -> None:
        self.used: set[Feature] = set()
        self._arch = arch

    def __getattr__(self, name: str) -> Any:
        if name in self._arch.USES:
            self.used.add(self._arch.USES[name])
        return getattr(self._arch, name)


@dataclass(frozen=True)
class Templates:
    """The templates of a program: its families', the common ones, and its architecture's."""

    folders: Folders
    """The families' and the common ones."""
    architectures: Folders
    """Those of the architecture, and of what it is based on; the special ones first."""

    def form(self, template: str) -> str | None:
        """The form of a template for the architecture, such as ``epic/tna/parser.p4.j2``; the template itself if it has
        none, None if there is no such template."""
        place, _, name = template.partition("/")
        folder = dict(self.folders).get(place)
        if folder is None:
            return template if place == "arch" else None
        forms = [f"{arch}/{name}" for arch, _ in self.architectures]
        return next((f"{place}/{form}" for form in (*forms, name) if (folder / form).is_file()), None)

    def source(self, template: str) -> str:
        """The text of a template. Raises ``InputError`` if there is none."""
        try:
            return _loader(self.folders, self.architectures).get_source(Environment(autoescape=True), template)[0]
        except TemplateNotFound as error:
            raise InputError(_diagnose(template, error)) from error

    def render(self, template: str, context: Mapping[str, Any]) -> Iterator[Line]:
        """The rendered lines. Raises ``InputError`` with the position of what is wrong in a template."""
        return unmarked(template, self.render_marked(template, context).rstrip("\n").split("\n"))

    def render_marked(self, template: str, context: Mapping[str, Any]) -> str:
        """The rendered text with marks behind its lines, for a template that contains it."""
        try:
            return _environment(self.folders, self.architectures).get_template(template).render(context)
        except TemplateError as error:
            raise InputError(_diagnose(template, error)) from error


def _loader(folders: Folders, architectures: Folders) -> BaseLoader:
    own: dict[str, BaseLoader] = {name: FileSystemLoader(folder) for name, folder in folders}
    arch = PrefixLoader({name: FileSystemLoader(folder) for name, folder in architectures})
    return PrefixLoader(own | {"arch": arch})


class _MarkedLoader(BaseLoader):
    """Loads templates with a mark behind every line that leaves text."""

    def __init__(self, folders: Folders, architectures: Folders) -> None:
        self._inner = _loader(folders, architectures)

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Any]:
        source, file, fresh = self._inner.get_source(environment, template)
        lines = source.rstrip("\n").split("\n")
        marked = (t if _CONTROL_LINE.match(t) else t + _MARK.format(template, n) for n, t in enumerate(lines, 1))
        return "\n".join(marked) + "\n", file, fresh


class _Compiled(BytecodeCache):
    """Keeps what Jinja makes of templates, which takes it longer than to render them."""

    def __init__(self) -> None:
        self._folder = stored.cache_folder("templates")
        # The filters below are part of it: Jinja applies them to constants when it compiles.
        self._makers = (jinja2.__version__, sys.version, Path(__file__).read_text(encoding="utf-8"))

    def load_bytecode(self, bucket: Bucket) -> None:
        """The stored code of this very text, if there is any."""
        code = stored.read(self._file(bucket))
        if code is not None:
            bucket.code = marshal.loads(code)  # noqa: S302 - nobody but this user can have written it

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store the code in p4gen's cache folder."""
        stored.write(self._file(bucket), marshal.dumps(bucket.code))

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / stored.key((*self._makers, bucket.key, bucket.checksum))


@cache
def _environment(folders: Folders, architectures: Folders) -> Environment:
    environment = Environment(
        loader=_MarkedLoader(folders, architectures),
        bytecode_cache=_Compiled(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the output is P4, not HTML
    )
    environment.filters["rows"] = _rows
    environment.filters["drop_rows"] = _drop_rows
    return environment


def _rows(items: Sequence[int], pattern: str, sep: str = " ") -> list[str]:
    """``pattern`` filled with each item, as many to a line as fit; a visible separator also ends a line."""
    texts = [pattern.replace("%d", str(item)) for item in items]
    per_row = max(1, _ROW // (len(texts[-1]) + len(sep)))
    rows = [sep.join(texts[i : i + per_row]) for i in range(0, len(texts), per_row)]
    return [row + sep.rstrip() for row in rows[:-1]] + rows[-1:]


def _drop_rows(drops: Sequence[DropReason]) -> list[str]:
    """The members of ``drop_t``; a module's stand together, in as few lines as fit."""
    rows: list[str] = []
    module = ""
    for reason in drops:
        text = f"{reason.symbol} = {reason.index}" + ("," if reason is not drops[-1] else "")
        if reason.module.name == module and len(rows[-1]) + len(text) < _ROW:
            rows[-1] += " " + text
        else:
            rows.append(text)
        module = reason.module.name
    return rows


def has_text(rendered: str) -> bool:
    """Whether rendered text has more than marks and blanks."""
    return bool(_MARKS.sub("", rendered).strip())


def unmarked(template: str, lines: Iterable[str]) -> Iterator[Line]:
    """Lines of rendered text without their marks, each with its origin; ``template`` is that of lines without one."""
    origin = template, 1
    waiting: list[str] = []
    for line in lines:
        waiting.append(_MARKS.sub("", line).rstrip())
        # A macro's last line also has the mark of the line that called it; the caller comes last.
        marks = _MARKS.findall(line)
        if marks:
            origin = marks[-1][0], int(marks[-1][1])
            # Of an expression's lines, only the last has a mark.
            yield from ((text, origin) for text in waiting)
            waiting.clear()
    yield from ((text, origin) for text in waiting)


def _diagnose(template: str, error: TemplateError) -> Diagnostic:
    """The position and cause of an error in a template."""
    if isinstance(error, TemplateNotFound):
        return Diagnostic(None, f"there is no template {error.name}")
    # Jinja puts the template's lines into the traceback.
    places = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(".j2")]
    if isinstance(error, TemplateSyntaxError):
        places.append((error.filename or template, error.lineno))
    file, line = places[-1] if places else (template, None)
    message = _MARKS.sub("", (error.message or type(error).__name__).splitlines()[0])
    return Diagnostic(Pos(file, line or 1, 1), message)
