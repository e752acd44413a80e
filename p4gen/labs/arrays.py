"""Calls of CommLib's kind in labs: each rank has an array, and NumPy says what its result is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from typing_extensions import override

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array
from p4gen.labs.calls import ALLTOALL, ROOT, ROOTED, Asked, LabMembers, Plan, size_text
from p4gen.labs.hosts.ranks import DrawnArrays, GroupRanks
from p4gen.labs.steps import group_steps
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.values import draw, expected
from p4gen.plan.placement.served import missing, served
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective

COLLECTIVES: Final = dict.fromkeys(map(str, Collective), ROOTED)
SIZED: Final = frozenset(COLLECTIVES) - {Collective.BARRIER}


@dataclass(frozen=True)
class ArrayPlan(Plan):
    """A call of a collective, or an AlltoAll. The program of ``spec`` says what numbers are."""

    spec: CollectiveSpec
    call: Call
    ranks: int
    alltoall: bool = False
    """Whether it is an AlltoAll of arrays like those of ``call``."""
    packets: int = 0

    @property
    @override
    def title(self) -> str:
        name = ALLTOALL if self.alltoall else self.call.collective
        return f"{name} of {size_text(self.size)}, {self.ranks} ranks" if self.size else f"{name}, {self.ranks} ranks"

    @property
    @override
    def size(self) -> int:
        return self.call.size

    @property
    @override
    def held(self) -> int:
        return 2 * self.ranks * self.size

    @override
    def draw(self, chance: np.random.Generator) -> DrawnArrays:
        values = draw(self.call, self.spec, self.ranks, chance, overflowing=False)
        if self.alltoall:
            return DrawnArrays(None, values, _exchanged(values))
        return DrawnArrays(self.call, values, expected(self.call, self.spec, values))


def samples(ranks: int, size: int) -> list[Asked]:
    """Calls of all six collectives. Those with a root have the first and the last rank as root; those whose arrays are
    divided among the ranks have the next smaller size that can be, or an element of four bytes for each rank."""
    unit = 4 * ranks
    divided = max(size // unit, 1) * unit
    rooted: list[Asked] = [
        (each, size, {ROOT: str(root)}) for each in (Collective.REDUCE, Collective.BROADCAST) for root in (0, ranks - 1)
    ]
    return [
        (Collective.ALLREDUCE, size, {}),
        *rooted,
        (Collective.BARRIER, None, {}),
        (Collective.REDUCE_SCATTER, divided, {}),
        (Collective.ALLGATHER, divided, {}),
    ]


def _exchanged(values: Sequence[Array]) -> list[Array | None]:
    """Every rank's result of an AlltoAll."""
    ranks = len(values)
    blocks = np.stack(values).reshape(ranks, ranks, -1)
    return list(blocks.transpose(1, 0, 2).reshape(ranks, -1))


def _plan(spec: CollectiveSpec, ranks: int, collective: str, size: int | None, options: Mapping[str, Any]) -> ArrayPlan:
    call, hosts = Call(Collective(collective), size or 0, options[ROOT]), _hosts(ranks)
    sync, collectives = served(spec, hosts)
    if call.collective not in collectives:
        raise InputError(*missing(spec, hosts, sync, [call.collective]))
    call.check(spec, ranks)
    return ArrayPlan(spec, call, ranks)


def _served(spec: CollectiveSpec, ranks: int, size: int) -> list[Asked]:
    _, collectives = served(spec, _hosts(ranks))
    return [asked for asked in samples(ranks, size) if asked[0] in collectives]


def _hosts(ranks: int) -> tuple[str, ...]:
    return tuple(f"rank {rank}" for rank in range(ranks))


COMMLIB: Final[LabMembers[Any]] = LabMembers(
    collectives=COLLECTIVES,
    sized=SIZED,
    example="run allreduce 1M; groups",
    plan=_plan,
    samples=_served,
    ranks=GroupRanks,
    steps=group_steps,
    aligning=Collective.BARRIER,
)
"""Labs of programs that take part in CommLib's collectives, whatever their family."""
