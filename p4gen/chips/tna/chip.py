"""The differences between the chips that TNA and T2NA stand for: ports and sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from p4gen.chips.tna import PIPE_SHIFT, PIPES
from p4gen.p4 import ir
from p4gen.p4 import types as t

PORTS = 1 << 9
FCS = 4
"""Bytes of the frame check sequence, which lengths of packets include (open-p4studio's tests count so)."""
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
    application_bits: int
    """Bits of an application's number in the packet generator's headers."""
    pattern: int
    """Bytes of a recirculated packet that the packet generator compares."""
    deparser_starts: bool
    """Whether the ingress deparser can start applications of the packet generator."""
    hashes_nodes: bool
    """Whether a node's replication id has a part in the choice of a LAG's member."""

    @property
    def generator(self) -> int:
        """The port within each pipe at which the packet generator's packets arrive."""
        return self.recirculation[0]


TOFINO1 = Chip(
    cpu_port=64, port_metadata=8, recirculation=(68, 69, 70, 71), application_bits=3, pattern=4,
    deparser_starts=False, hashes_nodes=False,
)  # fmt: skip
TOFINO2 = Chip(
    cpu_port=2, port_metadata=24, recirculation=(6,), application_bits=4, pattern=16, deparser_starts=True,
    hashes_nodes=True,
)  # fmt: skip


def chip_of(program: ir.Program) -> Chip:
    """The chip that a program was compiled for. TNA programs run on both: there, queues' numbers tell them apart, and
    the packet generator's headers remain TNA's."""
    if program.arch == "t2na":
        return TOFINO2
    return replace(TOFINO2, application_bits=3) if _queue_bits(program) == QUEUE_BITS else TOFINO1


QUEUE_BITS = 7
"""The width of a queue's number on Tofino 2."""


def _queue_bits(program: ir.Program) -> int | None:
    """The width of the queue's number in egress, or in the traffic manager's metadata."""
    for block in program.blocks.values():
        for param in block.params:
            of = t.strip(param.variable.type)
            if isinstance(of, t.Fields) and of.name in _WITH_QUEUE:
                return next(t.width_of(f.type) for f in of.fields if f.name in ("egress_qid", "qid"))
    return None


_WITH_QUEUE = ("egress_intrinsic_metadata_t", "ingress_intrinsic_metadata_for_tm_t")


def pipe_of(port: int) -> int:
    """The pipe to which a port belongs."""
    return port >> PIPE_SHIFT & PIPES - 1
