"""Actions of one stage: an operation cannot take the result of another one.

p4c puts the expression of a variable in its place, if nothing in between has changed it (LocalCopyPropagation), in
statements of a control as well as in actions. The resulting expression must be one operation of an ALU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p4gen.chips.tna.lint.chips import Chip, controls
from p4gen.chips.tna.resources.access import Leaf, Place, Scope, bits_of, body, bound, effects, place_of
from p4gen.errors import Diagnostic
from p4gen.p4 import ir
from p4gen.p4.simplify import simplified
from p4gen.p4.types import Fields, strip
from p4gen.p4.walk import used_by, walk

_OPERATIONS = frozenset({"+", "-", "|+|", "|-|", "&", "|", "^"})
_SHIFTS = frozenset({"<<", ">>"})
_LOGICAL = frozenset({"&", "|", "^"})
_EXEMPT = "in_hash"
"""What p4c computes in a hash may have any operations."""


@dataclass(frozen=True)
class _Value:
    """The form of an expression after known values have replaced variables."""

    kind: str
    """``leaf``, ``constant``, ``operation``, ``shift``, ``not``, or ``other``, of which nothing is said."""
    uses: frozenset[Leaf] = frozenset()
    op: str = ""
    parts: tuple[_Value, ...] = ()


_OTHER = _Value("other")
_CONSTANT = _Value("constant")
_Known = dict[Leaf, _Value]
"""What variables and fields hold."""


def check(program: ir.Program, chip: Chip) -> Iterator[Diagnostic]:
    """Statements and conditions that take more than one operation."""
    for _, _, control in controls(program):
        found = _Control(chip)
        found.block(control, {}, {})
        yield from found.problems
        for function in used_by(control).functions:
            if function.is_action:
                action = _Control(chip, function)
                action.statement(function.body, {p.variable: {} for p in function.data}, {})
                yield from action.problems


class _Control:
    """Follows a control, or an action."""

    def __init__(self, chip: Chip, action: ir.Function | None = None) -> None:
        self.chip = chip
        self.action = action
        self.computed: set[Leaf] = set()
        """In an action: fields that operations have written last."""
        self.problems: list[Diagnostic] = []

    def block(self, control: ir.Control, scope: Scope, known: _Known) -> None:
        for local in control.locals:
            self.statement(local, scope, known)
        self.statement(control.body, scope, known)

    def statement(self, s: ir.Stmt | None, scope: Scope, known: _Known) -> None:
        match s:
            case None | ir.Exit():
                return
            case ir.Block(annotations=annotations) if any(a.name == _EXEMPT for a in annotations):
                self.forget(s, scope, known)
            case ir.Block(body=statements):
                for one in statements:
                    self.statement(one, scope, known)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                self.condition(simplified(condition), scope, known)
                self.forget(ir.Evaluate(s.pos, condition), scope, known)
                self.branches([then, otherwise], scope, known)
            case ir.Switch(subject=subject, cases=cases):
                self.forget(ir.Evaluate(s.pos, subject), scope, known)
                self.branches([*(case.body for case in cases), None], scope, known)
            case ir.ApplyBlock(block=ir.Control() as block, args=args):
                self.apply(block, args, scope, known)
            case ir.Assign(target=target, value=value):
                self.assign(target, value, scope, known)
            case ir.Declare(variable=variable, init=init) if init is not None:
                self.assign(ir.Var(variable.type, s.pos, variable), init, scope, known)
            case ir.Evaluate(expr=ir.FunctionCall(callee=callee, args=args)) if (
                self.action is not None and callee.is_action
            ):
                # p4c inlines an action that another action calls.
                inner: dict[ir.Variable, Place | dict[Leaf, int]] = dict(scope)
                for param, arg in zip((*callee.params, *callee.data), args, strict=False):
                    inner[param.variable] = (place_of(arg.expr, scope) if arg.expr is not None else None) or {}
                self.statement(callee.body, inner, known)
            case _:
                self.forget(s, scope, known)

    def branches(self, bodies: list[ir.Stmt | None], scope: Scope, known: _Known) -> None:
        """Follow branches. Afterwards those values are known that all branches leave."""
        ends = []
        computed: set[Leaf] = set()
        before = set(self.computed)
        for branch in bodies:
            end = dict(known)
            self.computed = set(before)
            self.statement(branch, scope, end)
            ends.append(end)
            computed |= self.computed
        self.computed = computed
        for leaf in list(known):
            if any(end.get(leaf) is not known[leaf] for end in ends):
                del known[leaf]

    def apply(self, block: ir.Control, args: tuple[ir.Arg, ...], scope: Scope, known: _Known) -> None:
        """A control stands where it is applied; its ``in`` parameters are variables."""
        inner: dict[ir.Variable, Place | dict[Leaf, int]] = dict(scope)
        for param, arg in zip(block.params, args, strict=False):
            place = place_of(arg.expr, scope) if arg.expr is not None else None
            if arg.direction == "in" and arg.expr is not None and not isinstance(strip(arg.expr.type), Fields):
                known[param.variable, ""] = self.value(arg.expr, scope, known)
            elif place is not None:
                inner[param.variable] = place
        self.block(block, inner, known)

    def assign(self, target: ir.Expr, value: ir.Expr, scope: Scope, known: _Known) -> None:
        found = self.value(value, scope, known)
        self.judge(found, value)
        place = None if isinstance(target, ir.Slice) else place_of(target, scope)
        self.forget(ir.Assign(target.pos, target, value), scope, known)
        if place is None or isinstance(strip(place.type), Fields):
            return
        leaf = (place.root, place.path)
        if self.action is not None and found.kind in ("operation", "shift"):
            self.computed.add(leaf)
        else:
            self.computed.discard(leaf)
        if found.kind != "other" and leaf not in found.uses:
            known[leaf] = found

    def forget(self, s: ir.Stmt | None, scope: Scope, known: _Known) -> None:
        """Forget the values that a statement writes, and values made from them."""
        written: set[Leaf] = set()
        for inner in walk(s):
            if isinstance(inner, ir.Stmt) and not isinstance(inner, ir.Block | ir.If | ir.Switch):
                written |= effects(inner, scope).writes.keys()
            for table in [inner.table] if isinstance(inner, ir.ApplyTable) else []:
                for ref in table.actions:
                    written |= body(ref.action.body, bound(ref.action, ref.bound, scope)).writes.keys()
            if isinstance(inner, ir.SetValidity):
                place = place_of(inner.header, scope)
                written |= bits_of(place).keys() if place is not None else set()
        self.computed -= written
        for leaf, value in list(known.items()):
            if leaf in written or not value.uses.isdisjoint(written):
                del known[leaf]

    def value(self, e: ir.Expr, scope: Scope, known: _Known) -> _Value:
        match simplified(e):
            case ir.Literal():
                return _CONSTANT
            case (ir.Var() | ir.FieldOf() | ir.Index()) as lvalue:
                if isinstance(lvalue, ir.Var) and isinstance(scope.get(lvalue.variable), dict):
                    return _Value("leaf")  # Action data.
                place = place_of(lvalue, scope)
                if place is None or isinstance(strip(place.type), Fields):
                    return _OTHER
                leaf = (place.root, place.path)
                return known.get(leaf) or _Value("leaf", frozenset({leaf}))
            case ir.Unary(op="~", operand=operand):
                inner = self.value(operand, scope, known)
                return _OTHER if inner.kind == "other" else _Value("not", inner.uses, "~", (inner,))
            case ir.Binary(op=op, left=left, right=right) if op in _OPERATIONS:
                return _operation(op, self.value(left, scope, known), self.value(right, scope, known))
            case ir.Binary(op=op, left=left, right=ir.Literal()) if op in _SHIFTS:
                inner = self.value(left, scope, known)
                return _OTHER if inner.kind == "other" else _Value("shift", inner.uses, op, (inner,))
        return _OTHER

    def judge(self, value: _Value, e: ir.Expr) -> None:
        """Report an operation, or a shift, on the result of another one."""
        if value.kind not in ("operation", "shift"):
            return
        for part in value.parts:
            read = self.computed & part.uses if self.action is not None and part.kind == "leaf" else set()
            if read or (_nested(part) and not _joined(value, part)):
                name = f"action '{self.action.name}'" if self.action is not None else "a statement"
                other = f"of '{part.op}'" if not read else "that it has just computed"
                message = f"{name} does '{value.op}' with the result {other}; a stage does 1 operation"
                self.problems.append(Diagnostic(e.pos, message))
                return

    def condition(self, e: ir.Expr, scope: Scope, known: _Known) -> None:
        """Report comparisons of computed values; p4c puts known values in the place of variables."""
        for node in walk(e):
            if not isinstance(node, ir.Binary) or node.op not in ("==", "!=", "<", "<=", ">", ">="):
                continue
            for side in (node.left, node.right):
                value = self.value(side, scope, known)
                if value.kind == "operation" and value.op in ("+", "-", "|+|", "|-|"):
                    message = f"a gateway compares fields; this is the result of '{value.op}'"
                    self.problems.append(Diagnostic(node.pos, message))


def _operation(op: str, left: _Value, right: _Value) -> _Value:
    if "other" in (left.kind, right.kind):
        return _OTHER
    if left.kind == right.kind == "constant":
        return _CONSTANT
    return _Value("operation", left.uses | right.uses, op, (left, right))


def _nested(part: _Value) -> bool:
    return part.kind in ("operation", "shift") or (part.kind == "not" and part.parts[0].kind != "constant")


def _joined(whole: _Value, part: _Value) -> bool:
    """Whether p4c may make one instruction of both; for some forms it is not known that it does not."""
    constant = any(p.kind == "constant" for p in whole.parts)
    if part.kind == "not":
        return whole.op in _LOGICAL and not _nested(part.parts[0])
    if part.kind == "shift":
        return whole.op in _LOGICAL or whole.kind == "shift"
    if whole.kind == "shift" or (whole.op == "&" and constant):
        return True
    # Masks beside each other are parts of fields, and constants may be added to each other.
    masks = whole.op == "|" and all(p.op == "&" and any(q.kind == "constant" for q in p.parts) for p in whole.parts)
    return masks or (constant and any(p.kind == "constant" for p in part.parts))
