"""What compiled networks do when something is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Peer, QpConfig, Recovery, SendWr
from p4gen.model.errors import ControlError
from p4gen.net.collectives.simulation import SimConfig, Simulation
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary.topology import load_topology

SPEC = EpicSpec(lanes=8, window=2, message=2, groups=1, ports=8, fan_in=4)


def simulation() -> Simulation:
    return Simulation(SimConfig(load_topology("star-3"), SPEC, size=512, seed=1, engine="jit"))


def test_an_error_of_an_action_ends_the_run_after_its_event_and_no_later() -> None:
    made, seen = simulation(), list[int]()
    loop = made.network.loop

    def fail(_: Any) -> None:
        raise ControlError("no such table")

    loop.at(5, fail)
    loop.at(6, seen.append, 6)
    with pytest.raises(ControlError, match="no such table"):
        loop.run(until=10)
    assert (loop.now, seen) == (5, [])
    loop.run(until=10)
    assert (loop.now, seen) == (10, [6])
    assert made.run().ok


def test_a_frame_that_is_too_long_is_an_error() -> None:
    direction = simulation().network.directions["h0>s0"]
    with pytest.raises(ValueError, match="longer than those the network was made for"):
        direction.transmit(bytes(2000), 0)


def test_a_destroyed_pair_sends_nothing_more() -> None:
    made = simulation()
    nic, direction = made.network.nics["h0"], made.network.directions["h0>s0"]
    (pair,) = nic.pairs.values()
    pair.post_send(SendWr(1, bytes(4096)))
    pair.acknowledge()
    nic.destroy_pair(pair)
    assert not nic.pairs
    made.network.loop.run(until=US)
    assert direction.packets == 0
    again = nic.create_pair(pair.number, pair.peer, pair.config, lambda _: None)
    again.post_send(SendWr(1, bytes(64)))
    made.network.loop.run(until=2 * US)
    assert direction.packets > 0


def test_windows_that_no_memory_is_left_for_are_refused() -> None:
    """Selective NAKs need a time for each packet that may be outstanding: 32 windows of the longest, and no more."""
    nic = CompiledHosts(64, 1).add(1, 1)
    config = QpConfig(recovery=Recovery.IDEAL, selective_naks=True, max_outstanding=(1 << 23) - 1)
    for number in range(32):
        nic.create_pair(number, Peer(2, 2, number), config, lambda _: None)
    with pytest.raises(ValueError, match="QP 0x20: no memory is left for 8,388,608 packets"):
        nic.create_pair(32, Peer(2, 2, 32), config, lambda _: None)
    assert nic.create_pair(32, Peer(2, 2, 32), QpConfig(), lambda _: None).record == 32


def test_a_number_is_given_once() -> None:
    nic = simulation().network.nics["h0"]
    (pair,) = nic.pairs.values()
    with pytest.raises(ValueError, match="is in use"):
        nic.create_pair(pair.number, pair.peer, pair.config, lambda _: None)
