"""EPIC's packet-level simulation, swept: message size, loss on one link, number of lossy links (§K.2 to §K.4).

Beside our numbers stand those of the paper's EPIC-II rows, where it has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from p4gen.host.clock import US, duration_text
from p4gen.host.verbs import Recovery
from p4gen.net.faults import Faults, Impairment
from p4gen.net.simulation import SimConfig, SimResult, simulate
from p4gen.spec import ProgramSpec


class Axis(StrEnum):
    """What is varied."""

    SIZE = "size"
    LOSS = "loss"
    LINKS = "links"


_K, _M = 1 << 10, 1 << 20

TABLE_25: Final[Mapping[float, float]] = {
    4 * _K: 6.10, 16 * _K: 20.35, 64 * _K: 48.83, 256 * _K: 75.12, _M: 84.92, 4 * _M: 87.54, 64 * _M: 88.25,
    256 * _M: 88.28, 1024 * _M: 88.30,
}  # fmt: skip
"""EPIC Table 25, EPIC-II: message size in bytes to Gb/s."""
TABLE_31: Final[Mapping[float, float]] = {
    0: 87.54, 0.1: 86.33, 0.5: 86.81, 1: 86.09, 2: 84.46, 5: 79.52, 8: 75.48, 10: 73.01, 12: 47.17, 15: 39.01,
}  # fmt: skip
"""EPIC Table 31, EPIC-II: loss in per cent to Gb/s."""
TABLE_32: Final[Mapping[float, float]] = {
    0: 87.54, 1: 79.52, 2: 74.05, 3: 70.07, 4: 64.97, 5: 63.78, 6: 59.07, 7: 55.31, 8: 52.52,
}  # fmt: skip
"""EPIC Table 32, EPIC-II: lossy links (5 % each) to Gb/s."""

EPIC_PROGRAM: Final = ProgramSpec(lanes=256, window=64, message=4, groups=1)
"""What the paper's simulation suggests: payloads of 1 KB (Table 25 tends to 88.3 of 100 Gb/s), and a window that a
round trip with a repair in it does not exhaust."""
EPIC_TIMEOUT: Final = 8 * US
"""One and a half of the four-hop round trip that a repair takes."""
EPIC_RECOVERY: Final = Recovery.IDEAL
LINKS_LOSS: Final = 0.05


@dataclass(frozen=True)
class Point:
    """One cell: our throughput and the paper's, in Gb/s."""

    value: float
    label: str
    ours: float
    paper: float | None
    result: SimResult

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's."""
        return self.ours / self.paper if self.paper else None


def points(axis: Axis, base: SimConfig, values: Sequence[float] | None = None) -> list[tuple[float, str, SimConfig]]:
    """The runs of a sweep: value, label, configuration. ``base`` gives all that is not swept."""
    if axis is Axis.SIZE:
        sizes = [int(v) for v in values] if values else [int(s) for s in TABLE_25 if s <= 4 * _M]
        return [(size, _size_text(size), replace(base, size=size)) for size in sizes]
    if axis is Axis.LOSS:
        rates = values if values else list(TABLE_31)
        where = base.topology.rank_hosts[0]
        return [
            (rate, f"{rate:g} %", replace(base, faults=_with(base.faults, Impairment(where, loss=rate / 100))))
            for rate in rates
        ]
    counts = [int(v) for v in values] if values else list(range(len(base.topology.rank_hosts) + 1))
    return [
        (n, str(n), replace(base, faults=_with(base.faults, *_lossy(base.topology.rank_hosts[:n])))) for n in counts
    ]


def sweep(
    axis: Axis,
    base: SimConfig,
    values: Sequence[float] | None = None,
    started: Callable[[str], None] | None = None,
) -> list[Point]:
    """Run a sweep, one run after the other."""
    tables: dict[Axis, Mapping[float, float]] = {Axis.SIZE: TABLE_25, Axis.LOSS: TABLE_31, Axis.LINKS: TABLE_32}
    found = []
    for value, label, config in points(axis, base, values):
        if started is not None:
            started(label)
        result = simulate(config)
        found.append(Point(value, label, result.throughput / 1e9, tables[axis].get(value), result))
    return found


def to_csv(axis: Axis, cells: Sequence[Point]) -> str:
    """The sweep as CSV."""
    lines = [f"{axis},gbps,epic_ii_gbps,ratio,duration_us,sent,resent,timeouts,ok"]
    for p in cells:
        paper, ratio = ("", "") if p.paper is None else (f"{p.paper:.2f}", f"{p.ratio:.3f}")
        r = p.result
        lines.append(
            f"{p.value:g},{p.ours:.2f},{paper},{ratio},{r.duration / US:.2f},{r.sent},{r.resent},{r.timeouts},"
            f"{int(r.ok)}"
        )
    return "\n".join(lines) + "\n"


def assumptions(config: SimConfig) -> list[str]:
    """All that the numbers of a sweep rest on."""
    spec, link = config.program, config.topology.defaults
    return [
        f"{config.topology.name}: {link.bandwidth / 1e9:g} Gb/s and {duration_text(link.delay)} a link, "
        f"{duration_text(config.topology.switch_latency)} through a switch",
        f"payload {spec.payload_bytes} bytes a packet, 58 bytes of headers and ICRC, 24 on the wire beside the frame",
        f"window {spec.window} messages of {spec.message} packets; the control message goes ahead of the data",
        f"ACK on the last packet of a message and on packets that are sent again, cumulative; recovery "
        f"'{config.recovery}', timer {duration_text(config.timeout)}, no congestion control",
        "loss strikes both directions of a link, data and ACKs alike",
        "time runs from the first rank's call until the last rank has all results and all its ACKs",
    ]


def _lossy(hosts: Sequence[str]) -> list[Impairment]:
    return [Impairment(host, loss=LINKS_LOSS) for host in hosts]


def _with(faults: Faults, *more: Impairment) -> Faults:
    return replace(faults, impairments=(*faults.impairments, *(i for i in more if i.loss)))


def _size_text(size: int) -> str:
    return f"{size >> 20} MiB" if size >= _M else f"{size >> 10} KiB"
