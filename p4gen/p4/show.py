"""Expressions and statements of the IR as P4 text, a line each: for reports and traces, not for a compiler.

A statement that holds others is shown by its head: ``if (…)``, ``switch (…)``.
"""

from __future__ import annotations

from p4gen.p4 import ir
from p4gen.p4.types import SerEnum, strip

_LEVELS = (
    ("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("|",), ("^",), ("&",), ("++",), ("<<", ">>"),
    ("+", "-", "|+|", "|-|"), ("*", "/", "%"),
)  # fmt: skip
_LEVEL = {op: level for level, ops in enumerate(_LEVELS, 1) for op in ops}
_UNARY = len(_LEVELS) + 1
_HEX_FROM = 256
_LONGEST = 160


def text(e: ir.Expr) -> str:
    """``e`` as P4 text, cut where it gets too long for a line of a trace."""
    whole = expression(e)
    return whole if len(whole) <= _LONGEST else f"{whole[: _LONGEST - 2]} …"


def expression(e: ir.Expr, level: int = 0) -> str:
    """``e`` as P4 text, in parentheses where its operator binds less than ``level``."""
    match e:
        case ir.Binary(op=op, left=left, right=right):
            own = _LEVEL[op]
            return _wrapped(f"{expression(left, own)} {op} {expression(right, own + 1)}", own < level)
        case ir.Mux(condition=condition, then=then, otherwise=otherwise):
            text = f"{expression(condition, 1)} ? {expression(then)} : {expression(otherwise)}"
            return _wrapped(text, level > 0)
        case ir.Unary(op=op, operand=operand):
            return f"{op}{expression(operand, _UNARY)}"
        case ir.Cast(operand=operand, type=type_):
            return f"({type_}){expression(operand, _UNARY)}"
        case ir.Slice(base=base, hi=hi, lo=lo):
            return f"{expression(base, _UNARY + 1)}[{hi}:{lo}]"
        case ir.Index(base=base, index=index):
            return f"{expression(base, _UNARY + 1)}[{expression(index)}]"
        case ir.FieldOf(base=base, name=name) | ir.StackMember(base=base, name=name):
            return f"{expression(base, _UNARY + 1)}.{name}"
        case ir.Var(variable=variable):
            return variable.name
        case ir.Literal():
            return _literal(e)
        case ir.Aggregate(elements=elements):
            return "{ " + ", ".join(map(expression, elements)) + " }"
    return _called(e)


def statement(s: ir.Stmt) -> str:
    """``s`` as P4 text, without what it holds; of a block, its statements."""
    match s:
        case ir.Block(body=body):
            return " ".join(map(statement, body))
        case ir.Declare(variable=variable, init=init):
            value = f" = {expression(init)}" if init is not None else ""
            return f"{variable.type} {variable.name}{value};"
        case ir.Assign(target=target, value=value):
            return f"{expression(target)} = {expression(value)};"
        case ir.Evaluate(expr=expr):
            return f"{expression(expr)};"
        case ir.ApplyBlock(block=block, args=args):
            return f"{_last(block.name)}.apply({_arguments(args)});"
        case ir.If(condition=condition):
            return f"if ({expression(condition)})"
        case ir.Switch(subject=subject):
            return f"switch ({expression(subject)})"
        case ir.SetValidity(header=header, valid=valid):
            return f"{expression(header)}.{'setValid' if valid else 'setInvalid'}();"
        case ir.Extract(header=header, varbit_bits=bits):
            more = f", {expression(bits)}" if bits is not None else ""
            return f"packet.extract({expression(header) if header is not None else '_'}{more});"
        case ir.Emit(value=value):
            return f"packet.emit({expression(value)});"
        case ir.Return(value=value):
            return f"return {expression(value)};" if value is not None else "return;"
    return f"{type(s).__name__.lower()};"


def keyset(k: ir.Keyset) -> str:
    """A keyset of a select expression."""
    match k:
        case ir.ExactSet(expr=expr):
            return expression(expr)
        case ir.MaskSet(value=value, mask=mask):
            return f"{expression(value)} &&& {expression(mask)}"
        case ir.RangeSet(low=low, high=high):
            return f"{expression(low)} .. {expression(high)}"
        case ir.ValueSet(name=name):
            return name
    return "_"


def select_case(case: ir.SelectCase) -> str:
    """A case of a select expression."""
    sets = ", ".join(map(keyset, case.keysets))
    return f"({sets}): {case.state};" if len(case.keysets) > 1 else f"{sets}: {case.state};"


def _called(e: ir.Expr) -> str:
    match e:
        case ir.IsValid(header=header):
            return f"{expression(header)}.isValid()"
        case ir.ApplyTable(table=table, result=result):
            return f"{_last(table.name)}.apply()" + (f".{result}" if result is not None else "")
        case ir.FunctionCall(callee=callee, args=args):
            return f"{_last(callee.name)}({_arguments(args)})"
        case ir.ExternCall(instance=instance, method=method, args=args):
            head = f"{_last(instance.name)}." if instance is not None else ""
            return f"{head}{method}({_arguments(args)})"
        case ir.InvalidHeader():
            return "{#}"
        case ir.Lookahead(type=type_):
            return f"packet.lookahead<{type_}>()"
    return "packet.length()" if isinstance(e, ir.PacketLength) else "…"


def _arguments(args: tuple[ir.Arg, ...]) -> str:
    return ", ".join(expression(arg.expr) if arg.expr is not None else "_" for arg in args)


def _literal(e: ir.Literal) -> str:
    type_, value = strip(e.type), e.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(type_, SerEnum):
        return next((f"{type_.name}.{name}" for name, number in type_.members if number == value), str(value))
    if isinstance(value, str):
        return f"{type_}.{value}"
    return str(value) if value < _HEX_FROM else hex(value)


def _wrapped(text: str, inside: bool) -> str:
    return f"({text})" if inside else text


def _last(name: str) -> str:
    return name.rpartition(".")[2]
