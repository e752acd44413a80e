"""Errors of p4c's back end for Tofino, and the modules that they are about.

Its messages have the place before ``error:``, in the lines that follow, or not at all; then the tables, actions,
instances and fields that they name lead to a module.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from p4gen.chips.tna.resources.access import Place
from p4gen.chips.tna.resources.graph import gress_of
from p4gen.errors import Diagnostic, Pos
from p4gen.p4 import ir
from p4gen.p4.compile import compile_file
from p4gen.p4.p4c import CompilerCall
from p4gen.p4.parse.source import P4Error
from p4gen.p4.walk import used_by

LOGS: Final = ("table_summary.log", "pa.results.log")
"""Logs that p4c writes for each pipe about the placement of tables and fields, if asked to."""
_HEAD: Final = re.compile(
    r"^(?:(?P<file>[^\s()][^()]*)\((?P<line>\d+)\): ?)?(?:\[--W\w+=[\w-]+\] )?"
    r"(?P<kind>error|warning): ?:?\s*(?P<text>.*)$"
)
_PLACED: Final = re.compile(r"^(?P<file>[^\s()][^()]*)\((?P<line>\d+)\): ?(?P<text>.*)$")
_FIELD: Final = re.compile(r"\b(ingress|egress|ghost)::([A-Za-z_][\w.\[\]$]*[\w\]])")
_LEFT: Final = re.compile(r"^(?:\S+ not placed|\d+ field slices remain unallocated)")
_NAME: Final = re.compile(r"[A-Za-z_][\w.$]*")
_MOST: Final = 8
"""Errors that are repeated from the log."""
_MOST_MODULES: Final = 3


@dataclass(frozen=True)
class _Message:
    """An error, with the lines that belong to it."""

    place: Pos | None
    text: str
    rest: tuple[str, ...]


def errors(log: Path, call: CompilerCall) -> list[Diagnostic]:
    """The first errors in p4c's logs, each at the position that ``#line`` gives, or at the module that it is about."""
    found: dict[tuple[str, str], Diagnostic] = {}
    names = _Names(call)
    lines = _lines(log)
    for extra in (name for each in LOGS for name in sorted(call.out.rglob(each))):
        lines += [f"error: {line}" for line in _lines(extra) if _LEFT.match(line)]
    for message in _messages(lines):
        if len(found) == _MOST:
            break
        diagnostic = _diagnostic(message, names)
        found.setdefault((diagnostic.message, str(diagnostic.where)), diagnostic)
    return list(found.values())


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()


def _messages(lines: Sequence[str]) -> Iterator[_Message]:
    for i, line in enumerate(lines):
        head = _HEAD.match(line)
        if head is None or head["kind"] != "error":
            continue
        place = Pos(head["file"], int(head["line"]), 1) if head["file"] else None
        text = head["text"]
        placed = _PLACED.match(text) if place is None else None
        if placed is not None:
            place, text = Pos(placed["file"], int(placed["line"]), 1), placed["text"]
        rest: list[str] = []
        for following in lines[i + 1 :]:
            if _HEAD.match(following) or re.match(r"\d+ errors?, ", following):
                break
            rest.append(following)
        yield _Message(place, text.strip() or next((each.strip() for each in rest if each.strip()), ""), tuple(rest))


def _diagnostic(message: _Message, names: _Names) -> Diagnostic:
    text, place = message.text.removesuffix("."), message.place
    left = next((line.strip() for line in message.rest if _LEFT.match(line)), "")
    text += f": {left}" if left else ""
    fields = dict.fromkeys(found for line in (text, *message.rest) for found in _FIELD.findall(line))
    if place is None:
        inside = next((found for found in map(_PLACED.match, message.rest) if found is not None), None)
        place = Pos(inside["file"], int(inside["line"]), 1) if inside is not None else None
    if place is None and fields:
        modules = names.modules_of(fields)
        if modules:
            place = names.blocks.get(modules[0][0])
            most = ", ".join(f"{module} {count}" for module, count in modules[:_MOST_MODULES])
            more = f" and {len(modules) - _MOST_MODULES} more" if len(modules) > _MOST_MODULES else ""
            text += f"; by the fields it names, of {most}{more}"
    if place is None:
        place = next((names.place(word) for word in _NAME.findall(text) if names.place(word) is not None), None)
    return Diagnostic(place, f"p4c: {text}")


class _Names:
    """The declarations of the objects that p4c names, and the modules that use its fields."""

    def __init__(self, call: CompilerCall) -> None:
        self.call = call

    @cached_property
    def program(self) -> ir.Program | None:
        """The program; None if p4gen does not compile it."""
        try:
            return compile_file(self.call.source, self.call.defines, self.call.includes).program
        except P4Error:
            return None

    @cached_property
    def places(self) -> dict[str, Pos]:
        """The positions of objects, by control-plane name."""
        if self.program is None:
            return {}
        declared: tuple[ir.Table | ir.Function | ir.ExternInstance, ...]
        declared = (*self.program.tables, *self.program.actions, *self.program.externs)
        return {item.name: item.pos for item in declared}

    @cached_property
    def blocks(self) -> dict[str, Pos]:
        """The positions of controls, by name."""
        blocks = self.program.blocks.values() if self.program is not None else ()
        return {b.name: b.pos for block in blocks if isinstance(block, ir.Control) for b in used_by(block).blocks}

    @cached_property
    def users(self) -> dict[tuple[str, str], set[str]]:
        """The modules that use a field, by gress and path."""
        found: dict[tuple[str, str], set[str]] = {}
        for name, control in self.program.blocks.items() if self.program is not None else ():
            gress = name.rpartition(".")[2]
            if gress not in ("ingress", "egress", "ghost") or not isinstance(control, ir.Control):
                continue
            roots = {p.variable: Place((gress, str(p.variable.type)), "", p.variable.type) for p in control.params}
            for node in gress_of(gress, control, roots).nodes:
                for bits in (node.matches, node.accesses.reads, node.accesses.writes):
                    for root, path in bits:
                        if not isinstance(root, ir.Variable):
                            found.setdefault((gress, path), set()).add(node.module)
        return found

    def place(self, word: str) -> Pos | None:
        """The position of a name in p4c's words, which may be preceded by the pipe's name and followed by a number."""
        name = re.sub(r"(\.|\$\w*)*$", "", word)
        candidates = (name, name.partition(".")[2])
        return next((self.places[c] for c in candidates if c in self.places), None)

    def modules_of(self, fields: Iterable[tuple[str, str]]) -> list[tuple[str, int]]:
        """The modules that use these fields, and how many; modules with the most fields come first."""
        counts: Counter[str] = Counter()
        for gress, name in fields:
            counts.update(self.users.get((gress, f".{name.partition('.')[2]}"), ()))
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
