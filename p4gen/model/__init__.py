"""The behavioural model: a v1model switch that runs the typed IR.

``Model(program)`` is a whole switch in memory: ``process`` takes a packet and gives what comes out, and
the methods of the ``ControlPlane`` protocol (``p4gen.switch.api``) configure and read it.
"""

from __future__ import annotations

from p4gen.model.errors import ControlError
from p4gen.model.externs import MeterConfig, Trap
from p4gen.model.resources import Resources
from p4gen.model.state import Clock, Digest, State
from p4gen.model.trace import Event, Trace, render
from p4gen.model.v1model import V1Model
from p4gen.p4 import ir

__all__ = ["Clock", "ControlError", "Digest", "Event", "MeterConfig", "Model", "Trace", "Trap", "render"]


class Model(Resources):
    """A switch that runs ``program``.

    ``clock`` gives microseconds since the start (default: the machine's clock), for timestamps and
    meters; ``seed`` is for ``random``. Raises ``InputError``, with positions, for what of the program is
    not supported.
    """

    def __init__(self, program: ir.Program, *, clock: Clock | None = None, seed: int = 0) -> None:
        super().__init__(State(program, clock, seed))
        self.program = program
        self._engine = V1Model(program, self._state)

    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Outputs as (port, packet), in order of transmission; with ``trace``, everything on the way is
        added to it."""
        return self._engine.process(port, packet, trace)
