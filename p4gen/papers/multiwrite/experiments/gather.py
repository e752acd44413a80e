"""Figures 6 and 7 (section 6.2): the duration of AllGather by direct writes, unicast multi-path and MultiWrite."""

from __future__ import annotations

from typing import Final

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report
from p4gen.experiments.plot import Series, chart_svg
from p4gen.host.transport.clock import SECOND, US
from p4gen.papers.multiwrite.ranks.gathering import (
    DIRECT,
    DOMAIN,
    IN_HOSTS,
    LINK,
    MULTIWRITE,
    NETWORK,
    RELAY,
    UNICAST,
    WAYS,
    gather,
    program,
)

PACKETS: Final = {"small": 320, "quick": 160, "paper": 4096}
"""Packets of a fragment in Figure 6: 1.25 MiB, and the paper's 16 MiB."""
SIZES: Final = {
    "small": (64, 128, 256, 512, 1024),
    "quick": (64, 256, 512),
    "paper": (64, 128, 256, 512, 1024, 4096, 16384),
}
"""Packets of a fragment in Figure 7, from 256 KiB on."""
LARGEST: Final = 200_000_000
"""Bytes of the paper's largest fragment, to which a line goes on."""
TOLERANCE: Final = 0.03
PAPER: Final = {DIRECT: 1.0, UNICAST: 0.84, IN_HOSTS: 0.70}
"""Figure 6: MultiWrite is 30 % below direct writes, and 17 % below unicast multi-path."""
OVERHEAD: Final = 11 * US
"""What splitting and relaying cost the paper's CPUs in each call: with relays that save 30 %, 2 MB are gathered as fast
as directly if it is 0.3 x 2 MB / (56 GB/s)."""


def _size(packets: int) -> int:
    return packets * program().payload


def _ideal(packets: int) -> float:
    """s/w, the time that a fragment of ``packets`` packets takes on a link, ps."""
    return _size(packets) * SECOND / LINK


def _assumptions() -> list[str]:
    spec = program()
    return [
        f"{NETWORK}: eight NPUs, each with a link of 56 GB/s to each other one; two domains of {DOMAIN}",
        f"packets of {spec.payload} bytes, at most {spec.slots} of a connection outstanding; links lose nothing",
        "switches relay, or hosts where a row says so; shares that go straight are such that both ways end together",
        "unicast writes go over the same connections as MultiWrite's, to one destination each; fences end all parts",
    ]


def _six(order: Order) -> Report:
    packets = PACKETS[order.scale]
    found = order.run([Cell(way.name, gather, (way, packets, order.engine)) for way in WAYS])
    took = {way: found[way.name] for way in WAYS}
    ratio = {way: duration / took[DIRECT] for way, duration in took.items()}
    rows = tuple((way.name, took[way] / US, ratio[way], way.factor, PAPER.get(way)) for way in WAYS)
    checks = [
        Check(
            f"{way.name}: {ratio[way]:.3f} of direct, {way.factor:g} within {TOLERANCE:.0%}",
            abs(ratio[way] / way.factor - 1) <= TOLERANCE,
        )
        for way in WAYS[1:]
    ]
    direct = took[DIRECT] / _ideal(packets)
    checks.append(Check(f"direct: {direct:.3f} of s/w, of which headers and ACKs are 5 %", 1 <= direct <= 1.1))
    bars = [Series("AllGather", [took[way] / US for way in WAYS])]
    return Report(
        ("scheme", "duration, us", "of direct", "model's", "paper's"),
        rows,
        tuple(checks),
        (
            f"fragments of {_size(packets):,} bytes",
            *_assumptions(),
            f"relays in hosts store and forward {RELAY / 1e9:g} GB/s",
        ),
        {".svg": chart_svg("MultiWrite, Figure 6", "scheme", [way.name for way in WAYS], "duration, us", bars)},
    )


def _seven(order: Order) -> Report:
    sizes = SIZES[order.scale]
    cells = [
        Cell(f"{way.name}/{packets}", gather, (way, packets, order.engine))
        for packets in sizes
        for way in (DIRECT, MULTIWRITE)
    ]
    times = order.run(cells)
    found = [(packets, times[f"{DIRECT.name}/{packets}"], times[f"{MULTIWRITE.name}/{packets}"]) for packets in sizes]
    rows = [_row(_size(packets), direct, written) for packets, direct, written in found]
    rows.append(_row(LARGEST, *(_line(found, which) for which in (1, 2))))
    worse = [size for size, direct, _, relayed, _ in rows if relayed > direct]
    better = [size for size, direct, _, relayed, _ in rows if relayed <= direct]
    crosses = (max(worse, default=0) + min(better, default=0)) / 2
    checks = (
        Check("in the network: MultiWrite is faster at every size", all(row[2] < row[1] for row in rows)),
        Check("with the paper's overhead: slower at 256 KiB", rows[0][3] > rows[0][1]),
        Check("with the paper's overhead: one crossover", max(worse, default=0) < min(better, default=0)),
        Check(f"which is near {crosses / 1e6:.1f} MB: the paper's 2 MB, twice or half of it", 1e6 <= crosses <= 4e6),
        Check(f"200 MB: {rows[-1][4]:.3f} of direct, 0.5 within {TOLERANCE:.0%}", abs(rows[-1][4] - 0.5) <= 0.015),
    )
    lines = [
        Series("direct", [row[1] for row in rows[:-1]]),
        Series("MultiWrite", [row[2] for row in rows[:-1]]),
        Series("with the paper's overhead", [row[3] for row in rows[:-1]]),
    ]
    labels = [f"{_size(packets) >> 10}" for packets in sizes]
    return Report(
        ("bytes", "direct, us", "MultiWrite, us", "and overhead, us", "of direct"),
        tuple(rows),
        checks,
        (
            *_assumptions(),
            f"overhead: {OVERHEAD / US:g} us a call, with which relays that save 30 % cross at 2 MB",
            "200 MB: the line through the two largest sizes",
        ),
        {".svg": chart_svg("MultiWrite, Figure 7", "fragment, KiB", labels, "duration, us", lines)},
    )


def _row(size: int, direct: float, written: float) -> tuple[float, float, float, float, float]:
    return float(size), direct / US, written / US, (written + OVERHEAD) / US, written / direct


def _line(found: list[tuple[int, int, int]], which: int) -> float:
    """The duration for ``LARGEST`` by the last two of those found."""
    (first, last) = found[-2:]
    slope = (last[which] - first[which]) / (_size(last[0]) - _size(first[0]))
    return last[which] + slope * (LARGEST - _size(last[0]))


FIGURE_6: Final = Experiment(
    {
        "small": "1.25 MiB a rank, a quarter of a minute",
        "quick": "half of that",
        "paper": "16 MiB a rank, some minutes",
    },
    _six,
    check="small",
)
FIGURE_7: Final = Experiment(
    {"small": "to 4 MiB, half a minute", "quick": "to 2 MiB", "paper": "to 64 MiB, several minutes"},
    _seven,
    check="small",
)
