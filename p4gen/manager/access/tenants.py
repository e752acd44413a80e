"""Tenants, as a file describes them: the names in their certificates, their hosts, their quotas.

A group of a tenant is called ``tenant/name`` in the manager and in its store, and ``name`` by the tenant. So tenants do
not learn of each other's names, and the store knows whose a group is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from p4gen.errors import Diagnostic, InputError
from p4gen.manager.api import Code, ManagerError
from p4gen.plan.placement.request import SEPARATOR
from p4gen.vocabulary.positions import diagnostics, read_yaml
from p4gen.vocabulary.topology import Name

Number = Annotated[int, Field(ge=0, strict=True)]
TenantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,30}$")]
OPERATOR: Final = ""
"""The tenant of who may ask for everything."""


class Tenant(BaseModel):
    """A tenant. A quota that is not given has no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    certificates: Annotated[
        tuple[str, ...], Field(description="names in its certificates; without any, the tenant's own")
    ] = ()
    hosts: Annotated[tuple[Name, ...], Field(description="hosts that belong to it")] = ()
    groups: Annotated[Number | None, Field(description="groups at a time")] = None
    contexts: Annotated[Number | None, Field(description="contexts of its groups on all switches together")] = None
    slots: Annotated[Number | None, Field(description="slots of its groups on all switches together")] = None
    connections: Annotated[Number | None, Field(description="connections that its hosts have registered")] = None


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    operators: tuple[str, ...]
    tenants: dict[TenantName, Tenant] = {}

    @model_validator(mode="after")
    def _distinct(self) -> _File:
        both = sorted(set(self.operators) & self.tenants.keys())
        if both:
            raise ValueError(f"{both[0]} is an operator and a tenant; the log could not tell them apart")
        names = [*self.operators, *(each for tenant in self.certificates.values() for each in tenant)]
        for what, values in (("certificate", names), ("host", [h for t in self.tenants.values() for h in t.hosts])):
            for value, count in Counter(values).items():
                if count > 1:
                    raise ValueError(f"{what} {value} is listed {count} times; it belongs to one")
        return self

    @property
    def certificates(self) -> dict[str, tuple[str, ...]]:
        return {name: tenant.certificates or (name,) for name, tenant in self.tenants.items()}


@dataclass(frozen=True)
class Tenants:
    """All tenants, by name. Without a file there are none, and everybody is an operator."""

    all: Mapping[str, Tenant] = field(default_factory=dict)
    _known: Mapping[str, str] | None = None
    """Tenants by the name in a certificate; operators' is ``OPERATOR``. None without a file."""
    _owners: Mapping[str, str] = field(default_factory=dict)
    """Tenants by host."""

    def identify(self, names: Sequence[str]) -> str:
        """The tenant of a caller whose certificate has these names; ``OPERATOR`` for an operator. Raises
        ``ManagerError`` (``DENIED``) for any other caller."""
        if self._known is None:
            return OPERATOR
        if len(names) != 1:
            raise ManagerError(Code.DENIED, f"a client's certificate has one name; this one has {len(names)}")
        if names[0] not in self._known:
            raise ManagerError(Code.DENIED, "the name in the certificate is not one of a tenant")
        return self._known[names[0]]

    def quota(self, tenant: str, what: str) -> int | None:
        """A quota of a tenant, by its field; None if there is no limit. A tenant that is no longer in the file gets
        nothing more."""
        if tenant in self.all:
            limit: int | None = getattr(self.all[tenant], what)
            return limit
        return 0 if tenant and self._known is not None else None

    def owner(self, host: str) -> str:
        """The tenant to which a host belongs; ``OPERATOR`` if it belongs to none."""
        return self._owners.get(host, OPERATOR)


ALONE: Final = Tenants()
"""No tenants: everybody is an operator."""


def tenant_of(group: str) -> str:
    """The tenant of a group, by its name in the manager; ``OPERATOR`` if it has none."""
    return group.rpartition(SEPARATOR)[0]


def load_tenants(file: Path) -> Tenants:
    """The tenants in a YAML file. Raises ``InputError`` with one diagnostic for each wrong value, with its position."""
    value, where, lines = read_yaml(file)
    if not isinstance(value, dict):
        raise InputError(Diagnostic(where.get((), str(file)), "tenants are a mapping, as in 'operators: [ops]'"))
    try:
        found = _File.model_validate(value)
    except ValidationError as error:
        raise InputError(*diagnostics(error, where, lines, str(file))) from None
    known = dict.fromkeys(found.operators, OPERATOR)
    known |= {certificate: name for name, mine in found.certificates.items() for certificate in mine}
    owners = {host: name for name, tenant in found.tenants.items() for host in tenant.hosts}
    return Tenants(found.tenants, known, owners)
