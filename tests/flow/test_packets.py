"""The simulator of flows against packets through the generated program: an AllReduce takes equally long in both."""

from __future__ import annotations

import pytest

from p4gen.net.collectives import simulation as packets
from p4gen.net.collectives.config import SimConfig
from p4gen.papers.epic.spec import EpicSpec
from p4gen.plan.flow.fabric import FatTree
from p4gen.plan.flow.jobs import Group, Job, Phase
from p4gen.plan.flow.placing import Placing
from p4gen.plan.flow.policies import POLICIES, Volume
from p4gen.plan.flow.simulate import Setting, Simulation
from p4gen.vocabulary.topology import load_topology

PROGRAM = EpicSpec(lanes=256, window=64, message=4, groups=1, ports=8, fan_in=8)
PAYLOAD = 1024
WIRE = 14 + 20 + 8 + 12 + 4 + 24
"""Bytes beside it: Ethernet, IPv4, UDP, BTH, ICRC; FCS, preamble and gap."""


def test_an_allreduce_takes_as_long_as_its_packets() -> None:
    size = 2 << 20  # 180 us, beside which the round trip of some 5 us is little
    network = load_topology("star-4")
    sent = packets.Simulation(SimConfig(network, PROGRAM, size=size, engine="jit")).run()
    assert sent.ok, sent.errors
    seconds = size * 8 / sent.throughput

    ranks = len(network.rank_hosts)
    fabric = FatTree(pods=1, leaves=1, spines=1, cores=1, hosts=ranks, bandwidth=100e9 * PAYLOAD / (PAYLOAD + WIRE))
    job = Job("j", ranks, (Group("all", tuple(range(ranks))),), (Phase(0.0, (0,), float(size)),))
    setting = Setting(fabric, POLICIES["spatial"], 1, Volume(paper=False), Placing(unit=1))
    assert Simulation(setting, [job]).run().mean_jct == pytest.approx(seconds, rel=0.05)
