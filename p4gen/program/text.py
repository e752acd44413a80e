"""Jinja2 templates and a composition in, P4_16 text and its source map out; the same bytes every time."""

from __future__ import annotations

import marshal
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from p4gen.families import family_of
from p4gen.program.common import BODIES
from p4gen.program.compose import Composition, DropReason
from p4gen.rocev2 import codes, layouts

Folders = tuple[tuple[str, Path], ...]
COMMON = ("shared", "arch")
"""Folders of templates that every family may use: parts that no paper knows, and architectures."""
_MARK = "\x00"
_ROW = 112
"""Columns that a row of like declarations may take."""
_CONTROL_LINE = re.compile(r"\s*\{%.*%\}\s*$")


@dataclass(frozen=True)
class Rendered:
    """A generated program; ``origins[i]`` is the template and line that ``text``'s line i + 1 comes from."""

    text: str
    origins: tuple[tuple[str, int], ...]
    line_directives: bool = True
    """Whether ``text`` has ``#line`` directives."""
    uses: Mapping[str, frozenset[Feature]] = field(default_factory=dict)
    """The features of the architecture that each template has used."""


def render(composition: Composition, *, line_directives: bool = True) -> Rendered:
    """The P4_16 program of a composition, with ``#line`` directives that lead back to the templates unless
    ``line_directives`` is false. That is a matter of the text, not of the spec: the program does the same."""
    lines: list[str] = []
    origins: list[tuple[str, int]] = []
    context = _context(composition) | {"line_directives": line_directives}
    uses: dict[str, frozenset[Feature]] = {}
    environment = _environment(composition.template_folders, composition.arch.template_folders)
    guests = _guest_context(composition)
    for template in composition.templates:
        if lines:
            lines.append("")
            origins.append(origins[-1])
        # The first lines need no directive: they are where the compiler thinks they are.
        start = 0 if lines else 1
        arch = _Recorded(composition.arch)
        own = guests if _of_guest(composition, template) else {}
        rendered = _render_marked(environment, template, context | own | {"arch": arch})
        if composition.guest is not None and own:
            rendered = ((composition.guest.facet.renamed(text), line) for text, line in rendered)
        for text, line in _with_directives(template, rendered, start) if line_directives else rendered:
            lines.append(text)
            origins.append((template, line))
        uses[template] = frozenset(arch.used)
    return Rendered("\n".join(lines) + "\n", tuple(origins), line_directives, uses)


def undeclared_features(composition: Composition, rendered: Rendered) -> list[str]:
    """The features of the architecture that modules use without declaring it, a line each."""
    used = {module: rendered.uses.get(composition.form(module.template), frozenset()) for module in composition.modules}
    return [
        f"{module.name} uses {feature}, which it does not declare"
        for module, features in used.items()
        for feature in sorted(features - {*module.used(composition.spec)})
    ]


class _Recorded:
    """The architecture as a template sees it; remembers which of its features the template uses."""

    def __init__(self, arch: Architecture) -> None:
        self.used: set[Feature] = set()
        self._arch = arch

    def __getattr__(self, name: str) -> Any:
        if name in self._arch.USES:
            self.used.add(self._arch.USES[name])
        return getattr(self._arch, name)


def source_of(composition: Composition, template: str) -> str:
    """The text of one of a composition's templates. Raises ``InputError`` if there is none."""
    loader = _loader(composition.template_folders, composition.arch.template_folders)
    try:
        return loader.get_source(Environment(autoescape=True), template)[0]
    except TemplateNotFound as error:
        raise InputError(_diagnose(template, error)) from error


def _context(composition: Composition) -> dict[str, Any]:
    """What every family's templates may refer to, and what its own may."""
    return composition.names | {
        "spec": composition.spec,
        "beside": False,
        "bodies": [name for name in BODIES if name in composition.headers],
        "uses": composition.uses,
        "headers": composition.headers,
        "layouts": layouts,
        "codes": codes,
        "modules": composition.modules,
        "ingress": composition.of("ingress"),
        "egress": composition.of("egress"),
        "metadata": composition.metadata,
        "drops": composition.drops,
        "words": composition.words,
        "has": composition.has,
        "flows": composition.flows,
    }


def _guest_context(composition: Composition) -> dict[str, Any]:
    """What the templates of the family beside the program's own find under other names than the others."""
    if composition.guest is None:
        return {}
    alone = composition.guest.alone
    return alone.names | {"spec": alone.spec, "beside": True}


def _of_guest(composition: Composition, template: str) -> bool:
    """Whether a template is one of the family beside the program's own."""
    beside = composition.spec.beside
    return beside is not None and template.split("/", maxsplit=1)[0] in dict(family_of(beside).template_folders)


def _loader(folders: Folders, architectures: Folders) -> BaseLoader:
    own: dict[str, BaseLoader] = {name: FileSystemLoader(folder) for name, folder in folders}
    arch = PrefixLoader({name: FileSystemLoader(folder) for name, folder in architectures})
    return PrefixLoader(own | {"arch": arch})


class _MarkedLoader(BaseLoader):
    """Loads templates with the line's number behind every line that leaves text."""

    def __init__(self, folders: Folders, architectures: Folders) -> None:
        self._inner = _loader(folders, architectures)

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Any]:
        source, file, fresh = self._inner.get_source(environment, template)
        lines = source.rstrip("\n").split("\n")
        marked = (t if _CONTROL_LINE.match(t) else f"{t}{_MARK}{n}" for n, t in enumerate(lines, 1))
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
        """Store the code."""
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


def _render_marked(environment: Environment, template: str, context: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The rendered lines, each with its line in the template."""
    try:
        text = environment.get_template(template).render(context)
    except TemplateError as error:
        raise InputError(_diagnose(template, error)) from error
    number = 1
    unmarked: list[str] = []
    for line in text.rstrip("\n").split("\n"):
        content, *marks = line.split(_MARK)
        # A macro's last line also carries the mark of the line that called it; the caller comes last.
        tail = "".join(re.sub(r"^\d+", "", mark) for mark in marks)
        unmarked.append((content + tail).rstrip())
        if marks:
            number = int(re.match(r"\d+", marks[-1])[0])  # type: ignore[index]
            # Of an expression's lines, only the last has a mark.
            yield from ((each, number) for each in unmarked)
            unmarked.clear()
    yield from ((each, number) for each in unmarked)


def _diagnose(template: str, error: TemplateError) -> Diagnostic:
    """The position and cause of an error in a template."""
    if isinstance(error, TemplateNotFound):
        return Diagnostic(None, f"there is no template {error.name}")
    # Jinja puts the template's lines into the traceback.
    places = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(".j2")]
    if isinstance(error, TemplateSyntaxError):
        places.append((error.filename or template, error.lineno))
    file, line = places[-1] if places else (template, None)
    message = (error.message or type(error).__name__).splitlines()[0].replace(_MARK, "")
    return Diagnostic(Pos(file, line or 1, 1), message)


def _with_directives(template: str, lines: Iterable[tuple[str, int]], expected: int) -> Iterator[tuple[str, int]]:
    """Adds ``#line`` in front of each declaration that the compiler would otherwise place wrongly.

    Loops and conditions make lines drift inside a declaration; a directive at every such line would
    be more than a reader should have to bear.
    """
    previous = ""
    for text, number in lines:
        if not previous and text[:1].strip() and number != expected:
            yield f'#line {number} "templates/{template}"', number
            expected = number
        yield text, number
        expected += 1
        previous = text
