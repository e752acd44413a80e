"""The configuration of the tested switch: groups that are placed on a fictitious network around it, in every role.

The switch is ``s``, with as many ports as the program has. Some of them lead to other switches, which are ``above`` and
``below`` it in the IncTrees of some groups; the others lead to hosts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from p4gen.errors import InputError
from p4gen.groups.family import group_entries
from p4gen.groups.group import Edge, Endpoint, GroupContext, Memory
from p4gen.host.collectives.plan import PsnSync
from p4gen.plan.placement.network import place
from p4gen.plan.placement.placed import GroupRequest
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec

_SWITCH, _ABOVE, _BELOW = "s", "above", "below"
_BEHIND = 2
"""Number of hosts at each of the other switches."""
_MOST_GROUPS = 4
_ATTEMPTS = 60


@dataclass(frozen=True)
class Line:
    """An external edge of the switch in one context. Traffic from its other end arrives over it."""

    context: int
    edge: Edge
    pipeline: int


@dataclass(frozen=True)
class Pattern:
    """A pattern at the switch as a whole. ``toward`` is the line toward its root; None if the switch is that root."""

    collective: Collective
    root: int
    toward: Line | None


@dataclass(frozen=True)
class Served:
    """A channel of a group: its contexts, one for each pipeline in use, and the lines that lead to the contexts."""

    contexts: tuple[GroupContext, ...]
    lines: tuple[Line, ...]
    patterns: tuple[Pattern, ...]

    @property
    def edges(self) -> tuple[tuple[int, Edge], ...]:
        """All edges, including internal ones, each with its pipeline."""
        return tuple((group.pipeline, edge) for group in self.contexts for edge in group.edges)

    def with_epoch(self, epoch: int, first_psn: int) -> Served:
        """This channel with another epoch and first PSN."""
        contexts = (replace(group, epoch=epoch, first_psn=first_psn) for group in self.contexts)
        return replace(self, contexts=tuple(contexts))


def layout(spec: CollectiveSpec, rng: random.Random) -> tuple[Served, ...]:
    """A few groups, at least one, that fit the program. Raises ``InputError`` if not even one fits."""
    topology = _topology(spec)
    requests: list[GroupRequest] = []
    found: tuple[Served, ...] = ()
    refused: InputError | None = None
    for attempt in range(_ATTEMPTS):
        wanted = _request(spec, topology, rng, modest=attempt > _ATTEMPTS // 2)
        try:
            found = tuple(_placed(spec, topology, [*requests, wanted]))
        except InputError as error:
            refused = error
            continue
        requests.append(wanted)
        if len(requests) == _MOST_GROUPS:
            break
    if not requests:
        assert refused is not None
        raise refused
    return found


def _topology(spec: CollectiveSpec) -> TopologySpec:
    others = (_ABOVE, _BELOW) if spec.ports > len((_ABOVE, _BELOW)) + 1 else ()
    near = [f"h{n}" for n in range(spec.ports - len(others))]
    links = [[host, _SWITCH] for host in near]
    # Spread the switch's neighbours over the pipelines.
    for position, other in enumerate(others):
        links.insert((position + 1) * len(links) // 3, [other, _SWITCH])
    hosts = list(near)
    for other in others:
        behind = [f"{other}{n}" for n in range(_BEHIND)]
        hosts += behind
        links += [[host, other] for host in behind]
    return TopologySpec.model_validate(
        {"name": "around", "switches": [_SWITCH, *others], "hosts": hosts, "links": links, "root": _SWITCH}
    )


def _request(spec: CollectiveSpec, topology: TopologySpec, rng: random.Random, *, modest: bool) -> GroupRequest:
    """A group in which the switch is root, leaf or in between, with all patterns in one context or one context per
    pattern."""
    pipes = _pipes(spec, topology)
    one = rng.choice(sorted(set(pipes.values()))) if len(set(pipes.values())) > 1 else 0
    near = [host for host in topology.hosts if pipes.get(host) == one]
    size = rng.choice((1, 2, 2, 3, 4) if modest else (2, 3, 4, 5, 8))
    ranks = rng.sample(near, min(size, len(near), spec.fan_in))
    root = _SWITCH
    if len(topology.switches) > 1:
        role = rng.randrange(4)
        if role & 1 and pipes[_BELOW] == one:
            ranks.append(f"{_BELOW}0")
        if role & 2 and pipes[_ABOVE] == one:
            ranks += [f"{_ABOVE}{n}" for n in range(_BEHIND)]
            root = _ABOVE
    rng.shuffle(ranks)
    sync = rng.choice((PsnSync.REFINED, PsnSync.REFINED, PsnSync.SUBGROUPS))
    roots = frozenset(rng.sample(range(len(ranks)), 1 if modest else min(len(ranks), 2)))
    first = rng.choice((rng.randrange(1 << 24), -rng.randrange(1, 40) % (1 << 24)))
    collectives = frozenset(Collective)
    if modest and sync is PsnSync.SUBGROUPS:
        collectives = frozenset({Collective.ALLREDUCE})
    request = GroupRequest(
        tuple(ranks), root, sync, collectives, roots, rng.randrange(1, 256), first, every_switch=True
    )
    reductions = frozenset({Collective.ALLREDUCE, Collective.REDUCE})
    for fewer in (collectives, collectives & reductions):
        if any(group_entries(spec).refusals(spec, request.channels())):
            request = replace(request, sync=PsnSync.SUBGROUPS, collectives=fewer)
    if not spec.uses_memory:
        return request
    request = replace(request, barriers=True)
    size = len(request.channels()) * spec.channel_memory
    offered = (Memory(rng.randrange(1 << 60), rng.randrange(1 << 32), size) for _ in ranks)
    return replace(request, memories=tuple(offered))


def _pipes(spec: CollectiveSpec, topology: TopologySpec) -> dict[str, int]:
    """The pipe of each neighbour of the switch: a group's edges are in one pipe."""
    arch = spec.architecture
    links = enumerate(topology.ports[_SWITCH])
    return {link.other(_SWITCH): arch.pipe_of(arch.front_port(number)) for number, link in links}


