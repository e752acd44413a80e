"""DCQCN as packet-level models of RNICs have it (HPCC, SIGCOMM 2019; ConWeave, SIGCOMM 2023): rates change with timers.

The reaction point of ``dcqcn`` cuts its rate at every CNP. Here a CNP only leaves a mark. Every ``decrease_interval``
(T_D) the mark is checked, which bounds the number of cuts. ``increase_timer`` (T_I) after a cut the rate begins to grow
again, and alpha follows the marks on a timer of its own. There is no byte counter. If ``nack_cuts`` is set, a NAK for a
gap leaves the same mark as a CNP: RNICs slow down upon either (Themis §2.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from p4gen.host.transport.clock import SECOND, US


@dataclass(frozen=True)
class TimedDcqcnConfig:
    """Parameters; rates in bit/s, times in ps. The defaults are those that HPCC recommends, for 100 Gb/s."""

    line_rate: int = 100_000_000_000
    min_rate: int = 100_000_000
    additive_step: int = 20_000_000
    """(R_AI)"""
    hyper_step: int = 200_000_000
    """(R_HAI)"""
    gain: float = 1 / 256
    """(g)"""
    alpha_timer: int = 1 * US
    """The time between two steps of alpha: up if there was a CNP in it, down if there was none."""
    decrease_interval: int = 4 * US
    """(T_D) The time between two checks for a CNP; at most one cut each."""
    increase_timer: int = 900 * US
    """(T_I) The time between two increases, from the last cut on."""
    fast_recovery: int = 1
    """(F) Number of increases toward the rate before the cut. The next increase adds R_AI to the target, all others
    R_HAI."""
    cnp_interval: int = 4 * US
    """The notification point sends at most one CNP per connection in this time."""
    nack_cuts: bool = True
    """A NAK for a gap counts as a CNP."""

    def __post_init__(self) -> None:
        if min(self.alpha_timer, self.decrease_interval, self.increase_timer) < 1:
            raise ValueError("DCQCN's timers are longer than 0")
        if not 0 < self.min_rate <= self.line_rate or not 0 < self.gain <= 1:
            raise ValueError("DCQCN needs 0 < min_rate <= line_rate and 0 < gain <= 1")

    @classmethod
    def at(
        cls,
        line_rate: int,
        *,
        increase_timer: int = 900 * US,
        decrease_interval: int = 4 * US,
        nack_cuts: bool = True,
    ) -> TimedDcqcnConfig:
        """The configuration for a line of ``line_rate`` bit/s: steps of 5 and 50 Mb/s for each 25 Gb/s."""
        return cls(
            line_rate,
            min(100_000_000, line_rate),
            line_rate // 5000,
            line_rate // 500,
            increase_timer=increase_timer,
            decrease_interval=decrease_interval,
            nack_cuts=nack_cuts,
        )

    def point(self) -> TimedReactionPoint:
        """The rate of a new connection."""
        return TimedReactionPoint(self)


class TimedReactionPoint:
    """The rate of one connection. Its timers are not events: ``pace`` and ``on_cnp`` bring it up to date."""

    STATE: ClassVar = (
        "_c", "rate", "target", "alpha", "_started", "_cut_due", "_congested", "_stage", "_alpha_at", "_look_at",
        "_increase_at",
    )  # fmt: skip

    def __init__(self, config: TimedDcqcnConfig) -> None:
        self._c = config
        self.rate = float(config.line_rate)
        """Current rate (R_C), bit/s."""
        self.target = self.rate
        """Target rate (R_T)."""
        self.alpha = 1.0
        self._started = False
        """There was a CNP, so the timers run."""
        self._cut_due = False
        """There was a CNP since the last check."""
        self._congested = False
        """There was a CNP since alpha's last step."""
        self._stage = 0
        """Number of increases since the last cut."""
        self._alpha_at = self._look_at = self._increase_at = 0
        """When the timers expire next."""

    def on_cnp(self, now: int) -> None:
        """Handle a CNP. The first one starts the timers, and is checked for at once."""
        self._advance(now)
        self._cut_due = True
        if self._started:
            self._congested = True
            return
        self._started = True
        self._look_at = now
        self._alpha_at = now + self._c.alpha_timer
        self._increase_at = now + self._c.increase_timer
        self._advance(now)

    def on_nack(self, now: int) -> None:
        """Handle a NAK: with ``nack_cuts`` it leaves the mark of a CNP."""
        if self._c.nack_cuts:
            self.on_cnp(now)

    def pace(self, now: int, size: int) -> int:
        """The time, in ps, for which ``size`` bytes sent now occupy the connection; 0 at the line's rate."""
        if not self._started:
            return 0
        self._advance(now)
        return 0 if self.rate >= self._c.line_rate else int(size * 8 * SECOND / self.rate)

    def _advance(self, now: int) -> None:
        """Let timers that are due by ``now`` expire, in order. Of timers that expire together, the check for a CNP
        comes first."""
        if not self._started:
            return
        c = self._c
        while True:
            look = self._look_at if self._cut_due else now + 1
            if look <= min(self._increase_at, now):
                self._step_alpha(look)
                self._cut(look)
            elif self._increase_at <= now:
                self._increase_at += c.increase_timer
                self._increase()
            else:
                break
        self._step_alpha(now)
        if self._look_at <= now:
            self._look_at += ((now - self._look_at) // c.decrease_interval + 1) * c.decrease_interval

    def _step_alpha(self, now: int) -> None:
        c = self._c
        if self._alpha_at > now:
            return
        steps = (now - self._alpha_at) // c.alpha_timer + 1
        self._alpha_at += steps * c.alpha_timer
        self.alpha *= (1 - c.gain) ** steps
        if self._congested:
            self.alpha += c.gain * (1 - c.gain) ** (steps - 1)
            self._congested = False

    def _cut(self, at: int) -> None:
        if self._stage:
            self.target = self.rate  # cuts in a row leave the target at what the first one found
        self.rate = max(self.rate * (1 - self.alpha / 2), float(self._c.min_rate))
        self._cut_due = False
        self._stage = 0
        self._look_at = at + self._c.decrease_interval
        self._increase_at = at + self._c.increase_timer

    def _increase(self) -> None:
        c = self._c
        if self._stage >= c.fast_recovery:
            step = c.additive_step if self._stage == c.fast_recovery else c.hyper_step
            self.target = min(self.target + step, float(c.line_rate))
        self._stage += 1
        self.rate = (self.rate + self.target) / 2
        if self.rate > 0.999 * c.line_rate:
            self.rate = self.target = float(c.line_rate)
