"""Listed faults of MultiWrite's programs that no search of sound hosts finds, with the reasons. The suite catches
them."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.papers.multiwrite.spec import MultiwriteSpec

_NAMED = "hosts of a search name ranks that there are, and write within their windows, with the right key and length"
_HEADERS = "hosts of a search send headers as they should be, and no write goes round in a circle"
_FENCES = "hosts of a search send no fences"
_MARKS = "links of a search mark nothing, so that nobody notifies anybody"
_ROLES = "hosts of a search keep to their parts, and to addresses that there are"
_TICKS = "a tick in another's name changes what an edge remembers, and nothing that is sent: it is a tick too many"
_BY_PORT = "a cursor in another's name comes in by a wrong port, and hosts of a search send none in their own"
_KNOWN = "the source is told what it knows: it takes the answer for one that has come twice"
_LATER = "a timer mends later what the NAK would have had mended at once"
_ONE = "one source writes in a search"
_MSN = "NICs do not look at MSNs"
_ROOM = "a search has no more tokens than a context has room for"
_TIME = "time: how long a timer runs is not part of a state"

_AT_ONCE = "a cursor goes all its way in one step of a search"

_REASONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        _NAMED,
        ("empty-taken", "unknown-taken", "switches-told", "refusal-is-ack", "key-ignored", "place-ignored",
         "place-off-by-one", "dma-length-ignored", "hop-refused-taken"),
    ),
    (_HEADERS, ("hop-limit-forgotten", "hop-limit-endless", "version-ignored", "group-ignored")),
    (
        _FENCES,
        ("fence-not-multicast", "fence-is-plain", "fence-has-bitmap", "fence-without-immediate", "fence-is-not-kept"),
    ),
    (_AT_ONCE, ("cursor-outlives-acks", "cursor-ends-late", "nak-of-nothing-starts")),
    (
        _MARKS,
        ("mark-comes-back", "mark-is-not-kept", "notification-to-itself", "hop-not-notified", "answers-keep-marks",
         "resent-keeps-marks"),
    ),
    (_ROLES, ("source-not-checked", "destinations-write", "source-answers")),
    (_BY_PORT, ("cursor-of-anyone",)),
    (_TICKS, ("tick-of-anyone",)),
    (_KNOWN, ("nak-overtakes", "every-answer-told")),
    (_LATER, ("waiting-nak-erased",)),
    (_ONE, ("rings-shared",)),
    (_MSN, ("msn-is-psn",)),
    (
        _TIME,
        ("waits-for-nothing", "repeats-are-refusals", "old-acks-hold-nothing", "old-acks-hold-for-ever",
         "round-trips-unlearned", "probes-are-bursts"),
    ),
    (_ROOM, ("range-too-wide", "hop-range-ignored", "hop-switches-told", "hop-ahead-is-a-gap")),
)  # fmt: skip


def excuses(_: MultiwriteSpec) -> Mapping[str, str]:
    """By fault, or by module, why no search finds it."""
    return {name: reason for reason, names in _REASONS for name in names}
