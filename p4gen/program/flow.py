"""The flow of a program: what its pipelines do, as P4 statements that apply modules.

A flow is a template, such as ``epic/ingress_ii.p4.j2``. Which modules a program has, and in which order their controls
stand, is read from it. ``ordinary`` in it stands for what becomes of packets that are not the family's own::

    {% call ordinary() %}
        forward.apply(hdr, meta, {{ arch.arguments("inout") }});
    {% endcall %}

There, the flow of a family beside it is put, whose own ``ordinary`` stands for the packets that it leaves. Indentation
and the column of notes are made uniform, so that a flow may stand in another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from p4gen.arch import Feature
from p4gen.errors import InputError
from p4gen.program.module import camel, snake

_APPLY: Final = re.compile(r"\b(\w+)\.apply\([^;]*;")
_NOTE: Final = re.compile(r"(.*\S)\s+// (.*)")
_NOTES: Final = 68
"""The column after which notes stand."""
_INDENT: Final = 8
"""Columns in front of the statements of a control."""


@dataclass(frozen=True)
class Applied:
    """A module that a flow applies; ``guest`` if that is the flow of the family beside the program's own."""

    module: str
    guest: bool = False


@dataclass(frozen=True)
class Flow:
    """The flow of one pipeline."""

    lines: tuple[str, ...]
    """P4, with the marks of ``p4gen.program.templates``."""
    applied: tuple[Applied, ...]
    """The modules, each once, in the order in which a packet may first meet them; those that only handle packets of
    others come last."""
    uses: frozenset[Feature]
    """The features of the architecture that its own statements use."""

    def applies(self, module: str) -> bool:
        """Whether it applies the module of that name."""
        return any(each.module == module for each in self.applied)


@dataclass(frozen=True)
class Added:
    """A module that a family applies in the flow of another one that it builds on, after each place of ``after``."""

    module: str
    arguments: str
    """P4 expressions, as the module's control takes them."""
    after: str

    def to(self, text: str) -> str:
        """The text of a flow with it. Raises ``InputError`` where ``after`` stands neither at the start of a line nor
        alone in the braces of one."""
        statement = f"{snake(self.module)}.apply({self.arguments});"
        place = rf"\b{snake(self.after)}\.apply\([^;]*;"
        # Behind a statement that stands under a condition in one line, it stands in the same line.
        found, in_braces = re.subn(rf"(\{{ {place})( \}})", rf"\1 {statement}\2", text)
        found, in_lines = re.subn(rf"(?m)^(\s*{place}.*)$", rf"\1\n{statement}", found)
        if in_braces + in_lines != len(re.findall(place, text)):
            raise InputError(
                f"{self.module} cannot follow {self.after} where that is one of several statements in a line"
            )
        return found


def applied(text: str) -> tuple[str, ...]:
    """The names of the modules that P4 text applies, each once, in order."""
    return tuple(dict.fromkeys(camel(name) for name in _APPLY.findall(text)))


def tidy(lines: Iterable[str]) -> Iterator[str]:
    """Lines of P4 with the indentation of their blocks, and notes in one column, or after what is longer."""
    depth = 0
    for line in lines:
        text, mark, origin = line.strip().partition("\x00")
        text = text.strip()
        depth -= text.startswith("}")
        note = _NOTE.fullmatch(text)
        code = " " * (_INDENT + 4 * depth) + (note[1] if note else text)
        yield (f"{code.ljust(_NOTES)}  // {note[2]}" if note else code) + mark + origin
        code = code.partition("//")[0]
        depth += code.count("{") - code.count("}") + code.lstrip().startswith("}")
