"""DCQCN as packet-level models of RNICs have it (HPCC, SIGCOMM 2019; ConWeave, SIGCOMM 2023): rates change with timers.

The reaction point of ``dcqcn`` cuts its rate at every CNP. Here a CNP only leaves a mark. Every ``decrease_interval``
(T_D) the mark is checked, which bounds the number of cuts. ``increase_timer`` (T_I) after a cut the rate begins to grow
again, and alpha follows the marks on a timer of its own. There is no byte counter. If ``nack_cuts`` is set, a NAK for a
gap leaves the same mark as a CNP: RNICs slow down upon either (Themis §2.2).
"""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.host.transport.clock import US


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
