"""The workload of a benchmark, and what a family of programs supplies for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol

from p4gen.errors import InputError
from p4gen.families import Facet, OwnSpec, family_of
from p4gen.groups.group import Edge, SwitchConfig
from p4gen.model import Model
from p4gen.model.jit import Batch
from p4gen.program import compose
from p4gen.vocabulary import CollectiveSpec, ProgramSpec


@dataclass(frozen=True)
class Workload:
    """A program's text, the configuration of its switch, and the packets that hosts send it.

    ``opening`` are the packets that hosts send first; they are not measured.
    """

    spec: ProgramSpec
    load: str
    """What the packets are, in a few words."""
    text: str
    config: SwitchConfig
    opening: tuple[tuple[int, bytes], ...]
    packets: tuple[tuple[int, bytes], ...]
    """(port, frame) pairs in their order."""
    counter: tuple[str, int]
    """A counter (name and index) that counts every so many of the packets; BMv2's rate is read from it."""
    passes: float = 1
    """Mean number of times that a packet goes through the switch, recirculations included."""

    @property
    def batch(self) -> Batch:
        """All packets, as the native engine takes them in one call."""
        return Batch.of(self.packets)

    def configure(self, model: Model) -> Model:
        """Write entries, groups and clone sessions to a switch, send the opening packets, and return the switch."""
        self.config.install(model)
        for port, frame in self.opening:
            model.process(port, frame)
        return model


@dataclass(frozen=True, kw_only=True)
class Bursts(Workload):
    """The workload of a collective: packets that ranks send in bursts, without loss."""

    spec: CollectiveSpec
    edges: tuple[Edge, ...]
    """Edges by rank, spread over the ports and thereby over the pipelines."""
    burst: int
    """Number of data packets in a burst, of all ranks together. A program's window holds ``spec.window`` bursts."""
    answers: int
    """Number of packets at the end of a burst with which ranks acknowledge its results."""


class ByHand(Protocol):
    """A hand-written loop outside p4gen that processes the same workload as a program."""

    def reset(self) -> None:
        """Forget what was processed: the next run begins with the first packet."""

    def run(self) -> int:
        """Process the whole workload. Returns the number of output frames."""

    def packets(self, count: int) -> list[tuple[int, bytes]]:
        """The first ``count`` output frames, as (port, frame)."""


@dataclass(frozen=True)
class Benchmark(Facet, Generic[OwnSpec]):
    """What a family supplies for benchmarks of its programs."""

    module: ClassVar[str] = "bench"

    workloads: Callable[[OwnSpec, int, int], tuple[Workload, ...]]
    """A function from spec, number of packets (approximate) and seed to the workloads of a program, one or more. Raises
    ``InputError`` for a program that has no room for hosts."""
    by_hand: Callable[[Workload, Path], ByHand | str] = lambda _work, _folder: "the family has no such loop"
    """A function that builds the loop in a folder, or the reason why there is none. Raises ``FailedError`` if it does
    not build."""


def benchmark_of(spec: ProgramSpec) -> Benchmark[Any]:
    """What a spec's family supplies for benchmarks. Raises ``InputError`` if it supplies nothing."""
    return family_of(spec).facet(Benchmark)


def workloads(spec: ProgramSpec, packets: int, seed: int) -> tuple[Workload, ...]:
    """The workloads of a program. Raises ``InputError`` if there is none."""
    return benchmark_of(spec).workloads(spec, packets, seed)


def bursts(spec: CollectiveSpec, packets: int, seed: int) -> Bursts:
    """The workload of a collective. Raises ``InputError`` if there is none."""
    for work in workloads(spec, packets, seed):
        if isinstance(work, Bursts):
            return work
    raise InputError(f"{spec.program}: its family supplies no load of a collective")


def dropped(spec: ProgramSpec, symbol: str) -> tuple[str, int]:
    """The counter of a drop reason (``DropReason.symbol``)."""
    return "IncIngress.drops", next(drop.index for drop in compose(spec).drops if drop.symbol == symbol)
