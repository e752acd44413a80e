"""The headers that a gress may have, and those that no packet has together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

from p4gen.chips.tna.resources.access import leaves, place_of
from p4gen.chips.tna.resources.chips import Chip
from p4gen.chips.tna.resources.graph import Gress
from p4gen.p4 import ir
from p4gen.p4.types import Header, strip, width_of
from p4gen.p4.walk import walk


@dataclass(frozen=True)
class Headers:
    """The headers of a gress by path, such as ``.ipv4``."""

    known: frozenset[str] | None = None
    """The fields that the parser extracts or a control adds; None where the parser is not known."""
    state_of: Mapping[str, str] = field(default_factory=dict)
    """The state that extracts a header which no control adds, if there is one only."""
    behind: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The states that can come behind a state."""
    shortest: int = 0
    """Bytes of the shortest way through the parser."""

    def exclusive(self, one: str, other: str) -> bool:
        """Whether no packet has both."""
        a, b = self.state_of.get(one), self.state_of.get(other)
        return a is not None and b is not None and a != b and b not in self.behind[a] and a not in self.behind[b]

    def padding(self, chip: Chip) -> int:
        """Headers of padding that p4c adds where the parser of egress must take more than it does."""
        return max(0, ceil((chip.egress_parser_least - self.shortest) / chip.padding))


def headers_of(parser: ir.Parser | ir.Control | None, gress: Gress) -> Headers:
    """The headers of a gress with this parser."""
    if not isinstance(parser, ir.Parser):
        return Headers()
    added = _added(gress)
    states: dict[str, set[str]] = {}
    for name, state in parser.states.items():
        for path in _extracted(state):
            states.setdefault(path, set()).add(name)
    state_of = {path: next(iter(found)) for path, found in states.items() if len(found) == 1 and path not in added}
    sizes = {name: _size(state) for name, state in parser.states.items()}
    return Headers(frozenset(states) | added, state_of, _behind(parser), _shortest(parser, sizes))


def _paths(expr: ir.Expr) -> set[str]:
    """The headers that an lvalue stands for, each by its path."""
    place = place_of(expr, {})
    if place is None:
        return set()
    if isinstance(strip(place.type), Header):
        return {place.path}
    return {path.rpartition(".")[0] for path, type_ in leaves(place) if isinstance(strip(type_), Header)}


def _extracted(state: ir.ParserState) -> set[str]:
    return {p for s in walk(state.body) if isinstance(s, ir.Extract) and s.header is not None for p in _paths(s.header)}


def _added(gress: Gress) -> frozenset[str]:
    """Headers that actions and statements make valid, or assign as a whole."""
    return frozenset(
        path.removesuffix(".$valid")
        for node in gress.nodes
        for (_, path), _ in node.accesses.writes.items()
        if path.endswith(".$valid")
    )


def _behind(parser: ir.Parser) -> dict[str, frozenset[str]]:
    following = {n: {c.state for c in s.transition.cases} & parser.states.keys() for n, s in parser.states.items()}
    found: dict[str, frozenset[str]] = {}
    for name in parser.states:
        reached: set[str] = set()
        todo = list(following[name])
        while todo:
            now = todo.pop()
            if now not in reached:
                reached.add(now)
                todo.extend(following[now])
        found[name] = frozenset(reached)
    return found


def _size(state: ir.ParserState) -> int:
    bits = 0
    for s in walk(state.body):
        if isinstance(s, ir.Extract):
            taken = s.header.type if s.header is not None else s.skip_type
            bits += width_of(taken) if taken is not None else 0
        elif isinstance(s, ir.Advance) and isinstance(s.bits, ir.Literal) and isinstance(s.bits.value, int):
            bits += s.bits.value
        elif isinstance(s, ir.ApplyBlock) and isinstance(s.block, ir.Parser):
            bits += 8 * _shortest(s.block, {name: _size(inner) for name, inner in s.block.states.items()})
    return bits // 8


def _shortest(parser: ir.Parser, sizes: Mapping[str, int]) -> int:
    """Bytes of the shortest way to ``accept`` or ``reject``."""
    best = {"start": sizes["start"]}
    todo = ["start"]
    ends: list[int] = []
    while todo:
        name = todo.pop()
        for case in parser.states[name].transition.cases:
            if case.state not in parser.states:
                ends.append(best[name])
                continue
            reached = best[name] + sizes[case.state]
            if reached < best.get(case.state, reached + 1):
                best[case.state] = reached
                todo.append(case.state)
    return min(ends, default=best["start"])
