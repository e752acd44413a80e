"""ATP's random traffic reaches every reason to drop a packet, and copies results."""

from __future__ import annotations

import pytest

from p4gen.difftest.events import Packet, Replication, Request
from p4gen.difftest.family import traffic_of
from p4gen.model import Model
from p4gen.papers.atp.conformance import small
from p4gen.program import compose
from p4gen.program.compilation import compile_spec

FORGED = {"AnswerArp.not_ours"}
"""Of ordinary traffic, which is alike for all families."""


def test_every_reason_is_reached(pytestconfig: pytest.Config) -> None:
    spec, seed = small(), pytestconfig.getoption("--seed")
    source = traffic_of(spec).source(spec, seed)
    switch = Model(compile_spec(spec).program)
    left, sent = 6000, set()
    events = [*source.setup()]
    stream = source.packets()
    while left:
        event = events.pop(0) if events else next(stream)
        match event:
            case Request("insert", entry):
                switch.insert(entry)
            case Request("modify", entry):
                switch.modify(entry)
            case Request(_, entry):
                switch.delete(entry)
            case Replication(group):
                switch.set_multicast_group(group)
            case Packet(port, frame, _):
                left -= 1
                sent.add(len(switch.process(port, frame)))
    drops = {gress: switch.counters(f"Inc{gress.capitalize()}.drops") for gress in ("ingress", "egress")}
    missed = {
        f"{drop.module.name}.{drop.drop.reason}"
        for drop in compose(spec).drops
        if not drops[drop.module.gress][drop.index].packets
    }
    assert missed <= FORGED, seed
    assert sent == {0, 1, 2}, seed  # sums to the server, and two copies of a result
