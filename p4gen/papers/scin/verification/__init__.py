"""SCIN's programs for searches of states: only what a tick remembers measures time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from p4gen.host.transport.verbs import Recovery
from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.headers import CURSOR
from p4gen.papers.scin.spec import ScinSpec
from p4gen.papers.scin.verification.ladder import ladder
from p4gen.papers.scin.verification.searching import TOPOLOGY, PullScope, sound
from p4gen.rocev2.packet import RocePacket
from p4gen.verification.family import OwnScopes, ScopeOrder, Verification
from p4gen.vocabulary import ticks

SMALL: Final[dict[str, object]] = {"lanes": 8, "waves": 2, "wave": 1, "contexts": 1, "edges": 3, "ports": 4}
"""Two slots, so that a call of three packets uses one again."""
_WORD: Final = 4
"""Bytes of the scales of a packet of a small program, whose waves have one."""

_FEWER: Final[dict[str, object]] = {"wave": 2, "contexts": 1, "edges": 3, "ports": 4}
"""Of programs in which listed faults are searched for."""


def _scope(spec: Any, order: ScopeOrder) -> PullScope:
    everybody = (1 << len(order.topology.rank_hosts)) - 1
    return PullScope(
        order.topology,
        spec,
        (order.packets, 1),
        Pattern(everybody, everybody),
        order.recovery or Recovery.GO_BACK_N,
        order.first_psn,
        budget=order.budget,
        fault=order.fault,
    )


def small(spec: ScinSpec) -> dict[str, object]:
    """The fields of a small program like ``spec``'s."""
    if not spec.scaled:
        return SMALL
    return SMALL | {"lanes": spec.scale_block * _WORD // spec.scaling.scale_bytes}


def _cursor(tick: RocePacket, psn: int) -> RocePacket:
    """One that has a flag sent to every rank."""
    said = CURSOR.word.pack(what=6, status=2, edges=7, asked=0, announced=0).to_bytes(CURSOR.size)
    return replace(tick, bth=replace(tick.bth, opcode=ticks.InternalOpcode.CURSOR, psn=psn), payload=said)


_REFUSED: Final = {"stale": "its searches begin with new registers"}
FACET: Verification[ScinSpec] = Verification(
    cursor=_cursor,
    clocks=("IncIngress.watch_progress.watched", "IncIngress.note_progress.noted"),
    ticks=2,
    small=small,
    searched=lambda _: (_FEWER,),
    scopes=OwnScopes(TOPOLOGY, _scope, PullScope.from_data, ladder, _REFUSED),
    sound=sound,
)
