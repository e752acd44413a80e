"""The state of a switch with TNA or T2NA in one block of memory: registers, counters and meters once for each pipe, and
the control plane's settings."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from dataclasses import replace
from functools import partial
from typing import Any, overload

import numpy as np
from typing_extensions import override

from p4gen.chips.tna import PIPES
from p4gen.chips.tna.chip import PORTS, chip_of
from p4gen.chips.tna.generator import Generator
from p4gen.chips.tna.memory import TofinoState, instances, size_of, word_of
from p4gen.chips.tna.replication import MirrorSession, NodeReplica
from p4gen.chips.tna.words import Array, Entries, Word
from p4gen.errors import Diagnostic, InputError
from p4gen.model.entries import CloneSession, Replica
from p4gen.model.externs import Counter, Meter
from p4gen.model.frozen import Configuration
from p4gen.model.jit.blocks import BUCKET, SESSION_BIT, Item, Own, capacity
from p4gen.model.jit.entries import NativeTable
from p4gen.model.jit.memory import Block, Buckets, Bytes, Cells, NativeBucket, Watched, WatchedSet
from p4gen.model.jit.state import NativeState
from p4gen.model.state import Clock
from p4gen.model.tables import Installed
from p4gen.p4 import ir

EXCLUSION_BIT = 1 << 17
"""Keys of the replication index with this bit are exclusion ids of level 2; the replicas are their ports."""
NODE = 16
"""A replica's first number has above this bit the exclusion id of its node + 1, or 0."""
BARRED = {"ingress": 1 << 32, "egress": 1 << 33}
"""Bits beside the bytes to keep: mirrors of that direction may not use the session."""
METADATA, RETURNS, PARAMETER = "port metadata", "ports in loopback", "parameter "
"""Names of settings."""


def own(state: TofinoState, logged: Iterable[str]) -> Own:
    """Tofino's own part of the block; ``logged``: registers of which ``execute_log`` is called."""
    private = [("executions", executions(name), 64, 1) for name in logged]
    private += [
        ("direct_register", e.name, word_of(e).width, _cells(state, e))
        for e in instances(state.program, "DirectRegister")
    ]
    settings = [(METADATA, PORTS * chip_of(state.program).port_metadata), (RETURNS, PORTS)]
    settings += [(PARAMETER + name, 8) for name in state.params]
    return Own(PIPES, private, settings)


def executions(register: str) -> str:
    """The name of the counter of a register's executions."""
    return f"{register} executions"


def _cells(state: TofinoState, register: ir.ExternInstance) -> int:
    """A cell for each entry, one for the default entry, one where no action of a table runs."""
    table = table_of(state.program, register)
    return 1 if table is None else capacity(state.tables[table.name]) + 2


def table_of(program: ir.Program, register: ir.ExternInstance) -> ir.Table | None:
    """The table to whose entries a direct register belongs. Raises ``InputError`` if there are several."""
    found = [table for table in program.tables if register in table.direct]
    if len(found) > 1:
        what = f"register {register.name}: the native engine wants it to belong to one table; use interp"
        raise InputError(Diagnostic(register.pos, what))
    return found[0] if found else None


class _Values(MutableSequence[Any]):
    """A register's cells in one pipe, as values; they are numbers in the block."""

    def __init__(self, word: Word, size: int) -> None:
        self._word, self._size = word, size
        self.cells: Cells

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self._word.value(number) for number in self.cells[index]]
        return self._word.value(self.cells[index])

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):
            self.cells[index] = [self._word.number(each)[0] for each in value]
        else:
            self.cells[index] = self._word.number(value)[0]

    def __delitem__(self, index: int | slice) -> None:
        raise TypeError("a register keeps its size")

    @override
    def insert(self, index: int, value: Any) -> None:
        raise TypeError("a register keeps its size")


class NativeArray(Array):
    """An indexed register in one pipe, in the block."""

    def __init__(self, word: Word, size: int) -> None:
        self.word = word
        self.cells: Any = _Values(word, size)
        self._log: Cells | None = None
        self._count = 0

    def place(self, block: Block, item: Item, log: Item | None) -> None:
        """Read and write the cells of ``item`` in ``block`` from now on, and log executions in ``log``."""
        self.cells.cells = Cells(block, item)
        self._log = None if log is None else Cells(block, replace(log, kind="register"))
        self._start()

    @property
    def executions(self) -> int:
        """How often ``execute_log`` was called."""
        return self._count if self._log is None else self._log[0]

    @executions.setter
    def executions(self, value: int) -> None:
        if self._log is None:
            self._count = value
        else:
            self._log[0] = value

    def _start(self) -> None:
        number = self.word.number(self.word.fresh())[0]
        if number:
            self.cells.cells[:] = [number] * len(self.cells)

    @override
    def reset(self) -> None:
        """The block is all zeros before."""
        self._start()


class NativeEntries(Entries):
    """A register with a cell for each entry of a table, in one pipe, in the block."""

    def __init__(self, word: Word) -> None:
        self.word = word
        self._values: _Values
        self._table: NativeTable | None = None

    def place_in(self, block: Block, item: Item, table: NativeTable | None) -> None:
        """Read and write the cells of ``item`` in ``block`` from now on, by entry of ``table``."""
        self._values, self._table = _Values(self.word, item.count), table
        self._values.cells = Cells(block, replace(item, kind="register"))
        self.reset()

    @override
    def reset(self) -> None:
        """Cells that belong to an entry of the control plane are not reset."""
        last = len(self._values) - 1
        for number in range(max(last - 1, 0), last + 1):
            self.start(number)

    def start(self, number: int) -> None:
        """Let the cell of an entry start."""
        self._values[number] = self.word.fresh()

    @override
    def place(self, entry: Installed | None) -> tuple[Any, Any]:
        if entry is None or self._table is None:
            return self._values, len(self._values) - 1
        return self._values, self._table.number(entry)


