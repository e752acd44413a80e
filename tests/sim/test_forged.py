"""A host that sends in another's name during a collective: nothing changes but a counter."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import Simulation
from p4gen.net.world.watching import Passage
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.rocev2.packet import parse
from p4gen.vocabulary.topology import load_topology

FORGER = 0
"""The port of h0."""


@pytest.mark.parametrize("mode", Mode)
def test_what_one_host_sends_for_another_is_dropped(mode: Mode, seed: int) -> None:
    """Everything that h2 sends in a while comes first from h0, with other data."""
    spec = EpicSpec(mode=mode, lanes=8, fan_in=4)
    simulation = Simulation(SimConfig(load_topology("star-4"), spec, size=4096, engine="interp", seed=seed))
    switch = simulation.network.nodes["s0"]
    forged: Counter[int] = Counter()

    def forge(passage: Passage) -> None:
        if (passage.src, passage.dst) == ("h2", "s0") and forged.total() < 40:
            packet = parse(passage.frame)
            other = replace(packet, payload=bytes(byte ^ 7 for byte in packet.payload))
            forged[packet.bth.opcode] += 1
            switch.port(FORGER)(passage.sent + 1, other.sealed().to_bytes())

    simulation.network.watch(forge)
    result = simulation.run()
    assert (result.ended, result.correct) == (True, True), result.errors
    assert len(forged) >= 3, "contributions, an announcement, answers"
    assert result.drops["s0 LookupTable.wrong_port"] == forged.total()
