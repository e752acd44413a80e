"""Listed faults of SCIN's programs that no search of sound hosts finds, with the reasons. The suite catches them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from p4gen.papers.scin.conformance.faults import SEEDING
from p4gen.papers.scin.spec import ScinSpec

_AGREE = "ranks of a search announce the same call, and elements of the program's type"
_ROLES = "hosts of a search keep to their queue pairs, and to addresses that there are"
_TICKS = "a tick in another's name changes what an edge remembers, and nothing that is sent: it is a tick too many"
_ACCESS = "NICs of a search refuse no READ and no WRITE: buffers are registered, and large enough"
_PATIENCE = "what a tick remembers is forgotten in a search, so that no call is given up"
_SLOWER = "fewer packets are on their way than may be, or more are sent than need be; results are the same"
_PASSES = "a cursor goes round more often than need be, and does the same"
_SMALL = "numbers of a search are small, and sums of int32"
_WHOLE = "listed faults are searched for in programs of whole numbers"
_ONE = "a search has one context"
_REMEMBERED = "NICs remember 16 READs, and programs of a search have fewer waves"
_UNASKED = "hosts of a search send no data that nobody has asked for, and acknowledge nothing that was not written"
_TICK = "a tick mends later what this would have mended at once"
_LACKED = "a NIC of a search lacks no flag but the newest, and is always ready, so that it NAKs neither"
_AT_ONCE = "a cursor goes all its way in one step of a search"
_UNREAD = "a field that no host of a search reads"
_ASKED = "the last packet of a wave asks for an ACK in any case"

_REASONS: Final = (
    (_AGREE, ("any-word-agrees", "any-numbers", "disagreement-silent", "nak-of-itself", "aborted-goes-on")),
    (
        _ROLES,
        ("anybody-is-peer", "data-of-anybody", "acks-of-anybody", "roles-mixed"),
    ),
    (_TICKS, ("forged-ticks",)),
    (
        _ACCESS,
        ("abort-silent", "late-refusal-aborts", "lacked-flag-not-sent", "abort-has-its-own-psn",
         "aborted-goes-on-reading", "status-forgotten", "abort-not-counted", "refusal-of-the-call-that-ended",
         "late-ack-is-an-aborts", "any-answer-is-nak", "aborted-reads-again", "aborted-takes-acks", "aborted-cursors"),
    ),
    (_PATIENCE, ("ticks-wrap", "no-patience", "flags-given-up", "silence-of-the-call-that-ended")),
    (
        _SLOWER,
        ("wave-too-few", "one-wave-an-ack", "ticks-act-at-once", "reread-every-slot", "reread-asks-all",
         "reread-each-packet", "rewrite-to-all", "flags-to-all-again", "prune-forgotten",
         "arrivals-acknowledge-nothing", "flags-awaited-of-all", "flag-twice", "flag-to-those-with-results",
         "gap-unnoticed", "gap-without-end", "gap-noticed-again", "gap-behind-a-gap", "late-packet-goes-back",
         "gap-of-everybody", "gap-forgotten-on-its-way"),
    ),
    (_PASSES, ("rewrite-from-old-naks",)),
    (_SMALL, ("wraps", "saturates")),
    (_ONE, ("slots-of-all-contexts",)),
    (_REMEMBERED, ("short-wave-early",)),
    (_UNASKED, ("beyond-is-taken", "ack-of-anything")),
    (
        _TICK,
        ("nak-ignored", "reread-single", "reread-once", "sources-wait-for-results", "nak-is-lost-where-a-wave-is-free"),
    ),
    (_LACKED, ("nak-of-a-flag-is-its-ack", "nak-of-a-flag-writes-it", "rnr-nak-is-an-ack")),
    (_AT_ONCE, ("last-arrival-starts-again",)),
    (_UNREAD, ("marks-go-on", "class-goes-on")),
    (_ASKED, ("rewrite-asks-nobody",)),
)  # fmt: skip


_SEARCHED: Final = ("plain", "wrap", "ordered")
"""Programs of whole numbers, among those that faults are seeded into."""


def excuses(_: ScinSpec) -> Mapping[str, str]:
    """By fault, or by module, why no search finds it."""
    found = {name: reason for reason, names in _REASONS for name in names}
    return found | {mutation.name: _WHOLE for mutation in SEEDING.mutations if mutation.program not in _SEARCHED}
