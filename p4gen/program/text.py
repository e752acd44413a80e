"""A composition in, P4_16 text and its source map out; the same bytes every time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from p4gen.program.compose import Composition
from p4gen.program.templates import Line, Origin


@dataclass(frozen=True)
class Rendered:
    """A generated program; ``origins[i]`` is the template and line that ``text``'s line i + 1 comes from."""

    text: str
    origins: tuple[Origin, ...]
    line_directives: bool = True
    """Whether ``text`` has ``#line`` directives."""


def render(composition: Composition, *, line_directives: bool = True) -> Rendered:
    """The P4_16 program of a composition, with ``#line`` directives that lead back to the templates unless
    ``line_directives`` is false. That is a matter of the text, not of the spec: the program does the same."""
    lines: list[str] = []
    origins: list[Origin] = []
    for _, rendered in composition.rendered(line_directives=line_directives):
        if lines:
            lines.append("")
            origins.append(origins[-1])
        # The first lines need no directive: they are where the compiler thinks they are.
        start = 0 if lines else 1
        for text, origin in _with_directives(rendered, start) if line_directives else rendered:
            lines.append(text)
            origins.append(origin)
    return Rendered("\n".join(lines) + "\n", tuple(origins), line_directives)


def _with_directives(lines: Iterable[Line], start: int) -> Iterator[Line]:
    """Adds ``#line`` in front of each declaration that the compiler would otherwise place wrongly. The first line is
    line ``start`` of its template for the compiler.

    Loops and conditions make lines drift inside a declaration; a directive at every such line would
    be more than a reader should have to bear.
    """
    previous, expected = "", None
    for text, (template, number) in lines:
        expected = expected or (template, start)
        if not previous and text[:1].strip() and (template, number) != expected:
            yield f'#line {number} "templates/{template}"', (template, number)
            expected = template, number
        yield text, (template, number)
        expected = expected[0], expected[1] + 1
        previous = text
