"""Programs in machine code, as other machine code runs them (``p4gen.model.jit``)."""

from __future__ import annotations

from p4gen.compiled.cached import compiled
from p4gen.compiled.machine import run_program, store64
from p4gen.model.jit import exchange as x


@compiled
def run_batch(
    program: int, state: int, exchange: int, temporary: int, data: int, starts: int, ends: int, ports: int, count: int,
    now: int,
) -> None:  # fmt: skip
    """Run a program on ``count`` packets, which have all arrived at the time ``now``, in us of the program's clock.
    ``data``, ``starts``, ``ends`` and ``ports`` are the addresses of their bytes, positions and ports
    (``exchange.IN_DATA``). What the program sends is in its exchange area then."""
    store64(exchange + x.IN_DATA, data)
    store64(exchange + x.IN_OFFSETS, starts)
    store64(exchange + x.IN_ENDS, ends)
    store64(exchange + x.IN_PORTS, ports)
    store64(exchange + x.IN_TIMES, 0)
    store64(exchange + x.IN_COUNT, count)
    store64(exchange + x.NOW, now)
    run_program(program, state, exchange, temporary)
