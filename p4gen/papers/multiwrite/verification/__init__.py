"""MultiWrite's programs for searches of states: only the timers of edges measure time, where each hop repairs."""

from __future__ import annotations

from typing import Any, Final

from p4gen.host.transport.verbs import Recovery
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.papers.multiwrite.verification.ladder import ladder
from p4gen.papers.multiwrite.verification.searching import TOPOLOGY, WriteScope
from p4gen.verification.family import OwnScopes, ScopeOrder, Verification


def _small(_: MultiwriteSpec) -> dict[str, object]:
    return {"payload": 64, "contexts": 4, "edges": 4, "slots": 4, "ports": 4}


_FEWER: Final[dict[str, object]] = {"edges": 4, "slots": 4, "ports": 4}
"""Of programs in which listed faults are searched for."""


def _searched(_: MultiwriteSpec) -> tuple[dict[str, object], ...]:
    return (_FEWER,)


def _scope(spec: Any, order: ScopeOrder) -> WriteScope:
    return WriteScope(
        order.topology,
        spec,
        order.packets,
        order.recovery or Recovery.GO_BACK_N,
        order.first_psn,
        budget=order.budget,
        fault=order.fault,
    )


_REFUSED: Final = {"stale": "its searches begin with new registers"}
FACET: Verification[MultiwriteSpec] = Verification(
    clocks=("IncIngress.resend_timer.timers",),
    ticks=2,
    small=_small,
    searched=_searched,
    scopes=OwnScopes(TOPOLOGY, _scope, WriteScope.from_data, ladder, _REFUSED),
)
