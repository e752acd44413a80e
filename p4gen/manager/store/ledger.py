"""The manager's ledger: groups, their resources, and watchers. Everything in it is also in the store.

Every method is called with ``Ledger.changed`` held, does not block, and is atomic. The store is written first.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from p4gen.groups.group import GroupContext
from p4gen.groups.ranks import ring_needs
from p4gen.host.transport.nicinfo import OUR_NIC
from p4gen.manager.access.quotas import Quotas
from p4gen.manager.access.tenants import ALONE, Tenants
from p4gen.manager.api import (
    Code,
    GroupSpec,
    GroupState,
    ManagerError,
    Membership,
    RankConfig,
)
from p4gen.manager.connections.conversations import Conversation
from p4gen.manager.fabric import Fabric
from p4gen.manager.ranks.rankconfigs import rank_config
from p4gen.manager.store.record import Record
from p4gen.manager.store.store import Store, StoredConnection, StoredGroup, StoredJob, StoredRing
from p4gen.manager.watch import Watch
from p4gen.plan.placement.duty import blocks_per_node
from p4gen.plan.placement.numbers import FIRST_TURNS, Turns
from p4gen.plan.placement.placed import PlacedTrees
from p4gen.plan.placement.placer import switch_of
from p4gen.plan.placement.planner import Plan, Room, Search
from p4gen.plan.placement.policy import Candidate, FabricView, GroupView, PlacementPolicy
from p4gen.plan.placement.pools import History, Limits, Pools, held_by
from p4gen.plan.placement.rate import Crowd
from p4gen.plan.placement.request import WITHIN
from p4gen.plan.placement.spans import NoRoomError
from p4gen.plan.placement.tree import IncTree

LOGGER = logging.getLogger("p4gen.manager")


@dataclass(frozen=True)
class Faster:
    """A condition for a new place: ``gain`` times as fast, for each flow, as the group's present tree; and only as
    ``candidate`` proposes it, if there is one."""

    than: Record
    gain: float
    candidate: Candidate | None = None

    def candidates(self, _view: FabricView, _spec: GroupSpec) -> Iterable[Candidate]:
        """In place of the policy's."""
        return [] if self.candidate is None else [self.candidate]


