"""The set of states against a dictionary, and sweeps over transitions against the closure that they stand for."""

import numpy as np

from p4gen.verification.search import transitions
from p4gen.verification.search.events import DELIVER, END, EXPIRE
from p4gen.verification.search.states import LEAST, PARTS, States


def test_a_set_knows_its_states_while_it_grows() -> None:
    """Among them fingerprints that differ in one half alone, and many with the same place."""
    random = np.random.default_rng(1)
    states, known = States(4 * PARTS * LEAST), dict[tuple[int, int], int]()
    for _ in range(50):
        high = random.integers(0, 1 << 64, 1000, np.uint64)
        low = random.integers(0, 1 << 64, 1000, np.uint64)
        low[:50] = low[0]
        high[50:100] = high[50]
        again = random.integers(0, 1000, 500)
        high, low = np.concatenate([high, high[again]]), np.concatenate([low, low[again]])
        before = len(known)
        numbers = [known.setdefault(each, len(known)) for each in zip(high.tolist(), low.tolist(), strict=True)]
        to, fresh = states.insert(high, low)
        assert to.tolist() == numbers
        assert [numbers[i] for i in fresh] == list(range(before, len(known)))
    assert states.count == len(known) > 2 * PARTS * LEAST


def test_sweeps_mark_what_reaches_an_end_and_what_is_bounded() -> None:
    """1 sends for ever with 2; 3 gets away from there by a timer alone; 5 is an end that 0 and 4 reach."""
    moves = [(0, DELIVER, 1), (0, DELIVER, 4), (1, DELIVER, 2), (2, DELIVER, 1), (3, DELIVER, 2), (3, EXPIRE, 4)]
    sources, kinds, targets = (np.array(each, np.uint32) for each in zip(*moves, (4, DELIVER, 5), strict=True))
    events = np.append(kinds << np.uint32(24), np.uint32(END))
    sources, targets = np.append(sources, np.uint32(5)), np.append(targets, np.uint32(5))
    packets, timers = np.zeros(30, np.uint32), np.zeros(30, np.uint32)
    of_packets, of_timers = transitions.pack(sources, events, targets, packets, timers)
    packets, timers = packets[:of_packets], timers[:of_timers]
    assert timers.tolist() == [4, 1, 3]

    reaching = np.array([0, 0, 0, 0, 0, 1], np.uint8)
    while transitions.some(reaching, timers) | transitions.some(reaching, packets):
        pass
    assert reaching.tolist() == [1, 0, 0, 1, 1, 1]

    bounded = np.ones(6, np.uint8)
    transitions.unmark(bounded, packets)
    assert bounded.tolist() == [0, 0, 0, 0, 0, 1]
    while transitions.every(bounded, packets):
        pass
    assert bounded.tolist() == [0, 0, 0, 0, 1, 1]
