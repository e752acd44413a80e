"""From a request to a placed group: the policy's candidates, in order, until one fits."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Final

from p4gen.errors import InputError
from p4gen.families import serving
from p4gen.groups.family import group_entries
from p4gen.groups.ranks import ring_needs
from p4gen.host.transport.nicinfo import NicInfo
from p4gen.plan.placement.duty import blocks_of, blocks_per_node, duties, overbooked
from p4gen.plan.placement.placed import GroupRequest, PlacedTrees, request_of
from p4gen.plan.placement.placer import Names, Placer, switch_of
from p4gen.plan.placement.policy import Candidate, FabricView, GroupView, PlacementPolicy, SwitchRoom
from p4gen.plan.placement.pools import Pools
from p4gen.plan.placement.request import SEPARATOR, Code, GroupSpec, ManagerError
from p4gen.plan.placement.spans import NoRoomError
from p4gen.plan.placement.tree import IncTree, build_tree, no_path, tree_links, tree_problems
from p4gen.vocabulary import ProgramSpec, ServingSpec
from p4gen.vocabulary.topology import TopologySpec

_PROPOSALS: Final = 10_000
"""The most candidates taken from a policy for one group: a policy may yield endlessly."""
_NAME: Final = re.compile(rf"([A-Za-z0-9][A-Za-z0-9_.-]{{0,30}}{SEPARATOR})?[A-Za-z0-9][A-Za-z0-9_.:-]{{0,62}}")
"""Of a group, after its tenant's if it has one."""


@dataclass(frozen=True)
class View:
    """The fabric at one moment; immutable."""

    topology: TopologySpec
    names: Names
    programs: Mapping[str, ProgramSpec]
    """The switches that have registered."""
    down: Mapping[str, str]
    """Names of links that cannot be used, each with the reason."""
    nics: Mapping[str, NicInfo] = field(default_factory=dict)
    """The NICs of hosts whose NIC is not p4gen's own."""

    @cached_property
    def specs(self) -> Mapping[str, ServingSpec]:
        """The registered switches whose programs serve groups."""
        return {name: serving(spec) for name, spec in self.programs.items() if spec.serves_groups}

    @cached_property
    def _next_ports(self) -> dict[tuple[str, str], tuple[int, ...]]:
        return {}

    def next_ports(self, switch: str, host: str) -> tuple[int, ...]:
        """The ports of ``switch`` on shortest paths to ``host``; none if every path is down, or either is unknown."""
        found = self._next_ports.get((switch, host))
        if found is None:
            topology = self.topology
            known = switch in topology.ports and host in topology.ports
            found = topology.next_ports(switch, host, self.down) if known else ()
            self._next_ports[switch, host] = found
        return found

    @cached_property
    def links(self) -> frozenset[frozenset[str]]:
        """The links that can be used, by their ends."""
        return frozenset(frozenset(link.ends) for link in self.topology.links if link.name not in self.down)


class NoPlaceError(ManagerError):
    """No candidate fits. ``epochs``: switches that lack nothing but epochs."""

    def __init__(self, code: Code, message: str, epochs: frozenset[str] = frozenset()) -> None:
        super().__init__(code, message)
        self.epochs = epochs


def check(spec: GroupSpec, view: View) -> None:
    """Refuse requests that are invalid for every placement. Raises ``ManagerError`` with every reason."""
    problems = []
    if not _NAME.fullmatch(spec.name):
        problems.append(f"'{spec.name}' is not a name for a group: letters, digits, '_', '.', ':', '-', 63 at most")
    problems += tree_problems(view.topology, spec.ranks, spec.root)
    problems += group_request(spec, 0, view).problems()
    addressed = bool(spec.memories) and not any(program.channel_memory for program in view.specs.values())
    if spec.fallback and addressed:
        problems.append("ranks that offer their memory to switches cannot call on a ring (fallback)")
    if spec.elastic and addressed:
        problems.append("ranks that offer their memory to switches cannot be replaced (elastic)")
    if spec.fallback and len(spec.ranks) < 2:
        problems.append("a ring needs at least two ranks (fallback)")
    if not 0 < spec.duty <= 1:  # NaN is refused, too
        problems.append(f"a duty of {spec.duty:g}: it is a share of the time, more than 0 and at most 1")
    if spec.schedule is not None:
        problems += spec.schedule.problems()
        if spec.duty != 1:
            problems.append("a group has a duty, or windows, whose share of the time is its duty")
    lacks = [list(_refusals(spec, program, view.nics)) for program in view.specs.values()]
    if lacks and all(lacks):
        problems += dict.fromkeys(reason for some in lacks for reason in some)
    if spec.slots is not None:
        reasons = [list(_slot_problems(spec.slots, program)) for program in view.specs.values()]
        if reasons and all(reasons):
            problems += dict.fromkeys(reason for some in reasons for reason in some)
    if problems:
        raise ManagerError(Code.INVALID, "\n".join(problems))


