"""p4gen's rules for v1model programs that should also run on a switch's hardware pipeline.

The first rule is that one pass of a packet accesses each register array once: at most one read, then at most one write
at the same index. Paths through the control flow are followed with symbolic values (``values``), so "the same index"
means provably equal, not written alike. Two accesses that no packet can reach both, because one requires that a value
equals a constant and the other that it does not, do not conflict.

The second rule is for programs with several pipelines: each has a bank of every register, and a pass accesses only the
bank of its own pipeline, which the metadata's field ``pipeline`` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from p4gen.arch import Stage, of_package
from p4gen.errors import Diagnostic, Pos
from p4gen.p4 import ir
from p4gen.p4.lint.values import Access, Path, PathState, Value, Values, banked, join, lookup
from p4gen.p4.types import Bits, Fields, Type
from p4gen.p4.walk import used_by, walk

_BANK_FIELD = "pipeline"
_METADATA = 1
"""The position of the metadata among the parameters of ingress and egress."""


def pipelines(program: ir.Program) -> int:
    """The number of pipelines of a generated program, from the width of the metadata's ``pipeline``."""
    for name in _pipelines(program):
        block = program.blocks.get(name)
        if isinstance(block, ir.Control) and len(block.params) > _METADATA:
            own = _bank_field(block.params[_METADATA].variable.type)
            if own is not None:
                return 1 << own[1]
    return 1


def _pipelines(program: ir.Program) -> Mapping[str, Stage]:
    """The blocks that the rules are about, and their names in messages."""
    arch = of_package(program.package, program.arch)
    return arch.PIPELINES if arch is not None else {}


def _bank_field(metadata: Type) -> tuple[Path, int] | None:
    """The path to the metadata's field that names the packet's pipeline, and its width in bits; None if there is
    none."""
    if not isinstance(metadata, Fields):
        return None
    for field in metadata.fields:
        if field.name == _BANK_FIELD and isinstance(field.type, Bits):
            return (field.name,), field.type.width
        below = _bank_field(field.type)
        if below is not None:
            return (field.name, *below[0]), below[1]
    return None


def lint(program: ir.Program, pipelines: int = 1) -> list[Diagnostic]:
    """Violations of the rules, in the order of positions: a register accessed more than once in one pass of ingress or
    egress, in both of them, or never; with several ``pipelines``, an index that is not provably in the bank of the
    packet's pipeline."""
    found: dict[tuple[Pos, str], Diagnostic] = {}
    touched: dict[ir.ExternInstance, dict[str, Pos]] = {}
    for name, pipeline in _pipelines(program).items():
        block = program.blocks.get(name)
        if not isinstance(block, ir.Control):
            continue
        checker = _Checker(pipeline, pipelines)
        checker.run(block)
        for problem in checker.problems:
            assert isinstance(problem.where, Pos)
            found.setdefault((problem.where, problem.message), problem)
        for call in used_by(block).calls:
            if call.instance is not None and call.instance.extern == "register":
                touched.setdefault(call.instance, {}).setdefault(pipeline, call.pos)
    for instance in program.externs:
        if instance.extern != "register":
            continue
        where = touched.get(instance, {})
        if not where:
            message = f"register '{instance.name}' is never accessed"
            found[instance.pos, message] = Diagnostic(instance.pos, message)
        elif len(where) > 1:
            message = f"register '{instance.name}' is accessed in both ingress and egress"
            notes = ((where["ingress"], "in ingress here"),)
            found[where["egress"], message] = Diagnostic(where["egress"], message, notes=notes)
    return [d for _, d in sorted(found.items(), key=lambda item: item[0])]


