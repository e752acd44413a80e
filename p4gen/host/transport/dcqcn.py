"""DCQCN's reaction point: a sending rate that CNPs reduce, and that increases again with time and bytes sent.

Zhu et al., Congestion Control for Large-Scale RDMA Deployments (SIGCOMM 2015), section 3.1 and figure 7. The state is
updated when it is read, so an idle connection causes no events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from p4gen.host.transport.clock import SECOND, US


@dataclass(frozen=True)
class DcqcnConfig:
    """Parameters, with the paper's names in parentheses. Rates are in bit/s, times in ps."""

    line_rate: int = 100_000_000_000
    min_rate: int = 100_000_000
    additive_step: int = 400_000_000
    """(R_AI)"""
    hyper_step: int = 4_000_000_000
    """(R_HAI)"""
    gain: float = 1 / 256
    """(g)"""
    alpha_timer: int = 55 * US
    """(K) Alpha decays after this time without a CNP."""
    increase_timer: int = 55 * US
    """(T)"""
    increase_bytes: int = 10_000_000
    """(B)"""
    fast_recovery: int = 5
    """(F) Number of fast-recovery steps before the target rate increases."""
    cnp_interval: int = 50 * US
    """(N) The notification point sends at most one CNP per connection in this time."""
    nack_cuts: bool = False
    """Whether a NAK for a gap counts as a CNP."""

    def point(self) -> ReactionPoint:
        """The rate of a new connection."""
        return ReactionPoint(self)


class ReactionPoint:
    """The rate of one connection."""

    STATE: ClassVar = (
        "_c", "rate", "target", "alpha", "_limited", "_alpha_at", "_timer_at", "_bytes", "_timer_steps",
        "_byte_steps",
    )  # fmt: skip

    def __init__(self, config: DcqcnConfig) -> None:
        self._c = config
        self.rate = float(config.line_rate)
        """Current rate (R_C), bit/s."""
        self.target = self.rate
        """Target rate (R_T)."""
        self.alpha = 1.0
        self._limited = False
        self._alpha_at = self._timer_at = 0
        self._bytes = 0
        self._timer_steps = self._byte_steps = 0

    def on_cnp(self, now: int) -> None:
        """Handle a CNP: cut the rate and start fast recovery."""
        self._advance(now)
        self._limited = True
        self.target = self.rate
        self.rate = max(self.rate * (1 - self.alpha / 2), self._c.min_rate)
        self.alpha = (1 - self._c.gain) * self.alpha + self._c.gain
        self._alpha_at = self._timer_at = now
        self._bytes = self._timer_steps = self._byte_steps = 0

    def on_nack(self, now: int) -> None:
        """Handle a NAK: with ``nack_cuts`` it counts as a CNP."""
        if self._c.nack_cuts:
            self.on_cnp(now)

    def pace(self, now: int, size: int) -> int:
        """The time, in ps, for which ``size`` bytes sent now occupy the connection; 0 if the rate is not limited."""
        if not self._advance(now):
            return 0
        self._bytes += size
        while self._bytes >= self._c.increase_bytes:
            self._bytes -= self._c.increase_bytes
            self._byte_steps += 1
            self._increase()
        return int(size * 8 * SECOND / self.rate)

    def _advance(self, now: int) -> bool:
        """Update the state to time ``now``. Returns whether the rate is still limited."""
        c = self._c
        while self._limited and self._alpha_at + c.alpha_timer <= now:
            self._alpha_at += c.alpha_timer
            self.alpha *= 1 - c.gain
        while self._limited and self._timer_at + c.increase_timer <= now:
            self._timer_at += c.increase_timer
            self._timer_steps += 1
            self._increase()
        return self._limited

    def _increase(self) -> None:
        c = self._c
        least, most = sorted((self._timer_steps, self._byte_steps))
        if least > c.fast_recovery:
            self.target += c.hyper_step * (least - c.fast_recovery)
        elif most > c.fast_recovery:
            self.target += c.additive_step
        self.target = min(self.target, float(c.line_rate))
        self.rate = (self.rate + self.target) / 2
        if self.rate > 0.999 * c.line_rate:
            self.rate = self.target = float(c.line_rate)
            self._limited = False
