"""p4gen's rules for v1model programs that should also run on a switch's hardware pipeline.

The first rule is that one pass of a packet accesses each register array once: at most one read, then at most one write
at the same index. Paths through the control flow are followed with symbolic values (``values``), so "the same index"
means provably equal, not written alike. Two accesses do not conflict if no packet can reach both: for instance if one
requires that a value equals a constant, and the other that it does not.

The second rule is for programs with several pipelines: each has a bank of every register, and a pass accesses only the
bank of its own pipeline, which the metadata's field ``pipeline`` names.

The third: no field of a header is used where the program may have taken the header away (``validity``).
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import override

from p4gen.arch import Stage, of_package
from p4gen.errors import Diagnostic, Pos
from p4gen.p4 import ir
from p4gen.p4.lint import validity
from p4gen.p4.lint.paths import Paths
from p4gen.p4.lint.values import Access, Path, PathState, Value, banked, lookup
from p4gen.p4.types import Bits, Fields, Type
from p4gen.p4.walk import used_by

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
    """The blocks that the rules are about, by their names in messages."""
    arch = of_package(program.package, program.arch, program.blocks)
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
    egress, in both of them, or never; a field of a header that may be invalid; with several ``pipelines``, an index
    that is not provably in the bank of the packet's pipeline."""
    found: dict[tuple[Pos, str], Diagnostic] = {}
    touched: dict[ir.ExternInstance, dict[str, Pos]] = {}
    for name, pipeline in _pipelines(program).items():
        block = program.blocks.get(name)
        if not isinstance(block, ir.Control):
            continue
        checker = _Checker(pipeline, pipelines)
        checker.run(block)
        invalid = [Diagnostic(pos, message) for pos, message in validity.reads(block)]
        for problem in (*checker.problems, *invalid):
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


class _Checker(Paths):
    """Follows every path of one pipeline."""

    def __init__(self, pipeline: str, pipelines: int) -> None:
        super().__init__(pipeline)
        self.pipelines = pipelines
        self.metadata: ir.Variable | None = None

    def run(self, control: ir.Control) -> None:
        if len(control.params) > _METADATA:
            self.metadata = control.params[_METADATA].variable
        self.block(control, PathState())

    # --- register accesses ---

    @override
    def register_of(self, call: ir.ExternCall) -> ir.ExternInstance | None:
        """The instance whose method ``call`` is, if that instance is a register."""
        return call.instance if call.instance is not None and call.instance.extern == "register" else None

    @override
    def access(self, register: ir.ExternInstance, call: ir.ExternCall, state: PathState) -> None:
        """Judge an access by the previous access to the same register, and by its bank."""
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
