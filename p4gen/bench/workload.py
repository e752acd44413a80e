"""What a switch is measured with, and what a family of programs is asked for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from p4gen.families import Facet, family_of
from p4gen.groups.group import Edge, SwitchConfig
from p4gen.model import Model
from p4gen.model.jit import Batch
from p4gen.spec import CollectiveSpec


@dataclass(frozen=True)
class Workload:
    """A program's text, what its switch must hold, and the packets that its ranks send: bursts, none lost.

    ``opening`` is what ranks send first; it is not measured.
    """

    spec: CollectiveSpec
    text: str
    edges: tuple[Edge, ...]
    """By rank; spread over the ports, and with them over the pipelines."""
    config: SwitchConfig
    opening: tuple[tuple[int, bytes], ...]
    packets: tuple[tuple[int, bytes], ...]
    """(port, frame) in the order of their bursts."""
    burst: int
    """Data packets in a burst, those of all ranks together; a program's window holds ``spec.window`` bursts."""
    answers: int
    """Packets that end a burst, by which ranks acknowledge its results."""

    @property
    def batch(self) -> Batch:
        """The packets as a batch."""
        return Batch.of(self.packets)

    def configure(self, model: Model) -> Model:
        """Put entries, groups and clone sessions into a switch, and send the opening."""
        self.config.install(model)
        for port, frame in self.opening:
            model.process(port, frame)
        return model


class ByHand(Protocol):
    """A loop outside of p4gen that does by hand what a program does to a workload."""

    def reset(self) -> None:
        """Forget all packets."""

    def run(self) -> int:
        """Process the whole workload; gives the number of frames that come out."""

    def packets(self, count: int) -> list[tuple[int, bytes]]:
        """The first ``count`` frames that came out, as (port, frame)."""


@dataclass(frozen=True)
class Benchmark(Facet):
    """What a family's programs are measured with."""

    module: ClassVar[str] = "bench"

    workload: Callable[[Any, int, int], Workload]
    """About this many packets for a program of the family's spec, from a seed. Raises ``InputError`` for a program
    that has no room for ranks."""
    absorbed: str
    """The drop reason of a packet that nothing comes of (``DropReason.symbol``): by its counter BMv2 is measured."""
    by_hand: Callable[[Workload, Path], ByHand | str] = lambda _work, _folder: "the family has no such loop"
    """The loop, built into a folder, or why there is none. Raises ``FailedError`` if it does not build."""


def benchmark_of(spec: CollectiveSpec) -> Benchmark:
    """What a spec's family says of measuring; ``InputError`` if it says nothing."""
    return family_of(spec).facet(Benchmark)


def workload(spec: CollectiveSpec, packets: int, seed: int) -> Workload:
    """The workload of a program. Raises ``InputError`` if there is none."""
    return benchmark_of(spec).workload(spec, packets, seed)
