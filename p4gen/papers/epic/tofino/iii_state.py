"""The state of collectives in programs of ``static_iii``, decoded from their registers."""

from __future__ import annotations

from p4gen.groups.group import GroupContext
from p4gen.model import Model
from p4gen.net.collectives.state import HeldEdge, HeldSlot
from p4gen.papers.epic.tofino import iii as of
from p4gen.rocev2.psn import PSN_MASK


def slot_of(switch: Model, context: GroupContext, index: int, psn: int, down: bool) -> HeldSlot:
    """Decode the registers of a slot."""
    held = of.SLOT.unpack(switch.register("slots", index))
    fresh = held["epoch"] == context.epoch
    return HeldSlot(
        held["psn"] if fresh else None,
        switch.register("opcodes", index),
        held["bitmap"] if fresh and held["psn"] == psn else 0,
        _progress(switch, "psn_start", 2 * context.context + down, context),
    )


def edge_of(switch: Model, context: GroupContext, index: int) -> HeldEdge:
    """What an edge has sent and acknowledged."""
    edge, pattern = context.edges[index], context.patterns[0]
    # Its output is the pipe down where it does not lead toward the root, and there is one.
    down = pattern.toward not in (None, index) and context.has_down(pattern)
    acked = _progress(switch, f"edge_{index}.acked", 2 * context.context + down, context)
    asked = switch.register("nak_sent", edge.edge_id) == context.epoch
    return HeldEdge(_progress(switch, "expected", edge.edge_id, context), asked, (acked - 1) & PSN_MASK)


def _progress(switch: Model, register: str, index: int, context: GroupContext) -> int:
    """A PSN that marks progress; the group's first one if the word is of another epoch."""
    word = of.PROGRESS.unpack(switch.register(register, index))
    return (context.first_psn + (word["psn"] if word["epoch"] == context.epoch else 0)) & PSN_MASK
