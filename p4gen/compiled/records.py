"""Records of a world's arrays, as compiled functions read and write them.

``pair_at(world, i).una`` is a column of record ``i``; ``world`` is ``World.place``. Records are taken by address:
arrays as arguments of each function would take most of the time, because Numba passes and counts each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import from_dtype, types

from p4gen.compiled.machine import machine_code, record_there
from p4gen.compiled.memory import (
    ANSWER,
    ARRIVED,
    BUFFER,
    BYTE,
    CELL,
    CHARGE,
    DIRECTION,
    EVENT,
    GATE,
    GLOBALS,
    HOST,
    KEPT,
    KNOWN,
    LEFT,
    LINK,
    MESSAGE,
    NUMBER,
    PAIR,
    POOL,
    PRIORITY,
    QUEUE,
    QUEUED,
    RATE,
    RECEIVE,
    RUN,
    SHORT,
    SWITCH,
    TEMPLATE,
    TRIPS,
)

_I64: Final = ir.IntType(64)


def _place(builder: Any, world: Any, index: Any, array: str, size: int) -> Any:
    """The address of a record of ``size`` bytes in an array of a world, which never moves."""
    fields = GLOBALS.fields
    assert fields is not None
    at = builder.inttoptr(builder.add(world, _I64(fields[array][1])), _I64.as_pointer())
    base = builder.load(at)
    base.set_metadata("invariant.load", builder.module.add_metadata([]))
    return builder.add(base, builder.mul(index, _I64(size)))


def _records(dtype: np.dtype[Any], array: str) -> tuple[Callable[[int, int], Any], Callable[[int, int], int]]:
    """Functions of a world and an index: the record in an array, and its address."""
    kind = from_dtype(dtype)

    @machine_code
    def at(_typing: Any, world: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            found = _place(builder, args[0], args[1], array, dtype.itemsize)
            return builder.inttoptr(found, context.get_value_type(kind))

        return kind(types.int64, types.int64), generate

    @machine_code
    def address(_typing: Any, world: Any, index: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return _place(builder, args[0], args[1], array, dtype.itemsize)

        return types.int64(types.int64, types.int64), generate

    return at, address


every = record_there(GLOBALS)
"""What there is once in a world, which begins with it."""
rate_in = record_there(RATE)

event_at, event_address = _records(EVENT, "heap")
length_at, _ = _records(SHORT, "lengths")
free_at, _ = _records(SHORT, "free")
direction_at, direction_address = _records(DIRECTION, "directions")
switch_at, switch_address = _records(SWITCH, "switches")
output_at, _ = _records(SHORT, "outputs")
arrived_at, arrived_address = _records(ARRIVED, "inboxes")
work_at, work_address = _records(ARRIVED, "work")
offset_at, _ = _records(NUMBER, "offsets")
end_at, _ = _records(NUMBER, "ends")
port_at, _ = _records(SHORT, "ports")
host_at, host_address = _records(HOST, "hosts")
pair_at, pair_address = _records(PAIR, "pairs")
cell_at, cell_address = _records(CELL, "table")
flag_at, _ = _records(BYTE, "flags")
message_at, _ = _records(MESSAGE, "messages")
receive_at, _ = _records(RECEIVE, "receives")
answer_at, _ = _records(ANSWER, "answers")
link_at, _ = _records(LINK, "links")
kept_at, _ = _records(KEPT, "kept")
template_at, template_address = _records(TEMPLATE, "templates")
known_at, known_address = _records(KNOWN, "known")
run_at, _ = _records(RUN, "runs")
trips_at, trips_address = _records(TRIPS, "trips")
moment_at, moment_address = _records(NUMBER, "moments")
pool_at, _ = _records(POOL, "pools")
left_at, left_address = _records(LEFT, "left")
_, rate_address = _records(RATE, "rates")
buffer_at, _ = _records(BUFFER, "buffers")
queue_at, _ = _records(QUEUE, "queues")
priority_at, _ = _records(PRIORITY, "priorities")
gate_at, _ = _records(GATE, "gates")
queued_at, _ = _records(QUEUED, "queued")
charge_at, _ = _records(CHARGE, "charges")
