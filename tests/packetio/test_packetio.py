"""Frames in batches over a veth pair: nothing lost, nothing changed, in order; and what cannot go is counted."""

from __future__ import annotations

import os
import socket

import numpy as np
import pytest
from patience import PATIENCE_S

from p4gen.errors import InputError
from p4gen.packetio import (
    Frames,
    PacketSocket,
    Receiver,
    Sender,
    link_is_up,
    open_socket,
    send,
    sending_socket,
    wait_for_links,
)
from p4gen.packetio.ip import ip
from p4gen.switch.veth import MTU

ADDRESSES = bytes.fromhex("020000000001020000000002")


def frame(number: int, size: int = 100) -> bytes:
    return (ADDRESSES + b"\x88\xb5" + number.to_bytes(4)).ljust(size, bytes([number % 251]))


def everything(found: PacketSocket, count: int) -> list[bytes]:
    taken: list[bytes] = []
    while len(taken) < count:
        more = found.receive(PATIENCE_S)
        assert more, f"only {len(taken)} of {count} frames came"
        taken += more
    return taken + found.receive(0.05)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_frames_of_all_sizes_cross_in_order(pair: tuple[str, str], one_by_one: bool, seed: int) -> None:
    sizes = np.random.default_rng(seed).integers(60, 1500, 10_000).tolist()
    sent = [frame(i, size) for i, size in enumerate(sizes)]
    with PacketSocket(pair[0], one_by_one=one_by_one) as a, PacketSocket(pair[1], one_by_one=one_by_one) as b:
        taken: list[bytes] = []
        for first in range(0, len(sent), 2000):  # no more than fit into the kernel's queue
            assert a.send(sent[first : first + 2000]) == 2000
            taken += everything(b, 2000)
        assert taken == sent
        assert b.kernel_drops() == a.undelivered == 0
        assert a.receive() == []  # what it sends does not come back


def test_vlan_tags_are_where_they_were(pair: tuple[str, str]) -> None:
    inner = frame(1)[12:]
    tags = [b"\x81\x00\x00\x07", b"\x88\xa8\xe0\x01", b"\x88\xa8\x00\x05\x81\x00\x30\x06", b""]
    sent = [ADDRESSES + tag + inner for tag in tags] * 3
    with PacketSocket(pair[0]) as a, PacketSocket(pair[1]) as b:
        assert a.send(sent) == len(sent)
        assert everything(b, len(sent)) == sent


def test_a_frame_without_room_is_dropped_alone_and_counted(pair: tuple[str, str]) -> None:
    with PacketSocket(pair[0]) as a, PacketSocket(pair[1], frame_room=200) as b:
        sent = [frame(0, 200), frame(1, 201), frame(2, 60), frame(3, 1500), frame(4, 199)]
        assert a.send(sent) == 5
        assert everything(b, 3) == [sent[0], sent[2], sent[4]]
        assert b.truncated == 2


def test_a_frame_too_long_for_the_interface_is_counted_and_the_others_go(pair: tuple[str, str]) -> None:
    with PacketSocket(pair[0]) as a, PacketSocket(pair[1]) as b:
        sent = [frame(0), frame(1, MTU + 100), frame(2), frame(3, MTU + 100), frame(4)]
        assert a.send(sent) == 3
        assert a.undelivered == 2
        assert everything(b, 3) == [sent[0], sent[2], sent[4]]


def test_an_interface_goes_down_and_comes_back(pair: tuple[str, str]) -> None:
    with PacketSocket(pair[0]) as a, PacketSocket(pair[1]) as b:
        ip(f"link set {pair[0]} down")
        assert not link_is_up(pair[0])
        assert a.send([frame(i) for i in range(3000)]) == 0
        assert a.undelivered == 3000
        assert a.receive(0.05) == []
        ip(f"link set {pair[0]} up")
        assert wait_for_links(pair)
        for one, other in ((a, b), (b, a)):
            assert one.send([frame(7), frame(8)]) == 2
            assert everything(other, 2) == [frame(7), frame(8)]


