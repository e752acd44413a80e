"""Which network a run has: a compiled one, if everything that the run needs is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from p4gen.model import EngineName
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Addresses, Network
from p4gen.p4 import ir
from p4gen.vocabulary.topology import TopologySpec

COMPILED: Final[tuple[EngineName, ...]] = ("interp", "jit")
"""The engines whose runs have a compiled network."""
_HEADERS: Final = 128
"""The most bytes of a frame beside its payload."""
_KEPT: Final = 4096
"""The most bytes of what a program keeps with a packet that recirculates."""
_LINE: Final = 64
"""Bytes of a processor's cache line."""


def network_for(
    topology: TopologySpec,
    placement: Addresses,
    programs: Mapping[str, ir.Program],
    faults: Faults,
    seed: int,
    engine: EngineName,
    *,
    payload: int,
) -> Network:
    """The network of a run. ``payload`` is the most bytes of a packet's data.

    Compiled networks and those in Python give the same results, event by event.
    """
    parts = topology, placement, programs, faults, seed
    if engine not in COMPILED:
        return Network(*parts, engine)
    # Numba takes a while to load, and only compiled networks need it.
    from p4gen.host.collectives.compiled import CompiledChannel  # noqa: PLC0415
    from p4gen.net.compiled.network import CompiledNetwork  # noqa: PLC0415

    frame = payload + _HEADERS + (_KEPT if topology.recirculation_delay else 0)
    network = CompiledNetwork(*parts, engine, -(-frame // _LINE) * _LINE)
    for nic in network.nics.values():
        nic.channels = CompiledChannel
    return network
