"""The real-time loop, and NICs on it that face each other over socket pairs (and, as root, over a veth pair)."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TypeVar

import numpy as np
import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError
from p4gen.host.collectives.commlib import SYMMETRIC, Communicator, Connection, GroupConfig, Invocation
from p4gen.host.raw import FramePort, RawNic
from p4gen.host.transport import realtime
from p4gen.host.transport.clock import MS, SECOND
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.host.transport.verbs import Peer, QpConfig, Recovery, SendWr
from p4gen.net.collectives.kinds import Kinds
from p4gen.net.world.faults import DirectionFaults, Fate, Impairment
from p4gen.packetio import PacketSocket
from p4gen.packetio.ip import ip

T = TypeVar("T")


# --- the loop ---


def on_loop(loop: RealTimeLoop, action: Callable[[], T]) -> T:
    """What ``action()`` gives on the loop."""
    got: Future[T] = Future()
    loop.call_soon_threadsafe(lambda _: got.set_result(action()))
    return got.result(PATIENCE_S)


def test_time_is_that_of_the_machine() -> None:
    with RealTimeLoop() as loop:
        before = time.monotonic_ns() * 1000
        seen = on_loop(loop, lambda: loop.now)
        assert before <= seen <= time.monotonic_ns() * 1000


def test_timers_run_in_order_and_not_too_early() -> None:
    with RealTimeLoop() as loop:
        ran: list[tuple[str, int]] = []
        done = threading.Event()

        def ran_at(which: tuple[str, int]) -> None:
            ran.append((which[0], loop.now - which[1]))

        def set_up(start: int) -> None:
            for name, delay in (("c", 9), ("a", 3), ("b", 3), ("d", 12)):
                due = start + delay * MS
                loop.at(due, ran_at, (name, due))
            loop.at(start + 15 * MS, lambda _: done.set())

        on_loop(loop, lambda: set_up(loop.now))
        assert done.wait(PATIENCE_S)
        assert [name for name, _ in ran] == ["a", "b", "c", "d"]
        assert all(late >= 0 for _, late in ran)


def test_calls_from_threads_keep_their_order_and_wake_the_loop() -> None:
    with RealTimeLoop() as loop:
        time.sleep(0.02)  # it waits for a minute now
        got: list[int] = []
        for number in range(1000):
            loop.call_soon_threadsafe(got.append, number)
        on_loop(loop, lambda: None)
        assert got == list(range(1000))


def test_a_timer_that_sets_itself_again_lets_others_have_their_turn() -> None:
    loop = RealTimeLoop()
    rounds = 0

    def again(_: object) -> None:
        nonlocal rounds
        rounds += 1
        loop.at(loop.now, again)

    loop.at(loop.now, again)
    for turn in range(1, 6):
        loop.turn()
        assert rounds == turn
    loop.close()


def test_an_error_ends_the_loop_and_is_told() -> None:
    loop = RealTimeLoop()
    told: list[BaseException | None] = []
    late: list[int] = []
    loop.add_stop(lambda: told.append(loop.problem))

    def crash(_: object) -> None:
        loop.call_soon_threadsafe(late.append, 1)
        raise ZeroDivisionError("a mistake")

    loop.call_soon_threadsafe(crash)
    with pytest.raises(ZeroDivisionError):
        loop.run()
    assert isinstance(told[0], ZeroDivisionError)
    assert late == [1]
    with pytest.raises(FailedError, match="loop has ended"):
        loop.call_soon_threadsafe(late.append, 2)
    loop.close()


def test_stopping_from_another_thread_wakes_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime, "_LONGEST_WAIT_MS", 1_000_000_000)
    loop = RealTimeLoop()
    loop.start()
    time.sleep(0.02)  # it waits for days now
    loop.close()


# --- NICs ---


class SocketPort:
    """One end of a socket pair; ``reads`` counts batches."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        end.setblocking(False)

    def fileno(self) -> int:
        return self.end.fileno()

    def receive(self) -> list[bytes]:
        frames: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while len(frames) < 64:
                frames.append(self.end.recv(4096))
        return frames

    def send(self, frames: Sequence[bytes]) -> int:
        for number, frame in enumerate(frames):
            try:
                self.end.send(frame)
            except OSError:
                return number
        return len(frames)


def _set(event: threading.Event, _: Invocation) -> None:
    event.set()


