"""The work of ``p4gen route tree``: the fastest IncTree of a group on a topology."""

from __future__ import annotations

import json
import random
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from p4gen.cli.files import write_text, writing
from p4gen.cli.options import report_console
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.inputs import drawn, parsed
from p4gen.plan.route.fabric import Fabric
from p4gen.plan.route.planfile import TreePlan
from p4gen.plan.route.stripeplan import StripedPlan
from p4gen.plan.route.stripes import striped
from p4gen.plan.route.treedrawing import plot_trees
from p4gen.plan.route.trees import Compared, compare
from p4gen.vocabulary import units
from p4gen.vocabulary.topology import TopologySpec, load_topology


def do(
    topology: str,
    ranks: str | None,
    inc: str | None,
    ina: str | None,
    pipelines: str,
    ports: int | None,
    fan_in: int,
    trees: int,
    time_limit: float,
    out: Path | None,
    plot: Path | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Run the command with these options."""
    spec = load_topology(topology)
    if inc is not None and ina is not None:
        raise click.UsageError("--inc names the switches that aggregate, --ina draws them: give one of them")
    draws = ina is not None or (ranks is not None and ranks.isdecimal())
    console = report_console(quiet=as_json)
    seed = drawn(seed) if draws else seed or 0
    if draws:
        console.print(f"seed {seed}")
    chance = random.Random(seed)  # noqa: S311 - a simulation
    hosts = _ranks(spec, ranks, chance)
    switches = _aggregating(spec, inc, ina, chance)
    ports = program_ports(spec, ports, int(pipelines))
    found = compare(Fabric(spec, hosts, switches, fan_in=fan_in), int(pipelines), ports, time_limit)
    _show(found, console)
    plans: tuple[TreePlan, ...] = (found.plan,)
    content = found.plan.to_json()
    if trees > 1:
        several = StripedPlan.of(striped(found.fabric, trees, time_limit, found.plan.shape), int(pipelines), ports)
        _show_several(several, console)
        if len(several.plans) > 1:
            plans, content = several.plans, several.to_json()
    if out is not None:
        write_text(out, json.dumps(content, indent=1) + "\n")
        console.print(f"wrote {out}")
    if plot is not None:
        with writing(plot):
            plot_trees(plans, plot)
        console.print(f"wrote {plot}")
    if as_json:
        rates = {name: None if s is None else s.rate(found.fabric) for name, s in found.shapes.items()}
        click.echo(json.dumps({"seed": seed, "rates_bps": rates, **content}))


def program_ports(topology: TopologySpec, ports: int | None, pipelines: int) -> int:
    """The ports of the switches' programs: 32, or more where a switch has more links, or those asked for. Raises
    ``InputError`` if they are too few for the links, or not as many in each pipeline."""
    most = max(len(topology.ports[switch]) for switch in topology.switches)
    ports = ports or max(32, -(-most // 4) * 4)
    if ports < most or ports % pipelines:
        raise InputError(Diagnostic(Option("ports"), f"switches have up to {most} links, and {pipelines} pipelines"))
    return ports


def _ranks(topology: TopologySpec, given: str | None, chance: random.Random) -> tuple[str, ...]:
    if given is None:
        return topology.rank_hosts
    if not given.isdecimal():
        return tuple(given.split(","))
    if not 1 <= int(given[:6]) <= len(topology.hosts):
        raise InputError(Diagnostic(Option("ranks"), f"{topology.name} has {len(topology.hosts)} hosts"))
    return tuple(chance.sample(topology.hosts, int(given)))


def _aggregating(topology: TopologySpec, inc: str | None, ina: str | None, chance: random.Random) -> frozenset[str]:
    if inc is not None:
        return frozenset(inc.split(","))
    if ina is None:
        return frozenset(topology.switches)
    count = round(parsed("ina", units.share, ina) * len(topology.switches))
    return frozenset(chance.sample(topology.switches, max(1, count)))


def _show(found: Compared, console: Console) -> None:
    fabric, plan = found.fabric, found.plan
    some = len(fabric.inc) < len(fabric.topology.switches)
    names = f": {', '.join(sorted(fabric.inc))}" if some else ""
    console.print(
        f"{len(fabric.ranks)} ranks on {fabric.topology.name}; {len(fabric.inc)} of {len(fabric.topology.switches)} "
        f"switches aggregate{names}; rates in Gb/s, with headers"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("algorithm")
    for head in ("rate", "most flows", "nodes", "s"):
        table.add_column(head, justify="right")
    for name, shape in found.shapes.items():
        cells = ("none", "", "") if shape is None else (
            f"{shape.rate(fabric) / 1e9:.2f}", str(max(shape.loads(fabric).values())), str(len(shape.below))
        )  # fmt: skip
        table.add_row(name, *cells, f"{found.seconds[name]:.2f}")
    console.print(table)
    console.print(f"no tree is faster than {plan.bound / 1e9:.2f} Gb/s: gap {plan.gap:.1%}")
    if found.present_is_best:
        console.print("the manager's tree of shortest paths to one root (lcs) is optimal")
    elif found.shapes["lcs"] is None:
        console.print("lcs: refused, since branches meet in switches that do not aggregate, whatever the root")
    loads = plan.shape.loads(fabric)
    slowest = [name for name, count in sorted(loads.items()) if fabric.bandwidths[name] / count <= plan.rate * 1.0001]
    more = f" and {len(slowest) - 1} more" if len(slowest) > 1 else ""
    console.print(f"the slowest link: {slowest[0]} with {loads[slowest[0]]} flows{more}")


def _show_several(plan: StripedPlan, console: Console) -> None:
    each = ", ".join(f"{rate / 1e9:.2f}" for rate in plan.rates)
    what = f"{len(plan.plans)} trees have {plan.rate / 1e9:.2f} Gb/s together ({each})"
    if len(plan.plans) == 1:
        what = f"several trees are no faster than one, {plan.rate / 1e9:.2f} Gb/s"
    console.print(f"{what}; none have more than {plan.bound / 1e9:.2f}: gap {plan.gap:.1%}")
