"""``p4gen manager serve``: the IncManager with its agents, as a process."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from pathlib import Path

import click

from p4gen.cli.defaults import LOG_FORMATS
from p4gen.cli.logs import logging_to
from p4gen.cli.values import ADDRESS, POLICY, TOPOLOGY
from p4gen.cli.verb import FiniteRange, verb

DEFAULT_ADDRESS = "127.0.0.1:9560"
PLAN = "P4GEN_PLAN"
"""The environment variable in which the policy ``aro`` looks for a plan (``p4gen.plan.route.policy``)."""


@verb(
    examples=[
        ("--topology tree-3-2 --db groups.db", "groups on a known topology, kept in a file"),
        ("--topology leaf-spine --policy aro --plan plan.json", "trees as fast as their links allow"),
        ("--listen unix:/run/p4gen.sock", "at a unix socket, with the switches that register"),
        ("--listen unix:/run/p4gen.sock --listen 0.0.0.0:9560 --tls /etc/p4gen/tls", "for other machines, too"),
    ]
)
@click.option(
    "--listen", "addresses", type=ADDRESS, multiple=True, default=(DEFAULT_ADDRESS,),
    help=f"Where the service listens; port 0 takes a free one; unix:PATH is for its user alone.  [{DEFAULT_ADDRESS}]",
)  # fmt: skip
@click.option(
    "--tls", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
    help="Its ca.crt, tls.crt, tls.key; clients at HOST:PORT need a certificate of that authority.",
)  # fmt: skip
@click.option(
    "--tenants", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="A YAML file: whose certificates may ask for what. Without it any certificate may ask for everything.",
)  # fmt: skip
@click.option("--insecure", is_flag=True, help="Allow addresses without TLS that other machines can reach.")
@click.option("--topology", type=TOPOLOGY, help="A YAML file or a name; default: what switches and hosts report.")
@click.option(
    "--db", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="SQLite file in which groups outlive the manager.  [none]",
)  # fmt: skip
@click.option("--policy", type=POLICY, help="Where groups are put.  [lowest-common-switch]")
@click.option(
    "--plan", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="A plan of `p4gen route tree`, for the policy aro.  [P4GEN_PLAN]",
)  # fmt: skip
@click.option(
    "--replan", type=click.Choice(("on", "off")), default="on",
    help="Whether groups move by themselves to trees that are faster by a tenth.  [on]",
)  # fmt: skip
@click.option(
    "--tick-interval", metavar="MS", type=FiniteRange(1, 60_000), default=20.0,
    help="Between two ticks for an edge (Mode III): longer than packets in flight need to be acknowledged.  [20]",
)  # fmt: skip
@click.option(
    "--away", metavar="S", type=FiniteRange(0.1, 3600),
    help="Seconds after the end of a host's process until its groups end; four times that if it is only silent.  [4]",
)  # fmt: skip
@click.option(
    "--metrics", metavar="ADDRESS", type=ADDRESS,
    help="Where Prometheus finds /metrics, and others /healthz and /readyz; with --tls as HTTPS, for operators.",
)  # fmt: skip
@click.option("--log-file", metavar="FILE", type=click.Path(path_type=Path), help="[standard error]")
@click.option("--log-format", type=click.Choice(LOG_FORMATS), default="text", help="JSON: an object a line.  [text]")
@click.option(
    "--audit-log", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="A line of JSON for each request: who asked for what, and what came of it.",
)  # fmt: skip
@click.option("--until-eof", is_flag=True, hidden=True)
def command(
    addresses: tuple[str, ...],
    tls: Path | None,
    tenants: Path | None,
    insecure: bool,
    topology: str | None,
    db: Path | None,
    policy: str | None,
    plan: Path | None,
    replan: str,
    tick_interval: float,
    away: float | None,
    metrics: str | None,
    log_file: Path | None,
    log_format: str,
    audit_log: Path | None,
    until_eof: bool,
) -> None:
    """Manage groups on switches that register, until SIGTERM or Ctrl-C.

    The service is p4gen.manager.v1.IncManager (p4gen/manager/incmanager.proto); p4gen.manager.remote.client is its
    client.
    """
    if plan is not None:
        if policy != "aro":
            raise click.UsageError("--plan is for --policy aro")
        _check_plan(plan, topology)
        os.environ[PLAN] = str(plan)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    # Imports take most of the start-up time, so wrong options are reported before.
    from p4gen.manager.process import running_manager  # noqa: PLC0415
    from p4gen.manager.remote.access import AUDIT  # noqa: PLC0415

    interval, moving = tick_interval / 1000, replan == "on"
    log = logging.getLogger("p4gen.manager")
    with contextlib.ExitStack() as stack:
        stack.enter_context(logging_to(log_file, log, logging.INFO, log_format))
        if audit_log is not None:
            stack.enter_context(logging_to(audit_log, AUDIT, logging.DEBUG, "json", "--audit-log"))
        server = stack.enter_context(
            running_manager(
                addresses,
                topology,
                db,
                policy,
                interval,
                replan=moving,
                tls=tls,
                insecure=insecure,
                tenants=tenants,
                away=away,
                metrics=metrics,
            )
        )  # fmt: skip
        click.echo(f"listening at {', '.join(server.addresses)}")
        sys.stdout.flush()
        if until_eof:
            threading.Thread(target=_stop_with_parent, args=(ending,), daemon=True).start()
        ending.wait()


def _check_plan(plan: Path, topology: str | None) -> None:
    """Raises ``InputError`` for a plan that is not for the topology, where that is known."""
    from p4gen.plan.route.jobsplan import read_plans  # noqa: PLC0415 - only plans need it
    from p4gen.vocabulary.topology import load_topology  # noqa: PLC0415

    if topology is not None:
        read_plans(plan, load_topology(topology))


def _stop_with_parent(ending: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    ending.set()
