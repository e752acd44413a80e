"""Hosts as automata: what is a state of theirs, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from p4gen.host.transport.nic import Nic
from p4gen.host.transport.verbs import Peer, QpConfig, Recovery
from p4gen.verification.parts.flows import PAYLOAD, Receiver, Sender
from p4gen.verification.parts.hosts import HostPart

MESSAGE = bytes(range(4 * PAYLOAD))
ONE, OTHER = (0x0200_0000_0001, 0x0A00_0001), (0x0200_0000_0002, 0x0A00_0002)


def config(**fields: Any) -> QpConfig:
    return QpConfig(mtu=PAYLOAD, recovery=Recovery.SELECTIVE_REPEAT, ack_every=1, retry_count=None, **fields)


def sender(**fields: Any) -> HostPart:
    def tasks(nic: Nic) -> list[Sender]:
        return [Sender(nic, 1, Peer(*OTHER, 2), config(**fields), [MESSAGE])]

    return HostPart("sender", *ONE, tasks)


def receiver(messages: int = 1) -> HostPart:
    def tasks(nic: Nic) -> list[Receiver]:
        return [Receiver(nic, 2, Peer(*ONE, 1), config(), [MESSAGE] * messages)]

    return HostPart("receiver", *OTHER, tasks)


def test_packets_that_are_kept_are_a_state_whichever_came_first() -> None:
    frames, host = sender().begin().sent, receiver()
    first = host.begin().state
    ends = []
    for order in ((2, 3, 1, 0), (3, 2, 1, 0), (3, 1, 2, 0)):
        states = [first]
        for number in order:
            states.append(host.deliver(states[-1], frames[number]).state)
        assert len(set(states)) == 5
        ends.append(states[3:])
    assert ends[0] == ends[1] == ends[2]
    assert host.done(ends[0][1])


def test_a_state_does_not_depend_on_how_often_a_timer_has_expired() -> None:
    host = sender()
    first = host.begin()
    assert host.timers(first.state) == ("qp 0x1 requester, timer",)
    again = host.expire(first.state, 0)
    assert (again.sent, again.state) == (first.sent, first.state)
    assert len(host) == 1


def test_timeouts_that_are_counted_are_states() -> None:
    host = sender(max_outstanding=1)
    first, counting = host.begin(), HostPart("sender", *ONE, lambda nic: [_counting(nic)])
    assert host.expire(first.state, 0).state == first.state
    states = [counting.begin().state]
    for _ in range(3):
        states.append(counting.expire(states[-1], 0).state)
    assert len(set(states)) == 4
    end = counting.expire(states[2], 0)
    assert (end.problem, end.state) == ("sending: transport retry counter exceeded", states[3])
    assert counting.timers(states[3]) == ()


def _counting(nic: Nic) -> Sender:
    few = QpConfig(mtu=PAYLOAD, recovery=Recovery.SELECTIVE_REPEAT, ack_every=1, retry_count=2)
    return Sender(nic, 1, Peer(*OTHER, 2), few, [MESSAGE])


def test_of_two_timers_of_a_requester_the_shorter_one_expires() -> None:
    one, other = sender(rnr_retry=None), receiver(messages=0)
    first, begun = one.begin(), other.begin()
    (nak,) = other.deliver(begun.state, first.sent[0]).sent
    waits = one.deliver(first.state, nak)
    assert waits.sent == ()
    assert one.timers(waits.state) == ("qp 0x1 requester, after_quiet",)
    after = one.expire(waits.state, 0)
    assert after.sent == first.sent
    assert one.timers(after.state) == ("qp 0x1 requester, timer",)


@pytest.mark.parametrize("corrupt", [0, 60, -1])
def test_a_corrupt_frame_leaves_a_host_as_it_is(corrupt: int) -> None:
    frame, host = sender().begin().sent[0], receiver()
    first = host.begin().state
    bad = bytearray(frame)
    bad[corrupt] ^= 1
    step = host.deliver(first, bytes(bad))
    assert (step.state, step.sent) == (first, ())
    assert host.deliver(first, frame).state != first


class Application:
    """A task without queue pairs: two timers, each of which sends its number, and stops at the third time."""

    STATE = ("counts",)

    def __init__(self, nic: Nic) -> None:
        self.name, self.problem, self._nic = "application", "", nic
        self.counts = [0, 0]

    @property
    def done(self) -> bool:
        return self.counts == [3, 3]

    def start(self) -> None:
        for number in range(2):
            self._nic.clock.at(self._nic.clock.now + 1000 - number, self._beat, number)

    def parts(self) -> dict[str, object]:
        return {"task": self}

    def forget_times(self) -> None:
        pass

    def _beat(self, number: int) -> None:
        self.counts[number] += 1
        self._nic.send(bytes([number, self.counts[number]]))
        if self.counts[number] < 3:
            self._nic.clock.at(self._nic.clock.now + 1000, self._beat, number)


def test_timers_of_applications_expire_one_by_one_in_any_order() -> None:
    host = HostPart("host", *ONE, lambda nic: [Application(nic)])
    first = host.begin()
    assert host.timers(first.state) == ("its application", "its application")
    orders = (0, 0, 0, 0, 0, 0), (1, 1, 1, 0, 0, 0)
    sent = []
    for order in orders:
        state, frames = first.state, list[bytes]()
        for timer in order:
            step = host.expire(state, timer)
            state = step.state
            frames += step.sent
        sent.append(frames)
        assert host.done(state)
        assert host.timers(state) == ()
    assert sent[0] == [bytes([number, count]) for count in (1, 2, 3) for number in (0, 1)]
    assert sent[1][0] == bytes([1, 1])
    # A timer that is set again is the last one.
    assert host.expire(host.expire(first.state, 0).state, 1).sent == (bytes([0, 2]),)
