"""The scenarios of Mode II that need what programs of static groups lack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from p4gen.families.epic.spec import EpicSpec
from p4gen.families.epic.static import capabilities, static

NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "announcements": (
        "test_announcement",
        "test_idle",
        "test_aggregation.NewEpochForgetsTheOldState",
        "test_aggregation.EpochsOfGroupsAreTheirOwn",
        "test_control.RanksThatCallDifferentCollectives",
        "test_control.DataWhereOthersAnnounce",
        "test_control.AnnouncementWhereOthersSendData",
        "test_tree.BarrierBelowTheRoot",
        "test_tree.ResultsBeforeTheirAnnouncement",
        "test_validation.NotServed",
        "test_validation.UnsupportedNumbersInAnUnknownCollective",
    ),
    "broadcast": ("test_broadcast", "test_broadcast_edges", "test_vlan.TaggedAcksAreCombined"),
    "patterns": ("test_patterns",),
    "ack_request": ("test_aggregation.MarksOfAnyRankMarkTheResult", "test_reliability.AckIsRequestedIfAnyRankAsked"),
    "mixed_opcode": ("test_reliability.MixedOpcodesAreRefused",),
    "padding": (
        "test_validation.TruncatedPayload",
        "test_validation.TrailingBytes",
        "test_vlan.TaggedFrameThatEndsTooSoon",
    ),
    "stale": (
        "test_reliability.HalfTheNumberSpaceDividesNewFromOld",
        "test_reliability.StaleAtTheEndOfItsCollective",
        "test_reliability.StalePsnIsIgnored",
    ),
    "half": ("test_reliability.HalfTheNumberSpaceDividesNewFromOld",),
    "overflows": ("test_arithmetic.OverflowIsCounted",),
}
"""By capability, the modules or single scenarios."""


def missing(spec: EpicSpec, scenario: str) -> str | None:
    """Why a program has nothing to do with a scenario (``module.Class``); None when it has."""
    if not static(spec):
        return None
    module = scenario.partition(".")[0]
    for capability in capabilities(spec):
        if not {module, scenario}.isdisjoint(NEEDS.get(capability.name, ())):
            return f"{spec.arch} programs lack {capability.name}: {capability.reason}"
    return None
