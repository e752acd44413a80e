"""What the modules of a program read, write and drop, found on its typed IR.

The control of each module is followed through its actions, functions, tables' keys and the controls that it applies
itself. A program is refused if a module reads what nothing has written before it, or drops for a reason that it does
not declare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Final

from p4gen.arch import of_package
from p4gen.p4 import ir
from p4gen.p4.types import SerEnum
from p4gen.program.compose import Composition

DROP: Final = "drop"
"""The field of metadata that every module reads and writes: the first reason to take the packet out."""


@dataclass(frozen=True)
class Accesses:
    """Headers (``hdr.bth``) and fields of metadata (``order.accepted``) that a module reads and writes."""

    reads: frozenset[str]
    writes: frozenset[str]
    drops: frozenset[int]
    """The reasons to drop a packet, as ``drop_t`` numbers them."""


def accesses(program: ir.Program) -> dict[str, Accesses]:
    """What each control does that a pipeline applies, or a module in it, by the name of its instance; what a control
    applies counts as its own."""
    found: dict[str, _Scan] = {}
    for scan in _pipelines(program):
        _collect(scan, found)
    return {
        name: Accesses(frozenset(scan.reads), frozenset(scan.writes), frozenset(scan.drops))
        for name, scan in found.items()
    }


def _collect(scan: _Scan, found: dict[str, _Scan]) -> None:
    for name, inner in scan.applies:
        found.setdefault(name, _Scan({})).add(inner)
        _collect(inner, found)


def problems(composition: Composition, program: ir.Program) -> list[str]:
    """What modules read that nothing has written before, and why they drop packets without declaring it, a line
    each."""
    return [*_undeclared_drops(composition, program), *_unwritten(composition, program)]


def _undeclared_drops(composition: Composition, program: ir.Program) -> Iterator[str]:
    symbols = {reason.index: reason.symbol for reason in composition.drops}
    done = accesses(program)
    for module in composition.modules:
        if module.within:
            continue
        inner = composition.within(module.name)
        declared = {reason.symbol for reason in composition.drops if reason.module in inner}
        for name in sorted({symbols[i] for i in done[module.snake].drops} - declared):
            yield f"{module.name} drops for {name}, which it does not declare"


def _unwritten(composition: Composition, program: ir.Program) -> Iterator[str]:
    """Fields of metadata that a module reads before anything writes them. A parser may write any."""
    names = {module.snake: module.name for module in composition.modules}
    told = {f"{field.part}.{field.name}" for module in composition.modules for field in module.tells}
    known = _parsed(program)
    for pipeline in _pipelines(program):
        # What the control itself does counts wherever it stands: it gives fields their first values.
        known |= pipeline.own_writes
        for name, scan in pipeline.applies:
            for field in sorted((scan.reads & told) - scan.writes - known):
                yield f"{names.get(name, name)} reads {field}, which nothing writes before it"
            known |= scan.writes


@lru_cache(maxsize=1)
def _pipelines(program: ir.Program) -> tuple[_Scan, ...]:
    """The scans of the controls that apply modules; a build asks several times."""
    arch = of_package(program.package, program.arch)
    assert arch is not None
    found = []
    for gress in arch.PIPELINES:
        pipeline = program.blocks[gress]
        assert isinstance(pipeline, ir.Control)
        scan = _Scan(_headers_and_metadata(pipeline))
        scan.body(pipeline)
        found.append(scan)
    return tuple(found)


@cache
def _parts(kind: type[ir.Expr | ir.Stmt | ir.SwitchCase]) -> tuple[str, ...]:
    """The fields of nodes of a kind that may have code."""
    return tuple(f.name for f in fields(kind) if f.name not in ("pos", "type", "variable"))


def _headers_and_metadata(block: ir.Control | ir.Parser) -> dict[ir.Variable, str]:
    """What a pipeline's or a parser's parameters stand for; a parser's first one is the packet."""
    params = block.params[1:] if isinstance(block, ir.Parser) else block.params
    return {param.variable: name for param, name in zip(params, ("hdr", "meta"), strict=False)}


def _parsed(program: ir.Program) -> set[str]:
    """The fields of metadata that parsers write."""
    found: set[str] = set()
    for block in program.blocks.values():
        if isinstance(block, ir.Parser):
            scan = _Scan(_headers_and_metadata(block))
            scan.body(block)
            found |= scan.writes
    return found


