"""The embedded switch: the behavioural model behind the ``ControlPlane`` interface, safe for threads."""

from __future__ import annotations

import threading
from pathlib import Path

from p4gen.model import Clock, Digest, EngineName, MeterConfig, Model, Trace, Trap
from p4gen.model.entries import Action, CloneSession, CounterValue, Entry, MulticastGroup
from p4gen.p4 import ir

MAX_FRAME = 65536
"""Bytes of the largest frame that ports carry."""


class EmbeddedSwitch:
    """A v1model switch in this process. ``send`` is its memory port: a packet in, packets out.

    Control-plane methods are those of ``ControlPlane`` and raise ``ControlError`` as it says; one lock
    makes each of them, and each packet, atomic. With ``tracing`` on, ``take_trace`` has what happened to
    the packets since it was last called.
    """

    def __init__(
        self, program: ir.Program, *, clock: Clock | None = None, seed: int = 0, engine: EngineName = "interp"
    ) -> None:
        self._model = Model(program, clock=clock, seed=seed, engine=engine)
        self._lock = threading.RLock()
        self._trace: Trace | None = None

    @classmethod
    def from_file(
        cls, path: Path | str, *, clock: Clock | None = None, seed: int = 0, engine: EngineName = "interp"
    ) -> EmbeddedSwitch:
        """Compile the P4 program at ``path`` and load it. Raises ``InputError`` with positions."""
        from p4gen.p4.compile import compile_file  # noqa: PLC0415 - a compiled program needs no front end

        return cls(compile_file(Path(path)).program, clock=clock, seed=seed, engine=engine)

    @property
    def program(self) -> ir.Program:
        """The program it runs."""
        return self._model.program

    @property
    def lock(self) -> threading.RLock:
        """Held while a packet or a request is handled; whoever holds it makes several requests one."""
        return self._lock

    @property
    def model(self) -> Model:
        """The model inside, for what is not in the ``ControlPlane``; hold ``lock`` while using it."""
        return self._model

    # --- packets ---

    def send(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """What the switch sends, as (port, packet) in order, when ``packet`` arrives at ``port``."""
        with self._lock:
            return self._model.process(port, packet, self._trace)

    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """As ``send``, reporting every step to ``trace``."""
        with self._lock:
            return self._model.process(port, packet, trace)

    def set_tracing(self, on: bool) -> None:
        """Start or stop collecting traces; starting forgets older events."""
        with self._lock:
            self._trace = Trace() if on else None

    def take_trace(self) -> Trace:
        """The events since tracing started or since the last call."""
        with self._lock:
            taken = self._trace if self._trace is not None else Trace()
            if self._trace is not None:
                self._trace = Trace()
            return taken

    # --- control plane ---

    def insert(self, *entries: Entry) -> None:
        """Add table entries; all or none."""
        with self._lock:
            self._model.insert(*entries)

    def modify(self, *entries: Entry) -> None:
        """Give existing entries another action; all or none."""
        with self._lock:
            self._model.modify(*entries)

    def delete(self, *entries: Entry) -> None:
        """Remove table entries; all or none."""
        with self._lock:
            self._model.delete(*entries)

    def entries(self, table: str) -> list[Entry]:
        """All entries of a table, in the order of insertion."""
        with self._lock:
            return self._model.entries(table)

    def set_default(self, table: str, action: Action | None) -> None:
        """Replace a table's default action; None restores the program's."""
        with self._lock:
            self._model.set_default(table, action)

    def default(self, table: str) -> Action:
        """The default action in force."""
        with self._lock:
            return self._model.default(table)

    def set_multicast_group(self, group: MulticastGroup) -> None:
        """Create or replace; a group without replicas is removed."""
        with self._lock:
            self._model.set_multicast_group(group)

    def set_clone_session(self, session: CloneSession) -> None:
        """Create or replace; a session without replicas is removed."""
        with self._lock:
            self._model.set_clone_session(session)

    def counter(self, name: str, index: int = 0) -> CounterValue:
        """One cell of an indexed counter."""
        with self._lock:
            return self._model.counter(name, index)

    def counters(self, name: str) -> list[CounterValue]:
        """All cells of an indexed counter."""
        with self._lock:
            return self._model.counters(name)

    def entry_counter(self, entry: Entry) -> CounterValue:
        """What the table's direct counter has counted for an entry."""
        with self._lock:
            return self._model.entry_counter(entry)

    def register(self, name: str, index: int) -> int:
        """One cell of a register, as an unsigned number."""
        with self._lock:
            return self._model.register(name, index)

    def registers(self, name: str) -> list[int]:
        """All cells of a register, as unsigned numbers."""
        with self._lock:
            return self._model.registers(name)

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set one cell of a register to an unsigned number of its width."""
        with self._lock:
            self._model.write_register(name, index, value)

    def write_counter(self, name: str, index: int, value: CounterValue) -> None:
        """Set one cell of an indexed counter."""
        with self._lock:
            self._model.write_counter(name, index, value)

    def set_meter(self, name: str, index: int | None, config: MeterConfig | None) -> None:
        """Configure one cell of an indexed meter, or with ``index`` None all of them."""
        with self._lock:
            self._model.set_meter(name, index, config)

    def meter(self, name: str, index: int) -> MeterConfig | None:
        """The configuration of one cell of an indexed meter."""
        with self._lock:
            return self._model.meter(name, index)

    def set_entry_meter(self, entry: Entry, config: MeterConfig | None) -> None:
        """Configure the direct meter of an entry."""
        with self._lock:
            self._model.set_entry_meter(entry, config)

    def traps(self) -> list[Trap]:
        """Undefined behaviour since loading, counted by source position."""
        with self._lock:
            return self._model.traps()

    def digests(self) -> list[Digest]:
        """Digests sent since the last call."""
        with self._lock:
            return self._model.digests()

    def log_messages(self) -> list[str]:
        """What ``log_msg`` wrote since the last call."""
        with self._lock:
            return self._model.log_messages()

    def reset(self) -> None:
        """Back to the state after loading: no entries, groups or sessions; state and counters 0."""
        with self._lock:
            self._model.reset()
