"""Following every path of a control, with what is known about values and with the registers accessed so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from p4gen.errors import Diagnostic
from p4gen.p4 import ir
from p4gen.p4.lint.values import PathState, Values, join
from p4gen.p4.walk import walk


class Paths(ABC):
    """Follows every path of one pipeline (a gress). A subclass says what counts as an access, and judges it."""

    def __init__(self, pipeline: str) -> None:
        self.pipeline = pipeline
        self.problems: list[Diagnostic] = []
        self.values = Values()
        self.returned: list[list[PathState]] = []

    @abstractmethod
    def register_of(self, call: ir.ExternCall) -> ir.ExternInstance | None:
        """The register that ``call`` accesses; None if it accesses none."""

    @abstractmethod
    def access(self, register: ir.ExternInstance, call: ir.ExternCall, state: PathState) -> None:
        """Judge an access, and add it to ``state``."""

    # --- blocks and calls ---

    def block(self, block: ir.Control | ir.Parser, state: PathState) -> PathState | None:
        """The state after ``block``."""
        after = self.sequence(block.locals, state)
        return self.callee(block.body, after) if isinstance(block, ir.Control) and after is not None else after

    def callee(self, body: ir.Block, state: PathState) -> PathState | None:
        """The state after ``body``, at its end or at any ``return`` in it."""
        self.returned.append([])
        end = self.statement(body, state)
        return join([*self.returned.pop(), *([end] if end is not None else [])], self.values)

    def call(self, params: tuple[ir.Param, ...], args: tuple[ir.Arg, ...], state: PathState) -> None:
        """Give parameters the values of their arguments."""
        for arg in args:
            if arg.expr is not None and arg.direction != "out":
                self.expression(arg.expr, state)
        for param, arg in zip(params, args, strict=True):
            self.values.bind(param.variable, arg.expr if arg.direction != "out" else None, state)

    def copy_out(self, params: tuple[ir.Param, ...], args: tuple[ir.Arg, ...], state: PathState) -> None:
        """Give arguments the values of their parameters, at the end of a call."""
        for param, arg in zip(params, args, strict=True):
            if arg.expr is not None and arg.direction in ("out", "inout"):
                self.values.write(arg.expr, self.values.held(param.variable, state), state)
        state.forget(p.variable for p in params)

    def function(self, function: ir.Function, args: tuple[ir.Arg, ...], state: PathState) -> PathState | None:
        """The state after a call of ``function``; None if no path leads back to the caller."""
        params = function.params + function.data
        self.call(params, args, state)
        after = self.callee(function.body, state)
        if after is not None:
            self.copy_out(params, args, after)
        return after

    def table(self, table: ir.Table, state: PathState) -> dict[str, PathState]:
        """The state after each action that the table may run, by its name in the table."""
        for key in table.keys:
            self.expression(key.expr, state)
        after: dict[str, PathState] = {}
        for ref in table.actions:
            mine = state.copy()
            self.call(ref.action.params, ref.bound, mine)
            for param in ref.action.data:
                self.values.bind(param.variable, None, mine)
            end = self.callee(ref.action.body, mine)
            if end is not None:
                self.copy_out(ref.action.params, ref.bound, end)
                after[ref.name] = end
        return after

    # --- expressions ---

    def expression(self, e: ir.Expr, state: PathState) -> bool:
        """Apply the effects of evaluating ``e`` to ``state``. Returns False if nothing is executed after it."""
        for node in _effects(e):
            match node:
                case ir.ExternCall() if (register := self.register_of(node)) is not None:
                    self.access(register, node, state)
                    self._extern_outputs(node, state)
                case ir.ExternCall():
                    self._extern_outputs(node, state)
                case ir.FunctionCall(callee=callee, args=args):
                    after = self.function(callee, args, state)
                    if after is None:
                        return False
                    state.become(after)
                case ir.ApplyTable(table=table):
                    joined = join(list(self.table(table, state).values()), self.values)
                    if joined is None:
                        return False
                    state.become(joined)
        return True

    def _extern_outputs(self, call: ir.ExternCall, state: PathState) -> None:
        for arg in call.args:
            if arg.expr is not None and arg.direction in ("out", "inout"):
                self.values.write(arg.expr, self.values.fresh(), state)

    # --- statements ---

    def sequence(self, body: tuple[ir.Stmt, ...], state: PathState) -> PathState | None:
        """The state after statements one after the other."""
        current: PathState | None = state
        for s in body:
            if current is None:
                return None
            current = self.statement(s, current)
        return current

    def statement(self, s: ir.Stmt, state: PathState) -> PathState | None:
        """The state after ``s``; None if control does not reach its end."""
        match s:
            case ir.Block(body=body):
                after = self.sequence(body, state)
                if after is not None:
                    after.forget(d.variable for d in body if isinstance(d, ir.Declare))
                return after
            case ir.Declare(variable=variable, init=init):
                if init is not None and not self.expression(init, state):
                    return None
                if init is not None:
                    self.values.bind(variable, init, state)
                else:
                    state.env[variable] = {(): ("zero", str(variable.type))}
                return state
            case ir.Assign(target=target, value=value_expr):
                if not self.expression(value_expr, state):
                    return None
                self.assign(target, value_expr, state)
                return state
            case ir.Evaluate(expr=expr):
                return state if self.expression(expr, state) else None
            case ir.ApplyBlock(block=block, args=args):
                self.call(block.params, args, state)
                after = self.block(block, state)
                if after is not None:
                    self.copy_out(block.params, args, after)
                    after.forget(d.variable for d in block.locals if isinstance(d, ir.Declare))
                return after
            case ir.If():
                return self._if(s, state)
            case ir.Switch():
                return self._switch(s, state)
            case ir.For() | ir.ForIn():
                return self._loop(s, state)
            case ir.Return():
                if s.value is None or self.expression(s.value, state):
                    self.returned[-1].append(state)
                return None
            case ir.Exit() | ir.Break() | ir.Continue():
                return None
            case ir.SetValidity(header=header):
                self.values.write(header, self.values.fresh(), state)
            case ir.ShiftStack(stack=stack):
                self.values.write(stack, self.values.fresh(), state)
        return state

    def assign(self, target: ir.Expr, value: ir.Expr, state: PathState) -> None:
        """Assign, field by field where the value is a place itself."""
        scratch = ir.Variable("", value.type, value.pos)
        self.values.bind(scratch, value, state)
        self.values.write(target, state.env.pop(scratch), state)

    def _if(self, s: ir.If, state: PathState) -> PathState | None:
        if not self.expression(s.condition, state):
            return None
        other = state.copy()
        fact = self.values.fact(s.condition, state)
        if fact is not None:
            state.facts |= {fact}
            other.facts |= {replace(fact, holds=not fact.holds)}
        ends = [self.statement(s.then, state)]
        ends.append(self.statement(s.otherwise, other) if s.otherwise is not None else other)
        return join([e for e in ends if e is not None], self.values)

    def _switch(self, s: ir.Switch, state: PathState) -> PathState | None:
        default = next((c.body for c in s.cases if not c.labels), None)
        ends: list[PathState | None] = []
        if isinstance(s.subject, ir.ApplyTable):
            for name, after in self.table(s.subject.table, state).items():
                labelled = (
                    c.body for c in s.cases if any(isinstance(x, ir.Literal) and x.value == name for x in c.labels)
                )
                body = next(labelled, default)
                ends.append(self.statement(body, after) if body is not None else after)
        else:
            if not self.expression(s.subject, state):
                return None
            ends = [self.statement(c.body, state.copy()) for c in s.cases]
            if default is None:
                ends.append(state)
        return join([e for e in ends if e is not None], self.values)

    def _loop(self, s: ir.For | ir.ForIn, state: PathState) -> PathState:
        """The state after a loop. A loop must not access registers; what it assigns is unknown afterwards."""
        for call in _calls(s):
            register = self.register_of(call)
            if register is None:
                continue
            message = f"register '{register.name}' is accessed in a loop in {self.pipeline}"
            self.problems.append(Diagnostic(call.pos, message, notes=((s.pos, "the loop is here"),)))
        state.env.clear()
        self.values.forget()
        return state


def _effects(e: ir.Expr) -> list[ir.Expr]:
    """The calls in ``e``, arguments before the call."""
    return [n for n in reversed(list(walk(e))) if isinstance(n, ir.ExternCall | ir.FunctionCall | ir.ApplyTable)]


def _calls(root: object) -> list[ir.ExternCall]:
    """Calls of externs below ``root``, through every function, action, table and block."""
    found: list[ir.ExternCall] = []
    for node in walk(root):
        match node:
            case ir.ExternCall():
                found.append(node)
            case ir.FunctionCall(callee=callee):
                found += _calls(callee.body)
            case ir.ApplyTable(table=table):
                for ref in table.actions:
                    found += _calls(ref.action.body)
            case ir.ApplyBlock(block=block) if isinstance(block, ir.Control):
                found += _calls(block.body)
    return found