class Ledger:
    """The manager's knowledge. ``changed`` is its lock, and is notified of every change of a group."""

    def __init__(
        self, store: Store, fabric: Fabric, policy: PlacementPolicy, seed: int | None, tenants: Tenants = ALONE
    ) -> None:
        self.changed = threading.Condition()
        self.store = store
        self.fabric = fabric
        self.records: dict[str, Record] = {}
        self.jobs: dict[str, StoredJob] = {}
        self.quotas = Quotas(tenants, self.records)
        self.version = 0
        """Counts the changes that may make room for a group without a place."""
        self.stamp = 0
        """Counts the changes of what groups hold."""
        self._policy = policy
        self.histories: defaultdict[str, History] = defaultdict(History)
        """The epochs that the switches' state has had."""
        self._watches: defaultdict[str, set[Watch]] = defaultdict(set)
        self.unwatched: dict[str, float] = {}
        """Hosts whose last watch has ended, and when, in seconds of a monotonic clock."""
        self.random = random.SystemRandom() if seed is None else random.Random(seed)  # noqa: S311 - for tests
        self._next_tree, self._turns = 0, FIRST_TURNS
        self.connections: list[StoredConnection] = []
        """The store's connections at the start; ``Connections`` takes them over."""
        self.next_connection = 1
        self.handshakes: list[tuple[Conversation, tuple[int, ...]]] = []
        """The store's handshakes at the start; ``Handshakes`` takes them over."""
        self.moved = False
        """Whether the topology is another one than before the restart, so that addresses and ports may differ."""
        self._load()

    def _load(self) -> None:
        """Load the store, and undo everything that had not been completed."""
        stored = self.store.load()
        fabric = self.fabric
        topology = zlib.crc32(fabric.given.model_dump_json().encode()) if fabric.given else 0
        other = stored.topology not in (None, topology)
        if not other:
            for name, (number, info) in stored.switches.items():
                fabric.switch_numbers[name] = number
                fabric.add_switch(info)
            fabric.hosts, fabric.out_of_order, fabric.nics = stored.hosts, stored.out_of_order, stored.nics
            fabric.ports_down, fabric.cordoned = stored.ports_down, stored.cordoned
        self.histories.update(stored.histories)
        self._next_tree, self._turns = stored.next_tree, Turns(stored.next_qp)
        self.connections, self.next_connection = stored.connections, stored.next_connection
        self.handshakes = stored.handshakes
        self.moved = other
        with self.store.transaction():
            self.store.put_meta("topology", topology)
            if other:  # switches and hosts have to register again
                self.store.drop_nodes()
            for name, group in stored.groups.items():
                known = group.state in (GroupState.ACTIVE, GroupState.BROKEN, GroupState.FAILED)
                for generation in group.placements:
                    if not known or group.state is not GroupState.ACTIVE or generation != group.generation:
                        self.store.drop_placement(name, generation)
                if not known:
                    self.store.drop_group(name)
                    continue
                record = Record(group.spec, group.state, group.generation, group.last, group.reason)
                record.home = group.ring.home
                if group.state is GroupState.ACTIVE:
                    if group.ring.generation == group.generation:
                        record.ring, record.agreed = group.ring.ends, group.ring.agreed
                    else:
                        record.placed = group.placements[group.generation]
                        record.agreed = group.agreed.get(group.generation)
                    record.lost = other  # addresses and ports may differ
                self.records[name] = record
            for job in stored.jobs:
                left = [spec.name for spec in job.spec.group_specs(job.hosts) if spec.name in self.records]
                if job.state is GroupState.ACTIVE and (left or not job.spec.groups):
                    self.jobs[job.spec.name] = job
                    continue
                self.store.drop_job(job.spec.name)
                for name in left:
                    self.store.drop_group(name)
                    del self.records[name]

    # --- placing ---

    def search(
        self,
        spec: GroupSpec,
        avoid: Mapping[str, str],
        instead_of: Record | None = None,
        faster: Faster | None = None,
        beside: Iterable[GroupView] | None = None,
    ) -> Search:
        """The search for a place for a group, as if ``instead_of`` held nothing; only among trees that are ``faster``
        than the present one. The policy sees the groups ``beside``, by default those that there are."""
        view = self.fabric.view
        avoid = {name: f"switch {name} is cordoned" for name in self._cordoned(spec)} | dict(avoid)
        room = self.room(instead_of)
        accept = None if faster is None else self._acceptable(faster)
        psn, trees = self.draw_psn(), self.trees(instead_of) if beside is None else beside
        policy = self._policy if faster is None or faster.candidate is None else faster

        def quota(placed: PlacedTrees, leased: bool) -> Iterator[str]:
            return self.quotas.lacks(spec.name, placed, leased=leased)

        return Search(spec, view, policy, room, psn, avoid, trees, accept, quota)

    def _cordoned(self, spec: GroupSpec) -> set[str]:
        """The switches that are not to be used; a group that is there keeps those of its hosts, which it cannot
        avoid."""
        topology, known = self.fabric.view.topology, self.records.get(spec.name)
        found = self.fabric.cordoned & set(topology.switches)
        if found and known is not None and known.last:
            found -= {switch_of(topology, host) for host in spec.ranks if host in topology.hosts}
        return found

    def _acceptable(self, faster: Faster) -> Callable[[Sequence[IncTree], Sequence[float]], bool]:
        crowd, placed = self.crowd(faster.than), faster.than.placed
        least = faster.gain * crowd.rate(placed.trees, placed.rates) if placed is not None else 0.0
        planned = placed is not None and bool(placed.rates)
        return lambda trees, rates: crowd.rate(trees, rates) >= least and (bool(rates) or not planned)

    def crowd(self, record: Record) -> Crowd:
        """The trees of all other groups."""
        return Crowd(self.fabric.view.topology, [group.tree for group in self.trees(record)])

    def room(self, instead_of: Record | None = None) -> Room:
        """The resources that are held, as if ``instead_of`` held nothing."""
        live = [(record, placed) for record, placed in self.live() if record is not instead_of]
        lasting = [placed for record, placed in live if record.home is None]
        return Room(lambda: self.pools(placed for _, placed in live), lambda: self.pools(lasting))

    def pools(self, live: Iterable[PlacedTrees]) -> Pools:
        """The free resources if these are all placements."""
        limits = {name: Limits.of(program) for name, program in self.fabric.view.specs.items()}
        parts = (part for placed in live for part in placed.parts)
        rings = [(record.spec.ranks, record.ring) for record in self.records.values() if record.ring is not None]
        tree, nics = self._next_tree, self.fabric.nics
        return Pools(limits, parts, self.histories, next_tree=tree, turns=self._turns, rings=rings, nics=nics)

    def _advance(self, pools: Pools) -> None:
        """Later searches begin where that in ``pools`` has ended."""
        self._next_tree, self._turns = pools.next_tree, pools.pairs.turns

    def plan(
        self,
        spec: GroupSpec,
        avoid: Mapping[str, str],
        instead_of: Record | None = None,
        faster: Faster | None = None,
    ) -> Plan:
        """A placement for a group, as if ``instead_of`` held nothing. The policy is asked with the lock held. Raises
        ``NoPlaceError``."""
        search, room = self.search(spec, avoid, instead_of, faster), self.room(instead_of)
        for candidate in search.candidates():
            if (plan := search.attempt(candidate, room)) is not None:
                return plan
        raise search.failure()

    def draw_psn(self) -> int:
        """Draw a first PSN, from the seed if there is one."""
        return self.random.randrange(1 << 24)

    def trees(self, instead_of: Record | None = None) -> list[GroupView]:
        """The groups as policies see them, without ``instead_of``."""
        view = self.fabric.view
        trees = [
            (record, part.tree)
            for record, placed in self.live()
            if record is not instead_of and record.home is None
            for part in placed.parts
        ]
        trees += [(record, record.home) for record in self.records.values() if record.home is not None]
        found = []
        for record, tree in trees:
            spec, program = record.spec, view.specs.get(tree.root.key.switch)
            blocks = blocks_per_node(spec, program)
            leased, when = record.home is not None, spec.own_schedule
            found.append(GroupView(spec.name, tree, view.topology, leased, spec.share, blocks, when))
        return found

    def live(self) -> Iterator[tuple[Record, PlacedTrees]]:
        """All placements, in use or being installed."""
        for record in self.records.values():
            yield from ((record, placed) for placed in (record.placed, record.pending) if placed is not None)

    def check_pairs(self, host: str) -> None:
        """Mark the groups as lost of which a host's NIC no longer has the queue pairs. Its host may have been started
        again."""
        nic = self.fabric.nics.get(host, OUR_NIC)
        for record in self.records.values():
            if host in record.spec.ranks:
                rank = record.spec.ranks.index(host)
                record.lost |= not nic.has(record.ring[rank] if record.ring is not None else _of(record.placed, rank))
                record.pending_lost |= not nic.has(_of(record.pending, rank))

    def contexts_on(self, switch: str) -> list[GroupContext]:
        """All contexts that are assigned on a switch."""
        return [context for _, placed in self.live() for context in placed.contexts_on(switch)]

    # --- a group's life ---

    def get(self, name: str) -> Record:
        """The record of a group. Raises ``ManagerError`` if there is none."""
        if name not in self.records:
            raise ManagerError(Code.NOT_FOUND, f"there is no group '{name}'")
        return self.records[name]

    def begin(self, record: Record, placed: PlacedTrees, pools: Pools, *, beside: bool = False) -> None:
        """Record that a placement is to be installed. The placement in use is given up, unless ``beside``."""
        generation = record.last + 1
        name = record.spec.name
        first = name not in self.records or (record.state is GroupState.INSTALLING and not record.generation)
        with self.store.transaction():
            if beside:
                self.store.put_group(self._row_of(name, generation))
            else:
                # A group that has been active counts as broken until it is active again.
                state = GroupState.INSTALLING if first else GroupState.BROKEN
                self.store.put_group(record.row(state, generation, generation, "the manager was restarted"))
                if record.placed is not None:
                    self.store.drop_placement(*record.key)
            self.store.put_placement(name, generation, placed, pools.next_tree, pools.pairs.turns.shared)
        self._advance(pools)
        self.stamp += 1
        self.records.setdefault(name, record)
        record.last, record.pending, record.pending_lost = generation, placed, False
        if not beside:
            record.placed, record.lost, record.reason = None, False, ""
            if not first:
                record.generation = generation
            record.state = GroupState.INSTALLING
            self._tell(record)

    def swap(self, record: Record, placed: PlacedTrees, pools: Pools) -> None:
        """Record that a placement is to be installed in place of the one in use, which is restored if this fails. Until
        then the resources of both are reserved."""
        generation = record.last + 1
        with self.store.transaction():
            self.store.put_group(record.row(GroupState.BROKEN, generation, generation, "the manager was restarted"))
            self.store.drop_placement(*record.key)
            self.store.put_placement(record.spec.name, generation, placed, pools.next_tree, pools.pairs.turns.shared)
        self._advance(pools)
        self.stamp += 1
        record.last, record.pending, record.pending_lost = generation, placed, False

    def swap_back(self, record: Record) -> None:
        """Restore the placement that was in use before ``swap``."""
        assert record.placed is not None
        with self.store.transaction():
            self.store.drop_placement(*record.pending_key)
            self.store.put_group(record.row(GroupState.ACTIVE, record.generation, record.last))
            self.store.put_placement(*record.key, record.placed, self._next_tree, self._turns.shared)
            if record.agreed is not None:
                self.store.put_agreed(*record.key, record.agreed)
        record.pending = None
        self.stamp += 1

    def _row_of(self, name: str, last: int) -> StoredGroup:
        known = self.records[name]
        return known.row(known.state, known.generation, last, known.reason)

    def activate(self, record: Record, spec: GroupSpec) -> None:
        """Record that the pending placement is in use instead of the previous one."""
        assert record.pending is not None
        histories = self.histories
        helds = [h for key, context in record.pending.contexts for h in held_by(key.switch, context)]
        with self.store.transaction():
            if record.placed is not None:
                self.store.drop_placement(*record.key)
            self._store_ring(record, StoredRing(home=record.home))
            self.store.put_group(StoredGroup(spec, GroupState.ACTIVE, record.last, record.last))
            for held in helds:
                histories[held.switch].add(held)
            for where in {(h.switch, h.kind, h.pipeline, h.epoch) for h in helds}:
                switch, kind, pipeline, epoch = where
                self.store.put_epochs(switch, kind, pipeline, epoch, histories[switch].seen(kind, pipeline, epoch))
        others = self._adopt(record, spec)
        record.state, record.generation, record.reason = GroupState.ACTIVE, record.last, ""
        record.placed, record.pending, record.ring = record.pending, None, None
        self.stamp += 1
        record.lost, record.agreed, record.delay = False, None, 0.0
        record.arrived, record.completed = {}, {}
        assert record.placed is not None
        on = " and on ".join(", ".join(part.addresses) for part in record.placed.parts)
        LOGGER.info("group %s: generation %d is active on %s", spec.name, record.generation, on)
        self._tell(record, others)

    def abandon(self, record: Record) -> None:
        """Record that the pending placement is given up."""
        with self.store.transaction():
            self.store.drop_placement(*record.pending_key)
        record.pending = None
        self.version += 1
        self.stamp += 1

    def to_ring(self, record: Record, spec: GroupSpec, reason: str) -> None:
        """Record that calls run on a ring of the hosts from now on, as a new generation; ``reason`` says why switches
        do not carry them. Raises ``ManagerError`` if no program defines the calls, or a host lacks queue pairs."""
        program = self.fabric.program(spec.ranks)
        if program is None or not program.takes_part:
            raise ManagerError(Code.REFUSED, f"group {spec.name}: no registered switch runs a program for collectives")
        pools, needs, nics = self.pools(placed for _, placed in self.live()), ring_needs(program), self.fabric.nics
        lacks = [f"no ring: {host}: {why}" for host in spec.ranks for why in nics.get(host, OUR_NIC).lacks(needs)]
        if lacks:
            raise ManagerError(Code.REFUSED, "\n".join([*reason.splitlines(), *lacks]))
        try:
            ring = pools.pairs.ring(spec.ranks)
        except NoRoomError as error:
            lacks = [f"no ring: {diagnostic.message}" for diagnostic in error.diagnostics]
            raise ManagerError(Code.NO_ROOM, "\n".join([*reason.splitlines(), *lacks])) from error
        others, generation = self._adopt(record, spec), record.last + 1
        with self.store.transaction():
            self.store.put_group(record.row(GroupState.ACTIVE, generation, generation, reason))
            if record.placed is not None:
                self.store.drop_placement(*record.key)
            self._store_ring(record, StoredRing(generation, ring, home=record.home), pools.pairs.turns.shared)
        self._advance(pools)
        record.state, record.reason, record.generation, record.last = GroupState.ACTIVE, reason, generation, generation
        freed = record.placed is not None
        record.placed, record.ring, record.lost, record.lease = None, ring, False, None
        record.agreed, record.arrived, record.completed = None, {}, {}
        self.stamp += 1
        if freed and any(each.waits for each in self.records.values()):
            self.version += 1  # one of them may find a place now
        LOGGER.info("group %s: generation %d is on a ring", spec.name, generation)
        self._tell(record, others)

    def _adopt(self, record: Record, spec: GroupSpec) -> set[str]:
        """Have a group be what a request says. Returns the hosts that are no longer its ranks."""
        others = set(record.spec.ranks) - set(spec.ranks)
        if spec.term != record.spec.term:
            record.reports = {}
        record.spec = spec
        return others

    def settle_home(self, record: Record, home: IncTree) -> None:
        """Record the tree whose switches a group gets by leases from now on."""
        ring = StoredRing(record.generation, record.ring, record.agreed, home)
        with self.store.transaction():
            self._store_ring(record, ring)
        record.home = home
        self.stamp += 1

    def _store_ring(self, record: Record, ring: StoredRing, next_qp: int | None = None) -> None:
        if ring == StoredRing():
            self.store.drop_ring(record.spec.name)
        else:
            self.store.put_ring(record.spec.name, ring, next_qp)

    def break_(self, record: Record, reason: str, state: GroupState) -> None:
        """Record that there is currently no place for a group, which is broken or has failed."""
        with self.store.transaction():
            self.store.put_group(record.row(state, record.last, record.last, reason))
            if record.placed is not None:
                self.store.drop_placement(*record.key)
            self._store_ring(record, StoredRing())
        news = record.state is not state or record.reason != reason
        record.state, record.reason, record.generation = state, reason, record.last
        record.placed, record.ring, record.home, record.lease, record.lost = None, None, None, None, False
        self.stamp += 1
        if news:
            LOGGER.info("group %s is %s: %s", record.spec.name, state, "; ".join(reason.splitlines()))
            self._tell(record)

    def mark_removing(self, record: Record) -> None:
        """Record that a group is to be destroyed."""
        with self.store.transaction():
            self.store.put_group(record.row(GroupState.REMOVING, record.generation, record.last))
        record.state = GroupState.REMOVING
        self._tell(record)

    def drop(self, record: Record) -> None:
        """Remove a group and free its resources. With the last group of a job the job ends."""
        job = self.jobs.get(record.spec.name.rpartition(WITHIN)[0])
        names = {spec.name for spec in job.spec.group_specs(job.hosts)} if job is not None else set()
        last = names & self.records.keys() == {record.spec.name}
        with self.store.transaction():
            self.store.drop_group(record.spec.name)
            if last and job is not None:
                self.store.drop_job(job.spec.name)
        self.records.pop(record.spec.name, None)
        if last and job is not None:
            self.jobs.pop(job.spec.name)
        record.placed = record.pending = record.ring = record.home = None
        self.version += 1
        self.stamp += 1
        if record.last or record.told:
            self._tell(record, gone=True)
        self.changed.notify_all()

    def put_job(self, job: StoredJob, state: GroupState) -> None:
        """Record a job, new or in another state."""
        with self.store.transaction():
            self.store.put_job(replace(job, state=state))
        job.state = state
        self.jobs[job.spec.name] = job

    def drop_job(self, job: StoredJob) -> None:
        """Remove a job that has no groups."""
        with self.store.transaction():
            self.store.drop_job(job.spec.name)
        self.jobs.pop(job.spec.name, None)

    def ask(self, record: Record, hosts: Sequence[str], size: int) -> None:
        """Ask these hosts, which may be ranks of the group soon, for so many bytes of memory (``record.offers``)."""
        record.asked, record.offers, record.told = dict.fromkeys(hosts, size), {}, True
        for host in hosts:
            for watch in self._watches.get(host, ()):
                watch.put(self._membership(record, host))

    def ask_no_longer(self, record: Record) -> None:
        """End ``ask``. Hosts that have not become ranks are told so."""
        others = record.asked.keys() - set(record.spec.ranks)
        record.asked = {}
        self._tell_others(record, others)

    def agree(self, record: Record) -> None:
        """Record that all ranks are ready, and the call with which they begin."""
        agreed = min(record.arrived.values())
        with self.store.transaction():
            if record.ring is not None:
                self._store_ring(record, StoredRing(record.generation, record.ring, agreed, record.home))
            else:
                self.store.put_agreed(*record.key, agreed)
        record.agreed = agreed
        self.changed.notify_all()

    def forget_epochs(self, switch: str) -> None:
        """Forget the epochs used on a switch whose program was loaded again. The placements there have not been used
        since."""
        with self.store.transaction():
            self.store.drop_epochs(switch)
        self.histories[switch] = History()
        self.version += 1
        self.stamp += 1

    # --- notifications ---

    def watch(self, host: str) -> Watch:
        """Watch a host's memberships: the present ones, then every change."""

        def forget(watch: Watch) -> None:
            with self.changed:
                self._watches[host].discard(watch)
                if not self._watches[host]:
                    del self._watches[host]
                    self.unwatched[host] = time.monotonic()
                    self.changed.notify_all()

        self.unwatched.pop(host, None)
        watch = Watch(forget)
        for record in self.records.values():
            if host in record.spec.ranks or host in record.asked:
                watch.put(self._membership(record, host))
        self._watches[host].add(watch)
        return watch

    @property
    def watches(self) -> list[Watch]:
        """All open watches, of all hosts."""
        return [watch for some in self._watches.values() for watch in some]

    def _tell(self, record: Record, others: Iterable[str] = (), *, gone: bool = False) -> None:
        """Tell a group's hosts its state, and ``others`` that they are no longer its ranks."""
        for host in record.spec.ranks:
            for watch in self._watches.get(host, ()):
                watch.put(self._membership(record, host, gone=gone))
        self._tell_others(record, others)
        self.changed.notify_all()

    def _tell_others(self, record: Record, hosts: Iterable[str]) -> None:
        left = Membership(record.spec.name, record.state, record.generation, None, "it has other ranks", gone=True)
        for host in hosts:
            for watch in self._watches.get(host, ()):
                watch.put(left)

    def _membership(self, record: Record, host: str, *, gone: bool = False) -> Membership:
        generation = record.generation or record.last
        rank = record.spec.ranks.index(host) if host in record.spec.ranks else None
        active = record.state is GroupState.ACTIVE and not gone
        config = self.rank_config(record, rank) if active and rank is not None else None
        state = GroupState.INSTALLING if rank is None else record.state
        offer = record.asked.get(host, 0) if host not in record.offers else 0
        return Membership(record.spec.name, state, generation, config, record.reason, gone, offer)

    def rank_config(self, record: Record, rank: int) -> RankConfig:
        """The configuration of a rank of an active group."""
        return rank_config(record, rank, self.fabric)


def _of(placed: PlacedTrees | None, rank: int) -> Iterator[int]:
    """The numbers of a rank's queue pairs."""
    for part in placed.parts if placed is not None else ():
        ends = (channel.ends[rank] for channel in part.channels)
        yield from (end.qp + pair for end in ends for pair in range(end.pairs))
        yield from part.ring[rank] if part.ring is not None else ()
