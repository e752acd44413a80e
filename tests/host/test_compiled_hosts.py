"""Compiled hosts without a network: their frames go to lines in Python, or are collected."""

from __future__ import annotations

from collections.abc import Callable

from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.compiled.nics import CompiledNic
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Completion, Peer, QpConfig, RecvWr, SendWr, Status

DATA = bytes(range(250)) * 4


class Line:
    """A line on which a byte takes 80 ps, and 1 us passes until a frame arrives."""

    def __init__(self, hosts: CompiledHosts, to: CompiledNic) -> None:
        self.hosts, self.to = hosts, to
        self.sent: list[int] = []

    def transmit(self, frame: bytes, at: int) -> int:
        self.sent.append(at)
        self.hosts.loop.at(at + 1 * US, self.to.receive, frame)
        return at + 80 * len(frame)


class Two:
    """Two hosts with a queue pair each, and a message from the first to the second."""

    def __init__(self) -> None:
        self.hosts = CompiledHosts(1024, 2)
        self.one, self.other = (
            self.hosts.add(0x0200_0000_0001, 0x0A00_0001),
            self.hosts.add(0x0200_0000_0002, 0x0A00_0002),
        )
        self.room = bytearray(len(DATA))
        self.completions: list[Completion] = []
        config = QpConfig(mtu=256)
        self.sender = self.one.create_pair(1, _peer(self.other), config, self.completions.append)
        self.receiver = self.other.create_pair(1, _peer(self.one), config, self.completions.append)
        self.receiver.post_recv(RecvWr(7, memoryview(self.room)))
        self.sender.post_send(SendWr(8, DATA))

    def check(self) -> None:
        assert bytes(self.room) == DATA
        assert [(each.wr_id, each.status) for each in self.completions] == [(7, Status.SUCCESS), (8, Status.SUCCESS)]


def _peer(nic: CompiledNic) -> Peer:
    return Peer(nic.mac, nic.ip, 1)


def test_lines_in_python_say_when_they_are_free() -> None:
    two = Two()
    two.one.line, two.other.line = forth, _ = Line(two.hosts, two.other), Line(two.hosts, two.one)
    two.hosts.loop.run()
    two.check()
    assert len(forth.sent) == 4
    assert all(later > earlier for earlier, later in zip(forth.sent, forth.sent[1:], strict=False))


def test_collected_frames_keep_their_order() -> None:
    two = Two()
    two.one.collect()
    two.other.collect()
    ways = two.other, two.one
    for _ in range(10):
        two.hosts.loop.run(until=two.hosts.loop.now + 1 * US)
        for host, frame in two.hosts.take_left():
            ways[host].receive(frame)
    two.check()
    assert two.hosts.take_left() == []


def test_frames_of_no_queue_pair_are_applications() -> None:
    """The first application that takes a frame has it; what none takes is dropped. Queue pairs go on beside them."""
    two = Two()
    two.one.line, two.other.line = Line(two.hosts, two.other), Line(two.hosts, two.one)
    taken: list[tuple[str, bytes]] = []

    def application(name: str, letter: bytes) -> Callable[[bytes], bool]:
        def take(frame: bytes) -> bool:
            if not frame.startswith(letter):
                return False
            taken.append((name, frame))
            two.other.send(b"answer to " + frame)
            return True

        return take

    two.other.datagrams += [application("first", b"a"), application("second", b"")]
    answers: list[bytes] = []

    def take_answer(frame: bytes) -> bool:
        answers.append(frame)
        return True

    two.one.datagrams.append(take_answer)
    for frame in (b"a frame of one", b"b frame of another"):
        two.one.send(frame)
    two.hosts.loop.run()
    two.check()
    assert taken == [("first", b"a frame of one"), ("second", b"b frame of another")]
    assert answers == [b"answer to " + frame for _, frame in taken]
    two.other.datagrams.clear()
    two.one.send(bytes(60))
    two.hosts.loop.run()
    assert two.other.dropped.total() == 1


def test_a_frame_that_is_sent_is_an_event() -> None:
    """Whoever waits for events sends what has been collected."""
    hosts = CompiledHosts(1024, 1)
    nic = hosts.add(1, 1)
    nic.collect()
    idle = [hosts.loop.idle]
    nic.send(DATA)
    idle.append(hosts.loop.idle)
    assert idle == [True, False]
    hosts.loop.run()
    assert hosts.take_left() == [(0, DATA)]
