"""The work of ``p4gen topo``: check a topology, describe it, draw it."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.table import Table

from p4gen.cli.files import writing
from p4gen.cli.options import report_console
from p4gen.errors import InputError
from p4gen.families import load_collective
from p4gen.host.transport.clock import duration_text
from p4gen.net.drawing import topology_svg
from p4gen.plan.placement.network import place
from p4gen.plan.placement.placed import GroupRequest
from p4gen.plan.placement.placer import Names
from p4gen.rocev2.headers import ipv4_text
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology, packaged_folder


def do(topology: str | None, svg: Path | None, as_json: bool) -> None:
    """Run the command with these options."""
    if topology is None:
        if svg is not None:
            raise click.UsageError("--svg draws a topology: name one")
        _list(as_json=as_json)
        return
    spec = load_topology(topology)
    if svg is not None:
        with writing(svg):
            svg.write_text(topology_svg(spec), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(spec.model_dump(mode="json") | {"svg": str(svg) if svg else None}))
    else:
        _show(spec, svg)


def _list(*, as_json: bool) -> None:
    """What is built in, by name."""
    specs = [load_topology(file) for file in sorted(packaged_folder().glob("*.yaml"))]
    if as_json:
        click.echo(json.dumps({"topologies": [spec.name for spec in specs]}))
        return
    table = Table("topology", "switches", "hosts", "links", box=None, pad_edge=False, header_style="bold")
    for spec in specs:
        table.add_row(spec.name, *(str(len(parts)) for parts in (spec.switches, spec.hosts, spec.links)))
    report_console().print(table)


def _show(spec: TopologySpec, svg: Path | None) -> None:
    console = report_console()
    root, reason = _tree_root(spec)
    console.print(
        f"{spec.name}: {len(spec.switches)} switches, {len(spec.hosts)} hosts, {len(spec.links)} links; "
        f"{len(spec.rank_hosts)} ranks, " + (f"IncTree rooted at {root}" if root else f"no IncTree: {reason}")
    )
    table = Table("switch", "ports", box=None, pad_edge=False, header_style="bold")
    for switch in spec.switches:
        ports = [f"{port}:{link.other(switch)}" for port, link in enumerate(spec.ports[switch])]
        table.add_row(switch, " ".join(ports))
    console.print(table)
    hops = ["hops to the root"] if root else []
    table = Table("rank", "host", "address", *hops, "its link", box=None, pad_edge=False, header_style="bold")
    away = spec.distances(root) if root else {}
    addresses = Names.of(spec).ip
    for rank, host in enumerate(spec.rank_hosts):
        link = spec.ports[host][0]
        speed = f"{spec.setting(link, 'bandwidth') / 1e9:g} Gb/s, {duration_text(spec.setting(link, 'delay'))}"
        table.add_row(str(rank), host, ipv4_text(addresses[host]), *([str(away[host])] if root else []), speed)
    console.print(table)
    console.print(f"wrote {svg}" if svg else "--svg FILE draws it")


def _tree_root(spec: TopologySpec) -> tuple[str | None, str]:
    """The root of an IncTree of all ranks; None and the reason if there cannot be one, as for hundreds of ranks."""
    group = GroupRequest(spec.rank_hosts, collectives=frozenset({Collective.ALLREDUCE}))
    try:
        return place(spec, load_collective(None, {"groups": 1}), [group]).root, ""
    except InputError as error:
        return None, "; ".join(diagnostic.message for diagnostic in error.diagnostics)
