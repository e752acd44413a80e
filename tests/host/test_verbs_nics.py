"""What every NIC with verbs does: ours, and a device of this host, if P4GEN_VERBS names one that has an IPv4 address;
its queue pairs are connected with each other."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pytest

from p4gen.host.collectives.commlib import SYMMETRIC, Communicator, Connection, Flow, GroupConfig, Invocation
from p4gen.host.transport.clock import MS
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.host.transport.verbs import Completion, Operation, Peer, QpConfig, RecvWr, SendWr, Status
from p4gen.vocabulary.message import Collective

MTU: Final = 256
PATIENCE_S: Final = 20.0
IPV4: Final = "0000:0000:0000:0000:0000:ffff:"
"""How the GID of an IPv4 address begins."""
DEPTH: Final = 16
"""Work requests that a queue of the device holds here: fewer than tests post."""
Done = list[Completion]


class Ends(Protocol):
    """Two NICs, or one twice, whose packets reach each other."""

    nics: tuple[VerbsNic, VerbsNic]
    ips: tuple[int, int]
    macs: tuple[int, int]

    def number(self) -> int:
        """The number of a queue pair that nobody has."""

    def run(self, until: Callable[[], bool]) -> None:
        """Let time pass until something is so; fails if it does not become so."""

    def close(self) -> None:
        """Release what is held."""


class Ours(Ends):
    def __init__(self) -> None:
        fabric = importlib.import_module("tests.host.fabric")  # compiled code, which not every host has
        self._fabric = fabric.Fabric(2)
        one, other = self._fabric.nics
        self.nics, self.ips, self.macs = (one, other), (one.ip, other.ip), (one.mac, other.mac)
        self._numbers = count(0x20)

    def number(self) -> int:
        return next(self._numbers)

    def run(self, until: Callable[[], bool]) -> None:
        loop = self._fabric.loop
        for _ in range(1000):
            if until():
                return
            loop.run(until=loop.now + MS)
        raise AssertionError("it has not become so in a second")

    def close(self) -> None:
        """Nothing is held."""


class Device(Ends):
    def __init__(self, name: str) -> None:
        device = importlib.import_module("p4gen.host.device.verbs")
        gids = (gid.read_text().strip() for gid in Path(f"/sys/class/infiniband/{name}/ports/1/gids").iterdir())
        ip = next(int(gid.replace(":", ""), 16) & 0xFFFFFFFF for gid in gids if gid.startswith(IPV4))
        self._loop = RealTimeLoop()
        self.station = device.VerbsStation(self._loop, name, ip, pairs=12, depth=DEPTH)
        self.nics, self.ips, self.macs = (self.station.nic, self.station.nic), (ip, ip), (0, 0)
        spans = self.station.info().queue_pairs
        self._numbers = (number for first, end in spans for number in range(first, end))

    def number(self) -> int:
        return next(self._numbers)

    def run(self, until: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not until():
            assert time.monotonic() < end
            self._loop.at(self._loop.now + 20 * MS, lambda _: None)
            self._loop.turn()

    def close(self) -> None:
        self.station.close()
        self._loop.close()


@pytest.fixture(params=["ours", "device"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    said = os.environ.get("P4GEN_VERBS", "")
    if request.param == "device" and not said:
        pytest.skip("P4GEN_VERBS names no verbs device")
    made = Ours() if request.param == "ours" else Device(said)
    yield made
    made.close()


def connections(ends: Ends, **more: Any) -> list[tuple[int, Peer, QpConfig]]:
    """A connection's two ends."""
    numbers = [ends.number(), ends.number()]
    config = QpConfig(**({"mtu": MTU, "initial_psn": 0xFFFFF0, "timeout_ps": 100 * MS, "rnr_timer": 14} | more))
    return [(numbers[i], Peer(ends.macs[1 - i], ends.ips[1 - i], numbers[1 - i]), config) for i in range(2)]


def connected(ends: Ends, **more: Any) -> tuple[VerbsPair, Done, VerbsPair, Done]:
    found: list[Any] = []
    for nic, connection in zip(ends.nics, connections(ends, **more), strict=True):
        done: Done = []
        found += [nic.create_pair(*connection, done.append), done]
    return found[0], found[1], found[2], found[3]


def pattern(size: int, start: int = 1) -> bytes:
    return bytes((start + i) % 251 for i in range(size))


def test_messages_arrive_in_order_whatever_their_size(ends: Ends) -> None:
    sender, sent, receiver, received = connected(ends)
    sizes = [0, 1, MTU, MTU + 1, 5 * MTU + 3, 0, 7]
    rooms = [bytearray(6 * MTU) for _ in sizes]
    for number, room in enumerate(rooms):
        receiver.post_recv(RecvWr(number, room))
    for number, size in enumerate(sizes):
        sender.post_send(SendWr(100 + number, pattern(size, number), 0xABCD0000 + number if number % 2 else None))
    ends.run(lambda: len(sent) == len(received) == len(sizes))
    assert sent == [Completion(100 + number, Status.SUCCESS) for number in range(len(sizes))]
    assert received == [
        Completion(number, Status.SUCCESS, True, size, 0xABCD0000 + number if number % 2 else None)
        for number, size in enumerate(sizes)
    ]
    for number, (size, room) in enumerate(zip(sizes, rooms, strict=True)):
        assert room[:size] == pattern(size, number)
        assert not any(room[size:])
    assert sender.counts()["sent"] == 1 + 1 + 1 + 2 + 6 + 1 + 1
    assert sender.broken is None


