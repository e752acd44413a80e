"""What differs between the chips that TNA and T2NA stand for: ports and sizes."""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.p4 import ir

PIPES = 4
"""Pipes of the largest chips; a port's pipe is in bits 8 and 7 of its number."""
PORTS = 1 << 9
NO_PORT = 511
"""A unicast port that stands for none, as p4testgen takes it."""


@dataclass(frozen=True)
class Chip:
    """One generation of the chip."""

    cpu_port: int
    port_metadata: int
    """Bytes between the intrinsic metadata and the packet."""
    recirculation: tuple[int, ...]
    """Ports within each pipe whose output arrives at ingress again."""

    @property
    def generator(self) -> int:
        """The port within each pipe at which the packet generator's packets arrive."""
        return self.recirculation[0]


TOFINO1 = Chip(cpu_port=64, port_metadata=8, recirculation=(68, 69, 70, 71))
TOFINO2 = Chip(cpu_port=2, port_metadata=24, recirculation=(6,))


def chip_of(program: ir.Program) -> Chip:
    """T2NA is Tofino 2's own; TNA is taken as Tofino 1's, which it was made for."""
    return TOFINO2 if program.arch == "t2na" else TOFINO1


def pipe_of(port: int) -> int:
    """The pipe to which a port belongs."""
    return port >> 7 & 3
