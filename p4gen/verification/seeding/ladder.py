"""Small scopes in which faults are searched for, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from p4gen.errors import InputError
from p4gen.families import collective
from p4gen.groups.connections import connection_entries
from p4gen.host.collectives.plan import Flow, PsnSync
from p4gen.verification.family import verification_of
from p4gen.verification.parts.flows import FlowScope
from p4gen.verification.scope import GroupScope
from p4gen.verification.world import Budget, Scope, links_of
from p4gen.vocabulary import CollectiveSpec, ProgramSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

WRAP = 0xFFFFFE
"""The first PSN of most scopes: PSNs wrap around within them."""
HALF = 1 << 23
IDLE = WRAP + HALF - 64 & 0xFFFFFF
"""A first PSN for words that have idled until it seems newer than the first PSN of a scope."""
OTHER = 5
"""A seed of connections whose packets take the paths in the opposite order."""
ODD = 2
"""A seed of connections with an odd UDP source port, which has a bit that a path may change."""
SPREAD = {"star-2": ("h0", "h4"), "star-3": ("h0", "h1", "h4")}
"""The ranks on star-8 that replace those of a star if a program has two pipelines: their ports are in both."""

_A, _R, _B = Collective.ALLREDUCE, Collective.REDUCE, Collective.BROADCAST


def _star(spec: CollectiveSpec, name: str) -> TopologySpec:
    if spec.pipelines == 1:
        return load_topology(name)
    return TopologySpec.model_validate(links_of(load_topology("star-8")) | {"ranks": SPREAD[name]})


TWO_SWITCHES: Final = TopologySpec.model_validate(
    {
        "name": "leaf-and-root",
        "root": "s0",
        "switches": ["s0", "s1"],
        "hosts": ["h0", "h1", "h2"],
        "links": [["s1", "s0"], ["h0", "s1"], ["h1", "s1"], ["h2", "s0"]],
    }
)
"""The smallest network in which a node of a tree has a parent."""


def ladder(spec: ProgramSpec) -> Iterator[tuple[str, Scope]]:
    """Small scopes for a program, with their names: cheap ones first."""
    own = verification_of(spec).scopes
    if own is not None:
        return own.ladder(spec)
    if not spec.takes_part:
        return _flows(spec)
    program = collective(spec)
    # Connections with PSNs of their own have none that refined synchronisation could set.
    refined = {PsnSync.REFINED} if program.own_psns else set()
    return (named for named in _groups(program) if named[1].sync not in refined)


def _sharing(base: GroupScope) -> Iterator[tuple[str, GroupScope]]:
    """Two groups that share slots."""
    yield "shared slots", base
    yield "shared slots, a loss", replace(base, budget=Budget(losses=1))
    yield "shared slots, a duplicate", replace(base, budget=Budget(duplicates=1))
    yield "shared slots of two switches", replace(base, topology=TWO_SWITCHES)


def _groups(spec: CollectiveSpec) -> Iterator[tuple[str, GroupScope]]:
    two, three, tree = _star(spec, "star-2"), _star(spec, "star-3"), load_topology("tree-3-2")
    base = GroupScope(two, spec, first_psn=WRAP)
    third = replace(base, topology=three)
    loss, duplicate = Budget(losses=1), Budget(duplicates=1)

    def other(**fields: object) -> CollectiveSpec:
        return type(spec).model_validate({**spec.model_dump(exclude_unset=True), **fields})

    if spec.shared_blocks:
        yield from _sharing(replace(base, program=other(window=2, locks=1), packets=2, groups=2))
        return
    wide = other(window=4)
    yield "no faults", base
    yield "a forgery", replace(base, budget=Budget(forgeries=1))
    yield "a loss", replace(base, budget=loss)
    yield "a duplicate", replace(base, budget=duplicate)
    yield "a delay", replace(base, budget=Budget(delays=1))
    yield "a corruption", replace(base, budget=Budget(corruptions=1))
    yield "an early timeout", replace(base, budget=Budget(timeouts=1))
    yield "two groups of two", replace(base, program=other(groups=2), groups=2, packets=4)
    yield "five packets, a loss", replace(base, packets=5, budget=loss)
    yield "five packets, window 4, a loss", replace(base, program=wide, packets=5, budget=loss)
    yield "five packets, window 4, two losses", replace(base, program=wide, packets=5, budget=Budget(losses=2))
    yield "flow acks, a loss", replace(base, packets=4, flow=Flow.ACKS, budget=loss)
    yield "flow acks, a duplicate", replace(base, packets=4, flow=Flow.ACKS, budget=duplicate)
    yield "flow acks, window 2, seven packets", replace(base, program=other(window=2), packets=7, flow=Flow.ACKS)
    for name, call in (("reduce", _R), ("broadcast", _B)):
        for fault, budget in (("a loss", loss), ("a duplicate", duplicate)):
            yield f"{name} on star-3, {fault}", replace(third, collectives=(call,), budget=budget)
    for name, call in (("reduce", _R), ("broadcast", _B)):
        yield f"{name} on star-3, rank 1 is the root", replace(third, collectives=(call,), roots=(1,))
    longer = other(message=3, window=2)
    yield "messages of three packets", replace(base, program=longer, packets=4)
    patient = replace(base, program=longer, packets=7, ack_every=8)
    yield "messages of three packets, one ACK each, a loss", replace(patient, budget=loss)
    yield (
        "reduce from PSN 0, window 4, a loss",
        replace(base, program=wide, collectives=(_R,), first_psn=0, budget=loss),
    )
    if not spec.terminates:
        strict = other(window=4, reliability="gbn")
        yield (
            "two broadcasts on star-3, Go-Back-N, window 4, a loss",
            replace(third, program=strict, packets=4, collectives=(_B, _B), budget=loss),
        )
        yield (
            "broadcast on star-3, messages of two packets, a loss",
            replace(
                third,
                program=other(message=2, window=2, reliability="gbn"),
                first_psn=0xFFFFF0,
                packets=5,
                collectives=(_B,),
                ack_every=32,
                budget=loss,
            ),
        )
        yield (
            "broadcast on star-3, messages of two packets, idle",
            replace(
                third,
                program=other(message=2, window=2, reliability="gbn"),
                packets=5,
                collectives=(_B,),
                ack_every=32,
                idle_since=IDLE,
                budget=loss,
            ),
        )
        yield "four calls, a duplicate", replace(base, packets=2, collectives=(_A, _B, _R, _A), budget=duplicate)
    yield "four calls, a loss", replace(base, packets=2, collectives=(_A, _B, _R, _A), budget=loss)
    yield (
        "four calls, refined, a loss",
        replace(base, packets=2, collectives=(_A, _B, _R), sync=PsnSync.REFINED, budget=loss),
    )
    yield "two groups, a loss", replace(base, packets=2, groups=2, budget=loss)
    if not spec.terminates:
        yield (
            "two groups, broadcast, a loss",
            replace(base, packets=2, groups=2, collectives=(_B,), budget=loss),
        )
        yield (
            "two broadcasts on star-3, refined, two roots, window 4, a loss",
            replace(
                third,
                program=wide,
                packets=2,
                collectives=(_B, _B),
                roots=(0, 1),
                sync=PsnSync.REFINED,
                budget=loss,
            ),
        )
        yield (
            "allreduce and reduce on tree-3-2, refined, window 4, a loss",
            replace(
                base,
                topology=tree,
                program=wide,
                packets=2,
                collectives=(_A, _R),
                sync=PsnSync.REFINED,
                budget=loss,
            ),
        )
    yield "an earlier group, a loss", replace(base, stale=True, budget=loss)
    yield "an earlier group that was cut short, window 4", replace(base, program=wide, stale=True, cut=True)
    yield (
        "an earlier group, window 4, five packets, a loss",
        replace(base, program=wide, packets=5, stale=True, budget=loss),
    )
    yield (
        "an earlier group whose broadcast was cut short, window 4, a loss",
        replace(
            base,
            program=wide,
            collectives=(_A, _B),
            sync=PsnSync.REFINED,
            stale=True,
            earlier=(_B,),
            cut=True,
            budget=loss,
        ),
    )
    idle = replace(base, sync=PsnSync.REFINED, budget=loss)
    for since in (WRAP, IDLE):
        yield f"slots idle since {since:#x}", replace(idle, idle_since=since)
        yield (
            f"broadcast on star-3, window 4, idle since {since:#x}",
            replace(idle, program=wide, topology=three, collectives=(_B,), idle_since=since),
        )
    if not verification_of(spec).idles(spec):
        passing = replace(base, sync=PsnSync.REFINED, collectives=(_B, _A), packets=spec.slots_per_group + 1)
        yield f"broadcast and allreduce, slots idle since {WRAP:#x}", replace(passing, idle_since=WRAP)
    yield (
        "idle slots, window 4, five packets, a loss",
        replace(idle, program=wide, packets=5, idle_since=IDLE),
    )
    yield "a loss and a duplicate", replace(base, budget=Budget(losses=1, duplicates=1))
    yield "two losses", replace(base, budget=Budget(losses=2))
    yield "star-3, a loss", replace(third, packets=2, budget=loss)
    if spec.pipelines == 1 and spec.fan_in >= 4:
        yield "star-4, no faults", replace(base, topology=load_topology("star-4"), packets=2)
        yield "star-4, a loss", replace(base, topology=load_topology("star-4"), packets=2, budget=loss)
    if not spec.terminates:
        yield (
            "broadcast on star-3, Go-Back-N, window 4, two losses",
            replace(third, program=strict, packets=4, collectives=(_B,), budget=Budget(losses=2)),
        )
    for name, call in (("broadcast", _B), ("reduce", _R), ("allreduce", _A)):
        yield (
            f"{name} on tree-3-2, a loss",
            replace(base, topology=tree, packets=2, collectives=(call,), budget=loss),
        )
    if spec.own_psns:
        # Hosts that run ahead of the slots, and of what has been acknowledged.
        tight = replace(base, program=other(window=1, message=1, slots=2), packets=5)
        yield "two slots, a duplicate", replace(tight, budget=duplicate)
        yield "two slots, flow acks", replace(tight, flow=Flow.ACKS)
        yield "two slots, flow acks, a duplicate", replace(tight, flow=Flow.ACKS, budget=duplicate)
        yield (
            "four slots, messages of two packets, flow acks",
            replace(tight, program=other(window=1, message=2, slots=4), packets=7, flow=Flow.ACKS),
        )
        yield "two calls, an earlier group", replace(base, packets=2, collectives=(_A, _A), stale=True)
        yield "allreduce on tree-3-2, no faults", replace(base, topology=tree, packets=2)
    yield "a loss, a duplicate and a delay", replace(base, packets=2, budget=Budget(1, 1, 1))
    yield (
        "refined, flow acks, a loss and a duplicate",
        replace(base, packets=4, collectives=(_B, _A), sync=PsnSync.REFINED, flow=Flow.ACKS, budget=Budget(1, 1)),
    )


def _flows(spec: ProgramSpec) -> Iterator[tuple[str, FlowScope]]:
    facet = connection_entries(spec)
    if facet is None:
        raise InputError(f"{spec.program} serves neither groups nor connections: there is nothing to search")
    topology = load_topology("clos3:2x1x2x1x1" if facet.limits(spec).tiers else "clos:2x2x1")
    base = FlowScope(topology, spec, facet.core(spec))
    longer = replace(base, packets=6)
    loss = Budget(losses=1)
    yield "four packets", base
    yield "a loss", replace(base, budget=loss)
    yield "a duplicate", replace(base, budget=Budget(duplicates=1))
    yield "a corruption", replace(base, budget=Budget(corruptions=1))
    yield "PSNs wrap", replace(longer, first_psn=WRAP)
    yield "six packets", longer
    yield "another first path", replace(base, seed=OTHER)
    yield "an odd port", replace(base, seed=ODD)
    yield "earlier connections", replace(base, stale=True)
    yield "earlier connections, a loss", replace(base, stale=True, budget=loss)
    if "queue" in spec.model_fields_set:
        small = type(spec).model_validate(spec.model_dump(exclude_unset=True) | {"queue": 4, "queue_banks": 4})
        yield "a queue of four", replace(base, program=small)
    yield "two connections", replace(base, packets=3, connections=2)
    yield "PSNs wrap, a loss", replace(base, packets=5, first_psn=WRAP, budget=loss)
    yield "six packets, a loss", replace(longer, budget=loss)
    yield "a loss and a duplicate", replace(base, budget=Budget(losses=1, duplicates=1))
    yield "PSNs wrap, a loss and a corruption", replace(base, first_psn=WRAP, budget=Budget(losses=1, corruptions=1))
    yield "six packets, two losses", replace(longer, budget=Budget(losses=2))
    yield "two losses and a corruption", replace(base, budget=Budget(losses=2, corruptions=1))
    yield "two connections, a loss", replace(base, packets=3, connections=2, budget=loss)
    yield "five packets, a loss and a duplicate", replace(base, packets=5, budget=Budget(losses=1, duplicates=1))
    yield "eight packets, a loss", replace(base, packets=8, budget=loss)
    yield "seven packets, two losses", replace(base, packets=7, budget=Budget(losses=2))
    yield "nine packets, two losses", replace(base, packets=9, budget=Budget(losses=2))
    yield "seven packets, three losses", replace(base, packets=7, budget=Budget(losses=3))
