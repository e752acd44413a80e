"""The behavioural model: a switch that runs the typed IR.

``Model(program)`` is a complete switch in memory: ``process`` takes a packet and returns the output, and the methods of
``ControlPlane`` configure and read it. What happens around a program's blocks is its architecture's
(``p4gen.model.behaviour``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from p4gen.choices import ENGINES, EngineName
from p4gen.model.behaviour import (
    behaviour_of,
    engines,
    is_modelled,
    native_of,
    packages,
)
from p4gen.model.errors import ControlError
from p4gen.model.externs import MeterConfig, Trap
from p4gen.model.frozen import SwitchState
from p4gen.model.resources import Resources
from p4gen.model.runner import GeneratingRunner, HoldingRunner, Runner
from p4gen.model.state import Clock, Digest
from p4gen.model.trace import Event, Trace, render
from p4gen.p4 import ir

if TYPE_CHECKING:
    from p4gen.model.jit import Batch, Bytes, Engine, StateLayout

__all__ = [
    "ENGINES", "Clock", "ControlError", "Digest", "EngineName", "Event", "MeterConfig", "Model", "SwitchState", "Trace",
    "Trap", "engines", "is_modelled", "packages", "render",
]  # fmt: skip


class Model(Resources):
    """A switch that runs ``program``.

    ``clock`` returns microseconds since the start (default: the machine's clock), for timestamps and meters; ``seed``
    is for ``random``. ``cache`` is the folder of programs that ``jit`` has compiled before, "" for none (default: the
    user's). With ``poison``, which only ``interp`` supports, uninitialised values are garbage instead of zero.

    Raises ``InputError``, with positions, for unsupported parts of the program.
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
        self._runner: Runner
        if engine == "interp":
            behaviour = behaviour_of(program)
            super().__init__(behaviour.state(program, clock, seed, poison=poison))
            self._runner = behaviour.interpreter(program, self._state)
        elif poison:
            raise ValueError("poison needs the reference interpreter")
        else:
            native = native_of(program)
            # llvmlite takes a while to load, and only this engine needs it.
            from p4gen.model import jit  # noqa: PLC0415

            folder = jit.cache_directory() if cache is None else cache or None
            self._runner = self._native = native(program, clock, seed, folder)
            super().__init__(self._native.state)

    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Process a packet. Returns the output as (port, packet), in order of transmission. With ``trace``, all events
        are added to it."""
        return self._runner.process(port, packet, trace)

    def most_passes(self) -> int:
        """The most passes through ingress that one packet has caused since the last call: 1 if none recirculated.
        Packets of batches are not counted."""
        most, self._state.most_passes = self._state.most_passes, 0
        return most

    def generate(self, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Process the packets that the switch itself has generated until now, if it generates any."""
        return self._runner.generate(trace) if isinstance(self._runner, GeneratingRunner) else []

    def hold_recirculated(self, *, held: bool = True) -> None:
        """Hold back packets that recirculate, from now on or no longer. Such a packet leaves by the port ``HELD``
        (``p4gen.model.passes``), together with the metadata that it keeps, and goes on when ``process`` is given it at
        that port. Raises ``ValueError`` if the architecture's model cannot do so."""
        if not (behaviour_of(self.program).holds and isinstance(self._runner, HoldingRunner)):
            raise ValueError(f"packets of {self.program.package} that recirculate come back at once")
        self._runner.hold(held)

    @property
    def machine(self) -> Runner:
        """The runner of the program; an architecture's own has the settings that only this architecture knows."""
        return self._runner

    def freeze(self) -> SwitchState:
        """The state of the switch, as data. States of switches with the same program and engine are comparable."""
        return self._state.freeze()

    def restore(self, frozen: SwitchState) -> None:
        """Return to a state of a switch with the same program and engine. Raises ``ValueError`` for any other."""
        self._state.restore(frozen)

    # --- native engine only ---

    @property
    def native(self) -> Engine:
        """The native engine. Raises ``ValueError`` when the model runs on the interpreter."""
        if self._native is None:
            raise ValueError(f"batches and snapshots need the native engine, this model's is {self.engine}")
        return self._native

    def process_batch(self, batch: Batch) -> Batch:
        """Process the packets of ``batch``, one after the other, in one call. Returns all the output in order."""
        return self.native.process_batch(batch)

    def snapshot(self) -> Bytes:
        """The complete state of the switch as one block of bytes; ``layout`` describes it."""
        return self.native.state.snapshot()

    def restore_snapshot(self, snapshot: Bytes) -> None:
        """Return to a snapshot of this switch. Raises ``ValueError`` for any other."""
        self.native.state.restore_snapshot(snapshot)

    @property
    def layout(self) -> StateLayout:
        """The position of each register, counter and meter in a snapshot."""
        return self.native.state.layout
