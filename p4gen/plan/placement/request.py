"""Requests of clients to the manager, and the error with which it refuses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from p4gen.errors import FailedError
from p4gen.groups.group import Memory
from p4gen.host.collectives.plan import PsnSync
from p4gen.plan.placement.hosts import PLACEMENTS
from p4gen.plan.placement.windows import Schedule
from p4gen.vocabulary.message import Collective


class Code(StrEnum):
    """Why a request failed; gRPC's names for it."""

    INVALID = "INVALID_ARGUMENT"
    """The request is invalid: a rank twice, a host that is not registered."""
    EXISTS = "ALREADY_EXISTS"
    """The name is taken."""
    NOT_FOUND = "NOT_FOUND"
    NO_ROOM = "RESOURCE_EXHAUSTED"
    """It cannot be placed; the message says which switch lacks what, for every candidate."""
    UNREACHABLE = "UNAVAILABLE"
    """A switch does not answer."""
    REFUSED = "FAILED_PRECONDITION"
    """A switch refused, or the group's state does not permit the request."""
    DENIED = "PERMISSION_DENIED"
    """The caller may not ask for that."""


SEPARATOR: Final = "/"
"""Between a tenant and its own name of a group, in the manager's name of the group."""
WITHIN: Final = ":"
"""Between the name of a job and a group's own, in the group's name."""


class ManagerError(FailedError):
    """A request failed without leaving anything behind."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[ManagerError], tuple[Code, str]]:  # type: ignore[override]
        return type(self), (self.code, self.diagnostics[0].message)


@dataclass(frozen=True)
class GroupSpec:
    """A client's request for a group: InitGroup's content."""

    name: str
    ranks: tuple[str, ...]
    """Hosts, in order of rank."""
    root: str | None = None
    """Switch at the IncTree's root; the policy chooses by default."""
    sync: PsnSync = PsnSync.REFINED
    collectives: frozenset[Collective] = frozenset(Collective)
    slots: int | None = None
    """N for each pipe; the program's by default."""
    memories: tuple[Memory, ...] = field(default=(), metadata={"later": True})
    """The memory of each rank, if the switches of the group address it."""
    fallback: bool = field(default=False, metadata={"later": True})
    """Whether its calls run on a ring of its hosts while there is no place for it."""
    duty: float = field(default=1.0, metadata={"later": True})
    """The share of the time in which it communicates: its demand on switches that it shares by leases."""
    elastic: bool = field(default=False, metadata={"later": True})
    """Whether it stays when ranks go away: its calls fail, until it has other ranks. Other groups are destroyed."""
    term: int = field(default=1, metadata={"later": True})
    """The number of its set of ranks, counted from 1; the manager's."""
    gone: tuple[str, ...] = field(default=(), metadata={"later": True})
    """Its ranks that have gone away; the manager's."""
    schedule: Schedule | None = field(default=None, metadata={"later": True})
    """The windows of a period in which it communicates, if it keeps step with others; instead of ``duty``."""

    @property
    def share(self) -> float:
        """The share of the time in which it communicates: its duty, or that of its windows."""
        return self.duty if self.schedule is None else self.schedule.share

    @property
    def own_schedule(self) -> Schedule | None:
        """Its schedule; the clocks of tenants are different ones."""
        tenant = self.name.rpartition(SEPARATOR)[0]
        return self.schedule and replace(self.schedule, clock=f"{tenant}{SEPARATOR}{self.schedule.clock}")


@dataclass(frozen=True)
class JobGroup:
    """A group of a job: its ranks are those of the job, counted from 0."""

    spec: GroupSpec
    """The group as a request of its own, but for ``ranks``, which are empty. Its name is one within the job."""
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class JobSpec:
    """A client's request for a job (EPIC §G): so many hosts, which the manager chooses, and groups of them."""

    name: str
    size: int
    """Ranks of the job, each of which is a host."""
    groups: tuple[JobGroup, ...] = ()
    placement: str = PLACEMENTS[0]
    """Which hosts: one of ``PLACEMENTS``."""

    def group_specs(self, hosts: Sequence[str]) -> tuple[GroupSpec, ...]:
        """The requests for its groups, if these are the hosts in order of its ranks. Schedules without a clock have
        the job's."""
        clock = self.name.rpartition(SEPARATOR)[2]
        return tuple(
            replace(
                each.spec,
                name=f"{self.name}{WITHIN}{each.spec.name}",
                ranks=tuple(hosts[r] for r in each.ranks),
                schedule=(when := each.spec.schedule) and replace(when, clock=when.clock or clock),
            )
            for each in self.groups
        )


@dataclass(frozen=True)
class ConnectionSpec:
    """RegisterConnection's request: a reliable connection, whose requests go from ``source`` to ``destination``."""

    source: str
    destination: str
    """Hosts."""
    source_qp: int
    destination_qp: int
    mtu: int = 1024
    """Path MTU in bytes, as the NICs have it."""
    answer_port: int = 49152
    """UDP source port of the destination's answers."""
    answer_tos: int = 0
    """Byte of DSCP and ECN in the IPv4 headers of answers."""
    writes_only: bool = False
    """Whether the destination's NIC takes only WRITEs out of order."""
