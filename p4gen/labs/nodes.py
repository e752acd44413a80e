"""What the parts of a running lab need of it (``session.Lab``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from p4gen.labs.hosts.hosts import HostClient
from p4gen.labs.job import LabJob
from p4gen.labs.network.network import Network
from p4gen.labs.processes import Process
from p4gen.manager.remote.client import ManagerClient
from p4gen.vocabulary.topology import TopologySpec


class Nodes(Protocol):
    """A lab's processes."""

    job: LabJob
    topology: TopologySpec
    network: Network
    switches: dict[str, Process]
    hosts: dict[str, HostClient]

    @property
    def manager(self) -> ManagerClient:
        """A client of the manager. Raises ``FailedError`` when its process has ended."""
        ...

    @property
    def without_manager(self) -> bool:
        """Whether the manager was killed on request and has not been started again."""
        ...

    def check_hosts(self, names: Sequence[str]) -> None:
        """Raises ``InputError``, which lists the hosts, for names that are not hosts."""

    def check_running(self, hosts: Sequence[str]) -> None:
        """Raises ``FailedError`` when a process has ended without which these hosts cannot complete a call."""