class _Checker:
    """Follows every path of one pipeline."""

    def __init__(self, pipeline: str, pipelines: int) -> None:
        self.pipeline = pipeline
        self.pipelines = pipelines
        self.metadata: ir.Variable | None = None
        self.problems: list[Diagnostic] = []
        self.values = Values()
        self.returned: list[list[PathState]] = []

    def run(self, control: ir.Control) -> None:
        if len(control.params) > _METADATA:
            self.metadata = control.params[_METADATA].variable
        self.block(control, PathState())

    # --- register accesses ---

    def access(self, call: ir.ExternCall, state: PathState) -> None:
        register = call.instance
        assert register is not None
        reads = call.method == "read"
        index_arg = call.args[1 if reads else 0].expr
        assert index_arg is not None
        index = self.values.of(index_arg, state)
        access = Access("read" if reads else "write", index, call.pos, state.facts)
        if self.pipelines > 1:
            self.bank(register, access, state)
        after: set[Access | None] = set()
        for before in state.accesses.get(register, frozenset((None,))):
            if before is not None:
                self.follow(register, before, access)
            after.add(access)
        state.accesses[register] = frozenset(after)

    def follow(self, register: ir.ExternInstance, before: Access, now: Access) -> None:
        if before.kind == "read" and now.kind == "write" and before.index == now.index:
            return
        if any(fact.excludes(other) for fact in before.facts for other in now.facts):
            return  # no packet reaches both
        if before.kind == "read" and now.kind == "write":
            what = "is written at an index that is not provably the one it was read at"
        elif before.kind == now.kind:
            what = f"is {'read' if now.kind == 'read' else 'written'} twice"
        else:
            what = "is read after it was written"
        message = f"register '{register.name}' {what} in one pass of {self.pipeline}"
        verb = "read" if before.kind == "read" else "written"
        self.problems.append(Diagnostic(now.pos, message, notes=((before.pos, f"it was {verb} here"),)))

    def bank(self, register: ir.ExternInstance, access: Access, state: PathState) -> None:
        """Check the bank of an access. Each pipeline's bank is a contiguous range of words; an index is the pipeline's
        number followed by the word in the bank."""
        verb = "read" if access.kind == "read" else "written"
        told = f"register '{register.name}' is {verb}"
        if self.pipeline != "ingress":
            message = f"{told} in {self.pipeline}, where the metadata does not name the pipeline that the packet is in"
            self.problems.append(Diagnostic(access.pos, message))
            return
        words = register.args[0]
        assert isinstance(words, int)
        low_bits = (words // self.pipelines).bit_length() - 1
        if words != self.pipelines << max(low_bits, 0):
            message = f"register '{register.name}' does not divide into {self.pipelines} banks of 2^n words"
            self.problems.append(Diagnostic(register.pos, message))
            return
        found = banked(access.index)
        if found is None or found.low_bits != low_bits:
            message = f"{told} at an index that is not provably a pipeline's number and {low_bits} bits"
            self.problems.append(Diagnostic(access.pos, message))
            return
        for other, before in state.banks.items():
            if other != found.bank:
                message = f"{told} in a different bank from earlier accesses of the pass"
                self.problems.append(Diagnostic(access.pos, message, notes=((before.pos, "here"),)))
                return
        if found.bank != self.own_bank(state):
            message = f"{told} in a bank that is not provably that of the packet's own pipeline"
            self.problems.append(Diagnostic(access.pos, message))
            return
        state.banks = {found.bank: access}

    def own_bank(self, state: PathState) -> Value | None:
        """The value of the metadata's ``pipeline``."""
        field = None if self.metadata is None else _bank_field(self.metadata.type)
        if self.metadata is None or field is None:
            return None
        return lookup(self.values.held(self.metadata, state), field[0])

    # --- blocks and calls ---

    def block(self, block: ir.Control | ir.Parser, state: PathState) -> PathState | None:
        after = self.sequence(block.locals, state)
        return self.callee(block.body, after) if isinstance(block, ir.Control) and after is not None else after

    def callee(self, body: ir.Block, state: PathState) -> PathState | None:
        """The state after ``body``, at its end or at any ``return`` in it."""
        self.returned.append([])
        end = self.statement(body, state)
        return join([*self.returned.pop(), *([end] if end is not None else [])], self.values)

    def call(self, params: tuple[ir.Param, ...], args: tuple[ir.Arg, ...], state: PathState) -> None:
        for arg in args:
            if arg.expr is not None and arg.direction != "out":
                self.expression(arg.expr, state)
        for param, arg in zip(params, args, strict=True):
            self.values.bind(param.variable, arg.expr if arg.direction != "out" else None, state)

    def copy_out(self, params: tuple[ir.Param, ...], args: tuple[ir.Arg, ...], state: PathState) -> None:
        for param, arg in zip(params, args, strict=True):
            if arg.expr is not None and arg.direction in ("out", "inout"):
                self.values.write(arg.expr, self.values.held(param.variable, state), state)
        state.forget(p.variable for p in params)

    def function(self, function: ir.Function, args: tuple[ir.Arg, ...], state: PathState) -> PathState | None:
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
                case ir.ExternCall(instance=instance) if instance is not None and instance.extern == "register":
                    self.access(node, state)
                    self._extern_outputs(node, state)
                case ir.ExternCall():
                    self._extern_outputs(node, state)
                case ir.Call(callee=callee, args=args):
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
                return self.sequence(body, state)
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
        for call in _accesses(s):
            assert call.instance is not None
            message = f"register '{call.instance.name}' is accessed in a loop in {self.pipeline}"
            self.problems.append(Diagnostic(call.pos, message, notes=((s.pos, "the loop is here"),)))
        state.env.clear()
        self.values.forget()
        return state


def _effects(e: ir.Expr) -> list[ir.Expr]:
    """The calls in ``e``, arguments before the call."""
    return [n for n in reversed(list(walk(e))) if isinstance(n, ir.ExternCall | ir.Call | ir.ApplyTable)]


def _accesses(root: object) -> list[ir.ExternCall]:
    """Register accesses below ``root``, through every function, action, table and block."""
    found: list[ir.ExternCall] = []
    for node in walk(root):
        match node:
            case ir.ExternCall(instance=instance) if instance is not None and instance.extern == "register":
                found.append(node)
            case ir.Call(callee=callee):
                found += _accesses(callee.body)
            case ir.ApplyTable(table=table):
                for ref in table.actions:
                    found += _accesses(ref.action.body)
            case ir.ApplyBlock(block=block) if isinstance(block, ir.Control):
                found += _accesses(block.body)
    return found