class _Scan:
    """Collects what code reads and writes of what the variables ``names`` stand for."""

    def __init__(self, names: Mapping[ir.Variable, str]) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.drops: set[int] = set()
        self.own_writes: set[str] = set()
        """Those of ``writes`` that are not made by controls that the code applies."""
        self.applies: list[tuple[str, _Scan]] = []
        """The controls that the code applies, in order, by the names of their instances."""
        self._names = dict(names)

    def add(self, other: _Scan) -> None:
        """Take over what another scan has found."""
        self.reads |= other.reads
        self.writes |= other.writes
        self.drops |= other.drops

    def body(self, block: ir.Control | ir.Parser) -> None:
        """Scan a control or a parser."""
        self._code(block.locals)
        if isinstance(block, ir.Control):
            self._code(block.body)
        else:
            self._code(tuple(state.body for state in block.states.values()))

    def _applied(self, node: ir.ApplyBlock) -> None:
        """A control that is applied; what its parameters stand for is found in the arguments."""
        assert isinstance(node.block, ir.Control)
        inner = _Scan({})
        for param, arg in zip(node.block.params, node.args, strict=True):
            path = self._path(arg.expr) if arg.expr is not None else None
            if path is not None:
                inner._names[param.variable] = path
            elif arg.expr is not None:
                self._argument(arg)
        inner.body(node.block)
        self.add(inner)
        self.applies.append((node.block.name.rpartition(".")[2], inner))

    def _path(self, e: object) -> str | None:
        """What an expression stands for: ``hdr``, ``meta``, ``hdr.bth.psn``, ``meta.order.accepted``."""
        match e:
            case ir.Var(variable=variable):
                return self._names.get(variable)
            case ir.FieldOf(base=base, name=name):
                path = self._path(base)
                return None if path is None else f"{path}.{name}"
        return None

    def _note(self, path: str, into: set[str]) -> None:
        parts = path.split(".")
        if parts[0] == "hdr" and len(parts) > 1:
            into.add(f"hdr.{parts[1]}")
        elif parts[0] == "meta" and len(parts) > 1:
            into.add(".".join(parts[1:3]))

    def _code(self, node: object) -> None:
        match node:
            case tuple():
                for each in node:
                    self._code(each)
            case ir.Assign(target=target, value=value):
                self._target(target)
                self._code(value)
            case ir.SetValidity(header=header):
                self._target(header)
            case ir.ApplyBlock():
                self._applied(node)
            case ir.ApplyTable(table=table):
                self._code(tuple(key.expr for key in table.keys))
                for ref in table.actions:
                    self._code(ref.action.body)
            case ir.FunctionCall(callee=callee, args=args):
                for arg in args:
                    self._argument(arg)
                self._code(callee.body)
            case ir.ExternCall(args=args, instance=instance, method=method):
                for arg in args:
                    self._argument(arg)
                # An action on a register runs its body where it is executed.
                for function in instance.methods.values() if instance is not None and method == "execute" else ():
                    self._code(function.body)
            case ir.Literal(type=SerEnum(name="drop_t"), value=int(reason)) if reason:
                self.drops.add(reason)
            case ir.Var() | ir.FieldOf():
                path = self._path(node)
                if path is not None:
                    self._note(path, self.reads)
                elif isinstance(node, ir.FieldOf):
                    self._code(node.base)
            case ir.Expr() | ir.Stmt() | ir.SwitchCase():
                for name in _parts(type(node)):  # type: ignore[arg-type]  # mypy takes types of nodes for unhashable
                    self._code(getattr(node, name))

    def _argument(self, arg: ir.Arg) -> None:
        if arg.direction in ("out", "inout"):
            self._target(arg.expr)
        if arg.direction != "out":
            self._code(arg.expr)

    def _target(self, e: object) -> None:
        """Code that is given a value: of a slice, the rest stays, so that it is read too."""
        match e:
            case ir.Slice(base=base):
                self._target(base)
                self._code(base)
            case ir.Index(base=base, index=index):
                self._target(base)
                self._code(index)
            case _:
                path = self._path(e)
                if path is not None:
                    self._note(path, self.writes)
                    self._note(path, self.own_writes)
