"""Ports as sockets: order, large frames, slow and reconnecting peers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.errors import InputError
from p4gen.switch.unix import MAX_FRAME, Send, UnixPorts, connect, fence_path, socket_path


@contextlib.contextmanager
def running(send: Send, place: Path, ports: range = range(4)) -> Iterator[UnixPorts]:
    with UnixPorts(send, place, ports) as carrier:
        thread = threading.Thread(target=carrier.run)
        thread.start()
        try:
            yield carrier
        finally:
            carrier.stop()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def to_port_0(port: int, frame: bytes) -> list[tuple[int, bytes]]:
    return [(0, frame)]


def test_frames_go_in_and_out_whole(place: Path) -> None:
    with running(lambda port, frame: [(port ^ 1, frame)], place), connect(place, 0) as a, connect(place, 1) as b:
        for size in (1, 1500, MAX_FRAME):
            a.send(bytes([size & 0xFF]) * size)
            assert b.recv(2 * MAX_FRAME) == bytes([size & 0xFF]) * size


def test_frames_are_handled_in_the_order_they_were_sent_across_ports(place: Path) -> None:
    seen: list[int] = []
    gate = threading.Event()

    def record(port: int, frame: bytes) -> list[tuple[int, bytes]]:
        if frame == b"accepted?":
            return [(port, frame)]
        gate.wait(PATIENCE_S)
        seen.append(int.from_bytes(frame))
        return [(0, frame)] if len(seen) == 200 else []

    with running(record, place), contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connect(place, port)) for port in range(4)]
        for peer in peers:
            peer.send(b"accepted?")
            peer.recv(10)
        for number in range(200):
            peers[(number * 7) % 4].send(number.to_bytes(2))
        gate.set()
        peers[0].recv(10)
    assert seen == list(range(200))


def test_nothing_is_lost_when_a_peer_reads_late(place: Path) -> None:
    count, size = 300, 8192  # more than any socket buffer holds
    with running(to_port_0, place), connect(place, 0) as reader, connect(place, 1) as writer:
        for number in range(count):
            writer.send(number.to_bytes(2) * (size // 2))
        for number in range(count):
            assert reader.recv(size + 1) == number.to_bytes(2) * (size // 2)


def test_a_new_peer_replaces_the_old_one(place: Path) -> None:
    with running(to_port_0, place), connect(place, 1) as writer:
        with connect(place, 0) as old:
            writer.send(b"1")
            assert old.recv(10) == b"1"
        with connect(place, 0) as new:
            writer.send(b"2")
            assert new.recv(10) == b"2"
            with connect(place, 0) as newer:
                writer.send(b"3")
                assert newer.recv(10) == b"3"
                assert new.recv(10) == b"", "the replaced connection is closed"


def test_frames_without_a_peer_are_counted(place: Path) -> None:
    with running(lambda port, frame: [(3, frame), (9, frame), (0, frame)], place) as carrier, connect(place, 0) as peer:
        peer.send(b"x")
        assert peer.recv(10) == b"x"
        assert carrier.undelivered == {3: 1, 9: 1}


def test_closing_removes_the_sockets(place: Path) -> None:
    with running(to_port_0, place):
        assert socket_path(place, 3).exists()
    assert list(place.iterdir()) == []


def test_a_path_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    with pytest.raises(InputError, match="too long for a socket's address"):
        UnixPorts(to_port_0, deep, [0])


@contextlib.contextmanager
def fence(place: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(str(fence_path(place)))
        client.send(b"accepted?")
        assert client.recv(16) == b"accepted?\0\0"
        yield client


def test_a_fence_comes_back_when_everything_before_it_has_been_handled(place: Path) -> None:
    seen: list[int] = []

    def absorb(port: int, frame: bytes) -> list[tuple[int, bytes]]:
        if frame == b"accepted?":
            return [(port, frame)]
        seen.append(int.from_bytes(frame))
        return []  # nothing that comes out tells of it

    with running(absorb, place), fence(place) as client, contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connect(place, port)) for port in range(4)]
        for peer in peers:
            peer.send(b"accepted?")
            peer.recv(10)
        for number in range(200):
            peers[(number * 7) % 4].send(number.to_bytes(2))
            if number % 50 == 49:
                client.send(b"fence")
                assert client.recv(16) == b"fence\0\0"
                assert seen == list(range(number + 1))


def test_a_fence_waits_for_outputs_that_a_peer_has_no_room_for(place: Path) -> None:
    count, size = 300, 8192
    with running(to_port_0, place) as carrier, fence(place) as client, connect(place, 0) as reader:
        with connect(place, 1) as writer:
            for _ in range(count):
                writer.send(bytes(size))
        client.send(b"fence")
        client.setblocking(False)
        for _ in range(count):
            assert len(reader.recv(size + 1)) == size
            with contextlib.suppress(BlockingIOError):
                client.recv(10)
                reader.setblocking(False)  # from now on, what is to come is there
        client.setblocking(True)
        if reader.getblocking():
            assert client.recv(16) == b"fence\0\0"
        assert carrier.undelivered == {}
