"""The limits of a stateful ALU for the actions on a register: words, comparisons, operations, constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from p4gen.chips.tna.lint.chips import Chip, actions_on
from p4gen.chips.tna.resources.access import Scope, bit_count, body
from p4gen.errors import Diagnostic
from p4gen.p4 import ir
from p4gen.p4.lint.values import PathState, Value, Values, place_of
from p4gen.p4.types import Bits, SerEnum, Struct, Type, strip
from p4gen.p4.walk import walk

_RELATIONS = {"==": "==", "!=": "==", "<": "<", ">=": "<", ">": ">", "<=": ">"}
"""Comparisons; one and its negation are the same."""
_ARITHMETIC = frozenset({"+", "-", "|+|", "|-|", "&", "|", "^"})
_INNER = _ARITHMETIC - {"|-|"} | {"/", "%"}


def check(program: ir.Program, chip: Chip) -> Iterator[Diagnostic]:
    """Registers and actions on them that no stateful ALU of the chip can hold."""
    for register, actions in actions_on(program).items():
        word = strip(register.type_args[0])
        width = _width(word, chip)
        if width is None:
            yield Diagnostic(register.pos, _no_word(register, word, chip))
            continue
        if len(actions) > chip.actions:
            message = f"register '{register.name}' has {len(actions)} actions on it; {chip.actions} are possible"
            yield Diagnostic(actions[chip.actions].pos, message, notes=((register.pos, "the register is here"),))
        yield from _constants(register, actions, width, chip)
        for action in actions:
            for function in action.methods.values():
                yield from _OneBit(function).check() if width == 1 else _Body(function, chip).check()


def _width(word: Type, chip: Chip) -> int | None:
    """The bits of each number in a word; None if a stateful ALU has no such words."""
    if isinstance(word, SerEnum):
        word = word.base
    fields = [strip(f.type) for f in word.fields] if isinstance(word, Struct) else [word]
    if not 1 <= len(fields) <= 2 or any(not isinstance(f, Bits) for f in fields) or fields[0] != fields[-1]:
        return None
    first = fields[0]
    assert isinstance(first, Bits)
    if isinstance(word, Bits) and first.width in (1, chip.word_bits):
        return first.width
    return first.width if first.width in (8, 16, 32, 64) and first.width <= chip.field_bits else None


def _no_word(register: ir.ExternInstance, word: Type, chip: Chip) -> str:
    widths = ", ".join(str(w) for w in (8, 16, 32, 64) if w <= chip.field_bits)
    return (
        f"register '{register.name}' has words of type {word}; {chip.name} has words of one or two equal fields of"
        f" {widths} bits, of {chip.word_bits} bits, or of 1 bit"
    )


def _constants(
    register: ir.ExternInstance, actions: Sequence[ir.ExternInstance], width: int, chip: Chip
) -> Iterator[Diagnostic]:
    """More constants and parameters in all actions on a register than there is room for beside instructions."""
    found: dict[object, ir.Expr] = {}
    for action in actions if width > 1 else ():
        for function in action.methods.values():
            for node in _operands(function):
                if isinstance(node, ir.ExternCall) and node.instance is not None:
                    found.setdefault(node.instance, node)
                elif isinstance(node, ir.Literal) and isinstance(node.value, int):
                    # A comparison may hold it negated.
                    small = (chip.least_constant <= v <= chip.greatest_constant for v in (node.value, -node.value))
                    if not any(small):
                        found.setdefault(abs(node.value), node)
    if len(found) > chip.constants:
        message = (
            f"actions on register '{register.name}' have {len(found)} parameters, and constants that are not"
            f" {chip.least_constant} to {chip.greatest_constant}; {chip.constants} are possible"
        )
        yield Diagnostic(list(found.values())[chip.constants].pos, message)


def _operands(function: ir.Function) -> Iterator[ir.Expr]:
    """The constants of a body that instructions have as operands, and reads of parameters: in what is written to the
    word and in comparisons, but not as masks there."""
    (word, *_) = function.params
    for node in walk(function.body):
        match node:
            case ir.Assign(target=target, value=value) if _is_of(target, word.variable):
                yield from (n for n in walk(value) if _operand(n))
            case ir.Binary(op=op) if op in _RELATIONS:
                for side in (node.left, node.right):
                    if not isinstance(side, ir.Binary) or side.op != "&":
                        yield from (n for n in walk(side) if _operand(n))


def _operand(node: object) -> TypeGuard[ir.Expr]:
    """Whether it is a constant or reads a parameter."""
    return isinstance(node, ir.Literal) or (
        isinstance(node, ir.ExternCall)
        and node.instance is not None
        and node.instance.extern == "RegisterParam"
        and node.method == "read"
    )


def _is_of(e: ir.Expr, variable: ir.Variable) -> bool:
    """Whether ``e`` is ``variable``, or a field of it."""
    place = place_of(e)
    return place is not None and place[0] is variable


class _OneBit:
    """The body of an action on a register of single bits: it sets, clears or reads one, without a condition."""

    def __init__(self, function: ir.Function) -> None:
        self.function = function

    def check(self) -> Iterator[Diagnostic]:
        """Violations of the limits of such an action."""
        for node in walk(self.function.body):
            match node:
                case ir.If() | ir.Switch() | ir.Mux():
                    yield Diagnostic(node.pos, "an action on a register of single bits cannot have a condition")
                    return
                case ir.Binary():
                    yield Diagnostic(node.pos, "an action on a register of single bits cannot compute with them")
                    return


class _Body:
    """The body of an action on a register."""

    def __init__(self, function: ir.Function, chip: Chip) -> None:
        self.function = function
        self.chip = chip
        self.word = function.params[0].variable

    def check(self) -> Iterator[Diagnostic]:
        """Demands of the body that a stateful ALU cannot meet."""
        yield from self._comparisons()
        yield from self._locals()
        yield from self._results()
        yield from self._operands()
        conditions = {id(n) for c in self._conditions() for n in walk(c)}
        for node in walk(self.function.body):
            if isinstance(node, ir.Slice) and id(node) in conditions and _is_of(node.base, self.word):
                yield Diagnostic(node.pos, "a stateful ALU cannot compare a slice of the word")
            elif isinstance(node, ir.Binary):
                yield from self._operation(node, in_condition=id(node) in conditions)
            elif isinstance(node, ir.ExternCall) and node.method == "predicate":
                for arg in node.args:
                    if isinstance(arg.expr, ir.Binary) and arg.expr.op in ("&&", "||"):
                        yield Diagnostic(arg.expr.pos, "each argument of predicate() is one comparison")
            elif (
                isinstance(node, ir.Assign)
                and isinstance(node.target, ir.Slice)
                and _is_of(node.target.base, self.word)
            ):
                yield Diagnostic(node.target.pos, "a stateful ALU cannot write a slice of the word")

    def _operation(self, e: ir.Binary, *, in_condition: bool) -> Iterator[Diagnostic]:
        """One operation in a statement, or two whose results are combined by ``|``; in a condition a mask."""
        if e.op == "&" and in_condition and not any(isinstance(side, ir.Literal) for side in (e.left, e.right)):
            yield Diagnostic(e.pos, "a stateful ALU masks what it compares only with constants")
        if e.op in ("<<", ">>") and any(isinstance(n, ir.Var) and n.variable is self.word for n in walk(e.left)):
            yield Diagnostic(e.pos, "a stateful ALU cannot shift the word")
        nested = [
            side
            for side in (e.left, e.right)
            if (isinstance(side, ir.Binary) and side.op in _INNER)
            or (isinstance(side, ir.Unary) and side.op == "-" and not isinstance(side.operand, ir.Literal))
        ]
        if e.op in _ARITHMETIC and nested and (e.op != "|" or in_condition):
            message = "a stateful ALU does 1 operation in a statement, or 2 whose results are combined by |"
            yield Diagnostic(nested[0].pos, message)

    def _locals(self) -> Iterator[Diagnostic]:
        """Variables that are read more than once, so that p4c does not replace them with their values: numbers as wide
        as those of the word, or whole words."""
        word = strip(self.word.type)
        numbers = {strip(f.type) for f in word.fields} if isinstance(word, Struct) else {word}
        widths = {n.width for n in numbers if isinstance(n, Bits)}
        reads = [n.variable for n in walk(self.function.body) if isinstance(n, ir.Var)]
        for node in walk(self.function.body):
            if not isinstance(node, ir.Declare) or reads.count(node.variable) < 2:
                continue
            type_ = strip(node.variable.type)
            if type_ is not word and not (isinstance(type_, Bits) and type_.width in widths):
                message = f"a local variable of type {type_} in an action on a register of {word}; a stateful ALU has"
                yield Diagnostic(node.pos, f"{message} only such as its words")

    def _results(self) -> Iterator[Diagnostic]:
        """Results of different sources, in different branches: with a word of two fields nothing is left to choose."""
        if not isinstance(strip(self.word.type), Struct):
            return
        first: dict[ir.Variable, tuple[object, ir.Expr]] = {}
        for node in walk(self.function.body):
            if not isinstance(node, ir.Assign) or not isinstance(node.target, ir.Var):
                continue
            source = place_of(node.value) if isinstance(node.value, ir.Var | ir.FieldOf) else None
            if source is None or node.target.variable not in [p.variable for p in self.function.params[1:]]:
                continue
            before = first.setdefault(node.target.variable, (source, node.value))
            if before[0] != source:
                message = "a result has two sources; with words of two fields, a stateful ALU gives one or 0"
                yield Diagnostic(node.value.pos, message, notes=((before[1].pos, "the other one is here"),))
                return

    def _operands(self) -> Iterator[Diagnostic]:
        """Fields of packets and metadata: two operands as wide as the word, or few bits by a hash."""
        word = strip(self.word.type)
        if not isinstance(word, Bits):
            return
        scope: Scope = {p.variable: {} for p in self.function.params}
        bits, limit = bit_count(body(self.function.body, scope).reads), 2 * min(word.width, self.chip.field_bits)
        if bits > max(limit, self.chip.operand_bits):
            message = f"'{self.function.name}' reads {bits} bits of fields; a stateful ALU takes {limit}"
            yield Diagnostic(self.function.pos, message)

    def _conditions(self) -> Iterator[ir.Expr]:
        """All conditions of the body, as comparisons."""
        for node in walk(self.function.body):
            if isinstance(node, ir.Binary) and node.op in _RELATIONS:
                yield node

    def _comparisons(self) -> Iterator[Diagnostic]:
        """Report too many different comparisons. A comparison, its negation, and the one with exchanged sides count
        once."""
        values, state = Values(), PathState()
        found: dict[Value, ir.Expr] = {}
        for e in self._conditions():
            assert isinstance(e, ir.Binary)
            op = _RELATIONS[e.op]
            left, right = values.of(e.left, state), values.of(e.right, state)
            if op == "==" and repr(left) > repr(right):
                left, right = right, left
            if not (isinstance(e.left, ir.Literal) and isinstance(e.right, ir.Literal)):
                found.setdefault((op, left, right), e)
        if len(found) > self.chip.comparisons:
            message = (
                f"'{self.function.name}' makes {len(found)} different comparisons; a stateful ALU of {self.chip.name}"
                f" makes {self.chip.comparisons}"
            )
            yield Diagnostic(list(found.values())[self.chip.comparisons].pos, message)
