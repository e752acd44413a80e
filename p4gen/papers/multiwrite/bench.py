"""The loads of MultiWrite's benchmarks: writes to few and to all destinations, with an ACK for each copy.

Half a range of writes is followed by their ACKs, so that nothing is ever ahead. Few destinations are those of a
dispatch (section 6.1: top 8 of 64 experts on 16 NPUs are behind four of eight edges, say); all are an AllGather's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from p4gen.bench.workload import Benchmark, ByHand, Workload, dropped
from p4gen.errors import InputError
from p4gen.papers.multiwrite.control import WriteContext, WriteEdge
from p4gen.papers.multiwrite.roofline import loop, why_not
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.papers.multiwrite.traffic.frames import Star, answer, write
from p4gen.program import compose, render

_CONTEXTS: Final = 8
"""Sources that write in turn, each behind an edge of its own."""
_FEW: Final = 4
Frame = tuple[int, bytes]


@dataclass(frozen=True, kw_only=True)
class Writes(Workload):
    """The load of writes and ACKs; the port of an edge is its number less 1."""

    contexts: tuple[WriteContext, ...]


def _burst(
    spec: MultiwriteSpec, context: WriteContext, sent: dict[int, int], first: int, few: int, rng: random.Random
) -> Iterator[Frame]:
    """Half a range of writes, and the ACKs of all their copies. ``sent`` are the copies for each edge so far."""
    others = [edge for edge in context.edges if edge.reach]
    copies: list[tuple[WriteEdge, int]] = []
    for psn in range(first, first + spec.slots // 2):
        named = rng.sample(others, few)
        bitmap = sum(edge.reach for edge in named)
        packet = write(spec, context, psn, bitmap, rng.randbytes(spec.payload))
        yield context.source - 1, packet.sealed().to_bytes()
        for edge in named:
            copies.append((edge, sent.get(edge.edge, 0)))
            sent[edge.edge] = copies[-1][1] + 1
    for edge, number in copies:
        yield edge.edge - 1, answer(context, edge, number).sealed().to_bytes()


def _workload(spec: MultiwriteSpec, text: str, packets: int, few: int, rng: random.Random) -> Writes:
    star = Star(spec)
    contexts = [star.context(number, 1 + number % spec.edges) for number in range(min(spec.contexts, _CONTEXTS))]
    sent: list[dict[int, int]] = [{} for _ in contexts]
    frames: list[Frame] = []
    first = 0
    while len(frames) < packets:
        for context, copies in zip(contexts, sent, strict=True):
            frames += _burst(spec, context, copies, first, few, rng)
        first += spec.slots // 2
    counter = dropped(spec, "StartCursor_not_needed" if spec.holds else "CheckRange_waits")
    load = f"writes to {few} of {spec.edges - 1} edges, and their ACKs"
    return Writes(
        spec, load, text, star.config(contexts), (), tuple(frames[:packets]), counter, contexts=tuple(contexts)
    )


def _workloads(spec: MultiwriteSpec, packets: int, seed: int) -> tuple[Workload, ...]:
    if spec.edges < 3:
        raise InputError("a benchmark needs a program with 3 edges: a source's, and two destinations'")
    text, rng = render(compose(spec)).text, random.Random(seed)  # noqa: S311 - a load, to be repeatable
    numbers = sorted({min(_FEW, spec.edges - 1), spec.edges - 1})
    return tuple(_workload(spec, text, packets, few, rng) for few in numbers)


def _by_hand(work: Workload, folder: Path) -> ByHand | str:
    assert isinstance(work, Writes)
    return why_not(work.spec) or loop(work, folder, work.contexts)


FACET: Benchmark[MultiwriteSpec] = Benchmark(_workloads, _by_hand)
