"""The state of collectives in EPIC's switches, decoded from the registers of the generated programs."""

from __future__ import annotations

from p4gen.groups.group import GroupContext, Pattern, PlacedEdge
from p4gen.model import Model
from p4gen.net.collectives.state import GroupReader, HeldEdge, HeldSlot, StateReader
from p4gen.net.world.ticks import INTERVAL, UNIT
from p4gen.papers.epic import tofino as static
from p4gen.papers.epic.control import codes_of
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino import iii as static_iii
from p4gen.papers.epic.tofino import iii_state as static_iii_state
from p4gen.papers.epic.words import PROGRESS, announcement, code, receive, slot
from p4gen.program.repair import wait
from p4gen.rocev2.psn import PSN_MASK, diff
from p4gen.vocabulary.message import message_of


def _slot(spec: EpicSpec, switch: Model, context: GroupContext, psn: int, down: bool) -> HeldSlot:
    base = context.base_down if down and context.base_down is not None else context.base
    index = context.pipeline * spec.bank_slots + base + (psn & (context.slots - 1))
    if static.static(spec) and spec.mode.augmented:
        return static_iii_state.slot_of(switch, context, index, psn, down)
    if static.static(spec):
        held = static.held(spec, switch, index)
    else:
        held = slot(spec).unpack(switch.register("slots", index))
    fresh = held["epoch"] == context.epoch
    start = None
    if spec.mode.augmented:
        pipe = "broadcast" if down else "aggregation"
        begins = PROGRESS.unpack(switch.register(f"{pipe}.psn_start", _at(spec, context)))
        start = begins["psn"] if begins["epoch"] == context.epoch else context.first_psn
    return HeldSlot(
        held["psn"] if fresh else None,
        held.get("opcode", 0),
        held["bitmap"] if fresh and held["psn"] == psn else 0,
        start,
    )


def _edge(spec: EpicSpec, switch: Model, context: GroupContext, index: int) -> HeldEdge | None:
    if not spec.mode.augmented:
        return None
    if static.static(spec):
        return static_iii_state.edge_of(switch, context, index)
    first = context.first_psn
    edge_id = context.edges[index].edge_id
    word = receive(spec).unpack(switch.register("receive", context.pipeline * spec.bank_edges + edge_id))
    fresh = word["epoch"] == context.epoch
    expects = word["psn"] if fresh else first
    missing = word.get("missing", 0) if fresh else 0
    acked = PROGRESS.unpack(switch.register(f"edge_{index}.acked", _at(spec, context)))
    known = acked["epoch"] == context.epoch
    return HeldEdge(
        (expects - missing.bit_length()) & PSN_MASK,
        bool(fresh and word["nak_sent"]),
        acked["psn"] if known else (first - 1) & PSN_MASK,
    )


def _pattern(spec: EpicSpec, switch: Model, context: GroupContext, psn: int) -> Pattern:
    if static.static(spec):
        return context.patterns[0]
    for which in ("newest", "previous", "oldest"):
        said = announcement(spec).unpack(switch.register(f"{which}.announcement", _at(spec, context)))
        if said["epoch"] == context.epoch and diff(psn, said["psn"]) >= 0:
            message = message_of(spec.roots).unpack(said["immediate"])
            announced = code(spec).pack(collective=message["collective"], root=message["root"])
            for pattern in context.patterns:
                if announced in codes_of(spec, pattern):
                    return pattern
    return context.patterns[0]


def _wait(spec: EpicSpec, switch: Model, placed: PlacedEdge) -> int:
    word = switch.register("timers", placed.index(spec))
    if static.static(spec):
        ticks = static_iii.TIMER.unpack(word)["ticks"]
        return ticks * INTERVAL if ticks < 1 << static_iii.GIVEN_UP_BITS else 0
    return wait(word) * UNIT


def _at(spec: EpicSpec, context: GroupContext) -> int:
    """Where a context's words of state are."""
    return context.pipeline * spec.bank_contexts + context.context


FACET: StateReader[EpicSpec] = StateReader(groups=GroupReader(slot=_slot, pattern=_pattern, edge=_edge, wait=_wait))
