"""The Write RPC: batches of updates, with a result for each (section 12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4gen.model.errors import ControlError
from p4gen.p4rt.server import arrays, digests, profiles, replication, tables
from p4gen.p4rt.server.pipeline import Pipeline
from p4gen.p4rt.status import Code, StatusError, invalid, unimplemented
from p4gen.protos import p4runtime as pb

Undo = Callable[[], None]

_WRITERS: dict[str, Callable[[Pipeline, int, Any], Undo]] = {
    "table_entry": tables.write,
    "direct_counter_entry": tables.write_counter,
    "direct_meter_entry": tables.write_meter,
    "action_profile_member": profiles.write_member,
    "action_profile_group": profiles.write_group,
    "packet_replication_engine_entry": replication.write,
    "counter_entry": arrays.write_counter,
    "meter_entry": arrays.write_meter,
    "register_entry": arrays.write_register,
    "value_set_entry": arrays.write_value_set,
    "digest_entry": digests.write,
}


def apply(pipeline: Pipeline, update: Any) -> Undo:
    """Carry out one update. The result undoes it. Raises ``StatusError``, and then nothing has changed."""
    if update.type == pb.Update.UNSPECIFIED:
        raise invalid("the update's type is not specified")
    kind = update.entity.WhichOneof("entity")
    if kind is None:
        raise invalid("the update has no entity")
    writer = _WRITERS.get(kind)
    if writer is None:
        raise unimplemented(f"{kind}: this target has no such entities")
    try:
        return writer(pipeline, update.type, getattr(update.entity, kind))
    except ControlError as error:
        # The request is valid, but the target cannot do it.
        raise invalid(error.diagnostics[0].message) from None


def batch(pipeline: Pipeline, updates: Any, atomicity: int) -> list[StatusError | None]:
    """Carry out a batch. Returns for each update its error, or None if it was done.

    CONTINUE_ON_ERROR tries every update. The other modes do all or none, atomically for the data plane; updates that
    were undone or not tried are ABORTED.
    """
    if atomicity == pb.WriteRequest.CONTINUE_ON_ERROR:
        return [_attempt(pipeline, update)[0] for update in updates]
    undo: list[Undo] = []
    with pipeline.lock:
        for number, update in enumerate(updates):
            error, back = _attempt(pipeline, update)
            if error is None:
                undo.append(back)
                continue
            for step in reversed(undo):
                step()
            aborted = StatusError(Code.ABORTED, f"not done, because update {number} failed")
            return [error if i == number else aborted for i in range(len(updates))]
    return [None] * len(updates)


def _attempt(pipeline: Pipeline, update: Any) -> tuple[StatusError | None, Undo]:
    try:
        with pipeline.lock:
            return None, apply(pipeline, update)
    except StatusError as error:
        return error, lambda: None
