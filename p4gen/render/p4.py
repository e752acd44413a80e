"""Jinja2 templates and a composition in, P4_16 text and its source map out; the same bytes every time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined

from p4gen.inc import HEADERS, Composition
from p4gen.inc.compose import DropReason
from p4gen.inc.modules import receive_bits, reorder_window
from p4gen.spec import Numbers, ProgramSpec, Variant
from p4gen.spec.reductions import NUMBERS_BITS

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


def render(composition: Composition, *, line_directives: bool = True) -> Rendered:
    """The P4_16 program of a composition, with ``#line`` directives that lead back to the templates unless
    ``line_directives`` is false. That is a matter of the text, not of the spec: the program does the same."""
    lines: list[str] = []
    origins: list[tuple[str, int]] = []
    context = _context(composition) | {"line_directives": line_directives}
    for template in _templates(composition):
        if lines:
            lines.append("")
            origins.append(origins[-1])
        # The first lines need no directive: they are where the compiler thinks they are.
        start = 0 if lines else 1
        rendered = _render_marked(template, context)
        for text, line in _with_directives(template, rendered, start) if line_directives else rendered:
            lines.append(text)
            origins.append((template, line))
    return Rendered("\n".join(lines) + "\n", tuple(origins), line_directives)


def _templates(composition: Composition) -> Iterator[str]:
    arch, mode = composition.spec.arch, composition.spec.mode.lower()
    yield from (f"{arch}/{part}.p4.j2" for part in ("preamble", "headers", "parser", "checksum"))
    if composition.has("CheckIcrc") or composition.has("SetIcrc"):
        yield f"{arch}/invariant_crc.p4.j2"
    for module in composition.modules:
        yield module.template
    yield f"{arch}/mode_{mode}.p4.j2"
    yield f"{arch}/deparser.p4.j2"


def _context(composition: Composition) -> dict[str, Any]:
    spec = composition.spec
    numbers = spec.numbers
    window = reorder_window(spec)
    return {
        "spec": spec,
        "dynamic": numbers is None,
        "reduction": _reduction(spec),
        "saturating": spec.saturating,
        "numbers": numbers,
        "choices": spec.choices,
        "steps": _steps(spec),
        "lanes": range(spec.lanes),
        "edges": range(spec.fan_in),
        "augmented": spec.mode.augmented,
        "selective": not spec.loss_recovery.in_order,
        "selective_naks": spec.loss_recovery.selective_naks,
        "notifies": spec.notifies,
        "variant": spec.variant,
        "Variant": Variant,
        "window": window,
        "halves": [window >> i for i in range(1, window.bit_length())],
        "word": receive_bits(spec),
        "last": 56 + (NUMBERS_BITS if numbers is None else 0),
        "pipelines": spec.pipelines,
        "pipeline_bits": spec.pipelines.bit_length() - 1,
        "ports_per_pipe": spec.ports // spec.pipelines,
        "slots": spec.pipelines * spec.bank_slots,
        "slots_note": _slots_note(spec),
        "contexts": spec.pipelines * spec.bank_contexts,
        "edge_words": spec.pipelines * spec.bank_edges,
        "banked": partial(_banked, spec),
        "headers": HEADERS,
        "modules": composition.modules,
        "ingress": composition.of("ingress"),
        "egress": composition.of("egress"),
        "metadata": composition.metadata,
        "drops": composition.drops,
        "has": composition.has,
    }


@dataclass(frozen=True)
class _Step:
    """How a lane is reduced where one of ``choices`` is announced: P4 expressions of ``held`` and ``element``."""

    choices: tuple[Numbers, ...]
    result: str
    saturated: str | None
    """The result that stops at the ends of the range, where the program wants that."""


def _steps(spec: ProgramSpec) -> list[_Step]:
    """What AggregateData does for each choice; those that read the same are one."""
    by_text: dict[tuple[str, str | None], list[Numbers]] = {}
    for choice in spec.choices:
        reduction = choice.op.reduction
        saturated = reduction.saturating(choice.dtype) if reduction.saturating and spec.saturating else None
        by_text.setdefault((reduction.p4(choice.dtype), saturated), []).append(choice)
    return [_Step(tuple(choices), *text) for text, choices in by_text.items()]


def _banked(spec: ProgramSpec, index: str, of: str) -> str:
    """An index of 32 bits into state; with several pipelines, within the bank of the packet's own."""
    if spec.pipelines == 1:
        return index
    words = {"slot": spec.bank_slots, "context": spec.bank_contexts, "edge": spec.bank_edges}[of]
    return f"(bit<32>)(meta.lookup.pipeline ++ ({index})[{words.bit_length() - 2}:0])"


def _slots_note(spec: ProgramSpec) -> str:
    pipes = "two pipes of " if spec.mode.augmented else ""
    banks = "" if spec.pipelines == 1 else f"{spec.pipelines} banks of "
    return f"{banks}{spec.groups} groups of {pipes}{spec.slots_per_group} (2WM = {2 * spec.window * spec.message})"


def _reduction(spec: ProgramSpec) -> str:
    if spec.numbers is None:
        return "any reduction"
    how = ("saturating " if spec.saturating else "wrapping ") if spec.op.overflows else ""
    return f"{how}{spec.op.reduction.noun} of {spec.dtype}"


class _MarkedLoader(BaseLoader):
    """Loads templates with the line's number behind every line that leaves text."""

    def __init__(self) -> None:
        self._inner = PackageLoader("p4gen", "templates")

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Any]:
        source, file, fresh = self._inner.get_source(environment, template)
        lines = source.rstrip("\n").split("\n")
        marked = (t if _CONTROL_LINE.match(t) else f"{t}{_MARK}{n}" for n, t in enumerate(lines, 1))
        return "\n".join(marked) + "\n", file, fresh


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=_MarkedLoader(),
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


def _render_marked(template: str, context: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The rendered lines, each with its line in the template."""
    text = _environment().get_template(template).render(context)
    number = 1
    for line in text.rstrip("\n").split("\n"):
        content, *marks = line.split(_MARK)
        # A macro's last line also carries the mark of the line that called it; the caller comes last.
        tail = "".join(re.sub(r"^\d+", "", mark) for mark in marks)
        if marks:
            number = int(re.match(r"\d+", marks[-1])[0])  # type: ignore[index]
        yield (content + tail).rstrip(), number


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