class NativeTofino(NativeState, TofinoState):
    """The state of Tofino's model, in a block."""

    def __init__(self, program: ir.Program, clock: Clock | None = None, seed: int = 0) -> None:
        super().__init__(program, clock, seed)
        settings: list[dict[Any, Any]] = [self.params, self.port_metadata, self.exclusions]
        watched: list[Any] = [Watched(self._tail_changed) for _ in settings]
        for mine, before in zip(watched, settings, strict=True):
            mine.update(before)
        self.params, self.port_metadata, self.exclusions = watched
        for pipe in self.pipes:
            pipe.params = self.params
        self.loopback = WatchedSet(self._tail_changed)
        self.chip = chip_of(program)
        self.generator = Generator(self.chip, self._now, self.ports_down)

    @override
    def _memory(self, program: ir.Program) -> tuple[Any, ...]:
        arrays = {e.name: NativeArray(word_of(e), size_of(e)) for e in instances(program, "Register")}
        entries = {e.name: NativeEntries(word_of(e)) for e in instances(program, "DirectRegister")}
        counters = {e.name: Counter(e) for e in instances(program, "Counter")}
        meters = {e.name: Meter(e) for e in instances(program, "Meter")}
        return arrays, entries, self.params, counters, meters

    @override
    def _place_memory(self) -> None:
        layout, block = self.layout, self.block
        for number, pipe in enumerate(self.pipes):

            def here(item: Item, by: int = number * layout.pipe) -> Item:
                return replace(item, offset=item.offset + by)

            for name, array in pipe.arrays.items():
                log = layout.private.get(executions(name))
                assert isinstance(array, NativeArray)
                array.place(block, here(layout.registers[name]), None if log is None else here(log))
            for instance in instances(self.program, "DirectRegister"):
                register, table = pipe.entries[instance.name], table_of(self.program, instance)
                native = None if table is None else self._native[table.name]
                assert isinstance(register, NativeEntries)
                register.place_in(block, here(layout.private[instance.name]), native)
            for name, counter in pipe.counters.items():
                item = here(layout.counters[name])
                both: Any = Cells(block, item), Cells(block, item, 8)
                counter.packets, counter.bytes = both
            for name, meter in pipe.meters.items():
                item = here(layout.meters[name])
                places = (item.offset + i * BUCKET for i in range(item.count))
                meter.buckets = Buckets(NativeBucket(block, at) for at in places)
        for name, native in self._native.items():
            native.started = partial(self._started, name)
        self._see_all()

    def _started(self, table: str, number: int) -> None:
        """Let the cells of direct registers start that belong to a new entry."""
        for instance in instances(self.program, "DirectRegister"):
            own_table = table_of(self.program, instance)
            if own_table is not None and own_table.name == table:
                for pipe in self.pipes:
                    register = pipe.entries[instance.name]
                    assert isinstance(register, NativeEntries)
                    register.start(number)

    # --- what the control plane sets ---

    @override
    def _write_tail(self) -> None:
        super()._write_tail()
        places, block = self.layout.settings, self.block
        for name, value in self.params.items():
            block.put(places[PARAMETER + name], 8, value & (1 << 64) - 1)
        size = self.chip.port_metadata
        metadata = np.zeros(PORTS * size, np.uint8)
        for port, number in self.port_metadata.items():
            if 0 <= port < PORTS:
                metadata[port * size : (port + 1) * size] = np.frombuffer(number.to_bytes(size), np.uint8)
        block.array[places[METADATA] : places[METADATA] + PORTS * size] = metadata
        returns = [port & 0x7F in self.chip.recirculation or port in self.loopback for port in range(PORTS)]
        block.array[places[RETURNS] : places[RETURNS] + PORTS] = np.array(returns, np.uint8)

    @override
    def _replication(self) -> list[tuple[int, list[tuple[int, int]], int]]:
        listed = [(g.group_id, list(map(_replica, g.replicas)), 0) for g in self.groups.values()]
        listed += [
            (s.session_id | SESSION_BIT, list(map(_replica, s.replicas)), _keep(s)) for s in self.sessions.values()
        ]
        return listed + [
            (number | EXCLUSION_BIT, [(port, 0) for port in sorted(ports)], 0)
            for number, ports in self.exclusions.items()
        ]

    @override
    def _settings(self) -> Any:
        return self.freeze_settings()

    @override
    def _put_settings(self, settings: Any) -> None:
        self.restore_settings(settings)

    @override
    def snapshot(self) -> Bytes:
        if self.generator.applications:
            self._tail_changed()  # what the generator has done since is not in the block
        return super().snapshot()

    @override
    def _freeze_memory(self) -> tuple[Any, ...]:
        return (*super()._freeze_memory(), self.freeze_settings())

    @override
    def _restore_switch(self, configuration: Configuration, memory: tuple[Any, ...]) -> None:
        self.restore_settings(memory[1])
        super()._restore_switch(configuration, memory)
        self._tail_changed()

    @override
    def reset(self) -> None:
        super().reset()
        self._tail_changed()


def _replica(replica: Replica) -> tuple[int, int]:
    exclusion = replica.exclusion if isinstance(replica, NodeReplica) else None
    return replica.port | (0 if exclusion is None else exclusion + 1) << NODE, replica.rid


def _keep(session: CloneSession) -> int:
    barred = 0
    if isinstance(session, MirrorSession) and session.direction != "both":
        barred = BARRED["egress" if session.direction == "ingress" else "ingress"]
    return session.packet_length | barred
