"""The work of ``p4gen lab``: switches, hosts and a manager under Mininet; a prompt, or a scenario."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from p4gen import runs
from p4gen.builder import build
from p4gen.cli.labrequest import LabRequest, timer
from p4gen.cli.options import (
    arguments_of,
    spec_fields,
)
from p4gen.families import flag_name
from p4gen.groups.connections import connection_entries
from p4gen.host.transport.clock import MS
from p4gen.inputs import parsed
from p4gen.labs import prerequisites
from p4gen.labs.job import LabJob, Wanted
from p4gen.labs.launch import LabResult, launch
from p4gen.labs.network.hostnet import MANAGER_SOCKET
from p4gen.labs.prompt.welcome import display_path
from p4gen.labs.scratch import scratch_folder
from p4gen.labs.softroce import asked
from p4gen.labs.softroce.guest import Machine
from p4gen.manager.metricserver import MetricsServer
from p4gen.manager.remote.client import ManagerClient
from p4gen.manager.remote.tls import check_exposed
from p4gen.switch import targets
from p4gen.switch.running import Program
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec, is_generated

ADDRESS_FILE = Path("lab") / "manager"
"""Below ``--out``: where ``p4gen top`` looks for the manager of the running lab."""


_TIMEOUT = {targets.EMBEDDED: "50ms", targets.BMV2: "300ms"}
"""BMv2 handles about a thousand packets a second: a window must take much less time than this. Guests are as slow."""


def do(ctx: click.Context, /, topology: str, spec_file: Path | None, **options: Any) -> None:
    """Run the command with these options."""
    if options["metrics"] is not None:
        check_exposed([options["metrics"]], "a lab's metrics are for this one: 127.0.0.1:0 would do")
    for name in ("tenants", "tls"):
        options[name] = None if options[name] is None else options[name].absolute()
    request = LabRequest(topology, spec_file, options)
    network, file = request.network()
    wanted = request.wanted(network)
    spec = request.spec(network, wanted)
    targets.check_runs(options["target"], spec.architecture)
    prerequisites.check_topology(network, spec)
    request.check_kind(spec)
    request.check_call(wanted, spec, network)
    guests = request.guests(network)
    timeout = options["timeout"] or _TIMEOUT[targets.BMV2 if guests else options["target"]]
    options["timeout"] = parsed("timeout", timer, timeout)
    request.check_policy(network)
    prerequisites.check(options["target"])
    machines = asked.machines(guests)
    outcome, folder = _run(network, file, spec, wanted, machines, options)
    if options["as_json"]:
        click.echo(json.dumps({"target": options["target"], "folder": str(folder)} | outcome.result))
    elif outcome.status < 128:
        click.echo(f"logs and captures: {display_path(folder)}")
    ctx.exit(outcome.status)


def _run(
    topology: TopologySpec,
    file: Path,
    spec: ProgramSpec,
    wanted: Wanted,
    machines: dict[str, Machine],
    options: dict[str, Any],
) -> tuple[LabResult, Path]:
    """Build the program and run the lab, in a folder of its own."""
    target, out = options["target"], options["out"]
    folder = runs.new_folder(out, "lab", f"{topology.name}-{spec.program}", target).absolute()
    copy = folder / "topology.yaml"
    if is_generated(file):
        copy.write_text(json.dumps(clos_fields(str(file))), encoding="utf-8")
    else:
        shutil.copyfile(file, copy)
    if options["plan"] is not None:
        options["plan"] = Path(shutil.copyfile(options["plan"], folder / "plan.json"))
    program = _built(spec, folder / "program", target)
    facet = None if spec.takes_part else connection_entries(spec)
    leaves = {link.other(host) for host in topology.hosts for link in topology.ports[host]}
    core = spec if facet is None or leaves == set(topology.switches) else facet.core(spec)
    core_program = None if core == spec else _built(core, folder / "core-program", target)
    with scratch_folder() as (scratch, lock):
        job = LabJob(
            topology,
            copy,
            spec,
            program,
            target,
            options["engine"],
            folder,
            scratch,
            (out / ADDRESS_FILE).absolute(),
            wanted,
            options["timeout"] / MS,
            options["pcap"],
            options["verbose"],
            options["policy"],
            None if core_program is None else core,
            core_program,
            options["replan"] != "off",
            options["plan"],
            options["tenants"],
            options["tls"],
            machines,
        )
        with _metrics(options["metrics"], scratch):
            outcome = launch(job, lock)
    arguments = _arguments(copy, spec, options, wanted.seed)
    versions = targets.versions(target)
    record = runs.RunRecord("lab", spec.program, target, arguments, wanted.seed, outcome.status == 0, versions)
    steps = outcome.result.get("steps", ())
    cases = [runs.Case("lab", s["name"], s["seconds"], s["problem"]) for s in steps]
    runs.write_record(folder, record, cases, {"result": outcome.result})
    return outcome, folder


@contextlib.contextmanager
def _metrics(address: str | None, scratch: Path) -> Iterator[None]:
    """While the block runs, the metrics of the lab's manager are served outside its namespaces."""
    if address is None:
        yield
        return
    with (
        ManagerClient(f"unix:{scratch / MANAGER_SOCKET}") as manager,
        MetricsServer(manager, address) as server,
    ):
        click.echo(f"metrics: {server.url}", err=True)
        yield


def _built(spec: ProgramSpec, folder: Path, target: str) -> Program:
    built = build(spec, folder, use_p4c=target == targets.BMV2)
    stem = built.program.with_suffix("")
    json_file = stem.with_suffix(".json")
    return Program(built.program, stem.with_suffix(".p4info.txtpb"), json_file if json_file.exists() else None)


def _arguments(topology: Path, spec: ProgramSpec, options: dict[str, Any], seed: int) -> tuple[str, ...]:
    """The command line that repeats this run: with its copy of the topology, and the same seed."""
    found = ["lab", str(topology), *arguments_of(spec), "--seed", str(seed)]
    for name, value in options.items():
        if name in spec_fields() or name in ("out", "as_json", "seed", "metrics"):
            continue
        for each in value if isinstance(value, tuple) else (value,):
            if each is True:
                found.append(flag_name(name))
            elif each is not None and each is not False:
                found += [flag_name(name), f"{each}ps" if name == "timeout" else str(each)]
    return tuple(found)