class Two:
    """Two ranks whose queue pairs face each other: each gets what the other gives (see test_commlib)."""

    def __init__(self, ports: Sequence[FramePort], recovery: Recovery, lanes: int = 8) -> None:
        self.loops = [RealTimeLoop() for _ in ports]
        self.nics = [
            RawNic(loop, port, 0x0200_0000_0000 + r, 0x0A00_0000 + r)
            for r, (loop, port) in enumerate(zip(self.loops, ports, strict=True))
        ]
        self.ended = [threading.Event() for _ in ports]
        self.ranks = []
        for rank, raw in enumerate(self.nics):
            far = self.nics[1 - rank].nic
            qp = QpConfig(
                mtu=4 * lanes, initial_psn=0xFFFFF0, recovery=recovery, max_outstanding=64, timeout_ps=20 * MS,
                retry_count=None, rnr_retry=None,
            )  # fmt: skip
            connection = Connection(0x20 + rank, Peer(far.mac, far.ip, 0x20 + 1 - rank), qp)
            config = GroupConfig(rank, 2, {SYMMETRIC: connection}, window=16, message=4)
            self.ranks.append(Communicator(raw.nic, config, functools.partial(_set, self.ended[rank])))

    def __enter__(self) -> Two:
        for loop in self.loops:
            loop.start()
        return self

    def __exit__(self, *_: object) -> None:
        for loop in self.loops:
            loop.close()

    def exchange(self, elements: int) -> list[Invocation]:
        calls: list[Invocation] = []
        values = [np.arange(elements, dtype=np.int32) * (rank + 3) for rank in range(2)]
        for loop, rank, mine, ended in zip(self.loops, self.ranks, values, self.ended, strict=True):
            ended.clear()
            calls.append(on_loop(loop, functools.partial(rank.all_reduce, mine)))
        for number, (call, ended) in enumerate(zip(calls, self.ended, strict=True)):
            assert ended.wait(PATIENCE_S)
            result = call.result()
            assert result is not None
            assert np.array_equal(result, values[1 - number])
        return calls


@pytest.fixture
def ports() -> Iterator[list[SocketPort]]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    yield [SocketPort(end) for end in ends]
    for end in ends:
        end.close()


def test_data_goes_both_ways_in_batches(ports: list[SocketPort]) -> None:
    with Two(ports, Recovery.SELECTIVE_REPEAT) as two:
        (call, _) = two.exchange(64 * 100)
        assert call.started is not None
        assert call.finished is not None
        assert 0 < call.finished - call.started < PATIENCE_S * SECOND
        for raw, rank in zip(two.nics, two.ranks, strict=True):
            assert not raw.nic.dropped
            assert rank.pair.counts()["sent"] >= 800


@pytest.mark.parametrize("recovery", [Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT])
def test_faults_on_both_directions_are_mended(ports: list[SocketPort], recovery: Recovery, seed: int) -> None:
    with Two(ports, recovery) as two:
        for number, raw in enumerate(two.nics):
            chance = Impairment(loss=0.03, reorder=0.03, jitter=2 * MS, duplicate=0.03, corrupt=0.01)
            raw.outgoing = DirectionFaults(random.Random(f"{seed} {number}>"), [chance], (), (), Kinds({}, {})).fate
            raw.incoming = DirectionFaults(random.Random(f"{seed} >{number}"), [chance], (), (), Kinds({}, {})).fate
        for _ in range(3):
            two.exchange(8 * 200)
        lost = two.nics[0].lost + two.nics[1].lost
        assert set(lost) == {"in loss", "out loss"}
        assert sum(raw.nic.dropped.total() for raw in two.nics)  # the corrupt ones
        assert sum(pair.responder.stats.duplicates for raw in two.nics for pair in raw.nic.pairs.values())


def test_a_full_port_loses_frames_and_says_so(ports: list[SocketPort]) -> None:
    ports[0].end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 12)
    with Two(ports, Recovery.SELECTIVE_REPEAT, lanes=128) as two:
        two.exchange(128 * 200)
        assert two.nics[0].undelivered > 0


def test_sending_a_lot_does_not_keep_a_nic_from_receiving(ports: list[SocketPort]) -> None:
    loop = RealTimeLoop()
    raw = RawNic(loop, ports[0], 1, 2, burst=8)
    pair = raw.nic.create_pair(7, Peer(3, 4, 9), QpConfig(mtu=32, max_outstanding=1000), lambda _: None)
    pair.post_send(SendWr(0, bytes(32 * 100)))
    sent = []
    for _ in range(4):
        ports[1].end.send(b"nonsense")
        before = raw.nic.dropped.total()
        loop.turn()
        assert raw.nic.dropped.total() == before + 1
        sent.append(len(ports[1].receive()))
    assert sent == [8] * 4
    raw.close()
    loop.close()


