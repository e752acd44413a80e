"""Expressions of the IR as P4 text, for people to read: what a trace or a diagnostic is about."""

from __future__ import annotations

from p4gen.p4 import ir
from p4gen.p4 import types as t

_LONGEST = 160


def text(e: ir.Expr) -> str:
    """An expression much as the program writes it; a long one is cut."""
    whole = _text(e)
    return whole if len(whole) <= _LONGEST else f"{whole[: _LONGEST - 2]} …"


def _text(e: ir.Expr) -> str:
    match e:
        case ir.Literal():
            return _literal(e)
        case ir.Var(variable=variable):
            return variable.name
        case ir.FieldOf(base=base, name=name) | ir.StackMember(base=base, name=name):
            return f"{_inner(base)}.{name}"
        case ir.Index(base=base, index=index):
            return f"{_inner(base)}[{_text(index)}]"
        case ir.Slice(base=base, hi=hi, lo=lo):
            return f"{_inner(base)}[{hi}:{lo}]"
        case ir.Unary(op=op, operand=operand):
            return f"{op}{_inner(operand)}"
        case ir.Binary(op=op, left=left, right=right):
            same = isinstance(left, ir.Binary) and left.op == op and op in ("&&", "||", "++", "+", "&", "|", "^")
            return f"{_text(left) if same else _inner(left)} {op} {_inner(right)}"
        case ir.Cast(operand=operand):
            # Constants are cast at compile time, most of them without a cast in the program.
            return _text(operand) if isinstance(operand, ir.Literal) else f"({e.type}){_inner(operand)}"
        case ir.Mux(condition=condition, then=then, otherwise=otherwise):
            return f"{_inner(condition)} ? {_inner(then)} : {_inner(otherwise)}"
        case ir.Aggregate(elements=elements):
            return f"{{ {', '.join(map(_text, elements))} }}"
        case ir.InvalidHeader():
            return "{#}"
        case ir.IsValid(header=header):
            return f"{_inner(header)}.isValid()"
        case ir.Lookahead():
            return f"packet.lookahead<{e.type}>()"
        case ir.PacketLength():
            return "packet.length()"
        case ir.Call(callee=callee, args=args):
            return f"{callee.name}({_args(args)})"
        case ir.ExternCall(instance=instance, method=method, args=args):
            return f"{f'{instance.name}.' if instance is not None else ''}{method}({_args(args)})"
        case ir.ApplyTable(table=table, result=result):
            return f"{table.name}.apply(){f'.{result}' if result is not None else ''}"
    return "…"


def _inner(e: ir.Expr) -> str:
    """As a part of another expression."""
    return f"({_text(e)})" if isinstance(e, ir.Binary | ir.Mux) else _text(e)


def _args(args: tuple[ir.Arg, ...]) -> str:
    return ", ".join("_" if arg.expr is None else _text(arg.expr) for arg in args)


def _literal(e: ir.Literal) -> str:
    kind, value = t.strip(e.type), e.value
    match kind:
        case t.Bool():
            return "true" if value else "false"
        case t.Enum(name=name):
            return f"{name}.{value}"
        case t.Error():
            return f"error.{value}"
        case t.String():
            return f'"{value}"'
        case t.SerEnum(name=name, members=members):
            found = next((member for member, number in members if number == value), None)
            return f"{name}.{found}" if found is not None else str(value)
    return f"{value:#x}" if isinstance(value, int) and value > 9 else str(value)
