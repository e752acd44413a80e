"""Algebraic simplification of expressions.

These are the rules of p4c's front end (constant folding, strength reduction, reassociation), so that conditions that
p4c finds constant are found constant here, too. Only P4Info uses it: back ends get the program as written.
"""

from __future__ import annotations

from dataclasses import fields, replace

from p4gen.p4 import fold, ir
from p4gen.p4.types import BOOL, Annotation, Bits, Error, Type
from p4gen.p4.walk import rebuilt, walk

_ARITHMETIC = ("+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^")
_NEGATED: dict[str, ir.BinaryOp] = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_Operands = tuple[ir.Expr, ir.Expr]


def simplified(e: ir.Expr) -> ir.Expr:
    """``e``, or a simpler expression with the same value and effects; a ``Literal`` if its value is known."""
    match e:
        case ir.Unary(op=op, operand=operand):
            return _unary(rebuilt(e, operand=simplified(operand)), op)
        case ir.Binary(left=left, right=right):
            return _binary(rebuilt(e, left=simplified(left), right=simplified(right)))
        case ir.Mux():
            return _mux(e, simplified(e.condition), simplified(e.then), simplified(e.otherwise))
        case ir.Slice(base=base):
            return _slice(rebuilt(e, base=simplified(base)))
        case ir.Cast(operand=operand, type=Bits(width=width, signed=signed)):
            operand = simplified(operand)
            if isinstance(operand, ir.Literal) and isinstance(operand.type, Bits) and isinstance(operand.value, int):
                return ir.Literal(e.type, e.pos, fold.wrap(operand.value, width, signed))
            return rebuilt(e, operand=operand)
        case ir.FieldOf(base=base):
            return rebuilt(e, base=simplified(base))
    return e


def known(e: ir.Expr) -> fold.Value | None:
    """The value of ``e`` where it is the same in every run, else None."""
    found = simplified(e)
    return found.value if isinstance(found, ir.Literal) else None


def harmless(annotations: tuple[Annotation, ...]) -> bool:
    """Whether a function with these annotations has no side effects."""
    return any(a.name == "noSideEffects" for a in annotations)


def has_effects(e: ir.Expr) -> bool:
    """Whether evaluating ``e`` may have side effects."""
    for node in walk(e):
        match node:
            case ir.ApplyTable() | ir.Lookahead() | ir.PacketLength():
                return True
            case ir.FunctionCall(callee=callee) if callee.is_action or not harmless(callee.annotations):
                return True
            case ir.ExternCall(annotations=annotations) if not harmless(annotations):
                return True
    return False


def same(one: object, two: object) -> bool:
    """Whether two expressions read the same."""
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, ir.Expr | ir.Arg) and type(one) is type(two):
        return all(same(getattr(one, f.name), getattr(two, f.name)) for f in fields(one) if f.name != "pos")
    return one == two


# --- operators -----------------------------------------------------------------------------------


def _unary(e: ir.Unary, op: ir.UnaryOp) -> ir.Expr:
    match e.operand:
        case ir.Literal(value=value, type=type_):
            if op == "!":
                return ir.Literal(BOOL, e.pos, not value)
            return ir.Literal(type_, e.pos, fold.to_type(~int(value) if op == "~" else -int(value), type_))
        case ir.Unary(op=inner, operand=operand) if inner == op and op != "-":
            return operand
        case ir.Binary(op=compared) as inside if op == "!" and compared in _NEGATED:
            return _binary(replace(inside, op=_NEGATED[compared]))
    return e


def _binary(e: ir.Binary) -> ir.Expr:
    left, right = e.left, e.right
    if isinstance(left, ir.Literal) and isinstance(right, ir.Literal):
        found = _folded(e, left, right)
        if found is not None:
            return ir.Literal(e.type, e.pos, found)
    match e.op:
        case "&&" | "||":
            return _logical(e, left, right)
        case "==" | "!=":
            return _equality(e, left, right)
        case "<" | "<=" | ">" | ">=":
            return _relation(e, left, right)
        case "++":
            return right if _width(left.type) == 0 else left if _width(right.type) == 0 else e
        case "<<" | ">>":
            return left if _is(right, 0) or (_is(left, 0) and not has_effects(right)) else e
    return _arithmetic(e, left, right)


def _folded(e: ir.Binary, left: ir.Literal, right: ir.Literal) -> fold.Value | None:
    one, two = left.value, right.value
    if e.op in _NEGATED and not isinstance(left.type, Error):
        return fold.compare(e.op, one, two)
    if e.op in _ARITHMETIC and isinstance(one, int) and isinstance(two, int):
        try:
            return fold.arithmetic(e.op, one, two, e.type)
        except fold.FoldError:
            return None
    if e.op in ("<<", ">>") and isinstance(one, int) and isinstance(two, int):
        try:
            return fold.shift(e.op, one, two, e.type)
        except fold.FoldError:
            return None
    return None


