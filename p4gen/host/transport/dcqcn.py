"""DCQCN's reaction point: a sending rate that CNPs reduce, and that increases again with time and bytes sent.

Zhu et al., Congestion Control for Large-Scale RDMA Deployments (SIGCOMM 2015), section 3.1 and figure 7. The state is
updated when it is read, so an idle connection causes no events.
"""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.host.transport.clock import US


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
