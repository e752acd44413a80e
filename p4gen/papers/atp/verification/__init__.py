"""ATP's programs for searches of states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from p4gen.papers.atp.spec import AtpSpec
from p4gen.papers.atp.verification.searching import TOPOLOGY, GradientScope, ladder
from p4gen.verification.family import OwnScopes, ScopeOrder, Verification


def _scope(spec: Any, order: ScopeOrder) -> GradientScope:
    return GradientScope(order.topology, spec, order.packets, budget=order.budget, fault=order.fault)


def _forged(frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """The first and the last packet that others send, with another element."""
    altered = [frame[:-1] + bytes([frame[-1] ^ 1]) for frame in frames]
    return tuple(dict.fromkeys((altered[0], altered[-1])))


FACET: Verification[AtpSpec] = Verification(
    forged=_forged,
    small=lambda _: {
        "lanes": 32,
        "fan_in": 4,
        "groups": 1,
        "aggregators": 1,
        "patience": 1,
        "ports": 8,
        "server": "worker",
    },
    scopes=OwnScopes(
        TOPOLOGY,
        _scope,
        GradientScope.from_data,
        ladder,
        {
            "first_psn": "packets have no PSNs",
            "recovery": "its workers have no queue pairs",
            "corrupt": "nothing in a packet covers its elements",
            "stale": "what registers have is an earlier packet's, which searches have",
        },
    ),
)
