"""SwitchML's programs for searches of states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.papers.switchml.verification.searching import TOPOLOGY, SumScope, ladder, sound
from p4gen.verification.family import OwnScopes, ScopeOrder, Verification


def _scope(spec: Any, order: ScopeOrder) -> SumScope:
    return SumScope(order.topology, spec, order.packets, order.stale, budget=order.budget, fault=order.fault)


def _forged(frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """The first and the last update that others send, with another element, and the same as sums for them."""
    altered = [frame[:-1] + bytes([frame[-1] ^ 1]) for frame in frames]
    few = altered[0], altered[-1]
    back = (frame[6:12] + frame[:6] + frame[12:26] + frame[30:34] + frame[26:30] + frame[34:] for frame in few)
    return tuple(dict.fromkeys((*few, *back)))


FACET: Verification[SwitchmlSpec] = Verification(
    forged=_forged,
    small=lambda _: {"lanes": 32, "fan_in": 4, "groups": 1, "slots": 1, "ports": 4},
    scopes=OwnScopes(
        TOPOLOGY,
        _scope,
        SumScope.from_data,
        ladder,
        {
            "first_psn": "updates have no PSNs",
            "recovery": "its workers have no queue pairs",
            "corrupt": "nothing in an update covers its elements",
        },
    ),
    sound=sound,
)
