"""What the modules of a program read and write, found on the typed IR and held against what they declare.

A module declares what it needs (``needs``), what it provides (``provides``) and what of others it changes
(``changes``). Here the control of each module is followed through its actions, functions, tables' keys and the controls
it applies itself. Collected are all headers and fields of metadata that it reads or writes, and all reasons for which
it drops packets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Final

from p4gen.arch import of_package
from p4gen.p4 import ir
from p4gen.p4.types import SerEnum
from p4gen.p4.walk import walk
from p4gen.program import Composition, Module

_SHARED: Final = "drop"
"""The field of metadata that every module reads and writes: the first reason to take the packet out."""


@dataclass(frozen=True)
class Accesses:
    """Headers (``hdr.bth``) and fields of metadata (``order.accepted``) that a module reads and writes."""

    reads: frozenset[str]
    writes: frozenset[str]
    drops: frozenset[int]
    """The reasons to drop a packet, as ``drop_t`` numbers them."""


def accesses(program: ir.Program) -> dict[str, Accesses]:
    """What each control does that the architecture's pipelines apply, by the name of its instance."""
    found: dict[str, _Scan] = {}
    arch = of_package(program.package, program.arch)
    assert arch is not None
    for gress in arch.PIPELINES:
        pipeline = program.blocks[gress]
        assert isinstance(pipeline, ir.Control)
        own = _Scan({param.variable: name for param, name in zip(pipeline.params, ("hdr", "meta"), strict=False)})
        for node in walk(pipeline.body):
            if isinstance(node, ir.ApplyBlock):
                scan = found.setdefault(node.block.name.rpartition(".")[2], _Scan({}))
                scan.applied(node, own)
    return {
        name: Accesses(frozenset(scan.reads), frozenset(scan.writes), frozenset(scan.drops))
        for name, scan in found.items()
    }


def undeclared(composition: Composition, program: ir.Program) -> list[str]:
    """What modules read or write, and why they drop packets, without declaring it, a line each."""
    symbols = {reason.index: reason.symbol for reason in composition.drops}
    return [
        f"{module.name} {verb} {name}, which it does not declare"
        for module, real in _modules(composition, program)
        for verb, names, declared in (
            ("reads", real.reads, _readable(composition, module)),
            ("writes", real.writes, _writable(composition, module)),
            ("drops for", {symbols[i] for i in real.drops}, _reasons(composition, module)),
        )
        for name in sorted(names - declared)
    ]


def unused(composition: Composition, program: ir.Program) -> set[tuple[str, str]]:
    """Declared needs and changes that the program does not have, with their modules; another spec's may have them."""
    found = set()
    for module, real in _modules(composition, program):
        inner = composition.within(module.name)
        found |= {
            (m.name, name) for m in inner for name in (*m.needs, *m.may_need) if not _is(name, real.reads | real.writes)
        }
        found |= {(m.name, name) for m in inner for name in m.changes if not _is(name, real.writes)}
    return found


def _modules(composition: Composition, program: ir.Program) -> Iterator[tuple[Module, Accesses]]:
    there = accesses(program)
    for module in composition.modules:
        if not module.within:
            yield module, there[module.snake]


def _readable(composition: Composition, module: Module) -> set[str]:
    inner = composition.within(module.name)
    return (
        {_SHARED}
        | _named(composition, {name for m in inner for name in (*m.needs, *m.may_need)})
        | _writable(composition, module)
    )


def _writable(composition: Composition, module: Module) -> set[str]:
    inner = composition.within(module.name)
    own = {f"{m.part}.{field.name}" for m in inner for field in m.provides}
    return {_SHARED} | own | _named(composition, {name for m in inner for name in m.changes})


def _reasons(composition: Composition, module: Module) -> set[str]:
    inner = composition.within(module.name)
    return {reason.symbol for reason in composition.drops if reason.module in inner}


def _named(composition: Composition, names: set[str]) -> set[str]:
    """Names of fields with their part of metadata; headers' are what they are."""
    return {composition.fields.get(name, name) for name in names}


def _is(name: str, found: frozenset[str]) -> bool:
    return any(name in (path, path.rpartition(".")[2]) for path in found)


@cache
def _parts(kind: type[ir.Expr | ir.Stmt | ir.SwitchCase]) -> tuple[str, ...]:
    """The fields of nodes of a kind that may have code."""
    return tuple(f.name for f in fields(kind) if f.name not in ("pos", "type", "variable"))


class _Scan:
    """Collects what code reads and writes of what the variables ``names`` stand for."""

    def __init__(self, names: Mapping[ir.Variable, str]) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.drops: set[int] = set()
        self._names = dict(names)

    def applied(self, node: ir.ApplyBlock, by: _Scan) -> None:
        """A control that is applied with arguments, which are in the terms of ``by``."""
        assert isinstance(node.block, ir.Control)
        for param, arg in zip(node.block.params, node.args, strict=True):
            # A control may be applied more than once, with other arguments.
            self._names.pop(param.variable, None)
            path = by._path(arg.expr) if arg.expr is not None else None
            if path is not None:
                self._names[param.variable] = path
            elif arg.expr is not None:
                self._argument(arg)
        self._code(node.block.locals)
        self._code(node.block.body)

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
                self.applied(node, self)
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
