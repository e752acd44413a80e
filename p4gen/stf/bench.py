"""The switch under test and what an STF file has put into it, statement by statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4gen.errors import Diagnostic
from p4gen.model import ControlError, Digest, Model
from p4gen.model.entries import (
    Action,
    CounterValue,
    Entry,
    Indirect,
)
from p4gen.model.names import find
from p4gen.model.state import Clock
from p4gen.model.tables import KeySpec, key_width, kind_of
from p4gen.p4 import ir
from p4gen.stf.lexer import StfError
from p4gen.stf.matches import match_fields
from p4gen.stf.statements import Add, Argument, BoundAction, Handle, Remove, SetDefault, Value

Engine = Callable[[ir.Program, Clock], Model]
"""Makes a switch that runs a program on a clock."""


class Bench:
    """A switch with its clock, and the handles by which a file names what it has made."""

    def __init__(self, program: ir.Program, engine: Engine) -> None:
        self.now = 1_000_000
        """Microseconds on the switch's clock, which only ``wait`` and packets move."""
        self.model = engine(program, lambda: self.now)
        self.notes: list[str] = []
        """What ``register_read`` and its like have found."""
        self.digests: list[Digest] = []
        self._tables = {t.name: t for t in program.tables}
        self._direct = {d.name: t.name for t in program.tables for d in t.direct}
        self.added: dict[str, list[Entry]] = {}
        """What ``add`` has added to each table."""
        self._handles: dict[str, Any] = {}

    def packet(self, port: int, data: bytes, trace: Any = None) -> list[tuple[int, bytes]]:
        """Let a packet arrive, and return the output as (port, packet). The clock moves by a microsecond."""
        self.now += 1
        out = self.model.process(port, data, trace)
        self.digests.extend(self.model.digests())
        return out

    def generated(self, trace: Any = None) -> list[tuple[int, bytes]]:
        """The output for packets that the switch itself has generated until now."""
        out = self.model.generate(trace)
        self.digests.extend(self.model.digests())
        return out

    # --- tables ---

    def add(self, statement: Add) -> None:
        """Execute ``add`` and its indirect forms."""
        table = find("table", statement.table, self._tables)
        specs = _specs(table)
        # The file counts from 0; the control plane's priorities from 1.
        ordered = any(spec.kind in ("ternary", "range", "optional") for spec in specs)
        if ordered and statement.priority is None:
            kinds = ", ".join(f"{spec.name} is {spec.kind}" for spec in specs)
            raise StfError(Diagnostic(statement.pos, f"table {table.name}: the entry needs a priority ({kinds})"))
        entry = Entry(
            table.name,
            match_fields(table.name, specs, statement.keys),
            self._action(table, statement),
            (statement.priority or 0) + 1 if ordered else 0,
        )
        self.model.insert(entry)
        self.added.setdefault(table.name, []).append(entry)
        self.name(statement.handle, entry)

    def set_default(self, statement: SetDefault) -> None:
        """Execute ``setdefault``: replace a table's default action."""
        table = find("table", statement.table, self._tables)
        self.model.set_default(table.name, _call(table, statement.action))

    def remove(self, statement: Remove) -> None:
        """Execute ``remove``: delete one entry, or all that ``add`` has added."""
        if statement.handle is None:
            for entries in self.added.values():
                self.model.delete(*entries)
                entries.clear()
            return
        entry = self.entry(statement.handle)
        self.model.delete(entry)
        self.added[entry.table].remove(entry)
        del self._handles[statement.handle.name]

    def entry(self, handle: Handle | Value, table: str | None = None) -> Entry:
        """The entry that a handle names; a number counts the table's entries in the order of ``add``, from 0."""
        if isinstance(handle, Handle):
            found = self._named(handle)
            if isinstance(found, Entry):
                return found
            raise StfError(Diagnostic(handle.pos, f"{handle.name} is not an entry"))
        entries = self.added.get(table or "", [])
        if handle.value >= len(entries):
            raise StfError(Diagnostic(handle.pos, f"table {table} has no entry {handle.value}"))
        return entries[handle.value]

    def _action(self, table: ir.Table, statement: Add) -> Action:
        if isinstance(statement.action, BoundAction):
            return _call(table, statement.action)
        number = self.number(statement.action)
        return Indirect(group=number) if statement.to_group else Indirect(member=number)

    # --- handles ---

    def name(self, handle: str | None, what: Any) -> None:
        """Let a handle, if one is given, stand for an entry or a number."""
        if handle is not None:
            self._handles[handle] = what

    def _named(self, handle: Handle) -> Any:
        if handle.name not in self._handles:
            unknown = f"nothing is called {handle.name}: no statement ends in '= {handle.name}'"
            raise StfError(Diagnostic(handle.pos, unknown))
        return self._handles[handle.name]

    def number(self, argument: Argument) -> int:
        """A number, or the one that a handle stands for."""
        if isinstance(argument, Value):
            return argument.value
        assert isinstance(argument, Handle)
        found = self._named(argument)
        if not isinstance(found, int):
            raise StfError(Diagnostic(argument.pos, f"{argument.name} is an entry, not a number"))
        return found

    # --- what can be read ---

    def counter(self, name: str, index: Handle | Value) -> CounterValue:
        """A cell of a counter, or what a table's direct counter has counted for an entry."""
        table = self.of_entries(name)
        if table is None:
            return self.model.counter(name, self.number(index))
        return self.model.entry_counter(self.entry(index, table))

    def register(self, name: str, index: Handle | Value) -> int:
        """The value of a cell of a register."""
        return self.model.register(name, self.number(index))

    def of_entries(self, name: str) -> str | None:
        """The table that a direct counter or meter belongs to; a table stands for its own."""
        for named in (self._direct, {t: t for t in self._tables}):
            try:
                return find("table", name, named)
            except ControlError:
                continue
        return None


def _specs(table: ir.Table) -> tuple[KeySpec, ...]:
    return tuple(
        KeySpec(k.name, kind_of(k.match_kind), key_width(k.expr.type)) for k in table.keys if k.match_kind != "selector"
    )


def _call(table: ir.Table, call: BoundAction) -> Action:
    """The action a call names: in full, by a unique suffix, or, as p4c's runner allows, by any unique ending."""
    names = [ref.action.name for ref in table.actions]
    name = call.name
    if not any(n == name or n.endswith("." + name) for n in names):
        endings = [n for n in names if n.endswith(name)]
        name = endings[0] if len(endings) == 1 else name
    return Action(name, {name: value.value for name, value in call.args})
