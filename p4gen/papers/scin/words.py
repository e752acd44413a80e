"""Layouts of SCIN's registers.

The epoch in a word is the generation of the context's state to which it belongs; a word of another epoch counts as
empty. A call has the PSN of its arrivals as its number.
"""

from __future__ import annotations

from p4gen.layout import Field, Word
from p4gen.papers.scin.spec import ScinSpec
from p4gen.rocev2.layouts import PSN_BITS

_EPOCH = Field("epoch", 8, "epoch")
_CALL = Field("call", PSN_BITS, "call")

ARRIVALS = Word(_EPOCH, _CALL, Field("announced", 32, "control word"), Field("bitmap", 32, "ranks that have arrived"))
"""TrackArrival: who has arrived at the next call, and what they announce."""
ACTIVE = Word(
    _EPOCH,
    Field("first", PSN_BITS, "first PSN"),
    Field("packets", PSN_BITS, "packets"),
    _CALL,
    Field("status", 8, "status"),
    Field("begun", 1, "1: there has been a call"),
)
"""TrackCall: the call that runs, or has run last; its status is 0 unless it was aborted. Numbers wrap, so that every
number is a call's in the end: a bit says whether there has been one."""
_TOLD = Field("told", PSN_BITS, "other flags of destinations")
_EXACT = Field("exact", 1, "1: without scales")
_SCALES = Field("scales", PSN_BITS, "PSN of the scales of its first wave")
NEXT_READ = Word(_EPOCH, Field("psn", PSN_BITS, "PSN"))
"""IssueWave: the PSN that the next wave begins with."""
SLOTS = Word(_EPOCH, Field("psn", PSN_BITS, "PSN"), Field("bitmap", 32, "sources whose data it has"))
"""CheckDuplicate: what a slot holds."""
FOLLOWING = Word(_EPOCH, Field("psn", PSN_BITS, "PSN of the next packet"))
"""NoticeGap: up to where a source's packets have come, or others behind them."""
RELEASE = Word(
    _EPOCH, Field("next", PSN_BITS, "next PSN to be written"), Field("held", 16, "complete slots behind a gap")
)
"""ReleaseResult: up to where results have been written."""
ACKED = Word(_EPOCH, Field("psn", PSN_BITS, "acknowledged PSN"))
"""ReceiveAck: how far a rank has acknowledged its WRITEs."""
FLAGGED = Word(_EPOCH, _CALL, Field("bitmap", 32, "ranks that have acknowledged their flag"))
"""SignalCompletion: whose flag has arrived."""
NOTED = Word(Field("comes", 1, "something has come"), Field("news", 1, "something new has"))
"""NoteProgress: what has come since the last tick."""
WATCHED = Word(
    _EPOCH,
    _CALL,
    Field("status", 8, "its status"),
    Field("count", 12, "ticks without news"),
)
"""WatchProgress: for how long nothing new has come."""
SCALE_SLOTS = Word(_EPOCH, Field("psn", PSN_BITS, "PSN"), Field("bitmap", 32, "sources whose scales it has"))
"""TrackScales: whose scales of a wave have come."""
READY = Word(
    _EPOCH, Field("next", PSN_BITS, "PSN of the next wave's scales"), Field("held", 16, "complete waves behind a gap")
)
"""TrackScales: up to where waves have all their scales, and their data is read."""
BUFFER = Word(Field("address", 64, "virtual address"), Field("rkey", 32, "key"))
"""StoreAddresses: a rank's operand, or where its result goes."""


def active(spec: ScinSpec) -> Word:
    """``ACTIVE``, and of programs where the last WRITE is a flag, how many others destinations have had; of elements
    with scales, the PSN of these; where calls say whether elements have scales, what the call says."""
    scales = (_SCALES,) if spec.scaled else ()
    return Word(*ACTIVE.fields, *((_TOLD,) if spec.ordered else ()), *scales, *((_EXACT,) if spec.exact else ()))


def layouts(spec: ScinSpec) -> dict[str, Word]:
    """The layouts of all words, by the last part of their registers' names."""
    return {
        "acked": ACKED,
        "active": active(spec),
        "arrivals": ARRIVALS,
        "flagged": FLAGGED,
        "following": FOLLOWING,
        "next_read": NEXT_READ,
        "noted": NOTED,
        "ready": READY,
        "release": RELEASE,
        "result": BUFFER,
        "scale_slots": SCALE_SLOTS,
        "slots": SLOTS,
        "source": BUFFER,
        "watched": WATCHED,
    }
