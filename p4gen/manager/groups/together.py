"""A move of two groups at once: a group gets a faster tree that another one is in the way of, and this one gets another
tree, too.

Neither would move alone: the first one's new tree is no faster beside the other, and the other gains nothing. A pair
counts if the first group is then ``gain`` times as fast as before, and every other group, the second one too, as fast
as before or at least as fast as that. So of the groups that are no faster than the first one was, none gets slower and
one gets faster, as when one group moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from p4gen.manager.store.ledger import Ledger
from p4gen.manager.store.record import Record
from p4gen.plan.placement.policy import Candidate, GroupView
from p4gen.plan.placement.rate import Crowd
from p4gen.plan.placement.tree import IncTree

_PROPOSALS: Final = 8
"""The most trees of a policy that are looked at for a group."""
_MOST: Final = 64
"""The most groups of a fabric on which pairs are sought: the time grows with the square of their number."""
Rated = tuple[tuple[IncTree, ...], tuple[float, ...]]
"""A group's trees, and their rates if they have some."""


@dataclass(frozen=True)
class Move:
    """A group's next trees, as the policy proposes them."""

    record: Record
    candidate: Candidate
    trees: Rated

    @property
    def stays(self) -> bool:
        """Whether the group has these trees now."""
        placed = self.record.placed
        return placed is not None and self.trees == (placed.trees, placed.rates)


class ChangedError(Exception):
    """Groups or links have changed meanwhile."""


class PairSearch:
    """The search for a pair among ``movable`` groups, on the fabric as it is at first. Nothing is moved.

    The policy is asked without the ledger's lock.
    """

    def __init__(self, ledger: Ledger, movable: Sequence[Record], gain: float) -> None:
        self._ledger, self._movable, self._gain = ledger, movable, gain
        self._stamp, self._view, self._groups = ledger.stamp, ledger.fabric.view, ledger.trees()
        self._now: dict[str, Rated] = {}
        for name, record in ledger.records.items():
            if record.home is not None:
                self._now[name] = (record.home,), ()
            elif record.placed is not None:
                self._now[name] = record.placed.trees, record.placed.rates

    def pairs(self) -> Iterator[tuple[Move, Move]]:
        """The group that makes way, and the one that gains; this one may keep its trees. Raises ``ChangedError``."""
        names = {record.spec.name for record in self._movable}
        fixed = [group for group in self._groups if group.name not in names]
        if len(self._now) > _MOST:
            return
        free = Crowd(self._view.topology, [group.tree for group in fixed])
        for first in self._movable:
            name = first.spec.name
            wanted = self._gain * self._rate(name, self._now)
            if free.most(first.spec.ranks) < wanted:
                continue
            for mine in self._proposals(first, fixed):
                moved = self._now | {name: mine.trees}
                for second in self._in_the_way(mine):
                    without = {each: trees for each, trees in moved.items() if each != second.spec.name}
                    if self._rate(name, without) < wanted:
                        continue
                    for other in self._proposals(second, self._beside(mine, second)):
                        if not other.stays and self._gains(name, wanted, moved | {second.spec.name: other.trees}):
                            yield other, mine

    def _gains(self, name: str, wanted: float, then: Mapping[str, Rated]) -> bool:
        enough = self._rate(name, then) >= wanted
        return enough and all(self._rate(each, then) >= min(self._rate(each, self._now), wanted) for each in then)

    def _rate(self, name: str, all_trees: Mapping[str, Rated]) -> float:
        """The rate of a group, in bit/s, if all have these trees."""
        others = [tree for each, (trees, _) in all_trees.items() if each != name for tree in trees]
        return Crowd(self._view.topology, others).rate(*all_trees[name])

    def _in_the_way(self, move: Move) -> Iterator[Record]:
        """The other groups over a link of these trees."""
        links = {link for tree in move.trees[0] for link in tree.links}
        for record in self._movable:
            theirs = {link for tree in self._now[record.spec.name][0] for link in tree.links}
            if record is not move.record and links & theirs:
                yield record

    def _beside(self, move: Move, record: Record) -> list[GroupView]:
        """The groups as a policy sees them that places ``record`` once another one has moved."""
        name = move.record.spec.name
        seen = next(group for group in self._groups if group.name == name)
        others = [group for group in self._groups if group.name not in (name, record.spec.name)]
        return [*others, *(replace(seen, tree=tree) for tree in move.trees[0])]

    def _proposals(self, record: Record, groups: Iterable[GroupView]) -> Iterator[Move]:
        """Trees for which there is room beside what the other groups hold now."""
        ledger = self._ledger
        with ledger.changed:
            self._check()
            search = ledger.search(record.spec, {}, record, beside=groups)
        for candidate in islice(search.candidates(), _PROPOSALS):
            with ledger.changed:
                self._check()
                plan = search.attempt(candidate, ledger.room(record))
            rated = bool(self._now[record.spec.name][1])
            if plan is not None and not plan.leased and (plan.placed.rates or not rated):
                yield Move(record, candidate, (plan.placed.trees, plan.placed.rates))

    def _check(self) -> None:
        if self._ledger.stamp != self._stamp or self._ledger.fabric.view is not self._view:
            raise ChangedError
