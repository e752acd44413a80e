"""How many bytes the parser of egress takes, and which fields a parser assigns twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from p4gen.chips.tna.lint.chips import Chip
from p4gen.chips.tna.resources.access import Leaf, place_of, width
from p4gen.errors import Diagnostic, Pos
from p4gen.p4 import ir
from p4gen.p4.types import Fields, strip, width_of

_UNLIMITED = "--disable-parse-max-depth-limit"


def check(program: ir.Program, chip: Chip) -> Iterator[Diagnostic]:
    """Parsers of egress that take more than the chip can, and parsers that assign a field again."""
    for name, block in program.blocks.items():
        gress = name.split(".")[1] if "." in name else name
        if not isinstance(block, ir.Parser):
            continue
        limit = chip.egress_parser_bytes if _UNLIMITED not in program.options else None
        if limit is not None and gress in ("egress_parser", "eg_prsr"):
            size, place = _longest(block)
            if size > limit:
                message = f"a path through the parser of egress takes {size} bytes; {chip.name} has {limit}"
                yield Diagnostic(place.pos, message)
        if chip.parser_joins:
            yield from _again(block, chip)


def _longest(parser: ir.Parser) -> tuple[int, ir.ParserState]:
    """The bytes of the longest path to the parser's end, as p4c finds it, and its last state that takes any.

    A state is entered once on a path, and only a longer path to it is followed further (p4c, IdentifyPadRequirements).
    """
    own = {name: sum(map(_extracted_bits, state.body)) // 8 for name, state in parser.states.items()}
    start = parser.states["start"]
    best: dict[str, tuple[int, frozenset[str], ir.ParserState]] = {"start": (own["start"], frozenset({"start"}), start)}
    ends = [(0, start)]
    todo = ["start"]
    while todo:
        again: dict[str, None] = {}
        for name in todo:
            size, path, last = best[name]
            for case in parser.states[name].transition.cases:
                state = parser.states.get(case.state)
                if state is None:
                    ends.append((size, last))
                    continue
                reached = size + own[case.state]
                if case.state not in best or (reached > best[case.state][0] and case.state not in path):
                    best[case.state] = reached, path | {case.state}, state if own[case.state] else last
                    again[case.state] = None
        todo = list(again)
    return max(ends, key=lambda found: found[0])


@dataclass(frozen=True, eq=False)
class _Write:
    """An assignment of a whole field in a state, its last one there."""

    state: str
    pos: Pos
    constant: int | None
    width: int

    def joins(self, before: _Write) -> bool:
        """Whether this value results if the parser writes it after ``before``: the parser joins values of a field by
        *or*."""
        if self.constant is None:
            return before.constant == 0
        if before.constant is not None:
            return before.constant | self.constant == self.constant
        return self.constant == (1 << self.width) - 1


def _again(parser: ir.Parser, chip: Chip) -> Iterator[Diagnostic]:
    """Report fields that are assigned in a state and again in a later one, where the parser cannot make the change.

    p4c refuses it if every state behind the first one, apart from the end, leads to such an assignment; otherwise it
    warns, and the chip gives the *or* of both.
    """
    following = {
        name: [case.state for case in state.transition.cases if case.state in parser.states]
        for name, state in parser.states.items()
    }
    for writes in _written(parser).values():
        states = {write.state for write in writes}
        for first in writes:
            behind = _reached(first.state, following)
            for again in writes:
                if (
                    again.state not in behind
                    or again is first
                    or again.joins(first)
                    or not _survives(first, states, parser)
                ):
                    continue
                if first.constant == 0 and not _reaches(states, first.state, following):
                    continue
                refused = _all_reach(first.state, states, following, frozenset())
                message = (
                    "a field is assigned again behind another assignment in the parser;"
                    f" {chip.name} gives the bits of both"
                )
                yield Diagnostic(
                    again.pos, message, "error" if refused else "warning", ((first.pos, "it was assigned here"),)
                )


def _written(parser: ir.Parser) -> dict[Leaf, list[_Write]]:
    found: dict[Leaf, dict[str, _Write]] = {}
    for name, state in parser.states.items():
        for s in state.body:
            match s:
                case ir.Assign(target=ir.Var() | ir.FieldOf() as target, value=value, pos=pos):
                    place = place_of(target, {})
                    number = value.value if isinstance(value, ir.Literal) else None
                    if place is None or not width(place.type) or isinstance(strip(place.type), Fields):
                        continue
                    constant = int(number) if isinstance(number, int) else None
                    write = _Write(name, pos, constant, width(place.type))
                    found.setdefault((place.root, place.path), {})[name] = write
    return {leaf: list(writes.values()) for leaf, writes in found.items()}


def _reached(name: str, following: Mapping[str, Sequence[str]]) -> set[str]:
    """The states that can follow a state, itself only in a loop."""
    found: set[str] = set()
    todo = list(following[name])
    while todo:
        now = todo.pop()
        if now not in found:
            found.add(now)
            todo.extend(following[now])
    return found


def _reaches(states: set[str], name: str, following: Mapping[str, Sequence[str]]) -> bool:
    return any(name in _reached(other, following) for other in states)


def _all_reach(name: str, states: set[str], following: Mapping[str, Sequence[str]], seen: frozenset[str]) -> bool:
    """Whether every state that can follow writes the field, or is followed by such states only."""
    return bool(following[name]) and all(
        then in states or (then not in seen and _all_reach(then, states, following, seen | {then}))
        for then in following[name]
    )


def _survives(write: _Write, states: set[str], parser: ir.Parser) -> bool:
    """Whether a packet can end with the value of this assignment; otherwise p4c leaves the assignment out."""
    seen: set[str] = set()
    todo = [write.state]
    while todo:
        name = todo.pop()
        for case in parser.states[name].transition.cases:
            if case.state not in parser.states:
                return True
            if case.state not in seen and case.state not in states:
                seen.add(case.state)
                todo.append(case.state)
    return False


def _extracted_bits(s: ir.Stmt) -> int:
    """The bits that a statement takes from the packet; a size that only the packet tells does not count."""
    match s:
        case ir.Block(body=body):
            return sum(map(_extracted_bits, body))
        case ir.Extract(header=header, skip_type=skipped):
            taken = header.type if header is not None else skipped
            return width_of(taken) if taken is not None else 0
        case ir.Advance(bits=ir.Literal(value=int(bits))):
            return bits
    return 0
