"""The most collectives that programs can serve in one group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from p4gen.groups.family import group_entries
from p4gen.groups.group import Memory
from p4gen.host.collectives.plan import PsnSync
from p4gen.plan.placement.placed import GroupRequest
from p4gen.vocabulary import ServingSpec
from p4gen.vocabulary.message import Collective

ANY_SYNC: Final = (PsnSync.REFINED, PsnSync.SUBGROUPS)


def served(
    spec: ServingSpec, ranks: Sequence[str], syncs: Sequence[PsnSync] = ANY_SYNC
) -> tuple[PsnSync, frozenset[Collective]]:
    """The collectives that programs of ``spec`` can serve in one group of these hosts, and the PSN synchronisation for
    it: the first of ``syncs``, which takes fewer contexts, if it can serve as many. No collectives if there are
    none."""
    found = [(sync, _served(spec, ranks, sync)) for sync in syncs]
    return max(found, key=lambda each: len(each[1]))


def missing(spec: ServingSpec, ranks: Sequence[str], sync: PsnSync, collectives: Iterable[Collective]) -> list[str]:
    """Why programs of ``spec`` cannot serve a group with these collectives, a sentence each; whatever the memory of its
    ranks, if they have to offer some."""
    memories = (Memory(0, 0, 0),) * len(ranks) if spec.uses_memory else ()
    request = GroupRequest(
        tuple(ranks),
        sync=sync,
        collectives=frozenset(collectives),
        memories=memories,
        possible_roots=spec.roots,
        barriers=not spec.own_state,
    )
    return [*request.problems(), *group_entries(spec).refusals(spec, request.channels())]


def _served(spec: ServingSpec, ranks: Sequence[str], sync: PsnSync) -> frozenset[Collective]:
    return frozenset(each for each in Collective if not missing(spec, ranks, sync, [each]))