def test_what_is_for_all_is_not_for_the_nic(ports: list[SocketPort]) -> None:
    loop = RealTimeLoop()
    raw = RawNic(loop, ports[0], 1, 2)
    for first in (b"\xff", b"\x33", b"\x02"):
        ports[1].end.send(first * 60)
    loop.turn()
    assert raw.nic.dropped == {"foreign_mac": 1}
    loop.close()


def test_a_nic_that_is_closed_is_off_the_loop(ports: list[SocketPort]) -> None:
    loop = RealTimeLoop()
    raw = RawNic(loop, ports[0], 1, 2)
    raw.close()
    ports[1].end.send(b"nonsense")
    loop.at(loop.now, lambda _: None)
    loop.turn()
    assert not raw.nic.dropped
    loop.close()


@pytest.fixture
def veth() -> Iterator[tuple[str, str]]:
    if os.geteuid() != 0:
        pytest.skip("veth pairs need root")
    names = (f"pg{os.getpid() % 100000}a", f"pg{os.getpid() % 100000}b")
    try:
        ip(f"link add {names[0]} mtu 4200 type veth peer name {names[1]} mtu 4200")
    except FailedError as problem:
        pytest.skip(f"no veth pairs here: {problem.reason}")
    try:
        ip(*(f"link set {name} up" for name in names))
        yield names
    finally:
        ip(f"link del {names[0]}")


def test_over_a_veth_pair(veth: tuple[str, str]) -> None:
    one, other = (PacketSocket(name) for name in veth)
    with one, other, Two([one, other], Recovery.SELECTIVE_REPEAT, lanes=256) as two:
        two.exchange(256 * 500)
        for raw in two.nics:
            assert raw.nic.dropped.keys() <= {"not_udp_over_ipv4", "foreign_mac", "truncated"}


def test_machine_code_moves_frames_while_there_are_no_faults(veth: tuple[str, str], seed: int) -> None:
    one, other = (PacketSocket(name) for name in veth)
    with one, other, Two([one, other], Recovery.SELECTIVE_REPEAT, lanes=64) as two:
        seen = 0

        def count(frame: bytes, now: int) -> Fate:
            nonlocal seen
            seen += 1
            return losses.fate(frame, now)

        losses = DirectionFaults(random.Random(seed), [Impairment(loss=0.05)], (), (), Kinds({}, {}))
        for fault in (None, count, None):
            for direction in ("outgoing", "incoming"):
                on_loop(two.loops[0], functools.partial(setattr, two.nics[0], direction, fault))
            before = seen
            two.exchange(64 * 500)
            assert (seen > before) is (fault is not None)
        assert set(two.nics[0].lost) == {"in loss", "out loss"}


def test_frames_on_an_interface_that_are_not_for_the_nic(veth: tuple[str, str]) -> None:
    addresses = bytes.fromhex("020000000001020000000002")
    with PacketSocket(veth[0], frame_room=2048) as port, PacketSocket(veth[1]) as far, RealTimeLoop() as loop:
        raw = on_loop(loop, lambda: RawNic(loop, port, 0x0200_0000_0001, 2, frame_room=2048))
        plain = addresses + b"\x08\x00" + bytes(86)
        tagged = addresses + b"\x81\x00\x00\x07" + b"\x08\x00" + bytes(82)
        sent = [b"\xff" * 6 + plain[6:], plain, tagged, plain + bytes(4000), plain]
        assert far.send(sent) == len(sent)
        until(lambda: raw.nic.dropped.total() == 3, lambda: str(raw.nic.dropped))
        assert raw.nic.dropped == {"not_udp_over_ipv4": 3}
        assert raw.truncated == 1


def test_frames_for_an_interface_that_is_down_are_sent_again(veth: tuple[str, str]) -> None:
    one, other = (PacketSocket(name) for name in veth)
    with one, other, Two([one, other], Recovery.GO_BACK_N, lanes=64) as two:
        two.exchange(64)
        ip(f"link set {veth[0]} down")
        threading.Timer(0.3, ip, (f"link set {veth[0]} up",)).start()
        two.exchange(64 * 500)
        assert two.nics[0].undelivered > 0
