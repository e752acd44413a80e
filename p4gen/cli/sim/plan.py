"""``p4gen sim run --plan``: a collective over the trees of a plan of ``p4gen route tree``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import collective_from, spec_fields
from p4gen.cli.sim.config import configuration
from p4gen.errors import Diagnostic, InputError
from p4gen.groups.wire import payload_share
from p4gen.net.collectives.simulation import SimConfig, SimResult
from p4gen.plan.route.stripeplan import StripedPlan, read_striped
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology


def planned(
    topology_name: str, spec_file: Path | None, options: Mapping[str, Any], file: Path
) -> tuple[SimConfig, StripedPlan]:
    """The run that options describe, over the plan's trees: its pipelines and ports, and a window and a timer that fit
    its rates, where nothing else is said. Raises ``InputError``."""
    plan = read_striped(file, load_topology(topology_name))
    if options["concurrent"] != 1:
        raise click.UsageError("--plan is for one group, not for --concurrent")
    said: dict[str, Any] = dict(options)
    first = plan.first
    if spec_file is None:
        for name, value in (("pipelines", first.pipelines), ("ports", first.ports)):
            said[name] = said[name] or str(value)
        spec = collective_from(None, {name: said[name] for name in spec_fields()})
        said["window"] = said["window"] or str(plan.window(spec))
    spec = collective_from(spec_file, {name: said[name] for name in spec_fields()})
    if (spec.pipelines, spec.ports) != (first.pipelines, first.ports):
        raise InputError(
            Diagnostic(
                str(file),
                f"is for programs of {first.ports} ports and {first.pipelines} pipelines; "
                f"this one has {spec.ports} and {spec.pipelines}",
            )
        )
    said["timeout"] = said["timeout"] or f"{plan.timeout(spec)}ps"
    config = configuration(topology_name, spec_file, said, studied=False)
    config = replace(config, topology=config.topology.model_copy(update={"ranks": first.ranks}))
    (job,) = config.jobs
    return replace(config, work=plan.work(job.calls, config.program, config.ack_every)), plan


def compared(plan: StripedPlan, result: SimResult) -> str:
    """What was measured, and what the plan promises AllReduce."""
    config = result.config
    by = f"plan by {plan.first.algorithm}" if len(plan.plans) == 1 else f"plan with {len(plan.plans)} trees"
    kind = f"{by}: {plan.rate / 1e9:.2f} Gb/s with headers, gap {plan.gap:.1%}"
    if config.collective is not Collective.ALLREDUCE or not result.ended or not config.size:
        return kind
    predicted = plan.rate * payload_share(config.program, config.ack_every)
    return (
        f"{kind}; goodput {result.throughput / 1e9:.2f} Gb/s is {result.throughput / predicted:.3f} of the "
        f"{predicted / 1e9:.2f} predicted"
    )