def test_what_the_kernel_drops_is_counted(pair: tuple[str, str]) -> None:
    with PacketSocket(pair[0]) as a, open_socket(pair[1], receive_buffer=1 << 16) as small:
        sent = a.send([frame(i) for i in range(2000)])
        receiver = Receiver(2048, 2048)
        receiver.receive(small.fileno(), 0, 2048)
        taken = receiver.take().listed()
        dropped = small.getsockopt(263, 6, 8)
        assert int.from_bytes(dropped[4:], "little") == sent - len(taken) > 0
        assert taken == [frame(i) for i in range(len(taken))]


def test_a_full_queue_is_tried_again_and_then_counted(pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with PacketSocket(pair[1]) as b, sending_socket() as out:
        sender = Sender(out, {4: socket.if_nametoindex(pair[0])})
        frames = Frames.of([(4, frame(i)) for i in range(5)])
        real, asked = sender._messages.send, []

        def full(file: int, first: int, count: int) -> int:
            asked.append((first, count))
            if first < 2:
                return real(file, first, 2)
            if len(asked) < 5 or (first == 2 and count == 3):
                raise OSError(105, "ENOBUFS")
            return real(file, first, count)

        looks = iter(range(100))
        monkeypatch.setattr(sender._messages, "send", full)
        monkeypatch.setattr(send._Patience, "over", lambda _: next(looks) == 3)
        lost = sender.send(frames.data.ctypes.data, frames.starts, frames.ends, frames.ports)
        assert lost.tolist() == [2]
        assert asked.count((2, 3)) == 4  # again and again, for a while
        assert everything(b, 4) == [frame(i) for i in (0, 1, 3, 4)]


def test_one_socket_sends_to_many_ports_and_skips_those_that_are_down(pair: tuple[str, str]) -> None:
    ends = dict(enumerate(pair))
    with PacketSocket(pair[0]) as a, PacketSocket(pair[1]) as b, sending_socket() as out:
        sender = Sender(out, {port: socket.if_nametoindex(name) for port, name in ends.items()})
        frames = Frames.of([(i % 3, frame(i)) for i in range(3000)])
        lost = sender.send(frames.data.ctypes.data, frames.starts, frames.ends, frames.ports)
        assert lost.tolist() == list(range(2, 3000, 3))  # there is no port 2
        assert everything(b, 1000) == [frame(i) for i in range(0, 3000, 3)]
        assert everything(a, 1000) == [frame(i) for i in range(1, 3000, 3)]
        ip(f"link set {pair[0]} down")
        lost = sender.send(frames.data.ctypes.data, frames.starts, frames.ends, frames.ports)
        assert set(range(3000)) - set(lost.tolist()) == set(range(1, 3000, 3))


def test_several_sockets_fill_one_buffer_in_the_order_of_arrival(pair: tuple[str, str]) -> None:
    with PacketSocket(pair[0]) as a, PacketSocket(pair[1]) as b:
        receiver = Receiver(64, 256)
        with open_socket(pair[0]) as at_a, open_socket(pair[1]) as at_b:
            for i in range(10):
                (a if i % 3 else b).send([frame(i)])
            assert receiver.put(b"injected", 9)
            assert not receiver.put(bytes(257), 9)
            assert receiver.receive(at_b.fileno(), 1, 4) == 4  # of six
            assert receiver.receive(at_a.fileno(), 0, 64) == 4
        # The kernel begins to stamp frames some time after the first socket has asked for it. The second frame of
        # port 1 has a stamp before the first one's: a clock that was set back.
        receiver._seconds[:9] = 5
        receiver._nanoseconds[:9] = [30, 10, 5, 50, 60, 8, 20, 30, 99]
        found = receiver.take()
        assert found.ports.tolist() == [0, 1, 1, 0, 9, 0, 1, 1, 0]
        expected = [0, 1, 2, 3, None, 6, 4, 5, 9]
        assert found.listed() == [b"injected" if i is None else frame(i) for i in expected]
        assert len(receiver.take()) == 0


def test_no_such_interface() -> None:
    if os.geteuid():
        pytest.skip("raw sockets need CAP_NET_RAW")
    with pytest.raises(InputError, match="interface nix0: no interface with this name"):
        PacketSocket("nix0")
