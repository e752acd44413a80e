"""SwitchML's programs for searches of states."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.papers.switchml.verification.searching import TOPOLOGY, SumScope, ladder, sound
from p4gen.rocev2.headers import HeaderError
from p4gen.rocev2.packet import parse
from p4gen.verification.family import OwnScopes, ScopeOrder, Verification


def _scope(spec: Any, order: ScopeOrder) -> SumScope:
    if order.budget.corruptions and spec.needs_intact:
        raise InputError(Diagnostic(Option("corrupt"), f"{spec.program}: nothing in an update covers its elements"))
    return SumScope(order.topology, spec, order.packets, order.stale, budget=order.budget, fault=order.fault)


def _forged(frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """The first and the last update that others send, with another element, and the same as sums for them."""
    altered = [_sealed(frame[:-5] + bytes([frame[-5] ^ 1]) + frame[-4:]) for frame in frames]
    few = altered[0], altered[-1]
    back = (frame[6:12] + frame[:6] + frame[12:26] + frame[30:34] + frame[26:30] + frame[34:] for frame in few)
    return tuple(dict.fromkeys((*few, *map(_sealed, back))))


def _sealed(frame: bytes) -> bytes:
    """The frame, if it is of RoCEv2 with a right ICRC."""
    with suppress(HeaderError):
        return parse(frame).sealed().to_bytes()
    return frame


FACET: Verification[SwitchmlSpec] = Verification(
    forged=_forged,
    small=lambda _: {"lanes": 32, "fan_in": 4, "groups": 1, "slots": 1, "ports": 4},
    scopes=OwnScopes(
        TOPOLOGY,
        _scope,
        SumScope.from_data,
        ladder,
        {
            "first_psn": "nobody compares the PSNs of updates",
            "recovery": "its workers' NICs recover nothing",
        },
    ),
    sound=sound,
)
