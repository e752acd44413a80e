"""Figure 11: how many waves, and how much in flight, a link needs (section 4.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report, within
from p4gen.experiments.plot import Series, chart_svg
from p4gen.papers.scin.experiments.study import PLANE_RATE, Timed, capacity, pages, plane, timed
from p4gen.papers.scin.spec import ScinSpec, Variant

WAVES: Final = (1, 2, 4, 8, 16, 32)
SLOTS: Final = (16, 32, 64, 128)
"""Packets in flight: 16 KB to 128 KB."""
MOST: Final = 64
"""The most packets of a wave."""
ROUND_TRIP: Final = 4 * 250e-9 + 2 * 20e-9
"""Four links and two passes, s: from a READ to the ACK of its result, which frees the slot."""
PACKETS: Final = {"quick": 2048, "paper": 16384}


EARLY_SLOTS: Final = 64
"""The paper's: 64 KB."""


def spec(slots: int, waves: int, variant: Variant | None = None) -> ScinSpec:
    """A program with ``slots`` packets in flight in so many waves."""
    fields = {"lanes": 256, "waves": waves, "wave": slots // waves, "contexts": 1, "edges": 8, "ports": 8}
    return ScinSpec.model_validate(fields | {"variant": variant})


def _perform(order: Order) -> Report:
    packets = PACKETS[order.scale]
    asked = [(slots, waves) for slots in SLOTS for waves in WAVES if waves <= slots <= MOST * waves]
    found = order.run(
        [_cell(spec(slots, waves), packets, order) for slots, waves in asked]
        + [_cell(spec(EARLY_SLOTS, waves, Variant.EARLY_RELEASE), packets, order) for waves in WAVES]
    )

    def share(program: ScinSpec) -> float:
        time = found[_cell(program, packets, order).name].data * 1e-12
        return packets * program.payload / time / capacity(program, PLANE_RATE)

    shares = {(slots, waves): share(spec(slots, waves)) for slots, waves in asked}
    early = {waves: share(spec(EARLY_SLOTS, waves, Variant.EARLY_RELEASE)) for waves in WAVES}
    released = f"{pages(1024 * EARLY_SLOTS)}, released early"
    return Report(
        ("waves", *(f"{pages(1024 * slots)}, % of the link" for slots in SLOTS), released),
        tuple(
            (str(waves), *(_percent(shares.get((slots, waves))) for slots in SLOTS), _percent(early[waves]))
            for waves in WAVES
        ),
        (*_checks(shares), *_early_checks(early)),
        (
            "star-8, 900 Gb/s and 250 ns a link in each direction, 20 ns in the switch; packets of 1,024 bytes; "
            f"{packets:,} packets, without synchronisation",
            "the paper frees a slot when it is read out, after two links; here it is kept until its result is "
            "acknowledged, after four: its 64 KB are 128 KB here; --variant early-release is the paper's",
        ),
        {
            ".svg": chart_svg(
                "SCIN, Figure 11: waves", "waves", [str(waves) for waves in WAVES], "% of the link",
                [
                    *(
                        Series(pages(1024 * slots), [_percent(shares.get((slots, waves))) for waves in WAVES])
                        for slots in SLOTS
                    ),
                    Series(released, [_percent(early[waves]) for waves in WAVES]),
                ],
            )
        },
    )  # fmt: skip


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _checks(shares: Mapping[tuple[int, int], float]) -> list[Check]:
    wide = {waves: shares[128, waves] for waves in WAVES if (128, waves) in shares}
    knee = min(waves for waves, share in wide.items() if share >= max(wide.values()) / 1.03)
    checks = [
        within("128 KB: the fewest waves within 3 % of the best", knee, 8, 32),
        within("128 KB, 32 waves: gain over 16", wide[32] / wide[16] - 1, -0.03, 0.03),
    ]
    for slots in SLOTS:
        if (slots, 1) in shares:
            rate = capacity(spec(slots, 1), PLANE_RATE)
            alone = slots * 1024 / (ROUND_TRIP + slots * 1024 / rate) / rate
            checks.append(
                within(f"{pages(1024 * slots)} in one wave, C/(RTT + C/B)", shares[slots, 1], 0.9 * alone, 1.1 * alone)
            )
    for waves in WAVES:
        line = [shares[slots, waves] for slots in SLOTS if (slots, waves) in shares]
        checks.append(Check(f"{waves} waves: more in flight is never slower", line == sorted(line)))
    return checks


def _early_checks(early: Mapping[int, float]) -> Iterator[Check]:
    knee = min(waves for waves, share in early.items() if share >= max(early.values()) / 1.03)
    yield within("64 KB in one wave, released early (paper: about 2/3)", early[1], 0.5, 0.7)
    yield within("64 KB in 16 waves, released early (paper: they suffice)", early[16], 0.92, 1)
    yield within("64 KB, released early: the fewest waves within 3 % of the best (paper: 16)", knee, 8, 32)


def _cell(program: ScinSpec, packets: int, order: Order) -> Cell[Timed]:
    name = f"{program.slots} packets/{program.waves} waves{'/early' if program.releases_early else ''}"
    return Cell(name, timed, (program, plane(), packets, order.engine, order.seed))


FIGURE_11: Final = Experiment(
    {"quick": "2,048 packets, a minute", "paper": "16,384 packets, ten minutes"}, _perform, check="quick"
)