def test_parts_of_arrays_are_sent_and_received_where_they_are(ends: Ends) -> None:
    sender, sent, receiver, received = connected(ends)
    values, room = np.arange(4096, dtype=np.uint32), np.zeros(4096, np.uint32)
    parts = [slice(start, start + 128) for start in range(0, 4096, 128)]
    for number, part in enumerate(parts):
        receiver.post_recv(RecvWr(number, room[part].view(np.uint8).data))
    for number, part in enumerate(parts):
        sender.post_send(SendWr(number, values[part].view(np.uint8).data.toreadonly()))
    ends.run(lambda: len(sent) == len(received) == len(parts))
    assert [each.wr_id for each in received] == [*range(len(parts))]
    np.testing.assert_array_equal(room, values)


def test_a_message_waits_for_a_receiver_that_is_not_ready(ends: Ends) -> None:
    sender, sent, receiver, received = connected(ends, rnr_retry=None)
    sender.post_send(SendWr(1, pattern(10)))
    ends.nics[0].clock.at(ends.nics[0].clock.now + 50 * MS, lambda _: receiver.post_recv(RecvWr(2, room)))
    room = bytearray(10)
    ends.run(lambda: bool(sent and received))
    assert room == pattern(10)


def test_writes_go_to_registered_memory_and_nowhere_else(ends: Ends) -> None:
    sender, sent, receiver, received = connected(ends)
    memory, hidden = bytearray(1000), bytearray(100)
    region = ends.nics[1].domain.register(memory)
    closed = ends.nics[1].domain.register(hidden, remote_write=False)
    receiver.post_recv(RecvWr(9))
    sender.post_send(SendWr(1, pattern(600), None, region.rkey, region.address + 300))
    sender.post_send(SendWr(2, pattern(20), 77, region.rkey, region.address))
    ends.run(lambda: len(sent) == 2 and len(received) == 1)
    assert received[0][:2] == (9, Status.SUCCESS)
    assert received[0].immediate == 77
    assert memory == pattern(20) + bytes(280) + pattern(600) + bytes(100)
    sender.post_send(SendWr(3, pattern(20), None, closed.rkey, closed.address))
    sender.post_send(SendWr(4, pattern(20), None, region.rkey, region.address))
    ends.run(lambda: len(sent) == 4)
    assert sent[2:] == [Completion(3, Status.REMOTE_ACCESS_ERROR), Completion(4, Status.FLUSHED)]
    assert sender.broken is Status.REMOTE_ACCESS_ERROR
    assert not any(hidden)
    for each in (region, closed):
        ends.nics[1].domain.deregister(each)


def test_reads_and_atomic_operations(ends: Ends) -> None:
    sender, sent, _, _ = connected(ends)
    memory = bytearray(pattern(1000))
    memory[:8] = (1000).to_bytes(8, "little")
    region = ends.nics[1].domain.register(memory)
    room, old, older = bytearray(700), bytearray(8), bytearray(8)
    at = region.address
    sender.post_send(SendWr(1, memoryview(room), None, region.rkey, at + 200, operation=Operation.READ))
    sender.post_send(SendWr(2, memoryview(old), None, region.rkey, at, False, Operation.FETCH_ADD, 5))
    sender.post_send(SendWr(3, memoryview(older), None, region.rkey, at, False, Operation.COMPARE_SWAP, 7, 1005))
    with pytest.raises(ValueError, match="cannot be stored"):
        sender.post_send(SendWr(4, bytes(8), None, region.rkey, at, operation=Operation.READ))
    ends.run(lambda: len(sent) == 3)
    assert [each.status for each in sent] == [Status.SUCCESS] * 3
    assert room == pattern(1000)[200:900]
    assert [int.from_bytes(each, "little") for each in (old, older, memory[:8])] == [1000, 1005, 7]


