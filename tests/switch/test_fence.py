"""The fence of routed markers, in virtual time."""

from __future__ import annotations

import pytest

from p4gen.errors import FailedError
from p4gen.switch.fence import Marker, MarkerFence


class Link:
    """A switch that loses the first ``lost`` markers, and a clock that passes while the fence waits."""

    def __init__(self, markers: dict[int, Marker], lost: int = 0, delay: float = 0.1, slower: float = 1.0) -> None:
        self.markers, self.lost, self.delay, self.now = markers, lost, delay, 0.0
        self.sent: list[tuple[float, int]] = []
        self.frames: list[bytes] = []
        self.coming: list[tuple[float, int, bytes]] = []
        self.fence = MarkerFence(markers, self.send, self.wait, slower=slower, clock=lambda: self.now)

    def send(self, port: int, frame: bytes) -> None:
        self.sent.append((self.now, port))
        self.frames.append(frame)
        if len(self.sent) > self.lost:
            self.coming.append((self.now + self.delay, self.markers[port].leaves, frame))

    def wait(self, until: float) -> None:
        assert until > self.now
        ready = [coming for coming in self.coming if coming[0] <= until]
        self.now = min((when for when, _, _ in ready), default=until)
        for coming in [coming for coming in ready if coming[0] == self.now]:
            self.coming.remove(coming)
            assert self.fence.arrived(*coming[1:])


MARKERS = {0: Marker(b"..one", 1, b"one"), 1: Marker(b"..two", 0, b"two")}


def test_every_port_has_its_marker_twice() -> None:
    """Once for what has entered, and once for what still waits to leave."""
    link = Link(MARKERS)
    link.fence.settle()
    assert link.sent == [(0.0, 0), (0.0, 1), (0.1, 0), (0.1, 1)]
    assert link.now == 0.2
    assert len(set(link.frames)) == 4
    link.fence.settle()
    assert len(link.sent) == len(set(link.frames)) == 8


def test_a_lost_marker_is_sent_again_after_a_second() -> None:
    link = Link(MARKERS, lost=1)
    link.fence.settle()
    assert link.sent == [(0.0, 0), (0.0, 1), (1.0, 0), (1.1, 0), (1.1, 1)]


def test_a_late_copy_counts_for_no_later_round() -> None:
    """A switch that takes longer than a second gets every marker twice; the second one is not the next round's."""
    link = Link(MARKERS, delay=1.5, slower=20)
    link.fence.settle()
    first_of_second_round = link.sent.index((1.5, 0))
    assert first_of_second_round == 4
    # The late copies arrive at 2.5; the second round's own markers at 3.0.
    assert link.now == 3.0


def test_no_marker_comes() -> None:
    link = Link(MARKERS, lost=10**9, slower=20)
    with pytest.raises(FailedError, match=r"markers sent into port 0, 1 did not leave the switch in 100 s"):
        link.fence.settle()
    assert link.now == 100
    assert len(link.sent) == 200


def test_frames_of_tests_are_not_markers() -> None:
    fence = Link(MARKERS).fence
    assert not fence.arrived(0, b"..one..")  # it leaves at port 1
    assert not fence.arrived(1, b"frame")
    assert fence.arrived(1, b"..one..")  # a late copy


def test_equal_signs_are_refused() -> None:
    with pytest.raises(ValueError, match="different signs"):
        MarkerFence({0: Marker(b"x", 1, b"x"), 1: Marker(b"xx", 0, b"x")}, lambda *_: None, lambda _: None)
