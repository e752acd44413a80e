"""Compiled hosts without a network: their frames go to lines in Python, or are collected."""

from __future__ import annotations

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
