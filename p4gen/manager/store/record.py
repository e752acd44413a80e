"""The manager's knowledge of a group, in memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from p4gen.groups.group import Memory
from p4gen.manager.api import GroupSpec, GroupState, GroupStatus, GroupTree, RankReport
from p4gen.manager.store.store import StoredGroup
from p4gen.manager.switches.wanted import Key
from p4gen.plan.placement.numbers import Ring
from p4gen.plan.placement.placed import PlacedTrees
from p4gen.plan.placement.tree import IncTree


@dataclass
class Lease:
    """The call for which a group holds its tree's switches."""

    call: int
    """The call, counted from 0, or the last one."""
    since: float
    """The time (``time.monotonic``) at which it was begun."""


@dataclass
class Record:
    """A group. ``placed`` is in use; ``pending`` is being installed, next to it or instead of it."""

    spec: GroupSpec
    state: GroupState = GroupState.INSTALLING
    generation: int = 0
    last: int = 0
    """The newest generation that has been tried."""
    reason: str = ""
    placed: PlacedTrees | None = None
    pending: PlacedTrees | None = None
    ring: Ring | None = None
    """The queue pairs of the ring on which calls run in this generation; then ``placed`` is None."""
    home: IncTree | None = None
    """The tree whose switches the group has by leases; ``placed`` is then a lease."""
    lease: Lease | None = None
    """The call for which ``placed`` is held, if it is a lease that has been used."""
    refusals: int = 0
    """Leases that were refused in a row."""
    agreed: int | None = None
    """The call with which all ranks of this generation begin, once they are ready."""
    busy: bool = False
    """Whether a request or a repair is working on it."""
    lost: bool = False
    """Whether a switch has lost the state of ``placed``."""
    pending_lost: bool = False
    tried: int = -1
    """The ledger's version when the last search for a place failed."""
    delay: float = 0.0
    """Seconds until the next attempt after a switch refused a placement; ``not_before`` is the time of that attempt."""
    not_before: float = 0.0
    arrived: dict[int, int] = field(default_factory=dict)
    """Ranks that are ready, with their numbers of completed calls."""
    completed: dict[int, int] = field(default_factory=dict)
    """For a group with leases: the number of calls that each rank has reported as completed in this generation."""
    asked: dict[str, int] = field(default_factory=dict)
    """Hosts that are to offer memory, with the number of bytes."""
    offers: dict[str, Memory] = field(default_factory=dict)
    """What they have offered."""
    told: bool = False
    """Whether they know of the group although it has had no place."""
    reports: dict[int, RankReport] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """Name and generation of the placement in use."""
        return self.spec.name, self.generation

    @property
    def pending_key(self) -> Key:
        """Name and generation of the placement that is being installed."""
        return self.spec.name, self.last

    @property
    def waits(self) -> bool:
        """Whether the group is without a place, and is to get one as soon as there is room."""
        return self.state is GroupState.BROKEN or (self.ring is not None and self.home is None)

    def row(self, state: GroupState, generation: int, last: int, reason: str = "") -> StoredGroup:
        """The row of the store for a group in this state."""
        return StoredGroup(self.spec, state, generation, last, reason)

    def status(self) -> GroupStatus:
        """The status for clients, with what the group holds on each switch."""
        placed = self.placed or (None if self.ring is not None else self.pending)
        slots: defaultdict[str, int] = defaultdict(int)
        contexts: defaultdict[str, int] = defaultdict(int)
        shape = self.home if placed is None else placed.first.tree
        tree = _parents(shape) if shape is not None and self.state is not GroupState.BROKEN else {}
        rates = placed.rates if placed is not None and tree else ()
        trees = tuple(GroupTree(_parents(placed.parts[n].tree), rate) for n, rate in enumerate(rates) if placed)
        for key, context in placed.contexts if placed is not None else ():
            contexts[key.switch] += 1
            slots[key.switch] += sum(end - first for first, end in context.ranges())
        generation, ring = self.generation or self.last, self.ring is not None
        held = dict(slots), dict(contexts)
        shapes = placed.trees if placed is not None else filter(None, [shape])
        links = sum(len(each.links) for each in shapes) if tree else 0
        return GroupStatus(self.spec, self.state, generation, self.reason, tree, *held, ring, trees, links)


def _parents(tree: IncTree) -> dict[str, str | None]:
    """Each switch of a tree with its parent switch."""
    found: dict[str, str | None] = {}
    for node in tree.nodes:
        above = None if node.parent is None else node.edges[node.parent].far
        if above is None or above.switch != node.key.switch:
            found[node.key.switch] = above.switch if above else None
    return found
