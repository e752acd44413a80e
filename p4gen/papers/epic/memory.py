"""Memory of buffers for each edge, and what EPIC's formulas say for all modes (section F.3)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from p4gen.papers.epic.spec import EpicSpec

BANDWIDTH: Final = 100_000_000_000
"""Bit/s of the links in EPIC's simulations (section 7.4); the report tells which hop the buffers last for."""
TIERS: Final = 2
"""Tiers of the tree for which the report states the formulas; only Mode II's depends on them."""


@dataclass(frozen=True)
class Formulas:
    """EPIC F.3: bytes of payload that a switch buffers for a group, by mode; a reproducible Mode II or III stores each
    edge's contribution, as Mode I always does."""

    mode_i: int
    mode_ii: int
    mode_ii_reproducible: int
    mode_iii: int
    mode_iii_reproducible: int


def formulas(hop: int, tiers: int, degree: int) -> Formulas:
    """The formulas for ``hop`` = BL, the bytes that a link carries in the latency of a hop, H = ``tiers`` of the tree,
    and D = ``degree``, the edges of a switch.

    >>> formulas(12_500, 2, 8)  # 100 Gb/s, 1 us
    Formulas(mode_i=225000, mode_ii=50000, mode_ii_reproducible=450000, mode_iii=50000, mode_iii_reproducible=225000)
    """
    window = 2 * hop
    return Formulas(
        mode_i=(degree + 1) * window,
        mode_ii=2 * (tiers - 1) * window,
        mode_ii_reproducible=2 * (tiers - 1) * (degree + 1) * window,
        mode_iii=2 * window,
        mode_iii_reproducible=(degree + 1) * window,
    )


@dataclass(frozen=True)
class Buffers:
    """The buffers of a program that stores contributions, in bytes of payload for a group."""

    window: int
    """N slots of U bytes: the paper's 2BL, in Mode I a window of one hop; in Mode II its 4(H - 1)BL, two windows of the
    path."""
    needed: int
    """A window for each edge, and in Modes I and III one for what comes down."""
    kept: int
    """What the registers hold: each of the two pipes has a window for each edge, for any edge may lead to the root.
    Mode II has one pipe."""
    hop: int
    """BL: the bytes that a link carries in the latency of a hop, for which the window lasts."""

    @property
    def hop_ps(self) -> int:
        """The latency of a hop, in ps, for which the window lasts at ``BANDWIDTH``."""
        return self.hop * 8 * 10**12 // BANDWIDTH


def buffers(spec: EpicSpec) -> Buffers:
    """Those of a program that stores contributions."""
    window = spec.slots_per_group * spec.payload_bytes
    stores = spec.fan_in if spec.folds else 1
    down = 1 if spec.mode.augmented else 0
    hops = 2 if spec.mode.augmented else 4 * (TIERS - 1)
    return Buffers(window, (stores + down) * window, spec.pipes * stores * window, window // hops)


def figures(spec: EpicSpec) -> dict[str, Any]:
    """For the manifest: the program's bytes, and the paper's for the same window and edges."""
    own = buffers(spec)
    return {"group": asdict(own), "tiers": TIERS, "paper": asdict(formulas(own.hop, TIERS, spec.fan_in))}


def report(spec: EpicSpec) -> str:
    """The program's buffers beside the paper's formulas, as sentences."""
    own, degree = buffers(spec), spec.fan_in
    paper = formulas(own.hop, TIERS, degree)
    return (
        f"buffers of a group: {own.kept:,} bytes; a node uses {own.needed:,} of them, {own.needed // own.window}"
        f" windows of {own.window:,} bytes ({BANDWIDTH // 10**9} Gb/s for {own.hop_ps / 1e6:.2f} us a hop)\n"
        f"EPIC F.3 for 2BL = {2 * own.hop:,} bytes, D = {degree}, H = {TIERS}: mode I {paper.mode_i:,} bytes, II"
        f" {paper.mode_ii:,} (reproducible {paper.mode_ii_reproducible:,}), III {paper.mode_iii:,} (reproducible"
        f" {paper.mode_iii_reproducible:,})"
    )
