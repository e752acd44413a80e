"""Declarations in templates: what cannot be seen in a module's P4 stands in it, in lines that begin with ``//@``.

::

    //@ paper Algorithm 1, lines 20 and 28-30
    //@ purpose each edge contributes to a slot once
    //@ tells bit<1> buffer.complete: 1: every source has contributed to the slot
    //@ tells (kept) qp_t flow.requester: the destination QP of the connection's answers
    //@ drops stale: its slot already serves a newer PSN
    //@ drops (no loss) absorbed: the contribution is in its slot, which waits for others
    //@ uses CRCs over whole packets
    //@ table neighbours[1024]: the switch's own IPv4 addresses to its MAC address
    //@ keeps slots[pipelines x bank_slots]: what each slot serves
    //@ keeps bit<32> lane_*.partial[pipelines x bank_slots], lanes times: partial result of one lane

A line about a table or a register stands above it. Sizes are products of numbers and of fields of the spec. A register
without a type has words that are laid out as the family's ``words`` say. Conditions of the template hold for its
declarations, too; the lines are not in the program's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from p4gen.arch import Feature
from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.layout import Word
from p4gen.program.module import Drop, Metadata, Register, Size, Table
from p4gen.program.templates import Line
from p4gen.vocabulary import ProgramSpec

_LINE: Final = re.compile(r"\s*//@\s*(\w*)\s*(.*?)\s*$")
_TELLS: Final = re.compile(r"(\(kept\) )?(\S+) (\w+)\.(\w+): (.+)")
_DROPS: Final = re.compile(r"(\(no loss\) )?(\w+): (.+)")
_TABLE: Final = re.compile(r"([\w.*]+)\[([^]]+)\]: (.+)")
_KEEPS: Final = re.compile(r"(?:bit<(\d+)> )?([\w.*]+)\[([^]]+)\](?:, (.+?) times)?: (.+)")


@dataclass
class Declared:
    """What a rendered template declares, and the P4 that is left of it."""

    lines: list[Line] = field(default_factory=list)
    paper: str = ""
    purpose: str = ""
    tells: list[Metadata] = field(default_factory=list)
    keeps: list[Register] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    uses: set[Feature] = field(default_factory=set)


def declared(lines: Iterable[Line], spec: ProgramSpec, words: Mapping[str, Word]) -> Declared:
    """What the rendered ``lines`` of a template declare in a program with this spec; ``words`` are the layouts of
    registers' words, by the last part of their names.

    Raises ``InputError`` with the position of a line that is no declaration.
    """
    found = Declared()
    for text, origin in lines:
        line = _LINE.match(text)
        if line is None:
            found.lines.append((text, origin))
            continue
        try:
            _declare(found, line[1], line[2], spec, words)
        except _NotDeclaredError as error:
            raise InputError(Diagnostic(Pos(*origin, 1), str(error))) from None
    return found


class _NotDeclaredError(Exception):
    """A line is no declaration; its text says why."""


def _declare(found: Declared, kind: str, text: str, spec: ProgramSpec, words: Mapping[str, Word]) -> None:
    match kind:
        case "paper":
            found.paper = text
        case "purpose":
            found.purpose = text
        case "tells":
            kept, type_, part, name, purpose = _parts(kind, _TELLS, text)
            found.tells.append(Metadata(part, name, type_, purpose, kept is not None))
        case "drops":
            spared, reason, meaning = _parts(kind, _DROPS, text)
            found.drops.append(Drop(reason, meaning, spared is None))
        case "uses":
            if text not in [feature.value for feature in Feature]:
                raise _NotDeclaredError(f"there is no feature {text!r} of architectures")
            found.uses.add(Feature(text))
        case "table":
            name, entries, purpose = _parts(kind, _TABLE, text)
            found.tables.append(Table(name, _size(entries, spec), purpose))
        case "keeps":
            bits, name, entries, times, purpose = _parts(kind, _KEEPS, text)
            short = name.rpartition(".")[2]
            word = words.get(short) if bits is None else None
            if bits is None and word is None:
                raise _NotDeclaredError(f"the family says no layout of words of {short}: write bit<...> for a number")
            width = int(bits) if word is None else word.bits
            size = Size() if times is None else _size(times, spec)
            found.keeps.append(Register(name, width, word, _size(entries, spec), size, purpose))
        case _:
            raise _NotDeclaredError(
                f"no declaration is called {kind!r}: paper, purpose, tells, drops, uses, table, keeps"
            )


def _parts(kind: str, pattern: re.Pattern[str], text: str) -> tuple[Any, ...]:
    match = pattern.fullmatch(text)
    if match is None:
        raise _NotDeclaredError(f"{text!r} is not of the form of //@ {kind} (p4gen/program/declared.py)")
    return match.groups()


def _size(formula: str, spec: ProgramSpec) -> Size:
    try:
        return Size.of(formula, spec)
    except AttributeError as error:
        raise _NotDeclaredError(f"size {formula!r}: {error}") from None