def test_a_pair_that_fails_flushes_all_and_can_be_made_again(ends: Ends) -> None:
    ways = connections(ends, timeout_ps=0, retry_count=None, rnr_retry=None)
    done: Done = []
    near = ends.nics[0].create_pair(*ways[0], done.append)
    far = ends.nics[1].create_pair(*ways[1], lambda _: None)
    for number in range(2 * DEPTH):
        near.post_recv(RecvWr(number, bytearray(10)))
        near.post_send(SendWr(number, bytes(10)))
    near.fail(Status.RETRY_EXCEEDED)
    assert near.broken is Status.RETRY_EXCEEDED
    sends, receives = ([each for each in done if each.receive is kind] for kind in (False, True))
    flushed = [Completion(number, Status.FLUSHED) for number in range(2 * DEPTH)]
    assert sends == [Completion(0, Status.RETRY_EXCEEDED), *flushed[1:]]
    assert receives == [each._replace(receive=True) for each in flushed]
    near.post_send(SendWr(99))
    assert done[-1] == Completion(99, Status.FLUSHED)
    for nic, pair in zip(ends.nics, (near, far), strict=True):
        nic.destroy_pair(pair)
        assert pair.number not in nic.pairs
    before = len(done)
    fresh: Done = []
    pairs = [nic.create_pair(*way, fresh.append) for nic, way in zip(ends.nics, ways, strict=True)]
    with pytest.raises(ValueError, match="in use"):
        ends.nics[0].create_pair(*ways[0], fresh.append)
    room = bytearray(10)
    pairs[1].post_recv(RecvWr(1, room))
    pairs[0].post_send(SendWr(2, pattern(10)))
    ends.run(lambda: len(fresh) == 2)
    assert {each[:3] for each in fresh} == {(1, Status.SUCCESS, True), (2, Status.SUCCESS, False)}
    assert room == pattern(10)
    assert len(done) == before


def test_a_pair_may_be_destroyed_where_it_completes(ends: Ends) -> None:
    ways = connections(ends)
    sent: Done = []

    def completed(completion: Completion) -> None:
        sent.append(completion)
        ends.nics[0].destroy_pair(pair)

    pair = ends.nics[0].create_pair(*ways[0], completed)
    received: Done = []
    far = ends.nics[1].create_pair(*ways[1], received.append)
    for number in range(2 * DEPTH):
        far.post_recv(RecvWr(number, bytearray(10)))
        pair.post_send(SendWr(number, pattern(10)))
    ends.run(lambda: bool(sent and received))
    ends.nics[0].create_pair(*ways[0], sent.append)
    assert sent == [Completion(0, Status.SUCCESS)]


def test_numbers_between_hosts_are_nobody_elses(ends: Ends) -> None:
    nic = ends.nics[0]
    numbers = [nic.own_numbers(3), nic.own_numbers(2)]
    assert len({ends.number(), *numbers[0], *numbers[1]}) == 6
    for number in numbers[0]:
        far = Peer(ends.macs[1], ends.ips[1], ends.number())
        nic.destroy_pair(nic.create_pair(number, far, QpConfig(mtu=MTU), lambda _: None))


def test_more_messages_than_a_queue_holds(ends: Ends) -> None:
    sender, sent, receiver, received = connected(ends, max_outstanding=8)
    rooms, data = np.zeros((200, 300), np.uint8), np.arange(200 * 300, dtype=np.uint32).astype(np.uint8)
    for number, room in enumerate(rooms):
        receiver.post_recv(RecvWr(number, room.data))
    for number in range(200):
        sender.post_send(SendWr(number, data[300 * number : 300 * (number + 1)].data))
    ends.run(lambda: len(sent) == len(received) == 200)
    assert [each.wr_id for each in received] == [each.wr_id for each in sent] == [*range(200)]
    np.testing.assert_array_equal(rooms.reshape(-1), data)


@pytest.mark.parametrize("flow", Flow)
def test_collectives_of_two_ranks(ends: Ends, flow: Flow) -> None:
    """Each gets what the other one gives: between them is no switch that reduces."""
    keys = [SYMMETRIC, *((kind, root) for kind in (Collective.REDUCE, Collective.BROADCAST) for root in range(2))]
    ways = [connections(ends, rnr_retry=None, retry_count=None) for _ in keys]
    ranks = []
    for rank, nic in enumerate(ends.nics):
        channels = {key: Connection(*way[rank]) for key, way in zip(keys, ways, strict=True)}
        ranks.append(Communicator(nic, GroupConfig(rank, 2, channels, window=8, message=4, flow=flow)))
    a, b = (np.random.default_rng(rank).integers(-1000, 1000, 20_000, np.int32) for rank in range(2))
    calls: list[tuple[Callable[[Communicator, Any], Invocation], list[Any]]] = [
        (lambda rank, mine: rank.all_reduce(mine), [b, a]),
        (lambda rank, mine: rank.reduce(mine, 1), [None, a + b]),
        (lambda rank, _: rank.barrier(), [None, None]),
        (lambda rank, mine: rank.broadcast(mine, 0), [a, a]),
        (lambda rank, mine: rank.reduce_scatter(mine), [(a + b)[:10_000], (a + b)[10_000:]]),
        (lambda rank, mine: rank.all_gather(mine), [np.concatenate([a, b])] * 2),
    ]
    made = [[call(rank, mine) for rank, mine in zip(ranks, (a, b), strict=True)] for call, _ in calls]
    ends.run(lambda: all(each.done for row in made for each in row))
    for row, (_, wanted) in zip(made, calls, strict=True):
        for each, want in zip(row, wanted, strict=True):
            np.testing.assert_array_equal(each.result(), want)
    for communicator in ranks:
        communicator.destroy()
