"""One access to each register in one pass, by one gress, with one index in each action."""

from __future__ import annotations

from collections.abc import Iterator

from typing_extensions import override

from p4gen.chips.tna.lint.chips import controls, register_of
from p4gen.errors import Diagnostic
from p4gen.p4 import ir
from p4gen.p4.lint.paths import Paths
from p4gen.p4.lint.values import Access, PathState
from p4gen.p4.walk import used_by


def check(program: ir.Program) -> Iterator[Diagnostic]:
    """Registers that a packet would access twice in one pass, and registers and tables that two gresses use."""
    users: dict[tuple[str, ir.ExternInstance], dict[str, ir.ExternCall]] = {}
    tables: dict[tuple[str, ir.Table], str] = {}
    for pipe, gress, control in controls(program):
        paths = _Passes(gress)
        paths.block(control, PathState())
        yield from paths.problems
        used = used_by(control)
        for call in used.calls:
            register = register_of(call)
            if register is not None:
                users.setdefault((pipe, register), {}).setdefault(gress, call)
        for table in used.tables:
            first = tables.setdefault((pipe, table), gress)
            if first != gress:
                message = f"table '{table.name}' is applied in {first} and in {gress}; each gress needs its own"
                yield Diagnostic(table.pos, message)
    for (_, register), calls in users.items():
        (first, before), *others = calls.items()
        for gress, call in others:
            message = f"register '{register.name}' is accessed in {first} and in {gress}; each gress needs its own"
            yield Diagnostic(call.pos, message, notes=((before.pos, f"in {first} here"),))


class _Passes(Paths):
    """Follows a gress. Two accesses that no packet can reach both do not conflict, as p4c sees it too."""

    @override
    def register_of(self, call: ir.ExternCall) -> ir.ExternInstance | None:
        """The register of an action, or the one that is read or written itself."""
        return register_of(call)

    @override
    def access(self, register: ir.ExternInstance, call: ir.ExternCall, state: PathState) -> None:
        """Only one on each path; ``read`` and then ``write`` are one, as p4c makes one action of them."""
        now = Access(call.method, ("index",), call.pos, state.facts)
        for before in state.accesses.get(register, frozenset()):
            if before is None or (before.kind == "read" and now.kind == "write"):
                continue
            if any(fact.excludes(other) for fact in before.facts for other in now.facts):
                continue
            message = (
                f"register '{register.name}' is accessed twice in one pass of {self.pipeline}; 1 access is possible"
            )
            notes = ((before.pos, "it was accessed here"),)
            # p4c's back end does not refuse it; the chip makes one of both accesses.
            self.problems.append(Diagnostic(call.pos, message, "warning", notes))
        state.accesses[register] = frozenset({now})
