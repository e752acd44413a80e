"""Ticks for switches whose programs need them: v1model has no timers, ticks stand in for them (docs/modes.md)."""

from __future__ import annotations

from p4gen.groups.group import PlacedEdge
from p4gen.host.transport.verbs import Peer
from p4gen.host.transport.wire import Writer
from p4gen.rocev2 import layouts
from p4gen.rocev2.headers import AETH
from p4gen.vocabulary.ticks import OPCODE

UNIT_S = 10e-6
"""The unit of time in ticks: RNR timers are multiples of it (InfiniBand 9.7.5.2.8)."""


def tick(placed: PlacedEdge, interval_s: float) -> bytes:
    """The tick of an edge: from its far end to its near end. Its AETH holds the pipeline (syndrome) and how long the
    tick stands for, in ``UNIT_S`` (MSN); at least one."""
    units = min(max(1, round(interval_s / UNIT_S)), layouts.AETH.word.mask("msn"))
    near, far = placed.edge.local, placed.edge.remote
    writer = Writer(far.mac, far.ip, Peer(near.mac, near.ip, near.qp, placed.edge.udp_src_port))
    return writer.frame(OPCODE, 0, body=AETH(placed.pipeline, units).pack())