@dataclass(frozen=True)
class Plan:
    """A placed group, and the pools after it. With ``leased``, the group gets its tree by leases; the placement only
    shows that there is room beside groups that keep their resources."""

    placed: PlacedTrees
    pools: Pools
    leased: bool = False


@dataclass(frozen=True)
class Room:
    """The resources of groups. ``pools`` makes pools without anything that is held, ``lasting`` without resources that
    are held for more than a call."""

    pools: Callable[[], Pools]
    lasting: Callable[[], Pools]


def group_request(spec: GroupSpec, first_psn: int, view: View) -> GroupRequest:
    """The request to a tree's switches, of those of ``view``. Epochs are chosen among those that
    their state has not had yet."""
    wanted = request_of(spec, view.specs.values())
    return replace(wanted, epoch=None, first_psn=first_psn, slots=spec.slots)


class Search:
    """The search for a place for one group, among the policy's proposals on one view of the fabric.

    ``avoid`` has switches that are not to be used, each with the reason; ``groups`` are all that have a tree. Resources
    are only read here. Only trees that ``accept`` accepts are tried; it also gets the rates if there are several.
    ``quota`` says what the group's tenant lacks for a placement, which may be one by leases, a sentence each. Raises
    ``NoPlaceError`` for a request that no tree can serve.
    """

    def __init__(
        self,
        spec: GroupSpec,
        view: View,
        policy: PlacementPolicy,
        room: Room,
        first_psn: int,
        avoid: Mapping[str, str],
        groups: Iterable[GroupView] = (),
        accept: Callable[[Sequence[IncTree], Sequence[float]], bool] | None = None,
        quota: Callable[[PlacedTrees, bool], Iterable[str]] | None = None,
    ) -> None:
        topology = view.topology
        problems = list(tree_problems(topology, spec.ranks, spec.root))
        if problems:
            raise NoPlaceError(Code.INVALID, "\n".join(problems))
        self.view = view
        self._spec, self._policy, self._groups, self._accept = spec, policy, tuple(groups), accept
        self._quota = quota
        self._down = dict(view.down)
        for switch, reason in avoid.items():
            self._down |= {link.name: reason for link in topology.ports[switch]}
        self._per_pipeline = {name: program.ports // program.pipelines for name, program in view.programs.items()}
        self._request = group_request(spec, first_psn, view)
        self._seen = FabricView(topology, self._down, self._rooms(room), self._groups)
        self._refused: dict[str, None] = {}
        self._epochs: frozenset[str] = frozenset()
        self._tried: set[tuple[tuple[IncTree, ...], tuple[float, ...], bool]] = set()
        self.without_stripes = False
        """Whether several trees that the policy proposes have been refused."""

    def candidates(self) -> Iterable[Candidate]:
        """The policy's proposals, or the request's own root."""
        if self._spec.root is not None:
            return [Candidate(self._spec.root, leased=getattr(self._policy, "leases", False) is True)]
        return _proposals(self._policy, self._seen, self._spec)

    def attempt(self, candidate: Candidate, room: Room) -> Plan | None:
        """Place the group on a candidate's trees. Returns None if it does not fit there."""
        found = self._attempt(candidate, room)
        self.without_stripes |= found is None and bool(candidate.stripes)
        return found

    def _attempt(self, candidate: Candidate, room: Room) -> Plan | None:
        view, spec, topology = self.view, self._spec, self.view.topology
        stripes = sorted(candidate.stripes, key=lambda stripe: -stripe.rate)
        rates = tuple(stripe.rate for stripe in stripes)
        try:
            trees = tuple(stripe.tree for stripe in stripes) or (self._tree(candidate),)
        except InputError as error:
            self._refused |= dict.fromkeys(d.message for d in error.diagnostics)
            return None
        if self._accept is not None and not self._accept(trees, rates):
            self._refused[f"root {_roots(trees)}: it is not faster than the present tree"] = None
            return None
        if (trees, rates, candidate.within_time) in self._tried:
            return None
        where = "the policy's own tree"
        try:
            self._tried.add((trees, rates, candidate.within_time))
            where = f"root {_roots(trees)}"
            program = view.specs.get(trees[0].root.key.switch)
            sharing = program is not None and program.shared_blocks > 0
            # Without the lease a group uses a ring; one that shares slots by locks needs no other leases.
            leased = candidate.leased and len(spec.ranks) > 1 and not spec.memories and not sharing
            slots = self._request.slots or (None if leased or sharing else candidate.slots)
            wanted = replace(self._request, slots=slots)
            problems = [*_striped_wrongly(candidate, spec), *_unfit(trees, view, wanted, rated=bool(stripes))]
            if candidate.disjoint:
                problems += (why for tree in trees for why in _shared(tree, topology, spec.name, self._groups))
            if leased and candidate.within_time and not problems:
                taken = blocks_per_node(spec, view.specs[trees[0].root.key.switch])
                problems += overbooked(trees[0], spec, taken, self._seen.switches)
            if problems:
                self._refused |= dict.fromkeys(f"{where}: {problem}" for problem in problems)
                return None
            mine = room.lasting() if leased else room.pools()
            placer = Placer(topology, view.names, view.specs, mine)
            parts = tuple(placer.place(wanted, tree) for tree in trees)
            if sharing:
                parts = (replace(parts[0], ring=mine.pairs.ring(spec.ranks)),)
            placed = PlacedTrees(parts, rates)
            if over := [*self._quota(placed, leased)] if self._quota is not None else []:
                self._refused |= dict.fromkeys(f"{where}: {reason}" for reason in over)
                return None
            return Plan(placed, mine, leased)
        except InputError as error:
            if isinstance(error, NoRoomError):
                self._epochs |= error.epochs
            self._refused |= dict.fromkeys(f"{where}: {d.message}" for d in error.diagnostics)
        except Exception as error:
            if candidate.tree is None and not stripes:
                raise
            self._refused[f"{where}: the tree that the policy proposes is invalid: {error!r}"] = None
        return None

    def overbooked(self, tree: IncTree) -> bool:
        """Whether a switch of a tree would be promised for more time than there is, with the group there."""
        taken = blocks_per_node(self._spec, self.view.specs.get(tree.root.key.switch))
        return any(overbooked(tree, self._spec, taken, self._seen.switches))

    def _rooms(self, room: Room) -> dict[str, SwitchRoom]:
        view = self.view
        pools, lasting, promised = room.pools(), room.lasting(), duties(self._groups, self._spec.name)
        found = {}
        for name, program in view.specs.items():
            if not all(link.name in self._down for link in view.topology.ports[name]):
                pool, left = pools.switch(name), lasting.switch(name)
                pipelines = range(program.pipelines)
                blocks = blocks_of(program, left.contexts_free, map(left.slots_free, pipelines))
                free = tuple(map(pool.slots_free, pipelines))
                duty, scheduled = promised.get(name, (0.0, ()))
                found[name] = SwitchRoom(program, pool.contexts_free, free, blocks, duty, scheduled)
        return found

    def _tree(self, candidate: Candidate) -> IncTree:
        """A candidate's tree; where the group has a server, the only one that leads there."""
        view, ranks = self.view, self._spec.ranks
        program = view.specs.get(switch_of(view.topology, ranks[-1]))
        server = program is not None and program.has_server
        if candidate.tree is not None and not server:
            return candidate.tree
        return build_tree(
            view.topology,
            ranks,
            self._spec.root if server else candidate.root,
            ports_per_pipeline=self._per_pipeline,
            down=self._down,
            server=server,
        )

    def failure(self) -> NoPlaceError:
        """An error that says for every candidate what each switch lacks."""
        topology, ranks, refused = self.view.topology, self._spec.ranks, self._refused
        if self._tried:
            return NoPlaceError(Code.NO_ROOM, "\n".join(refused), self._epochs)
        if not refused:
            at = switch_of(topology, ranks[0])
            away = topology.distances(at, self._down)
            refused = dict.fromkeys(no_path(topology, host, at, self._down) for host in ranks if host not in away)
        return NoPlaceError(Code.UNREACHABLE, "\n".join(refused) or "the policy proposes no tree")


def _shared(tree: IncTree, topology: TopologySpec, name: str, groups: Iterable[GroupView]) -> Iterator[str]:
    """The links of a tree that other groups use, a sentence each."""
    links = tree_links(tree, topology)
    for group in groups:
        both = sorted(links & group.links)
        if both and group.name != name:
            more = f" and {len(both) - 1} more" if len(both) > 1 else ""
            yield f"link {both[0]}{more} of its tree is in that of group {group.name}"


def _proposals(policy: PlacementPolicy, view: FabricView, spec: GroupSpec) -> Iterator[Candidate]:
    """A policy's proposals, until there are more than can be right. A policy may be anybody's code, so every error in
    it becomes the policy's failure. Raises ``ManagerError`` (``REFUSED``)."""
    name = f"the placement policy {type(policy).__module__}:{type(policy).__qualname__}"
    try:
        for candidate in islice(policy.candidates(view, spec), _PROPOSALS):
            if not isinstance(candidate, Candidate):
                raise ManagerError(Code.REFUSED, f"{name} proposes {candidate!r}, which is not a Candidate")
            yield candidate
    except ManagerError:
        raise
    except Exception as error:
        raise ManagerError(Code.REFUSED, f"{name} failed: {type(error).__name__}: {error}") from error


def _roots(trees: Sequence[IncTree]) -> str:
    return " and ".join(tree.root.key.switch for tree in trees)


def _striped_wrongly(candidate: Candidate, spec: GroupSpec) -> Iterator[str]:
    """Why a group cannot have trees with rates, or not these, a sentence each."""
    stripes = candidate.stripes
    if not stripes:
        return
    if not all(0 < stripe.rate < math.inf for stripe in stripes):
        yield "the rates of its trees are positive numbers"
    if any(stripe.tree.ranks != spec.ranks for stripe in stripes):
        yield "its trees are not of the group's ranks"
    if candidate.leased:
        yield "a group that has its switches by leases has one tree, without a rate"
    if spec.memories:
        yield "ranks that offer their memory to switches have one tree, without a rate"


def _unfit(trees: Sequence[IncTree], view: View, request: GroupRequest, *, rated: bool) -> Iterator[str]:
    """Why the programs on a group's trees cannot serve it, whatever resources are free, a sentence each. ``rated``:
    whether trees have rates."""
    specs, names = view.specs, list(dict.fromkeys(node.key.switch for tree in trees for node in tree.nodes))
    others = [name for name in names if name not in specs]
    if others:
        yield from (f"{name}: its program serves no groups" for name in others)
        return
    first = names[0]
    for name in names[1:]:
        for what, mine in specs[name].alike.items():
            theirs = specs[first].alike.get(what, "none")
            if mine != theirs:
                yield f"{name} has {what} {mine}, {first} has {theirs}; the switches of a tree need the same"
    if specs[first].shared_blocks and len(request.ranks) < 2:
        yield f"{first}: groups share its slots by locks; a ring for calls that get none needs at least two ranks"
    if specs[first].shared_blocks and rated:
        yield f"{first}: a group that shares its slots by locks has one tree, without a rate"
    if rated and any(specs[name].has_server for name in names):
        yield "a group with a server has one tree, without a rate"
    alone = next((name for name in names if specs[name].single_switch), None)
    if alone is not None and len(names) > 1:
        yield f"{len(names)} switches between the ranks; programs of {specs[alone].family} serve groups around one"
    for node in (node for tree in trees for node in tree.nodes):
        name, program = node.key.switch, specs[node.key.switch]
        if len(node.edges) > program.fan_in:
            yield f"{name}: {len(node.edges)} edges; its program takes {program.fan_in} (fan_in)"
    for name in names:
        yield from (f"{name}: {reason}" for reason in _refusals(request, specs[name], view.nics))
        for reason in _slot_problems(request.slots or specs[name].slots_per_group, specs[name]):
            yield f"{name}: {reason}"


def _refusals(spec: GroupSpec | GroupRequest, program: ServingSpec, nics: Mapping[str, NicInfo]) -> Iterator[str]:
    if bool(spec.memories) != program.uses_memory:
        what = "needs the memory of each rank" if program.uses_memory else "knows no memory of ranks"
        yield f"{program.program} {what}"
        return
    facet, channels = group_entries(program), request_of(spec, [program]).channels()
    yield from facet.refusals(program, channels)
    needed = len(channels) * program.channel_memory
    for rank, memory in enumerate(spec.memories):
        if memory.size < needed:
            yield f"rank {rank} offers {memory.size:,} bytes; its {len(channels)} queue pairs take {needed:,}"
    for host, nic in nics.items():
        if host in spec.ranks:
            needs = [facet.needs(program), *([ring_needs(program)] if program.shared_blocks else [])]
            yield from dict.fromkeys(f"{host}: {reason}" for each in needs for reason in nic.lacks(each))
            if nic.owns_numbers and any(len(serves) > 1 for serves in channels):
                yield f"{host}: its NIC alone sets PSNs: sync subgroups would do"
            if nic.owns_numbers and not program.icrc.right:
                yield f"{host}: its NIC checks ICRCs, and those of {program.program} are wrong: icrc set would do"


def _slot_problems(slots: int, spec: ServingSpec) -> Iterator[str]:
    needed = spec.needed_slots
    if spec.own_state and slots != needed:
        yield f"{slots} slots; each context of the program has {needed}"
    elif spec.shared_blocks and slots != spec.slots_per_group:
        yield f"{slots} slots; each block that groups share has {spec.slots_per_group}"
    elif slots < needed or slots & (slots - 1):
        yield f"{slots} slots; it takes a power of two of at least {spec.slots_formula} = {needed}"
    elif slots > spec.total_slots:
        yield f"{slots} slots; the program has {spec.total_slots}"
