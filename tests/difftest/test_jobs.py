"""Random traffic of programs with jobs reaches every reason to drop a packet, and copies results."""

from __future__ import annotations

import pytest

from p4gen.difftest.events import Packet, Replication, Request
from p4gen.difftest.family import traffic_of
from p4gen.model import Model
from p4gen.papers.atp.conformance import small as atp
from p4gen.papers.switchml.conformance import small as switchml
from p4gen.program import compose
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import ProgramSpec

ARP = {"AnswerArp.not_ours"}
"""Of ordinary traffic, which is alike for all families."""


@pytest.mark.parametrize(
    ("spec", "copies", "unreached"),
    [
        # Sums to the server, and two copies of a result.
        (atp(), {0, 1, 2}, ARP),
        # An answer to one worker, and sums to two and three.
        (switchml(offsets="checked"), {0, 1, 2, 3}, ARP | {"Forward.ttl_expired"}),
        (switchml(offsets="carried"), {0, 1, 2, 3}, ARP | {"Forward.ttl_expired"}),
        # Entries of jobs are removed now and then only.
        (switchml(transport="roce"), {0, 1, 2, 3}, ARP | {"Forward.ttl_expired", "FindJob.not_served"}),
    ],
    ids=lambda given: given.program if isinstance(given, ProgramSpec) else "",
)
def test_every_reason_is_reached(
    spec: ProgramSpec, copies: set[int], unreached: set[str], pytestconfig: pytest.Config
) -> None:
    seed = pytestconfig.getoption("--seed")
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
    assert missed <= unreached, seed
    assert sent == copies, seed
