"""What the parts of a running lab need of it (``session.Lab``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any, Final, Protocol

from p4gen.errors import FailedError
from p4gen.labs.hosts.hosts import HostClient
from p4gen.labs.job import LabJob
from p4gen.labs.network.network import Network
from p4gen.labs.processes import Process
from p4gen.manager.remote.client import ManagerClient
from p4gen.vocabulary.topology import TopologySpec

_LOOK_S: Final = 0.2
"""Seconds between looks at the processes that answers need."""
Answers = list[Future[dict[str, Any]]]


class Nodes(Protocol):
    """The processes of a lab: switches, hosts and a manager, with their network."""

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


def ask_all(
    lab: Nodes,
    hosts: Sequence[str],
    do: str,
    patience: float,
    each: Sequence[dict[str, Any]] = (),
    *,
    meanwhile: Callable[[], None] = lambda: None,
    **fields: Any,
) -> Answers:
    """Ask hosts the same, but for ``each`` host's own fields, and wait until all have answered, ``patience`` seconds at
    most.

    Raises ``FailedError`` when a process has ended without which these hosts cannot complete a call.
    """
    own = each or [{}] * len(hosts)
    asked = [lab.hosts[host].ask(do, **fields, **mine) for host, mine in zip(hosts, own, strict=True)]
    until = time.monotonic() + patience
    while wait(asked, _LOOK_S).not_done and time.monotonic() < until:
        lab.check_running(hosts)
        meanwhile()
    return asked


def answers_of_all(
    lab: Nodes, hosts: Sequence[str], do: str, patience: float, each: Sequence[dict[str, Any]] = (), **fields: Any
) -> list[dict[str, Any]]:
    """The answers of ``ask_all``. Raises ``FailedError``, too, if a host refuses, or does not answer in time."""
    asked = ask_all(lab, hosts, do, patience, each, **fields)
    late = [host for host, future in zip(hosts, asked, strict=True) if not future.done()]
    if late:
        raise FailedError(f"{', '.join(late)}: no answer to '{do}' in {patience:g} s")
    return [future.result() for future in asked]
