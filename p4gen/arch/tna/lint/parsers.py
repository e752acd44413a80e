"""How many bytes the parser of egress takes."""

from __future__ import annotations

from collections.abc import Iterator

from p4gen.arch.tna.lint.chips import Chip
from p4gen.errors import Diagnostic
from p4gen.p4 import ir
from p4gen.p4.types import width_of


def check(program: ir.Program, chip: Chip) -> Iterator[Diagnostic]:
    """Parsers of egress that may take more than the chip can."""
    limit = chip.egress_parser_bytes
    if limit is None:
        return
    for name, block in program.blocks.items():
        gress = name.split(".")[1] if "." in name else name
        if isinstance(block, ir.Parser) and gress in ("egress_parser", "eg_prsr"):
            bits, place = _longest(block)
            if bits > 8 * limit:
                message = f"a path through the parser of egress takes {bits // 8} bytes; {chip.name} has {limit}"
                # p4c counts less on some paths, and accepts them.
                yield Diagnostic(place.pos, message, "warning")


def _longest(parser: ir.Parser) -> tuple[int, ir.ParserState]:
    """The bits of the longest path that enters no state twice, and its last state that takes any."""
    own = {name: sum(map(_taken, state.body)) for name, state in parser.states.items()}
    start = parser.states["start"]
    # For each state, the longest path to it: its bits, the states on it, and the last of them that takes bits.
    best: dict[str, tuple[int, frozenset[str], ir.ParserState]] = {"start": (own["start"], frozenset({"start"}), start)}
    todo = ["start"]
    while todo:
        name = todo.pop()
        bits, path, last = best[name]
        for case in parser.states[name].transition.cases:
            state = parser.states.get(case.state)
            if state is None or case.state in path:
                continue
            reached = bits + own[case.state]
            if case.state not in best or reached > best[case.state][0]:
                best[case.state] = reached, path | {case.state}, state if own[case.state] else last
                todo.append(case.state)
    bits, _, last = max(best.values(), key=lambda found: found[0])
    return bits, last


def _taken(s: ir.Stmt) -> int:
    """The bits that a statement takes from the packet; what only the packet says does not count."""
    match s:
        case ir.Block(body=body):
            return sum(map(_taken, body))
        case ir.Extract(header=header, skip_type=skipped):
            taken = header.type if header is not None else skipped
            return width_of(taken) if taken is not None else 0
        case ir.Advance(bits=ir.Literal(value=int(bits))):
            return bits
    return 0
