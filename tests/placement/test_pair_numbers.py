"""Numbers of hosts' queue pairs, against a plain model of who has which."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, multiple, rule

from p4gen.host.transport.nicinfo import NicInfo
from p4gen.plan.placement.numbers import FIRST_TURNS, HOST_QP, PairNumbers, RingEnds, Turns, ring_in_a_row
from p4gen.plan.placement.spans import NoRoomError

OWN = {"a": ((17, 23),), "b": ((40, 44), (30, 33), (0xFFFFFE, 0x1000000))}
NICS = {host: NicInfo(queue_pairs=spans) for host, spans in OWN.items()} | {"d": NicInfo(mtus=(1024,))}
HOSTS = ("a", "b", "c", "d")
Taken = tuple[str, int]
"""A host and a number."""


class NumberMachine(RuleBasedStateMachine):
    """Groups and rings come and go; all that is free follows from those that live."""

    live = Bundle("live")

    def __init__(self) -> None:
        super().__init__()
        self.taken: set[Taken] = set()
        self.turns = FIRST_TURNS

    def numbers(self) -> PairNumbers:
        found = PairNumbers(NICS, self.turns)
        for host, number in self.taken:
            found.hold(host, number)
        return found

    def free(self, host: str) -> set[int]:
        return {n for first, end in OWN[host] for n in range(first, end)} - {n for h, n in self.taken if h == host}

    def lacks(self, host: str, count: int) -> bool:
        """Whether a host has no so many free numbers in a row."""
        if host not in OWN:
            return False
        free = self.free(host)
        return not any(set(range(n, n + count)) <= free for n in free)

    def take(self, new: list[Taken]) -> None:
        assert len(set(new)) == len(new)
        assert not self.taken & set(new)
        for host, number in new:
            assert number in self.free(host) if host in OWN else number >= HOST_QP
        shared = [number for host, number in (*self.taken, *new) if host not in OWN]
        assert len(shared) == len(set(shared)), "of hosts that share a range none has another one's number"
        self.taken.update(new)

    @rule(target=live, hosts=st.lists(st.sampled_from(HOSTS), unique=True, min_size=1), count=st.integers(1, 3))
    def join(self, hosts: list[str], count: int):  # type: ignore[no-untyped-def]
        numbers = self.numbers()
        try:
            found = numbers.ranks(hosts, count)
        except NoRoomError:
            assert any(self.lacks(host, count) for host in hosts)
            return multiple()
        self.turns = numbers.turns
        new = [(host, first + n) for host, first in zip(hosts, found, strict=True) for n in range(count)]
        self.take(new)
        return tuple(new)

    @rule(target=live, hosts=st.lists(st.sampled_from(HOSTS), unique=True, min_size=2))
    def call_on_a_ring(self, hosts: list[str]):  # type: ignore[no-untyped-def]
        numbers = self.numbers()
        needed = [1 + len(hosts), *[3] * (len(hosts) - 1)]
        try:
            found = numbers.ring(hosts)
        except NoRoomError:
            assert any(host in OWN and len(self.free(host)) < count for host, count in zip(hosts, needed, strict=True))
            return multiple()
        self.turns = numbers.turns
        assert [len(ends.star) for ends in found] == [len(hosts) - 1, *[1] * (len(hosts) - 1)]
        new = [(host, number) for host, ends in zip(hosts, found, strict=True) for number in ends]
        self.take(new)
        return tuple(new)

    @rule(gone=consumes(live))
    def leave(self, gone: tuple[Taken, ...]) -> None:
        self.taken.difference_update(gone)


TestNumbers = NumberMachine.TestCase
TestNumbers.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


def test_a_number_just_freed_comes_last() -> None:
    turns, found = FIRST_TURNS, []
    for _ in range(9):  # each group ends before the next one begins
        numbers = PairNumbers(NICS, turns)
        found += numbers.ranks(["b"], 1)
        turns = numbers.turns
    assert found == [30, 31, 32, 40, 41, 42, 43, 0xFFFFFE, 0xFFFFFF]
    assert PairNumbers(NICS, turns).ranks(["b"], 1) == [30]


def test_reasons() -> None:
    numbers = PairNumbers(NICS, Turns())
    numbers.check({"a": 6, "b": 9, "c": 1 << 30})
    numbers.hold("a", 18, 2)
    numbers.hold("b", 30)
    with pytest.raises(NoRoomError) as caught:
        numbers.check({"a": 5, "b": 9})
    assert [str(d.message) for d in caught.value.diagnostics] == [
        "a: 5 queue pairs are needed; 4 of its NIC's 6 are free",
        "b: 9 queue pairs are needed; 8 of its NIC's 9 are free",
    ]
    with pytest.raises(NoRoomError, match="a: 4 queue pairs in a row are needed; 3 at most of its NIC's are free"):
        numbers.ranks(["c", "a"], 4)
    numbers.hold("a", 17, 6)
    with pytest.raises(NoRoomError, match="a: 1 queue pair is needed; 0 of its NIC's 6 are free"):
        numbers.check({"a": 1})


@given(st.integers(2, 9), st.integers(2, 1 << 20))
def test_rings_of_hosts_without_numbers_of_their_own_are_what_they_were(size: int, first: int) -> None:
    """R for each kind: ends to the right, to the left, of the star at rank 0, and at the others."""
    found = PairNumbers({}, Turns(max(first, HOST_QP))).ring([f"h{rank}" for rank in range(size)])
    first = max(first, HOST_QP)
    assert found == ring_in_a_row(first, size)
    assert found[0] == RingEnds(first + size, first, tuple(first + 2 * size + to for to in range(1, size)))
    for rank in range(1, size):
        assert found[rank] == RingEnds(first + size + rank, first + rank, (first + 3 * size + rank,))
