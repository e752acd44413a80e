"""Listed faults of EPIC's programs that no search of sound hosts finds, with the reasons. The conformance suite catches
them."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.papers.epic.spec import EpicSpec, Mode

_FORMS = "hosts send no packets that are malformed, tagged or to and from addresses of nobody's"
_TICKS = "a tick in another's name changes what an edge remembers, and nothing that is sent: it is a tick too many"
_ARITHMETIC = "arithmetic: the numbers of a search are small, and sums of int32"
_INTEGERS = "arithmetic: the data of a search are integers, whose sums are exact"
_COUNTERS = "counters are not part of a state"
_TIME = "time: how long a timer runs is not part of a state"
_MARKS = "links mark no packets, and notifications only slow a sender down"
_UNREAD = "a field that no host of a search reads"
_AGREE = "only ranks that disagree about a call, or break the protocol, show it"
_LARGE = "calls of more than 2^18 packets"
_TAKEN = "in Mode II no slot idles: Broadcasts take theirs"
_LEFT_OVER = "a slot that idles in this way is also one that is left over from before, which starts it afresh"
_NEVER_SENT = "only an answer to what was never sent shows it"
_ASKS = "hosts ask for an ACK of what they send again"
_ALIKE = "all ranks ask for ACKs of the same packets"
_SURPLUS = "more packets are sent, which is wrong only where nothing is lost"
_NEXT_CALL = "the PSN behind a call is that of the next control message, which announces itself: no data has it"
_ALL_ACKED = "ranks begin no Broadcast before all have acknowledged the one in front of it: CommLib waits"
_FREE_PLACE = "contexts have numbers of their own in a switch: the words are kept in other places, which are free"
_REFINED_ONLY = (
    "an edge idles only with refined synchronisation, where a timer may repair what leaves the filter out of order"
)
_IN_TURN = "in Mode I no slot idles: a context serves one collective, and its packets take their slots in turn"
_FROM_ZERO = "a context of Mode I counts packets from 0, so that 2^24 of them show it"
_AT_ONCE = "a cursor goes all its way in one step of a search: none is lost, and two never meet"
_EARLY = "a result that leaves before its message is whole is the same result"
_ASKED_MORE = "an ACK that is asked for and not needed changes nothing"
_SOURCES = "in a search a context has the same sources in each group: an edge that is none has stored nothing there"
_EARLY_AND_AGAIN = "data in front of an edge's first control message come again behind it: they only take a slot early"
_WITHIN = "sound ranks keep to the window, and are never ahead of an incomplete slot"
_OVER = "what a call leaves incomplete that is over comes from ranks of another generation"
_WAITS = "a message that waits for slots in its middle is the same message"
_STILL_HELD = "a cursor goes over what has been sent and is not acknowledged, and its slots hold that still"
_ANNOUNCED = "a rank's packets are taken in order, and sound ones send their control message in front of data"

_REASONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        _FORMS,
        ("ValidatePacket", "AnswerArp", "Forward", "any-source", "any-qp", "tag-taken-off", "cursor-takes-the-tag-back",
         "everything-is-claimed", "partials-from-anywhere"),
    ),
    (_TICKS, ("ticks-from-anywhere",)),
    (
        _ARITHMETIC,
        ("sum-wraps", "sum-unsigned", "lane-misplaced", "minimum-of-plain-numbers", "maximum-of-signed-numbers",
         "minimum-is-maximum", "unsigned-sum-wraps", "any-numbers", "op-not-looked-at", "any-op-and-dtype",
         "fold-in-another-order",
         "an-op-is-missing", "announced-op-forgotten", "latest-op-for-all", "numbers-not-kept"),
    ),
    (_COUNTERS, ("overflow-uncounted", "drops-uncounted", "given-up-in-silence", "saturation-counted-again")),
    (
        _TIME,
        ("one-tick-is-enough", "no-back-off", "never-given-up", "given-up-for-good", "the-idle-are-given-up",
         "rnr-timer-ignored", "rnr-timer-off-by-one", "longest-rnr-timer-is-shortest", "rnr-without-back-off",
         "rnr-without-limit", "rnr-limit-shortens", "naks-start-the-timer", "old-acks-hold-nothing",
         "old-acks-hold-for-ever", "repeats-are-refusals", "later-refusal-is-a-repeat", "round-trips-unlearned",
         "round-trips-learned-for-good", "round-trips-of-another-epoch", "waits-of-another-epoch",
         "progress-is-an-old-ack", "bursts-though-learned", "probes-are-bursts"),
    ),
    (
        _MARKS,
        ("cnp-not-parsed", "NotifyCongestion", "RelayNotification", "answers-are-marked", "resent-with-the-ticks-ecn",
         "no-becn", "switches-are-notified", "nobody-is-notified", "everybody-is-a-rank", "notification-by-psn",
         "notifications-are-combined", "cnp-with-a-psn", "answers-keep-marks", "resent-keeps-marks"),
    ),
    (_UNREAD, ("CountMessages", "udp-checksum-kept", "dscp-zeroed", "credit-given", "answer-asks")),
    (
        _AGREE,
        ("any-opcode-mix", "any-control-mix", "other-announcement-passes", "data-in-place-of-control",
         "control-in-place-of-data", "unknown-pattern-ignored", "unknown-flow-ignored", "conflict-passes",
         "announced-though-refused", "invalid-unanswered"),
    ),
    (_LARGE, ("range-of-18-bits",)),
    (_ASKS, ("closing-unanswered",)),
    (_ALIKE, ("last-ack-request-wins",)),
    (_NEXT_CALL, ("one-packet-too-many",)),
    (
        _ALL_ACKED,
        ("begin-takes-all-for-acknowledged", "old-ack-moves-the-range-by-one-too-far", "end-is-one-later"),
    ),
    (_FREE_PLACE, ("one-bank-for-announcements",)),
    (_ANNOUNCED, ("announcements-not-needed",)),
    (_NEVER_SENT, ("never-sent-is-believed", "one-pipe-sends")),
    (_SURPLUS, ("alone-ignored",)),
    (_REFINED_ONLY, ("idle-epsn-is-newer",)),
)  # fmt: skip


_BY_MODE: Mapping[Mode, tuple[tuple[str, tuple[str, ...]], ...]] = {
    Mode.I: (
        (_IN_TURN, ("idle-slot-is-newer", "idle-slot-is-joined")),
        (_FROM_ZERO, ("first-psn-is-zero", "emission-begins-at-zero", "wrap-forgotten-in-range")),
        (_NEXT_CALL, ("announced-off-by-one",)),
        (
            _AT_ONCE,
            ("emits-out-of-order", "tick-ignores-what-is-due", "emits-twice", "results-to-those-who-answer"),
        ),
        (_STILL_HELD, ("cursor-takes-any-slot",)),
        (_WAITS, ("room-for-a-packet-is-enough",)),
        (_EARLY, ("forward-before-whole", "middle-releases", "down-cut-through")),
        (_ASKED_MORE, ("ackreq-on-every-packet",)),
        (_SOURCES, ("fold-adds-non-source",)),
    ),
    Mode.II: (
        (_TAKEN, ("idle-slot-is-newer",)),
        (_EARLY_AND_AGAIN, ("filter-takes-any-beginning",)),
        (_WITHIN, ("early-starts-afresh", "early-moves-the-slot")),
        (_OVER, ("early-for-ever",)),
    ),
    Mode.III: ((_LEFT_OVER, ("idle-slot-is-newer",)), (_STILL_HELD, ("cursor-takes-any-slot",))),
}
"""Those of one mode alone."""


def excuses(spec: EpicSpec) -> Mapping[str, str]:
    """By fault, or by module, why no search finds it."""
    found = {name: reason for reason, names in _REASONS + _BY_MODE[spec.mode] for name in names}
    if not spec.dtype.number_format.integer:
        found |= dict.fromkeys(("AggregateData", "FoldData"), _INTEGERS)
    return found
