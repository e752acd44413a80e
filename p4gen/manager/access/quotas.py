"""Quotas of tenants, of what the ledger has recorded. The ledger's lock is held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from p4gen.manager.access.tenants import Tenants, tenant_of
from p4gen.manager.api import Code, ManagerError
from p4gen.manager.store.record import Record
from p4gen.plan.placement.placed import PlacedTrees


class Quotas:
    """The quotas of all tenants, and what ``records``, by name of group, use of them."""

    def __init__(self, tenants: Tenants, records: Mapping[str, Record]) -> None:
        self._tenants, self._records = tenants, records

    def check_group(self, name: str) -> None:
        """Raise ``ManagerError`` (``NO_ROOM``) if the tenant of a new group has as many as it may."""
        tenant = tenant_of(name)
        self._check(tenant, "groups", sum(tenant_of(other) == tenant for other in self._records))

    def check_connection(self, source: str, others: Collection[str]) -> None:
        """Raise ``ManagerError`` (``NO_ROOM``) if the tenant of a host has as many connections as it may; ``others``
        are the sources of all."""
        tenant = self._tenants.owner(source)
        self._check(tenant, "connections", sum(self._tenants.owner(other) == tenant for other in others))

    def _check(self, tenant: str, what: str, used: int) -> None:
        limit = self._tenants.quota(tenant, what)
        if limit is not None and used >= limit:
            raise ManagerError(Code.NO_ROOM, f"quota of tenant {tenant}: {used} of {limit} {what} are used")

    def lacks(
        self, name: str, placed: PlacedTrees, without: Collection[Record] = (), *, leased: bool = False
    ) -> Iterator[str]:
        """What a group's tenant lacks for a placement, a sentence for each quota, as if the groups ``without`` held
        nothing. What others have by leases does not count for a group that is to have this place by leases, too."""
        tenant = tenant_of(name)
        used = Counter[str]()
        for other, record in self._records.items():
            counts = tenant_of(other) == tenant and other != name and not any(record is each for each in without)
            if counts and not (leased and record.home is not None):
                used += _held(record.placed) | _held(record.pending)  # one of them is about to go
        for what, more in _held(placed).items():
            limit = self._tenants.quota(tenant, what)
            if limit is not None and used[what] + more > limit:
                yield f"quota of tenant {tenant}: {used[what]} of {limit} {what} are used; {more} more needed"


def _held(placed: PlacedTrees | None) -> Counter[str]:
    contexts = [context for _, context in placed.contexts] if placed is not None else []
    slots = sum(end - first for context in contexts for first, end in context.ranges())
    return Counter(contexts=len(contexts), slots=slots)
