"""Sending rates of connections, each a record: a planned rate, or DCQCN's reaction point in one of two forms.

- ``PLANNED``: a constant rate, as a bucket of ``BURST`` bytes.
- ``DCQCN``: Zhu et al., Congestion Control for Large-Scale RDMA Deployments (SIGCOMM 2015), section 3.1 and figure 7. A
  CNP cuts the rate, which grows again with time and bytes sent.
- ``TIMED``: as packet-level models of RNICs have it (HPCC, SIGCOMM 2019; ConWeave, SIGCOMM 2023). A CNP only leaves a
  mark, which is checked every ``decrease_interval``; the rate grows ``increase_timer`` after a cut.

Timers are not events: a record is brought up to date when it is used, so an idle connection causes no events. A record
is given by its address. Times are in ps, rates in bit/s.
"""

from __future__ import annotations

from typing import Any, Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.records import rate_in
from p4gen.host.transport.clock import SECOND

PLANNED, DCQCN, TIMED = range(3)
"""Kinds of rates."""
BURST: Final = 1 << 16
"""Bytes that a planned rate may send at once, to make up for a time in which another connection used the line, or no
packet was ready. Without them, each such time would make the connection slower than its rate."""
_FULL: Final = 0.999
"""A rate above this part of the line's is the line's."""


@compiled
def pace(place: int, now: int, size: int) -> int:
    """The time for which ``size`` bytes sent now occupy the connection; 0 if the rate is not limited."""
    of = rate_in(place)
    if of.kind == PLANNED:
        of.due = max(of.due, now - int(BURST * 8 * SECOND / of.rate)) + int(size * 8 * SECOND / of.rate)
        return max(0, of.due - now)
    if not of.started:
        return 0
    if of.kind == TIMED:
        _expire(of, now)
        return 0 if of.rate >= of.line_rate else int(size * 8 * SECOND / of.rate)
    _advance(of, now)
    if not of.started:
        return 0
    of.bytes += size
    while of.bytes >= of.increase_bytes:
        of.bytes -= of.increase_bytes
        of.byte_steps += 1
        _increase(of)
    return int(size * 8 * SECOND / of.rate)


@compiled
def on_cnp(place: int, now: int) -> None:
    """Handle a CNP."""
    of = rate_in(place)
    if of.kind == DCQCN:
        _advance(of, now)
        of.started = True
        of.target = of.rate
        of.rate = max(of.rate * (1 - of.alpha / 2), of.min_rate)
        of.alpha = (1 - of.gain) * of.alpha + of.gain
        of.alpha_at = of.increase_at = now
        of.bytes = of.stage = of.byte_steps = 0
    elif of.kind == TIMED:
        if of.started:
            _expire(of, now)
        of.cut_due = True
        if of.started:
            of.congested = True
            return
        of.started = True  # the first one starts the timers, and is checked for at once
        of.look_at = now
        of.alpha_at = now + of.alpha_timer
        of.increase_at = now + of.increase_timer
        _expire(of, now)


@compiled
def on_nack(place: int, now: int) -> None:
    """Handle a NAK for a gap: with ``nack_cuts`` it counts as a CNP."""
    if rate_in(place).nack_cuts:
        on_cnp(place, now)


# --- DCQCN's figure 7: alpha_at and increase_at are when the timers began ---


@compiled
def _advance(of: Any, now: int) -> None:
    while of.started and of.alpha_at + of.alpha_timer <= now:
        of.alpha_at += of.alpha_timer
        of.alpha *= 1 - of.gain
    while of.started and of.increase_at + of.increase_timer <= now:
        of.increase_at += of.increase_timer
        of.stage += 1
        _increase(of)


@compiled
def _increase(of: Any) -> None:
    least, most = min(of.stage, of.byte_steps), max(of.stage, of.byte_steps)
    if least > of.fast_recovery:
        of.target += of.hyper_step * (least - of.fast_recovery)
    elif most > of.fast_recovery:
        of.target += of.additive_step
    of.target = min(of.target, of.line_rate)
    of.rate = (of.rate + of.target) / 2
    if of.rate > _FULL * of.line_rate:
        of.rate = of.target = of.line_rate
        of.started = False


# --- the timed form: alpha_at, look_at and increase_at are when the timers expire next ---


@compiled
def _expire(of: Any, now: int) -> None:
    """Let timers that are due expire, in order. Of timers that expire together, the check for a CNP comes first."""
    while True:
        look = of.look_at if of.cut_due else now + 1
        if look <= min(of.increase_at, now):
            _step_alpha(of, look)
            _cut(of, look)
        elif of.increase_at <= now:
            of.increase_at += of.increase_timer
            _grow(of)
        else:
            break
    _step_alpha(of, now)
    if of.look_at <= now:
        of.look_at += ((now - of.look_at) // of.decrease_interval + 1) * of.decrease_interval


@compiled
def _step_alpha(of: Any, now: int) -> None:
    if of.alpha_at > now:
        return
    steps = (now - of.alpha_at) // of.alpha_timer + 1
    of.alpha_at += steps * of.alpha_timer
    of.alpha *= (1 - of.gain) ** float(steps)
    if of.congested:
        of.alpha += of.gain * (1 - of.gain) ** float(steps - 1)
        of.congested = False


@compiled
def _cut(of: Any, at: int) -> None:
    if of.stage:
        of.target = of.rate  # cuts in a row leave the target at what the first one found
    of.rate = max(of.rate * (1 - of.alpha / 2), of.min_rate)
    of.cut_due = False
    of.stage = 0
    of.look_at = at + of.decrease_interval
    of.increase_at = at + of.increase_timer


@compiled
def _grow(of: Any) -> None:
    if of.stage >= of.fast_recovery:
        step = of.additive_step if of.stage == of.fast_recovery else of.hyper_step
        of.target = min(of.target + step, of.line_rate)
    of.stage += 1
    of.rate = (of.rate + of.target) / 2
    if of.rate > _FULL * of.line_rate:
        of.rate = of.target = of.line_rate
