"""A composition in, P4_16 text and its source map out; the same bytes every time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from p4gen.program.compose import Composition


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
    for template, rendered in composition.rendered(line_directives=line_directives):
        if lines:
            lines.append("")
            origins.append(origins[-1])
        # The first lines need no directive: they are where the compiler thinks they are.
        start = 0 if lines else 1
        for text, line in _with_directives(template, rendered, start) if line_directives else rendered:
            lines.append(text)
            origins.append((template, line))
    return Rendered("\n".join(lines) + "\n", tuple(origins), line_directives)


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
