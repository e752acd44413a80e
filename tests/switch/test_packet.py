"""Ports on interfaces. These tests make veth pairs, and are skipped where that is not allowed."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError, MissingToolError
from p4gen.packetio import wait_for_links
from p4gen.packetio.ip import ip
from p4gen.switch.packet import PacketPorts, link_is_up

ETH_P_ALL = 3
HEADER = bytes.fromhex("020000000001020000000002")


@contextmanager
def pair(number: int, mtu: int) -> Iterator[tuple[str, str]]:
    """A veth pair, up: the switch's end and the other."""
    inner, outer = (f"p4g{os.getpid() % 100000}{number}{end}" for end in "ab")
    try:
        ip(f"link add {inner} mtu {mtu} type veth peer name {outer} mtu {mtu}")
    except (FailedError, MissingToolError) as problem:
        pytest.skip(f"veth interfaces cannot be made: {problem.reason}")
    try:
        ip(*(f"link set {name} addrgenmode none up" for name in (inner, outer)))
        assert wait_for_links((inner, outer))
        yield inner, outer
    finally:
        ip(f"link del {inner}")


@contextmanager
def peer(name: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as made:
        made.bind((name, ETH_P_ALL))
        made.settimeout(PATIENCE_S)
        yield made


def received(peer: socket.socket, size: int) -> bytes:
    """The next frame of ours: interfaces say things of their own."""
    while True:
        frame, address = peer.recvfrom(65536)
        if address[2] != socket.PACKET_OUTGOING and frame[6:12] == HEADER[6:]:
            assert len(frame) == size
            return frame


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def run(stack: ExitStack, ports: PacketPorts) -> None:
    stack.enter_context(ports)
    thread = threading.Thread(target=ports.run)
    thread.start()
    stack.callback(thread.join)
    stack.callback(ports.stop)


@pytest.mark.parametrize("mtu", [1500, 9000])
def test_frames_of_all_sizes_and_with_vlan_tags_cross(stack: ExitStack, mtu: int) -> None:
    (a, left), (b, right) = (stack.enter_context(pair(number, mtu)) for number in (0, 1))
    seen: list[bytes] = []

    def send(port: int, frame: bytes) -> list[tuple[int, bytes]]:
        if frame[6:12] != HEADER[6:]:
            return []
        seen.append(frame)
        return [(1 - port, frame)]

    ports = PacketPorts(send, {0: a, 1: b})
    run(stack, ports)
    one, two = stack.enter_context(peer(left)), stack.enter_context(peer(right))
    for size in (60, 61, 1000, mtu + 14):
        frame = (HEADER + b"\x88\xb5").ljust(size, bytes([size % 251]))
        one.send(frame)
        assert received(two, size) == frame
        two.send(frame)
        assert received(one, size) == frame
    tagged = (HEADER + b"\x81\x00\x00\x07\x88\xb5").ljust(64, b"x")
    one.send(tagged)
    two.recvfrom(65536)
    assert seen[-1] == tagged
    assert len(seen) == 9  # what the switch itself sends does not come back


def test_what_cannot_be_sent_is_counted(stack: ExitStack) -> None:
    a, left = stack.enter_context(pair(0, 1500))
    ports = PacketPorts(
        lambda port, frame: [(port, frame * 30), (7, frame)] if frame[6:12] == HEADER[6:] else [], {0: a}
    )
    run(stack, ports)
    stack.enter_context(peer(left)).send((HEADER + b"\x88\xb5").ljust(100, b"x"))
    until(lambda: len(ports.undelivered) == 2)
    assert ports.undelivered == {0: 1, 7: 1}


def test_a_link_that_goes_down_is_told(stack: ExitStack) -> None:
    a, left = stack.enter_context(pair(0, 1500))
    told: list[tuple[int, bool]] = []
    run(stack, PacketPorts(lambda *_: [], {5: a}, lambda port, up: told.append((port, up))))
    assert link_is_up(a)
    ip(f"link set {left} down")
    until(lambda: told)
    assert told == [(5, False)]
    assert not link_is_up(a)
    ip(f"link set {left} up")
    until(lambda: len(told) > 1)
    assert told == [(5, False), (5, True)]


def test_without_interfaces_frames_from_controllers_are_handled_all_the_same() -> None:
    with PacketPorts(lambda port, frame: [(port, frame), (3, frame)], {}) as ports:
        ports.inject(510, b"frame")
        ports.step(1)
        assert ports.undelivered == {510: 1, 3: 1}