def _placed(spec: CollectiveSpec, topology: TopologySpec, requests: Sequence[GroupRequest]) -> Iterator[Served]:
    for number, group in enumerate(place(topology, spec, requests).groups):
        kept = spec.ipv4 and spec.roce_ipv6 and number % 2
        for channel in group.channels:
            contexts = tuple(context for key, context in channel.contexts.items() if key.switch == _SWITCH)
            if kept:  # the placer prefers IPv6 wherever a program takes both
                contexts = tuple(map(_over_ipv4, contexts))
            lines = tuple(
                Line(context.context, edge, context.pipeline)
                for context in contexts
                for edge in context.edges
                if edge.to_pipeline is None
            )
            if lines:
                yield Served(contexts, lines, tuple(_patterns(contexts, lines)))


def _over_ipv4(context: GroupContext) -> GroupContext:
    """A context with IPv4 addresses: the last bytes of network, tree and number of its IPv6 addresses."""

    def end(of: Endpoint) -> Endpoint:
        net, tree, number = (of.ip >> shift & 0xFF for shift in (64, 32, 0))
        return replace(of, ip=10 << 24 | net << 16 | tree << 8 | number)

    edges = (replace(edge, local=end(edge.local), remote=end(edge.remote)) for edge in context.edges)
    return replace(context, edges=tuple(edges))


def _patterns(contexts: Sequence[GroupContext], lines: Sequence[Line]) -> Iterator[Pattern]:
    for what in dict.fromkeys((p.collective, p.root) for context in contexts for p in context.patterns):
        ends = {
            context.edges[p.toward].edge_id
            for context in contexts
            for p in context.patterns
            if (p.collective, p.root) == what and p.toward is not None
        }
        yield Pattern(*what, next((line for line in lines if line.edge.edge_id in ends), None))
