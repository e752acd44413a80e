"""What is said of traffic that does not end. The retransmission timer is off, and one packet is lost."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest

from p4gen.net.collectives.state import connection_state
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.world.faults import DirectionFaults, Fate
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.themis.spec import Evidence, Spread, ThemisSpec
from p4gen.papers.themis.state import queued
from p4gen.rocev2.places import IPV4
from p4gen.vocabulary.topology import load_topology

PACKETS = 24
NEEDED: dict[str, Any] = {"paths": 2, "path_sets": 1, "connections": 4, "ports": 4}
QUEUE = ThemisSpec(queue=16, queue_banks=4, **NEEDED)
CLASSES = ThemisSpec(evidence=Evidence.CLASSES, **NEEDED)


def simulation(program: ThemisSpec | EpicSpec = QUEUE, *, lost: int, place: str = "h0>leaf0") -> TrafficSimulation:
    """A flow of 24 packets from h0 to h2 over two spines; of packet ``lost`` every copy is."""
    flow = Traffic(Pattern.FLOW, ("h0", "h2"), PACKETS * 1024)
    config = TrafficConfig(load_topology("clos:2x2x2"), program, (flow,), timeout=0, ack_every=4, seed=1)
    made = TrafficSimulation(config)
    (track,) = made.tracks
    psn, qp = track.source.requester.psn(lost), track.source.peer.qp
    direction = next(each for each in made.network.directions.values() if each.name == place)

    class Losing(DirectionFaults):
        def fate(self, frame: bytes, now: int) -> Fate:
            lost = int.from_bytes(frame[IPV4.psn]) == psn and int.from_bytes(frame[IPV4.dest_qp]) == qp
            return Fate((), "test") if lost else super().fate(frame, now)

    direction.faults = Losing(random.Random(1), (), (), (), made.network.kinds)
    return made


def psn_of(made: TrafficSimulation, number: int) -> str:
    return f"{made.tracks[0].source.requester.psn(number):#08x}"


def test_a_blocked_nack_is_seen_to_wait() -> None:
    """The last but one is lost; the last one comes by the other path, and none by its own."""
    made = simulation(lost=PACKETS - 2)
    result = made.run()
    assert not result.ok
    assert "deadlock: no packet is in flight and no timer runs" in result.stuck[0]
    missing, last = psn_of(made, PACKETS - 2), psn_of(made, PACKETS - 1)
    path = int(missing, 16) % 2
    assert result.stuck[1:] == (
        f"h0>h2 waits for the ACK of PSN {psn_of(made, PACKETS - 4)} and of 3 more; the receiver expects PSN {missing}",
        f"PSN {missing} was lost on h0>leaf0 (test)",
        f"leaf1, h0>h2: PSN {missing}, by path {path}, has not passed; larger PSNs that have: 1, by its path: 0 "
        f"(queue of 16 PSNs, the newest {last})",
        f"leaf1, h0>h2: the NACK of PSN {missing} is blocked, until this PSN passes, or a larger one by path {path} "
        "shows that it is lost",
    )


def test_a_lost_last_packet_leaves_nothing_blocked() -> None:
    made = simulation(lost=PACKETS - 1)
    result = made.run()
    queue, nack = result.stuck[-2:]
    newest = psn_of(made, PACKETS - 2)
    assert queue.endswith(f"larger PSNs that have: 0, by its path: 0 (queue of 16 PSNs, the newest {newest})")
    assert nack == "leaf1, h0>h2: no NACK is blocked"


def test_a_packet_lost_after_the_switch_has_passed() -> None:
    result = simulation(lost=PACKETS - 1, place="leaf1>h2").run()
    assert any(" has passed; larger PSNs that have: 0" in line for line in result.stuck)
    assert any("was lost on leaf1>h2 (test)" in line for line in result.stuck)


def test_classes_have_the_newest_psn_of_the_path() -> None:
    made = simulation(CLASSES, lost=PACKETS - 2)
    result = made.run()
    missing, before = psn_of(made, PACKETS - 2), psn_of(made, PACKETS - 4)
    known, blocked = result.stuck[-2:]
    # What came before the connection's first packet is a gap.
    gap = f"its newest gap is after 0x[0-9a-f]{{6}}, up to {psn_of(made, -2)}"
    path = int(missing, 16) % 2
    assert re.fullmatch(
        f"leaf1, h0>h2: PSN {missing}, by path {path}: the newest of its path is {before}; {gap}", known
    )
    assert f"the NACK of PSN {missing} is blocked" in blocked


def test_classes_have_the_newest_gap() -> None:
    """The NACK of a packet in a gap passes; its second copy is lost as well."""
    made = simulation(CLASSES, lost=PACKETS - 6)
    known, blocked = made.run().stuck[-2:]
    missing, before = psn_of(made, PACKETS - 6), psn_of(made, PACKETS - 8)
    assert known.endswith(f"{psn_of(made, PACKETS - 2)}; its newest gap is after {before}, up to {missing}")
    assert blocked == "leaf1, h0>h2: no NACK is blocked"


def test_the_queue_has_the_newest_psns_in_order() -> None:
    made = simulation(lost=PACKETS - 1)
    made.run()
    (here,) = (each for each in made.placement.connections["leaf1"] if each.destination_port is not None)
    switch, requester = made.network.switches["leaf1"], made.tracks[0].source.requester
    first = [requester.psn(number) for number in range(PACKETS - 2, PACKETS - 18, -1)]
    assert sorted(queued(QUEUE, switch, here, first[0])) == sorted((psn, psn % 2) for psn in first)
    other = replace(here, epoch=2)
    assert queued(QUEUE, switch, other, first[0]) == []
    assert connection_state(QUEUE, switch, other, first[0]) == (
        "nothing is known of the connection: no request for it has passed",
        "no NACK is blocked",
    )


@pytest.mark.parametrize(
    "program", [EpicSpec(lanes=8, window=1, message=1, groups=1), ThemisSpec(spread=Spread.ECMP, **NEEDED)]
)
def test_programs_that_keep_nothing_of_connections_say_nothing(program: ThemisSpec | EpicSpec) -> None:
    result = simulation(program, lost=PACKETS - 1).run()
    assert [line.partition(" ")[0] for line in result.stuck[1:]] == ["h0>h2", "PSN"]


def test_what_ends_is_not_stuck() -> None:
    result = simulation(lost=PACKETS).run()
    assert result.ok
    assert result.stuck == ()
