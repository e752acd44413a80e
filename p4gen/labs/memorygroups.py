"""Groups of a lab's hosts whose switches address their memory: what is offered, and when it is too small."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final

from p4gen.errors import InputError, P4genError
from p4gen.families import serving
from p4gen.groups.group import Memory
from p4gen.labs.job import JOIN_S
from p4gen.labs.nodes import Nodes
from p4gen.manager.api import GroupSpec, GroupStatus
from p4gen.plan.placement.served import served
from p4gen.records import from_plain

LEAST_PACKETS: Final = 255
"""Packets of each rank that memory has room for, unless a call takes more: with the fence 256."""


class MemoryGroups:
    """The memory of groups of ``lab``'s hosts. All methods raise ``P4genError`` with the reason."""

    def __init__(self, lab: Nodes) -> None:
        self._lab = lab
        self._packets: dict[str, int] = {}
        """What the memory of each group has room for."""

    def create(self, name: str, ranks: Sequence[str], root: str | None = None, packets: int = 0) -> GroupStatus:
        """Have all hosts offer their memory, and the manager create the group with it."""
        if len(set(ranks)) != len(ranks):
            raise InputError("a host can be only one rank")
        if any(status.spec.name == name for status in self._lab.manager.groups()):
            raise InputError(f"there is a group {name} already: destroy it first")
        room = max(packets, LEAST_PACKETS)
        try:
            memories = tuple(self._offers(name, ranks, room))
            sync, collectives = served(serving(self._lab.job.spec), ranks)
            status = self._lab.manager.init_group(
                GroupSpec(name, tuple(ranks), root, sync, collectives, memories=memories)
            )
        except P4genError:
            self._withdraw(name, ranks)
            raise
        self._packets[name] = room
        return status

    def room(self, name: str) -> int:
        """The number of packets of each rank that the memory of a group has room for."""
        return self._packets.get(name, 0)

    def _offers(self, name: str, ranks: Sequence[str], packets: int) -> list[Memory]:
        fields = {"name": name, "size": len(ranks), "packets": packets, "timeout": JOIN_S}
        asked = [self._lab.hosts[host].ask("offer", rank=rank, **fields) for rank, host in enumerate(ranks)]
        return [from_plain(Memory, future.result(JOIN_S + 5)) for future in asked]

    def _withdraw(self, name: str, ranks: Sequence[str]) -> None:
        asked: list[Future[dict[str, Any]]] = [self._lab.hosts[host].ask("withdraw", name=name) for host in ranks]
        for future in asked:
            future.exception(JOIN_S)
