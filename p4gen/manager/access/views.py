"""The manager as one tenant sees it: its own groups, hosts and connections, and no names of others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from typing_extensions import override

from p4gen.groups.group import Memory
from p4gen.manager.access.tenants import Tenants, tenant_of
from p4gen.manager.api import (
    Code,
    ConnectionSpec,
    ConnectionStatus,
    GroupSpec,
    GroupStatus,
    HostAddresses,
    HostInfo,
    JobSpec,
    JobStatus,
    Manager,
    ManagerError,
    Membership,
    RankReport,
    Status,
    SwitchInfo,
)
from p4gen.plan.placement.request import SEPARATOR


class TenantView(Manager):
    """``manager`` for ``tenant``. What it may not ask for raises ``ManagerError`` (``DENIED``). What belongs to others
    is as if it were not there.

    Texts of errors that ``manager`` raises have the manager's names of groups: ``told`` makes them the tenant's.
    """

    def __init__(self, manager: Manager, tenants: Tenants, tenant: str) -> None:
        self._manager, self._tenants, self._tenant = manager, tenants, tenant
        everybody = "|".join(map(re.escape, sorted({*tenants.all, tenant})))
        self._named = re.compile(rf"(?<![\w.-])({everybody}){SEPARATOR}([A-Za-z0-9][A-Za-z0-9_.:-]*)")

    def told(self, text: str) -> str:
        """A text of the manager without its names of groups: the tenant's own ones are the tenant's, others have
        none."""
        return self._named.sub(lambda m: m[2] if m[1] == self._tenant else "of another tenant", text)

    # --- hosts ---

    @override
    def register_switch(self, switch: SwitchInfo) -> None:
        raise ManagerError(Code.DENIED, "only operators register switches")

    @override
    def switch(self, name: str) -> SwitchInfo:
        raise ManagerError(Code.DENIED, "only operators see switches")

    @override
    def report_links(self, switch: str, ports: Mapping[int, bool]) -> None:
        raise ManagerError(Code.DENIED, "only operators report links")

    @override
    def cordon(self, node: str, *, on: bool) -> None:
        raise ManagerError(Code.DENIED, "only operators cordon nodes")

    @override
    def cordoned(self) -> list[str]:
        raise ManagerError(Code.DENIED, "only operators see cordoned nodes")

    @override
    def register_host(self, host: HostInfo) -> HostAddresses:
        self._check_hosts(host.name)
        return self._manager.register_host(host)

    @override
    def watch(self, host: str) -> OwnMemberships:
        self._check_hosts(host)
        return OwnMemberships(self, self._manager.watch(host))

    # --- groups ---

    @override
    def init_group(self, spec: GroupSpec) -> GroupStatus:
        self._check_hosts(*spec.ranks)
        return self._own(self._manager.init_group(replace(spec, name=self._full(spec.name))))

    @override
    def destroy_group(self, name: str) -> None:
        self._manager.destroy_group(self._full(name))

    @override
    def resize_group(self, name: str, slots: int) -> GroupStatus:
        return self._own(self._manager.resize_group(self._full(name), slots))

    @override
    def move_group(self, name: str, root: str | None = None) -> GroupStatus:
        return self._own(self._manager.move_group(self._full(name), root))

    @override
    def set_ranks(self, name: str, ranks: Sequence[str], term: int) -> GroupStatus:
        self._check_hosts(*ranks)
        return self._own(self._manager.set_ranks(self._full(name), ranks, term))

    @override
    def group(self, name: str) -> GroupStatus:
        return self._own(self._manager.group(self._full(name)))

    @override
    def groups(self) -> list[GroupStatus]:
        return [self._own(group) for group in self._manager.groups() if self._has(group.spec.name)]

    @override
    def init_job(self, spec: JobSpec) -> JobStatus:
        return self._own_job(self._manager.init_job(replace(spec, name=self._full(spec.name))))

    @override
    def destroy_job(self, name: str) -> None:
        self._manager.destroy_job(self._full(name))

    @override
    def job(self, name: str) -> JobStatus:
        return self._own_job(self._manager.job(self._full(name)))

    @override
    def jobs(self) -> list[JobStatus]:
        return [self._own_job(job) for job in self._manager.jobs() if self._has(job.spec.name)]

    @override
    def ready(self, group: str, generation: int, rank: int, completed: int, timeout: float = 60.0) -> int:
        return self._manager.ready(self._full(group), generation, rank, completed, timeout)

    @override
    def offer_memory(self, group: str, host: str, memory: Memory) -> None:
        self._check_hosts(host)
        self._manager.offer_memory(self._full(group), host, memory)

    @override
    def begin_call(self, group: str, generation: int, call: int) -> bool:
        return self._manager.begin_call(self._full(group), generation, call)

    @override
    def end_call(self, group: str, generation: int, rank: int, completed: int) -> None:
        self._manager.end_call(self._full(group), generation, rank, completed)

    @override
    def report_rank(self, report: RankReport) -> None:
        self._manager.report_rank(replace(report, group=self._full(report.group)))

    # --- connections ---

    @override
    def register_connection(self, spec: ConnectionSpec) -> ConnectionStatus:
        self._check_hosts(spec.source, spec.destination)
        return self._connection(self._manager.register_connection(spec))

    @override
    def release_connection(self, number: int) -> None:
        self._check_connection(number)
        self._manager.release_connection(number)

    @override
    def spray_connection(self, number: int, *, spray: bool) -> ConnectionStatus:
        self._check_connection(number)
        return self._connection(self._manager.spray_connection(number, spray=spray))

    @override
    def connections(self) -> list[ConnectionStatus]:
        return [self._connection(each) for each in self._manager.connections() if self._between_own(each)]

    # --- everything ---

    @override
    def status(self) -> Status:
        """Switches and RDMA CM's messages are everybody's, and are left out."""
        found = self._manager.status()
        return Status(
            found.time,
            tuple(self._own(group) for group in found.groups if self._has(group.spec.name)),
            (),
            tuple(replace(r, group=self.told(r.group)) for r in found.ranks if self._has(r.group)),
            {},
            tuple(self._connection(each) for each in found.connections if self._between_own(each)),
        )

    # --- names ---

    def own_membership(self, news: Membership) -> Membership | None:
        """A membership as the tenant sees it; None for that of another's group."""
        if not self._has(news.group):
            return None
        name, config = self.told(news.group), news.config
        mine = None if config is None else replace(config, group=name)
        return replace(news, group=name, config=mine, reason=self.told(news.reason))

    def _full(self, name: str) -> str:
        return f"{self._tenant}{SEPARATOR}{name}"

    def _has(self, group: str) -> bool:
        return tenant_of(group) == self._tenant

    def _own(self, group: GroupStatus) -> GroupStatus:
        spec = replace(group.spec, name=self.told(group.spec.name))
        return replace(group, spec=spec, reason=self.told(group.reason))

    def _own_job(self, job: JobStatus) -> JobStatus:
        spec = replace(job.spec, name=self.told(job.spec.name))
        return replace(job, spec=spec, groups=tuple(map(self._own, job.groups)))

    def _connection(self, found: ConnectionStatus) -> ConnectionStatus:
        return replace(found, reason=self.told(found.reason))

    def _between_own(self, found: ConnectionStatus) -> bool:
        ends = found.spec.source, found.spec.destination
        return all(self._tenants.owner(host) == self._tenant for host in ends)

    def _check_hosts(self, *hosts: str) -> None:
        others = [host for host in hosts if self._tenants.owner(host) != self._tenant]
        if others:
            raise ManagerError(Code.DENIED, f"not among the hosts of tenant {self._tenant}: {', '.join(others)}")

    def _check_connection(self, number: int) -> None:
        """Raises the error of a connection that does not exist for those of others."""
        if not any(each.number == number and self._between_own(each) for each in self._manager.connections()):
            raise ManagerError(Code.NOT_FOUND, f"there is no connection {number}")


class OwnMemberships(Iterator[Membership]):
    """The memberships of a host in groups of one tenant. ``close`` ends it, from any thread."""

    def __init__(self, view: TenantView, news: Iterator[Membership]) -> None:
        self._view, self._news = view, news

    def __next__(self) -> Membership:
        while True:
            found = self._view.own_membership(next(self._news))
            if found is not None:
                return found

    def close(self) -> None:
        """End the watch."""
        close = getattr(self._news, "close", None)
        if close is not None:
            close()
