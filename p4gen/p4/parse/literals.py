"""The values of expressions in structured annotations (P4_16 specification 20.1)."""

from __future__ import annotations

from p4gen.p4 import fold
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reporter
from p4gen.p4.types import Int


def literal_value(e: ast.Expr, reporter: Reporter) -> int | str | bool:
    """The value of an expression in a structured annotation (spec 20.1): of literals only."""
    match e:
        case ast.IntLit(value=value) | ast.StrLit(value=value) | ast.BoolLit(value=value):
            return value
        case ast.UnaryOp(op="-" | "+", operand=operand):
            inner = literal_value(operand, reporter)
            if isinstance(inner, int):
                return -inner if e.op == "-" else inner
        case ast.UnaryOp(op="!", operand=operand):
            return not literal_value(operand, reporter)
        case ast.BinaryOp(op=op, left=left, right=right):
            one, two = literal_value(left, reporter), literal_value(right, reporter)
            if op in ("==", "!=") or (op in ("<", "<=", ">", ">=") and isinstance(one, int) and isinstance(two, int)):
                return fold.compare(op, one, two)
            if isinstance(one, int) and isinstance(two, int) and op in "+-*/%&|^":
                try:
                    return fold.arithmetic(op, one, two, Int())
                except fold.FoldError as problem:
                    reporter.fail(e.at, str(problem))
            if isinstance(one, str) and isinstance(two, str) and op == "++":
                return one + two
    reporter.fail(e.at, "a structured annotation takes literals and expressions of literals")
