"""The hosts of a lab that a user wants to be guests with Soft-RoCE, and the machines that they become."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from p4gen.errors import InputError
from p4gen.host.collectives.plan import PsnSync
from p4gen.inputs import quote
from p4gen.labs.softroce import guest, images, kernel
from p4gen.labs.softroce.guest import Machine
from p4gen.labs.softroce.layer import layer
from p4gen.plan.placement.served import ANY_SYNC
from p4gen.vocabulary.topology import TopologySpec

SOFTROCE: Final = "softroce"


def parse(text: str, topology: TopologySpec) -> dict[str, str]:
    """By host that is a guest, the version of its Linux: ``softroce`` (all hosts), or ``h0=softroce,h1=softroce:6.1``.

    Raises ``InputError``.
    """
    found: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        host, sign, kind = part.rpartition("=")
        name, colon, version = kind.partition(":")
        if name != SOFTROCE or (colon and version not in kernel.KERNELS):
            kinds = (SOFTROCE, *(f"{SOFTROCE}:{each}" for each in kernel.KERNELS))
            raise InputError(f"--hosts: {quote(kind)} is no kind of hosts; there are {', '.join(kinds)}")
        if sign and host not in topology.hosts:
            raise InputError(f"--hosts: there is no host {quote(host)}; there are {', '.join(topology.hosts)}")
        found |= dict.fromkeys([host] if sign else topology.hosts, version or kernel.DEFAULT)
    return found


def syncs(ranks: Iterable[str], guests: Collection[str]) -> Sequence[PsnSync]:
    """The synchronisations of PSNs that a group of these hosts can have: a guest's device alone sets its PSNs."""
    return ANY_SYNC if not set(guests).intersection(ranks) else (PsnSync.SUBGROUPS,)


def machines(versions: Mapping[str, str]) -> dict[str, Machine]:
    """The machines of guests, by host. Raises ``MissingToolError`` without images, QEMU, or packages for guests."""
    if not versions:
        return {}
    guest.check()
    found = {version: images.find(version) for version in dict.fromkeys(versions.values())}
    ours = layer()
    accelerator = guest.accelerator(next(iter(found.values())))
    return {host: Machine(found[version], ours, accelerator) for host, version in versions.items()}
