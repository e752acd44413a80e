"""The tick sender: everybody gets a turn, no more often than a switch can stand, and it ends when there is nothing."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from p4gen.groups.ticks import tick
from p4gen.manager.switches.ticks import MOST_PER_SECOND, TickSender
from p4gen.vocabulary.ticks import PORT

from .processes import eventually, placement


class Sink:
    def __init__(self, working: bool = True) -> None:
        self.frames: list[bytes] = []
        self.batches: list[int] = []
        self.working = working

    def __call__(self, frames: Sequence[bytes]) -> bool:
        if self.working:
            self.frames += frames
            self.batches.append(len(frames))
        return self.working


@pytest.fixture
def sender() -> Iterator[TickSender]:
    made = TickSender(0.01)
    yield made
    made.close()


def test_every_frame_gets_its_turn(sender: TickSender) -> None:
    sink = Sink()
    began = time.monotonic()
    sender.set("s0", [b"a", b"b", b"c"], sink)
    eventually(lambda: len(sink.frames) >= 60)
    sender.set("s0", [], sink)
    beats = (time.monotonic() - began) / sender.interval_s
    counts = Counter(sink.frames)
    assert set(counts) == {b"a", b"b", b"c"}
    assert max(counts.values()) - min(counts.values()) <= 1
    assert counts[b"a"] <= beats + 1


def test_a_switch_with_many_edges_gets_no_more_than_it_can_stand(sender: TickSender) -> None:
    sink = Sink()
    frames = [n.to_bytes(2) for n in range(100)]
    began = time.monotonic()
    sender.set("s0", frames, sink)
    eventually(lambda: len(sink.frames) >= 400)
    sender.set("s0", [], sink)
    assert len(sink.frames) <= MOST_PER_SECOND * (time.monotonic() - began + sender.interval_s)
    assert max(sink.batches) <= MOST_PER_SECOND * 0.01 + 1
    assert sink.frames[:200] == [*frames, *frames], "in turn"


def test_rates(sender: TickSender) -> None:
    sink, broken = Sink(), Sink(working=False)
    sender.set("s0", [b"a", b"b"], sink)
    sender.set("s1", [b"a"], broken)
    eventually(lambda: len(sink.frames) >= 60)
    eventually(lambda: sender.rate("s0"))
    assert sender.rate("s0") <= 2 / sender.interval_s * 2  # the first batch has no interval before it
    assert sender.rate("s1") == 0
    assert sender.rate("s2") == 0
    sender.set("s0", [], sink)
    assert sender.rate("s0") == 0


def test_what_was_missed_is_not_made_up_for(sender: TickSender) -> None:
    slow: list[int] = []

    def send(frames: Sequence[bytes]) -> bool:
        slow.append(len(frames))
        if len(slow) == 1:
            time.sleep(0.3)
        return True

    began = time.monotonic()
    sender.set("s0", [b"a"], send)
    eventually(lambda: len(slow) >= 10)
    sender.set("s0", [], send)
    assert set(slow) == {1}
    assert len(slow) <= (time.monotonic() - began - 0.3) / sender.interval_s + 2


def test_the_thread_ends_with_the_last_frame(sender: TickSender) -> None:
    def running() -> int:
        return sum(thread.name == "ticks" for thread in threading.enumerate())

    before = running()
    sink = Sink()
    for _ in range(3):
        sender.set("s0", [b"a"], sink)
        sender.set("s1", [b"b"], sink)
        assert running() == before + 1
        sender.set("s0", [], sink)
        sender.set("s1", [], sink)
        eventually(lambda: running() == before)
    sender.set("s0", [b"a"], sink)
    sender.close()
    assert running() == before


def test_a_tick_goes_to_the_near_end_from_the_far_end() -> None:
    edge = placement(1).edges[0]
    frame = tick(edge, 0.020)
    near, far = edge.edge.local, edge.edge.remote
    assert PORT == 510
    assert frame[:6] == near.mac.to_bytes(6)
    assert frame[6:12] == far.mac.to_bytes(6)
    assert frame[26:30] == far.ip.to_bytes(4)
    assert frame[30:34] == near.ip.to_bytes(4)
    assert frame[42] == 0xC0
    assert frame[47:50] == near.qp.to_bytes(3)
    assert frame[54:58] == edge.pipeline.to_bytes(1) + (2000).to_bytes(3), (
        "the pipeline, and the time in units of 10 us"
    )