def _logical(e: ir.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    decides = e.op == "||"
    if isinstance(left, ir.Literal):
        return left if left.value is decides else right
    if isinstance(right, ir.Literal):
        if right.value is not decides:
            return left
        if not has_effects(left):
            return right
    return e


def _equality(e: ir.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    for known_side, other in ((left, right), (right, left)):
        if isinstance(known_side, ir.Literal) and isinstance(known_side.value, bool):
            return other if known_side.value == (e.op == "==") else _unary(ir.Unary(BOOL, e.pos, "!", other), "!")
    if same(left, right) and not has_effects(left):
        return ir.Literal(BOOL, e.pos, e.op == "==")
    return e


def _relation(e: ir.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    if has_effects(e):
        return e
    or_equal, greater = e.op in ("<=", ">="), e.op in (">", ">=")
    if same(left, right):
        return ir.Literal(BOOL, e.pos, or_equal)
    if isinstance(left.type, Bits):
        low = -(1 << left.type.width - 1) if left.type.signed else 0
        high = low + (1 << left.type.width) - 1
        # Nothing exceeds the largest value or is below the smallest; everything is at most the one
        # and at least the other.
        if _is(right, high if greater != or_equal else low) or _is(left, low if greater != or_equal else high):
            return ir.Literal(BOOL, e.pos, or_equal)
    return e


def _arithmetic(e: ir.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    if isinstance(left, ir.Literal) and e.op in ("+", "*", "&", "|", "^", "|+|"):
        e = replace(e, left=right, right=left)
        left, right = right, left
    if _is(right, 0) and e.op in ("+", "-", "|", "^", "|+|", "|-|"):
        return left
    if _is(right, 1) and e.op in ("*", "/"):
        return left
    if e.op == "&" and isinstance(e.type, Bits) and not e.type.signed and _is(right, (1 << e.type.width) - 1):
        return left
    if not has_effects(e):
        if (_is(right, 0) and e.op in ("*", "&")) or (_is(left, 0) and e.op in ("/", "%")):
            return ir.Literal(e.type, e.pos, 0)
        if _is(right, 1) and e.op == "%":
            return ir.Literal(e.type, e.pos, 0)
        if same(left, right) and e.op in ("&", "|"):
            return left
        if same(left, right) and e.op in ("-", "^", "|-|"):
            return ir.Literal(e.type, e.pos, 0)
    return _reassociated(e, left, right)


def _reassociated(e: ir.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """``(a + 1) + 2`` as ``a + 3``, also with a subtraction in it."""
    op: ir.BinaryOp = "+" if e.op == "-" else e.op
    if op not in ("+", "*", "&", "|", "^") or not isinstance(right, ir.Literal) or not isinstance(left, ir.Binary):
        return e
    inner = left.right
    if ("+" if left.op == "-" else left.op) != op or not isinstance(inner, ir.Literal):
        return e
    one = -int(inner.value) if left.op == "-" else int(inner.value)
    two = -int(right.value) if e.op == "-" else int(right.value)
    try:
        both = fold.arithmetic(op, one, two, e.type)
    except fold.FoldError:
        return e
    return _binary(replace(e, op=op, left=left.left, right=ir.Literal(e.type, right.pos, both)))


def _mux(e: ir.Mux, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> ir.Expr:
    if isinstance(condition, ir.Literal):
        return then if condition.value else otherwise
    if isinstance(then, ir.Literal) and isinstance(otherwise, ir.Literal) and then.value is not otherwise.value:
        if then.value is True and otherwise.value is False:
            return condition
        if then.value is False and otherwise.value is True:
            return _unary(ir.Unary(BOOL, e.pos, "!", condition), "!")
    e = replace(e, condition=condition, then=then, otherwise=otherwise)
    return then if same(then, otherwise) and not has_effects(e) else e


def _slice(e: ir.Slice) -> ir.Expr:
    base, hi, lo = e.base, e.hi, e.lo
    match base:
        case ir.Literal(value=int() as value):
            return ir.Literal(e.type, e.pos, fold.slice_of(value, hi, lo))
        case ir.Binary(op="<<", left=left, right=ir.Literal(value=int() as by)) if hi < by and not has_effects(left):
            return ir.Literal(e.type, e.pos, 0)
        case ir.Binary(op="++", left=left, right=right) if lo >= _width(right.type) and not has_effects(right):
            return _slice(replace(e, base=left, hi=hi - _width(right.type), lo=lo - _width(right.type)))
        case ir.Binary(op="++", left=left, right=right) if hi < _width(right.type) and not has_effects(left):
            return _slice(replace(e, base=right))
        case ir.Slice(base=inner, lo=below):
            return _slice(replace(e, base=inner, hi=hi + below, lo=lo + below))
    whole = isinstance(base.type, Bits) and not base.type.signed and hi - lo + 1 == base.type.width
    return base if whole else e


def _is(e: ir.Expr, value: int) -> bool:
    return isinstance(e, ir.Literal) and not isinstance(e.value, str | bool) and e.value == value


def _width(type_: Type) -> int:
    return type_.width if isinstance(type_, Bits) else -1
