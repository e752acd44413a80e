"""Retransmission timers that follow what round trips take: by hand, and between two NICs far apart."""

from __future__ import annotations

import random

import pytest

from p4gen.compiled import roundtrips
from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.compiled.nics import CompiledNic
from p4gen.host.transport.clock import MS, US
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.host.transport.verbs import Completion, Peer, QpConfig, Recovery, RecvWr, SendWr

LEAST = 50 * MS


class Trips:
    """The timer of a queue pair that nothing is sent on: what happens to it is said by hand."""

    def __init__(self, least: int) -> None:
        self.hosts = CompiledHosts(128, 1)
        config = QpConfig(timeout_ps=least, adaptive=True)
        self.hosts.add(1, 1).create_pair(1, Peer(2, 2, 2), config, lambda _: None)

    @property
    def timeout(self) -> int:
        return int(self.hosts.world.pairs["timeout"][0])

    @property
    def seq(self) -> int:
        """The packet that is timed; -1 if none is."""
        return int(self.hosts.world.trips["seq"][0])

    def send(self, seq: int, since: int = 0) -> None:
        self.hosts.world.trips["seq"][0], self.hosts.world.trips["since"][0] = seq, since

    def acknowledged(self, upto: int, now: int, late: int = 0) -> None:
        self.hosts.loop.late, self.hosts.world.all["now"] = late, now
        roundtrips.acknowledged(self.hosts.world.place, 0, upto)

    def expired(self, late: int = 0) -> None:
        self.hosts.loop.late = late
        roundtrips.expired(self.hosts.world.place, 0)


def timed(trips: Trips, took: int) -> int:
    trips.send(7, 1_000)
    trips.acknowledged(8, 1_000 + took)
    assert trips.seq == -1
    return trips.timeout


def test_four_times_the_shortest_of_the_last_eight() -> None:
    trips = Trips(LEAST)
    assert trips.timeout == 4 * LEAST  # nothing is known
    assert timed(trips, 40 * MS) == 160 * MS
    assert timed(trips, 20 * MS) == 80 * MS
    for _ in range(7):
        assert timed(trips, 30 * MS) == 80 * MS
    assert timed(trips, 30 * MS) == 120 * MS


def test_never_less_than_the_least_nor_more_than_four_times_it() -> None:
    trips = Trips(LEAST)
    assert timed(trips, 5_000 * MS) == 4 * LEAST
    assert timed(trips, 1 * MS) == LEAST


def test_patience_doubles_until_something_is_timed() -> None:
    trips = Trips(LEAST)
    timed(trips, 15 * MS)
    assert trips.timeout == 60 * MS
    waits = []
    for _ in range(3):
        trips.send(3)
        trips.expired()
        assert trips.seq == -1, "an ACK that comes now may be for either copy"
        waits.append(trips.timeout)
    assert waits == [120 * MS, 200 * MS, 200 * MS]
    assert timed(trips, 15 * MS) == 60 * MS


def test_patience_ends_when_acknowledgements_come_though_none_can_be_timed() -> None:
    trips = Trips(LEAST)
    timed(trips, 15 * MS)
    for _ in range(2):
        trips.expired()
    waits = []
    for upto in range(10, 19):
        trips.acknowledged(upto, 0)
        waits.append(trips.timeout)
    assert waits == [200 * MS] * 7 + [60 * MS] * 2


class Wire:
    """Two NICs with one pair each; a frame takes ``delay``, and with a chance of ``loss`` does not come."""

    def __init__(
        self,
        delay: int,
        *,
        adaptive: bool,
        loss: float = 0.0,
        seed: int = 0,
        recovery: Recovery = Recovery.SELECTIVE_REPEAT,
        room: int = 16,
    ) -> None:
        self.delay, self.loss = delay, loss
        hosts = CompiledHosts(512, 2)
        self.loop = hosts.loop
        self.chance = random.Random(seed)
        self.completed: list[Completion] = []
        self.finished = 0
        """When the last completion came."""
        config = QpConfig(
            mtu=8, recovery=recovery, max_outstanding=room, timeout_ps=1 * MS, retry_count=None, rnr_retry=None,
            adaptive=adaptive,
        )  # fmt: skip
        self.nics = [hosts.add(0x02_0000 + i, 0x0A00_0000 + i) for i in range(2)]
        for i, nic in enumerate(self.nics):
            far = self.nics[1 - i]
            nic.line = _Direction(self, far)
            nic.create_pair(1, Peer(far.mac, far.ip, 1, udp_src_port=0xC000), config, self._complete)
        self.sender, self.receiver = (nic.pairs[1] for nic in self.nics)

    def _complete(self, completion: Completion) -> None:
        self.completed.append(completion)
        self.finished = self.loop.now

    def exchange(self, messages: int) -> bytes:
        """Send messages of 32 bytes one after the other, ten under way; what has arrived."""
        rooms = [bytearray(32) for _ in range(messages)]
        for i, room in enumerate(rooms):
            self.receiver.post_recv(RecvWr(i, memoryview(room)))
            self.sender.post_send(SendWr(i, bytes([i & 0xFF]) * 32))
        self.loop.run(until=self.loop.now + 100_000 * MS)
        assert len(self.completed) == 2 * messages
        return b"".join(rooms)


