"""The behavioural model: a v1model switch that runs the typed IR.

``Model(program)`` is a whole switch in memory: ``process`` takes a packet and gives what comes out, and
the methods of the ``ControlPlane`` protocol (``p4gen.switch.api``) configure and read it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from p4gen.choices import ENGINES, EngineName
from p4gen.model.errors import ControlError
from p4gen.model.externs import MeterConfig, Trap
from p4gen.model.frozen import SwitchState
from p4gen.model.resources import Resources
from p4gen.model.state import Clock, Digest, ModelState
from p4gen.model.trace import Event, Trace, render
from p4gen.model.v1model import V1Model
from p4gen.p4 import ir

if TYPE_CHECKING:
    from p4gen.model.jit import Batch, Bytes, Engine, StateLayout

__all__ = [
    "ENGINES", "Clock", "ControlError", "Digest", "EngineName", "Event", "MeterConfig", "Model", "SwitchState", "Trace",
    "Trap", "render",
]  # fmt: skip


class _Runs(Protocol):
    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]: ...


class Model(Resources):
    """A switch that runs ``program``.

    ``clock`` gives microseconds since the start (default: the machine's clock), for timestamps and
    meters; ``seed`` is for ``random``. ``cache`` is the folder of programs that ``jit`` has compiled before, "" for
    none (default: the user's). With ``poison``, which only ``interp`` has, what the program reads before it has
    written is garbage rather than zero.

    Raises ``InputError``, with positions, for what of the program is not supported.
    """

    def __init__(
        self,
        program: ir.Program,
        *,
        clock: Clock | None = None,
        seed: int = 0,
        engine: EngineName = "interp",
        cache: Path | Literal[""] | None = None,
        poison: bool = False,
    ) -> None:
        self.program = program
        self.engine = engine
        self._native: Engine | None = None
        self._runs: _Runs
        if engine == "interp":
            super().__init__(ModelState(program, clock, seed, poison=poison))
            self._runs = V1Model(program, self._state)
        elif poison:
            raise ValueError("poison needs the reference interpreter")
        else:
            # llvmlite takes a while to load, and only this engine needs it.
            from p4gen.model import jit  # noqa: PLC0415

            state = jit.NativeState(program, clock, seed)
            super().__init__(state)
            folder = jit.cache_directory() if cache is None else cache or None
            self._runs = self._native = jit.Engine(program, state, folder)

    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Outputs as (port, packet), in order of transmission; with ``trace``, everything on the way is
        added to it."""
        return self._runs.process(port, packet, trace)

    def freeze(self) -> SwitchState:
        """All that the switch remembers, as data of its own; states of switches with one program and engine compare."""
        return self._state.freeze()

    def restore(self, frozen: SwitchState) -> None:
        """Back to what a switch of the same program and engine was. Raises ``ValueError`` for any other."""
        self._state.restore(frozen)

    # --- what only the native engine can ---

    @property
    def native(self) -> Engine:
        """The native engine. Raises ``ValueError`` when the model runs on another."""
        if self._native is None:
            raise ValueError(f"batches and snapshots need the native engine, this model's is {self.engine}")
        return self._native

    def process_batch(self, batch: Batch) -> Batch:
        """Many packets in one call: ``batch`` in, one after the other; everything that comes out, in order."""
        return self.native.process_batch(batch)

    def snapshot(self) -> Bytes:
        """The switch's whole state as one block of bytes; ``layout`` says what is where."""
        return self.native.state.snapshot()

    def restore_snapshot(self, snapshot: Bytes) -> None:
        """Back to a snapshot of this switch. Raises ``ValueError`` for any other."""
        self.native.state.restore_snapshot(snapshot)

    @property
    def layout(self) -> StateLayout:
        """Where each register, counter and meter is in a snapshot."""
        return self.native.state.layout
