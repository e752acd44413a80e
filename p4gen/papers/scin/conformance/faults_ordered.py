"""Faults of SCIN's programs whose last WRITE of a call is its flag."""

from __future__ import annotations

from functools import partial
from typing import Final

from p4gen.ptf.mutations import Mutation

PROGRAM: Final = "ordered"
_NUMBER = "\n                meta.round.round_psn = meta.call.number;\n                "
_fault = partial(Mutation, program=PROGRAM)

ORDERED: Final = (
    _fault("last-write-is-plain", "MakeWrite", "if (hdr.bth.psn == meta.call.end - 1) {\n", "if (false) {\n"),
    _fault(
        "each-wave-ends-the-call",
        "MakeWrite",
        "if (hdr.bth.psn == meta.call.end - 1) {\n",
        "if ((offset & WAVE_MASK) == WAVE_MASK) {\n",
    ),
    _fault(
        "result-of-the-call-before",
        "MakeWrite",
        "STATUS_SUCCESS ++ meta.call.number",
        "STATUS_SUCCESS ++ (meta.call.number - 1)",
    ),
    _fault(
        "sources-not-flagged",
        "ReleaseResult",
        "meta.round.what = cursor_kind_t.FLAG;",
        "meta.round.what = cursor_kind_t.NONE;",
    ),
    _fault(
        "flag-before-results",
        "ReleaseResult",
        "} else if (next == meta.call.end) {",
        "} else if (next == meta.call.first + 1) {",
    ),
    _fault(
        "flag-to-those-with-results",
        "TrackCall",
        "meta.emission.receivers = meta.flow.sources & ~meta.flow.destinations;",
        "meta.emission.receivers = meta.flow.sources;",
    ),
    _fault(
        "arrivals-acknowledge-nothing",
        "ReceiveAck",
        "if (precedes(through, acks.passed) == 1) { through = acks.passed; }",
        "",
    ),
    _fault("barriers-not-counted", "TrackCall", "// a barrier\n                    told = told + 1;", "// a barrier"),
    _fault(
        "abort-not-counted",
        "TrackCall",
        "meta.call.status = hdr.cursor.status;\n                told = told + 1;",
        "meta.call.status = hdr.cursor.status;",
    ),
    _fault(
        "silence-of-the-call-that-ended",
        "WatchProgress",
        "meta.call.number;\n            if (meta.release",
        "meta.call.number;\n            if (false && meta.release",
    ),
    _fault(
        "refusal-of-the-call-that-ended",
        "ReceiveAck",
        f"STATUS_REFUSED;{_NUMBER}if (meta.release",
        f"STATUS_REFUSED;{_NUMBER}if (false && meta.release",
    ),
    _fault(
        "flags-awaited-of-all", "SignalCompletion", "due = meta.flow.sources & ~meta.flow.destinations;", "due = due;"
    ),
    _fault("late-ack-is-an-aborts", "SignalCompletion", "(due & meta.lookup.edge_bit)", "meta.lookup.edge_bit"),
    _fault(
        "sources-wait-for-results",
        "WatchProgress",
        "if (meta.flags.unflagged != 0) {",
        "if (false) {",
    ),
    _fault("results-not-watched", "WatchProgress", "if (runs == 0) { count = 0; }", "count = 0;"),
)