class _Direction:
    def __init__(self, wire: Wire, far: CompiledNic) -> None:
        self.wire, self.far = wire, far

    def transmit(self, frame: bytes, at: int) -> int:
        if self.wire.chance.random() >= self.wire.loss:
            self.wire.loop.at(at + self.wire.delay, self.far.receive, frame)
        return at + 1 * US


def wanted(messages: int) -> bytes:
    return b"".join(bytes([i & 0xFF]) * 32 for i in range(messages))


def test_a_far_end_that_is_slower_than_the_timer_is_waited_for() -> None:
    """Round trips of 3 ms, a timer of 1 ms: a fixed one sends all again and again, one that adapts sends all once."""
    resent = {}
    for adaptive in (False, True):
        wire = Wire(1500 * US, adaptive=adaptive)
        assert wire.exchange(200) == wanted(200)
        resent[adaptive] = wire.sender.requester.stats.resent
    assert resent[True] == 0
    assert resent[False] > 200


@pytest.mark.parametrize("loss", [0.02, 0.2])
def test_what_is_lost_is_still_sent_again_soon(loss: float, seed: int) -> None:
    times = {}
    for adaptive in (False, True):
        wire = Wire(20 * US, adaptive=adaptive, loss=loss, seed=seed)
        assert wire.exchange(400) == wanted(400)
        times[adaptive] = wire.finished
    assert times[True] < 5 * times[False] + 16 * MS, times


def test_one_packet_asks_whether_a_receiver_is_ready() -> None:
    """It is not for 5 ms, and says so every 10 us: whole windows would be refused each time."""
    resent = {}
    for adaptive in (False, True):
        wire = Wire(1 * US, adaptive=adaptive)
        room = [bytearray(32) for _ in range(10)]
        for i in range(10):
            wire.sender.post_send(SendWr(i, bytes([i]) * 32))
        wire.loop.run(until=5 * MS)
        for i in range(10):
            wire.receiver.post_recv(RecvWr(i, memoryview(room[i])))
        wire.loop.run(until=1_000 * MS)
        assert b"".join(room) == wanted(10)
        stats = wire.sender.requester.stats
        resent[adaptive] = stats.resent / stats.rnr_naks
    assert resent[True] < 1.5
    assert resent[False] > 6


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("recovery", [Recovery.SELECTIVE_REPEAT, Recovery.GO_BACK_N])
@pytest.mark.parametrize(("room", "packets"), [(16, 64), (128, 64), (24, 40), (16, 4)])
def test_nobody_waits_for_a_timer_where_nothing_is_lost(
    adaptive: bool, recovery: Recovery, room: int, packets: int
) -> None:
    """Receives are posted late, so that messages are refused and windows begin anew inside of them: whatever window
    there is, something in it asks for an ACK."""
    wire = Wire(1 * US, adaptive=adaptive, recovery=recovery, room=room)
    rooms = [bytearray(8 * packets) for _ in range(10)]
    for i, buffer in enumerate(rooms):
        wire.sender.post_send(SendWr(i, bytes([i]) * len(buffer)))
        wire.loop.at((i + 1) * 50 * US, wire.receiver.post_recv, RecvWr(i, memoryview(buffer)))
    wire.loop.run(until=100 * MS)
    assert rooms == [bytes([i]) * 8 * packets for i in range(10)]
    assert len(wire.completed) == 20
    stats = wire.sender.requester.stats
    assert stats.rnr_naks > 0
    assert stats.timeouts == 0


def test_on_a_busy_machine_it_waits_longer() -> None:
    trips, late = Trips(LEAST), 40 * MS
    waits = []
    for _ in range(3):
        trips.expired(late)
        waits.append(trips.timeout)
    assert waits == [400 * MS, 640 * MS, 640 * MS]
    trips.send(7)
    trips.acknowledged(8, 150 * MS, late)
    assert trips.timeout == 600 * MS
    trips.send(8)
    trips.acknowledged(9, 150 * MS)
    assert trips.timeout == 4 * LEAST, "the machine is idle again"
    for _ in range(9):
        trips.expired(10_000 * MS)
    assert trips.timeout == 64 * LEAST


@pytest.mark.parametrize("late", [0, 1 * MS])
def test_what_is_slow_because_the_machine_is_busy_is_not_sent_again_for_ever(late: int) -> None:
    wire = Wire(3 * MS, adaptive=True)
    wire.loop.late = late
    wire.exchange(50)
    if late:
        assert wire.sender.requester.stats.resent <= 16, "the first window, before anything is timed"
    else:
        assert wire.sender.requester.stats.resent > 50


def test_how_late_timers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0
    monkeypatch.setattr("time.monotonic_ns", lambda: now)
    loop = RealTimeLoop()
    for due, ran in ((1, 1), (2, 72), (80, 80)):
        loop.at(due * MS, lambda _: None)
        now = ran * 1_000_000
        loop.turn()
    assert 60 * MS < loop.late < 70 * MS
    for turn in range(100, 200):
        loop.at(turn * MS, lambda _: None)
        now = turn * 1_000_000
        loop.turn()
    assert loop.late < 1 * MS
    loop.close()
