"""The scenarios that need what programs of static groups lack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from p4gen.papers.epic.capabilities import capabilities, lack
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino import static

NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "announcements": (
        "test_announcement.AnnouncementsOutOfOrder",
        "test_announcement.DataBeforeItsAnnouncement",
        "test_announcement.DataOutsideTheAnnouncedRange",
        "test_announcement.GroupsAnnounceForThemselves",
        "test_announcement.OldEpochsAnnounceNothing",
        "test_announcement.StaleAnnouncement",
        "test_broadcast.AckOfWhatIsNotAnnounced",
        "test_control.DataWhereOthersAnnounce",
        "test_control.AnnouncementWhereOthersSendData",
        "test_patterns.SubgroupsAnnounceApart",
        "test_tree.ResultsBeforeTheirAnnouncement",
        "test_iii_announcements.AnnouncementInPlaceOfData",
        "test_iii_announcements.AnnouncementInPlaceOfTheLastData",
        "test_iii_announcements.AnnouncementsAreKeptOnce",
        "test_iii_collectives.DataBeyondTheAnnounced",
        "test_iii_collectives.DataBeyondTheAnnouncedAcrossTheWrap",
        "test_iii_collectives.DataBeyondTheAnnouncedByTheParent",
        "test_iii_collectives.DataInPlaceOfAnAnnouncement",
        "test_iii_generations.AnnouncementsOfAnOldGenerationAreForgotten",
        "test_iii_generations.WhatCameBeforeTheFirstPsn",
        "test_iii_order.AnnouncementWhereOthersSendData",
        "test_iii_order.RanksThatCallDifferentCollectives",
    ),
    "broadcast": ("test_broadcast", "test_broadcast_edges", "test_vlan.TaggedAcksAreCombined"),
    "patterns": (
        "test_idle",
        "test_patterns.PatternsFollowEachOther",
        "test_patterns.PatternIsChosenByPsn",
        "test_patterns.SlotsAreFreeForOtherSources",
        "test_patterns.RootsFollowEachOther",
        "test_patterns.NextBroadcastOvertakes",
        "test_patterns.ReduceScattersPhases",
        "test_patterns.PatternsOfANodeBelowTheRoot",
    ),
    "ack_request": ("test_aggregation.MarksOfAnyRankMarkTheResult", "test_reliability.AckIsRequestedIfAnyRankAsked"),
    "early": ("test_reliability.PacketsBeyondTheBufferWait", "test_reliability.SlotsLeftIncompleteAreTaken"),
    "mixed_opcode": ("test_reliability.MixedOpcodesAreRefused", "test_iii_order.MixedOpcodesBreakAQueuePair"),
    "padding": (
        "test_validation.TrailingBytes",
        "test_vlan.TaggedFrameThatGoesOn",
        "test_iii_headers.EveryKindHasItsLength",
    ),
    "notifications": (
        "test_iii_congestion.MarkedControlMessages",
        "test_iii_congestion.MarksOfAnyMarkTheResult",
        "test_iii_congestion.MarksTowardTheParentMarkTheResult",
        "test_iii_congestion.ResultsAreSentAgainWithTheirMarks",
    ),
    "timers": (
        "test_iii_timer.EdgesAreGivenUp",
        "test_iii_timer.EdgesAreGivenUpAfterTenSeconds",
        "test_iii_timer.EdgesTowardTheParentAreGivenUp",
        "test_iii_timer.LongRnrTimersBringNothing",
        "test_iii_timer.LongRoundTripsAreLearned",
        "test_iii_timer.NewEpochsStartTheTimerAfresh",
        "test_iii_timer.ProgressWithoutAWaitSaysNothing",
        "test_iii_timer.QuietTicksAreCounted",
        "test_iii_timer.RefusalsBehindProgressAreWaitedFor",
        "test_iii_timer.OldAcksHoldTheTimer",
        "test_iii_timer.RepeatsAreOneRefusal",
        "test_iii_timer.RnrNaksBackOff",
        "test_iii_timer.RnrTimersAreWaitedFor",
        "test_iii_timer.RnrTimersOfATick",
        "test_iii_timer.RnrTimersOfATickAndMore",
        "test_iii_timer.ShortestRnrNaksBackOff",
    ),
    "learned_tags": ("test_iii_vlan.TaggedTickResends", "test_iii_vlan.TickResendsUnderTheLatestTag"),
    "left_over": (
        "test_iii_idle.SlotsFromTheParentThatIdled",
        "test_iii_idle.SlotsOfABroadcastThatIdled",
        "test_iii_idle.SlotsThatIdled",
        "test_iii_idle.SlotsTowardTheParentThatIdled",
    ),
    "stale": (
        "test_reliability.HalfTheNumberSpaceDividesNewFromOld",
        "test_reliability.StaleAtTheEndOfItsCollective",
        "test_reliability.StalePsnIsIgnored",
        "test_static_slots.LateControlMessagesAreStale",
        "test_static_slots.OlderPsnsAreStale",
    ),
    "overflows": ("test_arithmetic.OverflowIsCounted",),
    "truncated": ("test_validation.TruncatedPayload", "test_vlan.TaggedFrameThatEndsTooSoon"),
    "dynamic": ("test_dynamic", "test_iii_dynamic"),
    "floats": ("test_floats", "test_iii_floats"),
    "pipelines": ("test_pipelines", "test_iii_pipelines"),
    "in_order": (
        "test_order",
        "test_idle.OrderOfEdgesThatIdled",
        "test_idle.OrderOfEdgesThatIdledAlmostOnceRound",
    ),
    "acknowledged": (
        "test_broadcast_edges.AnswersOfLongAgoAreForgotten",
        "test_broadcast_edges.NaksSayMoreThanAcks",
    ),
    "apart": ("test_static_pipes.PipesHaveMemoriesOfTheirOwn",),
}
"""By capability, the modules or single scenarios."""
REASONS: Final[Mapping[str, str]] = {
    "ClassifyTraffic.no_pattern": "ClassifyTraffic.no_flow",
    "FindContext.not_served": "ClassifyTraffic.no_flow",
    "FindContext.unsupported": "ClassifyTraffic.no_flow",
}
"""The reasons for which programs of static groups drop what others drop for the reasons that are the keys: the entry of
``flows`` stands for a context, its pattern and what may be announced."""


def lacks(spec: EpicSpec, capability: str) -> bool:
    """Whether a program lacks a capability."""
    return static(spec) and any(each.name == capability for each in capabilities(spec))


STORING: Final = {"TrackSent.never_sent": "EmitMessage.never_sent"}
"""Mode I's reasons for Mode III's."""


def reason(spec: EpicSpec, other: str) -> str:
    """The reason for which a program drops what Mode III's with announcements drop for ``other``: ``Module.reason``."""
    if spec.mode.stores:
        return STORING.get(other, other)
    return REASONS.get(other, other) if static(spec) else other


def missing(spec: EpicSpec, scenario: str) -> str | None:
    """Why a program has nothing to do with a scenario (``module.Class``); None when it has."""
    if not static(spec):
        return None
    module = scenario.partition(".")[0]
    for capability in capabilities(spec):
        if not {module, scenario}.isdisjoint(NEEDS.get(capability.name, ())):
            return lack(spec, capability.name)
    return None
