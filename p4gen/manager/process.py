"""A process with an IncManager: agents, ticks, link state, service."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from p4gen.errors import InputError
from p4gen.manager.access.tenants import ALONE, load_tenants
from p4gen.manager.api import Agent, SwitchInfo
from p4gen.manager.groups.departures import AWAY
from p4gen.manager.manager import IncManager
from p4gen.manager.metricserver import MetricsServer
from p4gen.manager.remote.service import ManagerServer
from p4gen.manager.remote.tls import check_exposed, read_identity
from p4gen.manager.switches.agent import IncAgent
from p4gen.manager.switches.linkstate import LinkMonitor
from p4gen.manager.switches.ticks import INTERVAL_S, TickSender
from p4gen.vocabulary.topology import load_topology

DEFAULT_POLICY = "lowest-common-switch"
LOGGER = logging.getLogger("p4gen.manager")


@contextlib.contextmanager
def running_manager(
    addresses: Sequence[str],
    topology: str | None = None,
    db: Path | None = None,
    policy: str | None = None,
    tick_interval: float = INTERVAL_S,
    *,
    replan: bool = True,
    tls: Path | None = None,
    insecure: bool = False,
    tenants: Path | None = None,
    away: float | None = None,
    metrics: str | None = None,
) -> Iterator[ManagerServer]:
    """An IncManager that serves ``addresses`` while the block runs.

    ``topology`` is a file or a name, ``db`` the file that keeps its state, ``tick_interval`` the seconds between two
    ticks for an edge, ``replan`` whether groups move to faster trees by themselves. With ``tls``, the folder of its
    certificate, clients need one, too; ``insecure`` lets other machines reach it without. ``tenants`` is the file of
    tenants, ``metrics`` the address of the metrics, ``away`` that of ``Departures``. Raises ``P4genError`` when one of
    them is invalid.
    """
    away = AWAY if away is None else away
    identity = None if tls is None else read_identity(tls)
    known = ALONE if tenants is None else load_tenants(tenants)
    if tenants is not None and identity is None:
        raise InputError("tenants are told by their certificates: --tenants needs --tls DIR")
    if identity is None and not insecure:
        reached = [*addresses, *filter(None, [metrics])]
        check_exposed(reached, "they need no certificate: give --tls DIR, or --insecure if that is wanted")
    spec = None if topology is None else load_topology(topology)
    with contextlib.ExitStack() as stack:
        ticks = TickSender(tick_interval)
        stack.callback(ticks.close)
        # The manager makes agents for the switches in the file as soon as it is created.
        made = threading.Event()

        def report_links(switch: str, ports: Mapping[int, bool]) -> None:
            made.wait()
            manager.report_links(switch, ports)

        def lost(switch: str) -> None:
            made.wait()
            manager.agent_lost(switch)

        def heard(switch: str, frame: bytes) -> None:
            made.wait()
            manager.hear(switch, frame)

        monitor = LinkMonitor(report_links)
        stack.callback(monitor.close)

        def agent(info: SwitchInfo) -> Agent:
            monitor.watch(info.name, {link.port: link.interface for link in info.links if link.interface})
            return IncAgent(info, ticks, lost=lost, heard=heard)

        try:
            chosen = policy or DEFAULT_POLICY
            manager = IncManager(
                agent, topology=spec, store=db or ":memory:", policy=chosen, replan=replan, tenants=known, away=away
            )
        finally:
            made.set()
        stack.callback(manager.close)
        if metrics is not None:
            exported = stack.enter_context(MetricsServer(manager, metrics, tls, known))
            LOGGER.info("metrics are at %s", exported.url)
        server = stack.enter_context(ManagerServer(manager, *addresses, identity=identity, tenants=known, ping=away))
        stack.callback(manager.close)  # before the service, because its requests may wait in the manager
        LOGGER.info("the manager listens at %s", ", ".join(server.addresses))
        yield server
        LOGGER.info("the manager ends")
