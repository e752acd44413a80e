"""What is free: against a plain model of a switch, and against registers that remember epochs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from p4gen.groups.group import Edge, Endpoint, GroupContext, Pattern
from p4gen.plan.placement.numbers import HOST_QP, Turns
from p4gen.plan.placement.pools import (
    EPOCHS,
    History,
    Limits,
    Need,
    Pools,
    SwitchPool,
    Taken,
    held_by,
)
from p4gen.plan.placement.spans import NoRoomError, Spans, gaps
from p4gen.vocabulary.message import Collective

LIMITS = Limits(contexts=3, edges=10, slots=32)
HERE = Endpoint(0, 0, 0)
spans = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda s: (s[0], s[0] + s[1])), max_size=8)


@given(spans, st.integers(0, 40), st.integers(1, 9))
def test_spans_are_sets(given: list[tuple[int, int]], first: int, size: int) -> None:
    found = Spans(given)
    numbers = {n for low, high in given for n in range(low, high)}
    assert [n for low, high in found for n in range(low, high)] == sorted(numbers)
    assert len(found) == len(numbers)
    assert found.meets(first, first + size) == bool(numbers & set(range(first, first + size)))
    assert Spans.parse(str(found)) == found
    listed = list(found)
    assert all(end < after for (_, end), (after, _) in pairwise(listed)), "merged where they touch"


@given(spans, spans, st.integers(0, 20), st.integers(0, 30))
def test_gaps_are_what_is_left(one: list[tuple[int, int]], two: list[tuple[int, int]], first: int, size: int) -> None:
    taken = {n for low, high in (*one, *two) for n in range(low, high)}
    found = [n for low, high in gaps(first, first + size, Spans(one), Spans(two)) for n in range(low, high)]
    assert found == [n for n in range(first, first + size) if n not in taken]


def as_group(taken: Taken, need: Need) -> GroupContext:
    """A context with what was taken; it has slots for exactly what was asked for."""
    edges = tuple(Edge(number, 0, HERE, HERE) for number in taken.edge_ids)
    patterns = {
        (False, False): (),
        (True, False): (Pattern(Collective.ALLREDUCE),),
        (True, True): (Pattern(Collective.ALLREDUCE, 0, 0),),
    }[need.up, need.down]
    return GroupContext(
        taken.context, edges, taken.base or 0, need.slots, taken.epoch, patterns, need.pipeline, taken.base_down
    )


class PoolMachine(RuleBasedStateMachine):
    """Contexts come and go on one switch, for ever: nothing is given twice, no word sees an epoch a second time."""

    live = Bundle("live")

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[GroupContext] = []
        self.history = History()
        self.words: defaultdict[tuple[object, ...], set[int]] = defaultdict(set)

    def pool(self) -> SwitchPool:
        return SwitchPool("s0", LIMITS, self.history, self.groups)

    @rule(
        target=live,
        pipeline=st.integers(0, 1),
        edges=st.integers(2, 5),
        slots=st.sampled_from([2, 4, 8, 16]),
        flows=st.sampled_from([(True, False), (True, True)]),
        uses=st.booleans(),
    )
    def take(
        self, pipeline: int, edges: int, slots: int, flows: tuple[bool, bool], *, uses: bool
    ) -> GroupContext | None:
        need = Need(pipeline, edges, slots, *flows)
        contexts = {group.context for group in self.groups}
        ids = {edge.edge_id for group in self.groups for edge in group.edges}
        try:
            taken = self.pool().take(need)
        except NoRoomError:
            assert len(contexts) == LIMITS.contexts or len(ids) + edges > LIMITS.edges or not self.fits(need)
            return None
        group = as_group(taken, need)
        assert len(set(taken.edge_ids)) == edges
        assert taken.context not in contexts
        assert not ids & set(taken.edge_ids)
        assert taken.context < LIMITS.contexts
        assert set(taken.edge_ids) <= set(range(1, LIMITS.edges + 1))
        for word in self.words_of(group):
            assert group.epoch not in self.words[word], f"{word} has seen epoch {group.epoch}"
        if uses:
            for held in held_by("s0", group):
                self.history.add(held)
            for word in self.words_of(group):
                self.words[word].add(group.epoch)
        self.groups.append(group)
        return group

    def fits(self, need: Need) -> bool:
        """Whether there is room for its slots, tried out in every order that first fit could take them."""
        free = set(range(LIMITS.slots)) - {
            n for g in self.groups if g.pipeline == need.pipeline for low, high in g.ranges() for n in range(low, high)
        }
        for _ in range(need.up + need.down):
            base = next((b for b in range(LIMITS.slots) if set(range(b, b + need.slots)) <= free), None)
            if base is None:
                return False
            free -= set(range(base, base + need.slots))
        return True

    @staticmethod
    def words_of(group: GroupContext) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = [("context", group.pipeline, group.context)]
        found += [("edge", group.pipeline, edge.edge_id) for edge in group.edges]
        found += [("slot", group.pipeline, n) for low, high in group.ranges() for n in range(low, high)]
        return found

    @rule(group=consumes(live))
    def give_back(self, group: GroupContext | None) -> None:
        if group is not None:
            self.groups.remove(group)

    @invariant()
    def slots_are_nobody_elses(self) -> None:
        taken = [w for group in self.groups for w in self.words_of(group)]
        assert len(taken) == len(set(taken))
        pool = self.pool()
        assert pool.contexts_free == LIMITS.contexts - len(self.groups)
        mine = [w for w in taken if w[0] == "slot"]
        for pipeline in (0, 1):
            assert pool.slots_free(pipeline) == LIMITS.slots - sum(w[1] == pipeline for w in mine)


TestPools = PoolMachine.TestCase
TestPools.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.long
def test_first_fit_first_and_elsewhere_when_its_epochs_are_used() -> None:
    history = History()
    need = Need(0, 2, 8, True, False)
    seen = []
    for _ in range(len(EPOCHS) * 3):
        taken = SwitchPool("s0", LIMITS, history).take(need)
        seen.append((taken.context, taken.epoch))
        for held in taken.held("s0", need):
            history.add(held)
    assert seen[:255] == [(0, epoch) for epoch in EPOCHS]
    assert sorted(seen) == [(context, epoch) for context in range(3) for epoch in EPOCHS]
    with pytest.raises(NoRoomError, match="s0: all 255 epochs of its free resources have been used") as caught:
        SwitchPool("s0", LIMITS, history).take(need)
    assert caught.value.epochs == {"s0"}


def test_contexts_and_epochs_that_packets_name_are_the_same_everywhere() -> None:
    """Each time another epoch: of a switch that was loaded again nobody knows which one late packets name."""
    need, history, seen = Need(0, 2, 8, True, False), History(), []

    def pools(next_tree: int) -> Pools:
        found = Pools(
            dict.fromkeys(("s0", "s1"), replace(LIMITS, contexts=2)), (), {"s0": history}, next_tree=next_tree
        )
        found.switch("s1").hold(Taken(0, (1, 2), 0, None, 1), need)
        return found

    for number in range(len(EPOCHS)):
        found = pools(number).together({"s0": need, "s1": need})
        assert [(taken.context, taken.base) for taken in found.values()] == [(1, 0), (1, 8)]
        assert found["s0"].epoch == found["s1"].epoch
        seen.append(found["s0"].epoch)
        for held in found["s0"].held("s0", need):
            history.add(held)
    assert seen == list(EPOCHS)
    with pytest.raises(NoRoomError, match="s0, s1: no context is free at all of them") as caught:
        pools(0).together({"s0": need, "s1": need})
    assert caught.value.epochs == {"s0", "s1"}


def test_reasons() -> None:
    full = [GroupContext(n, (Edge(n + 1, 0, HERE, HERE),), 12 * n, 8) for n in range(2)]
    pool = SwitchPool("s0", LIMITS, History(), full)
    with pytest.raises(NoRoomError, match=r"s0: 16 slots are needed; 16 of 32 are free in its memory, 12 at most in a"):
        pool.take(Need(0, 1, 16, True, False))
    assert pool.take(Need(1, 1, 16, True, False)).base == 0, "another pipeline has its own"
    with pytest.raises(NoRoomError, match="s0: no context is free; its program has 3"):
        pool.take(Need(0, 1, 2, True, False))
    with pytest.raises(NoRoomError, match="s0: 9 edge ids are needed; 8 of 10 are free"):
        SwitchPool("s0", LIMITS, History(), full).take(Need(0, 9, 2, True, False))


def test_numbers_go_round() -> None:
    pools = Pools(next_tree=254, turns=Turns((1 << 24) - 3))
    assert [pools.tree() for _ in range(4)] == [254, 255, 0, 1]
    assert [pools.pairs.ranks(["h0"], 2) for _ in range(2)] == [[(1 << 24) - 3], [HOST_QP]]
    assert pools.pairs.ranks(["h0", "h1"], 2) == [HOST_QP + 2, HOST_QP + 4]
