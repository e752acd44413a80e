"""Time series of flows: sending rate, useful share, and the rate that congestion control allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from p4gen.experiments.plot import Series, chart_svg
from p4gen.host.transport.clock import SECOND, US

LABELS: Final = 12
"""The number of labels on the axis of time."""


class Sample(NamedTuple):
    """The counters of one flow at a time (ps): packets, and bytes on the wire."""

    time: int
    flow: str
    sent: int
    resent: int
    bytes: int
    limit: float
    """The rate that congestion control allows, bit/s."""


class Point(NamedTuple):
    """One interval of one flow, which ends at ``time``."""

    time: int
    flow: str
    rate: float
    """Bit/s on the wire."""
    useful: float | None
    """Share of the packets sent that were not retransmissions; None if none was sent."""
    resent: float | None
    """Share of retransmissions among all packets up to now."""
    limit: float


def points(samples: Sequence[Sample]) -> list[Point]:
    """The intervals between samples, in the samples' order."""
    before: dict[str, Sample] = {}
    found = []
    for sample in samples:
        last = before.get(sample.flow, Sample(0, sample.flow, 0, 0, 0, 0.0))
        before[sample.flow] = sample
        span, sent = sample.time - last.time, sample.sent - last.sent
        found.append(
            Point(
                sample.time,
                sample.flow,
                (sample.bytes - last.bytes) * 8 * SECOND / span if span else 0.0,
                1 - (sample.resent - last.resent) / sent if sent else None,
                sample.resent / sample.sent if sample.sent else None,
                sample.limit,
            )
        )
    return found


def series_csv(samples: Sequence[Sample]) -> str:
    """The intervals as CSV, with a header."""
    lines = ["time_us,flow,rate_gbps,useful,retransmitted_so_far,limit_gbps"]
    for point in points(samples):
        useful, resent = ("" if share is None else f"{share:.4f}" for share in (point.useful, point.resent))
        lines.append(
            f"{point.time / US:g},{point.flow},{point.rate / 1e9:.3f},{useful},{resent},{point.limit / 1e9:.3f}"
        )
    return "\n".join(lines) + "\n"


def series_svg(title: str, samples: Sequence[Sample], flow: str | None = None) -> str:
    """A chart of one flow, by default the first: rate and allowed rate as shares of the largest, and useful share."""
    chosen = flow if flow is not None else samples[0].flow if samples else ""
    found = [point for point in points(samples) if point.flow == chosen]
    most = max((point.limit for point in found), default=1.0) or 1.0
    every = max(1, len(found) // LABELS)
    labels = [f"{point.time / US:g}" if i % every == 0 else "" for i, point in enumerate(found)]
    lines = [
        Series("sending rate", [point.rate / most for point in found]),
        Series("allowed rate", [point.limit / most for point in found], dashed=True),
        Series("useful share", [point.useful for point in found]),
    ]
    return chart_svg(f"{title}, {chosen}", "time, us", labels, f"share; rates of {most / 1e9:g} Gb/s", lines)
