"""The loads of SCIN's benchmarks: AllReduces of two ranks and of all, without loss.

A call has four times as many packets as a context has slots. Sources answer a wave after the other, its scales first if
there are any, destinations acknowledge each, and all take their flags. Calls of several contexts follow each other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Final

from p4gen.bench.workload import Benchmark, ByHand, Workload, dropped
from p4gen.papers.scin.control import Pattern, PullContext, Role
from p4gen.papers.scin.headers import BUFFERS
from p4gen.papers.scin.roofline import loop, why_not
from p4gen.papers.scin.spec import ScinSpec
from p4gen.papers.scin.traffic.draws import scales
from p4gen.papers.scin.traffic.frames import Star, answer, arrival, response
from p4gen.program import compose, render
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket

_CONTEXTS: Final = 8
_TIMES: Final = 4
"""How often a call uses a slot."""
Frame = tuple[int, bytes]


@dataclass(frozen=True, kw_only=True)
class Calls(Workload):
    """The load of AllReduces of the same ranks in several contexts."""

    contexts: tuple[PullContext, ...]


def _opcode(spec: ScinSpec, index: int) -> Opcode:
    """That of a packet in the answer to the READ of a whole wave."""
    if spec.wave == 1:
        return Opcode.READ_RESPONSE_ONLY
    at = index % spec.wave
    if at == 0:
        return Opcode.READ_RESPONSE_FIRST
    return Opcode.READ_RESPONSE_LAST if at == spec.wave - 1 else Opcode.READ_RESPONSE_MIDDLE


def _call(spec: ScinSpec, context: PullContext, number: int, rng: random.Random) -> Iterator[Frame]:
    """What ranks send in a call."""
    packets, waves = _TIMES * spec.slots, _TIMES * spec.waves

    def sent(edge: int, packet: RocePacket) -> Frame:
        return edge - 1, packet.sealed().to_bytes()

    for edge in context.edges:
        where = rng.randbytes(BUFFERS.size)
        yield sent(edge.edge, arrival(spec, context, edge, number, packets, where))
    for wave, first in enumerate(range(0, packets, spec.wave)):
        for edge in context.edges if spec.scaled else ():
            psn, opcode = number * waves + wave, Opcode.READ_RESPONSE_ONLY
            yield sent(edge.edge, response(context, edge, psn, scales(spec, rng), opcode, Role.SCALES))
        for index in range(first, first + spec.wave):
            for edge in context.edges:
                data, psn = rng.randbytes(spec.payload), number * packets + index
                yield sent(edge.edge, response(context, edge, psn, data, _opcode(spec, index)))
        for edge in context.edges:
            yield sent(edge.edge, answer(context, edge, Role.WRITE, number * packets + first + spec.wave - 1))
    if not spec.ordered:
        for edge in context.edges:
            yield sent(edge.edge, answer(context, edge, Role.SYNC, number))


def _passes(spec: ScinSpec, ranks: int) -> float:
    """Of a packet. Round go a cursor that starts a call, and one for each READ that no ACK issues, or behind each that
    one does; where what leaves makes room, another one for each wave."""
    waves = _TIMES * spec.waves
    own = ranks * (1 + _TIMES * spec.slots + waves * (2 if spec.scaled else 1) + (not spec.ordered))
    return 1 + (2 + waves * (2 if spec.releases_early else 1)) / own


def _workload(spec: ScinSpec, text: str, packets: int, ranks: int, rng: random.Random) -> Calls:
    star, everybody = Star(spec), Pattern((1 << ranks) - 1, (1 << ranks) - 1)
    contexts = [star.context(number, everybody) for number in range(min(spec.contexts, _CONTEXTS))]
    frames = (frame for number in count() for context in contexts for frame in _call(spec, context, number, rng))
    counter = dropped(spec, "ReplicateData_absorbed")
    load = f"AllReduces of {ranks} ranks, {_TIMES * spec.slots} packets each"
    return Calls(
        spec, load, text, star.config(contexts), (), tuple(islice(frames, packets)), counter, _passes(spec, ranks),
        contexts=tuple(contexts),
    )  # fmt: skip


def _workloads(spec: ScinSpec, packets: int, seed: int) -> tuple[Workload, ...]:
    text, rng = render(compose(spec)).text, random.Random(seed)  # noqa: S311 - a load, to be repeatable
    return tuple(_workload(spec, text, packets, ranks, rng) for ranks in sorted({2, spec.edges}))


def _by_hand(work: Workload, folder: Path) -> ByHand | str:
    assert isinstance(work, Calls)
    return why_not(work.spec) or loop(work, folder, work.contexts)


FACET: Benchmark[ScinSpec] = Benchmark(_workloads, _by_hand)
