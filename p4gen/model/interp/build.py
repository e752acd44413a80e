"""The compiler's shared state: slots, handlers, memo of compiled functions.

IR nodes become Python closures once per program; running a packet then only calls closures. The
handlers for node types live in the modules of this package and are put together in ``__init__``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.model.interp.context import Eval, Exec, Frame
from p4gen.model.poison import initial
from p4gen.model.state import ModelState
from p4gen.p4 import ir
from p4gen.p4 import types as t

ExprHandler = Callable[["Build", Any], Eval]
StmtHandler = Callable[["Build", Any], Exec]


@dataclass(frozen=True)
class Handlers:
    """How each node type is compiled."""

    expressions: Mapping[type[ir.Expr], ExprHandler]
    statements: Mapping[type[ir.Stmt], StmtHandler]


class Build:
    """One compilation of a program, ``traced`` or not."""

    def __init__(self, state: ModelState, handlers: Handlers, traced: bool) -> None:
        self.state = state
        self.traced = traced
        self._handlers = handlers
        self._slots: dict[ir.Variable, int] = {}
        self._template: Frame = [None]
        self.compiled: dict[object, Any] = {}
        """Memo of compiled functions, tables and blocks by IR node."""

    # --- variables ---

    def slot(self, variable: ir.Variable) -> int:
        """The frame slot of ``variable``."""
        found = self._slots.get(variable)
        if found is None:
            found = self._slots[variable] = self.new_slot()
        return found

    def new_slot(self) -> int:
        """A new slot for a value of the compiler."""
        self._template.append(None)
        return len(self._template) - 1

    def frame(self) -> Frame:
        """A fresh frame with every slot unset."""
        return self._template[:]

    # --- nodes ---

    def expr(self, node: ir.Expr) -> Eval:
        """Compile an expression. Raises ``InputError`` for what is not supported."""
        handler = self._handlers.expressions.get(type(node))
        if handler is None:
            raise unsupported(node.pos, f"expression {type(node).__name__}")
        return handler(self, node)

    def stmt(self, node: ir.Stmt) -> Exec:
        """Compile a statement. Raises ``InputError`` for what is not supported."""
        handler = self._handlers.statements.get(type(node))
        if handler is None:
            raise unsupported(node.pos, f"statement {type(node).__name__}")
        return handler(self, node)

    def body(self, statements: Iterable[ir.Stmt]) -> Exec:
        """Compile statements into one function that runs them in order until a statement signals."""
        compiled = tuple(map(self.stmt, statements))
        if len(compiled) == 1:
            return compiled[0]

        def run(f: Frame) -> int | None:
            for step in compiled:
                signal = step(f)
                if signal:
                    return signal
            return None

        return run


def unsupported(pos: Pos, what: str) -> InputError:
    """An error, at load time, for a construct that the model does not support."""
    return InputError(Diagnostic(pos, f"{what} is not supported by the behavioural model"))


def unsupported_extern(call: ir.ExternCall, name: str) -> InputError:
    """An error for a call of an extern that no handler compiles; for a deprecated extern, it names the successor."""
    error = unsupported(call.pos, f"extern {name}")
    advice = next((a.args[0] for a in call.annotations if a.name == "deprecated" and a.args), None)
    if advice is None:
        return error
    return InputError(replace(error.diagnostics[0], message=f"{error.diagnostics[0].message}: {advice}"))


def is_packet(of: t.Type) -> bool:
    """Whether a parameter stands for the packet itself, which the context holds."""
    return str(of) in ("packet_in", "packet_out")


def fresh(of: t.Type, *, poison: bool = False) -> Callable[[], Any]:
    """A function that makes uninitialised values of a type."""
    return copies_of(initial(of, poison=poison))


def copies_of(prototype: Any) -> Callable[[], Any]:
    """A function that makes values like this one."""
    if hasattr(prototype, "copy"):
        copy: Callable[[], Any] = prototype.copy
        return copy
    return lambda: prototype


def children(node: object) -> Iterable[object]:
    """The IR nodes directly inside ``node``, not following references to callables."""
    for name in getattr(node, "__dataclass_fields__", ()):
        value = getattr(node, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, (ir.Expr, ir.Stmt, ir.Arg, ir.SwitchCase)):
                yield item


def has_calls(node: object) -> bool:
    """Whether evaluating ``node`` may change something."""
    if isinstance(node, (ir.FunctionCall, ir.ExternCall, ir.ApplyTable)):
        return True
    return any(map(has_calls, children(node)))
