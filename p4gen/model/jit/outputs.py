"""The arguments of extern calls."""

from __future__ import annotations

from p4gen.model.jit.build import Gen, unsupported
from p4gen.model.jit.emit import Value
from p4gen.model.jit.layout import scalar_width
from p4gen.model.jit.places import is_dynamic, locate, store
from p4gen.p4 import ir


class Out:
    """An ``out`` argument: located in the order of arguments, stored when the call is done."""

    def __init__(self, g: Gen, arg: ir.Arg) -> None:
        self._g, self.expr = g, arg.expr
        self._place = locate(g, arg.expr) if arg.expr is not None and is_dynamic(arg.expr) else None

    @property
    def width(self) -> int:
        """Bits of the destination; 1 where there is none."""
        return 1 if self.expr is None else scalar_width(self.expr.type)

    def store(self, value: Value) -> None:
        """Store ``value``, wrapped to the destination's width."""
        if self.expr is not None:
            place = self._place or locate(self._g, self.expr)
            store(self._g, place, self._g.fn.resize(value, self.width))


def argument(g: Gen, call: ir.ExternCall, position: int) -> Value:
    """The value of a required argument."""
    return g.value(expression(call, position))


def expression(call: ir.ExternCall, position: int) -> ir.Expr:
    """The expression of a required argument."""
    expr = call.args[position].expr
    if expr is None:
        raise unsupported(call.pos, f"{call.method} without its argument {position + 1}")
    return expr


def constant(call: ir.ExternCall, position: int) -> int | bool | str:
    """The value of an argument that must be a compile-time constant."""
    expr = call.args[position].expr
    if not isinstance(expr, ir.Literal):
        raise unsupported(call.pos, f"{call.method} with an argument {position + 1} that is not a constant")
    return expr.value
