"""``p4gen lab``: switches, hosts and a manager under Mininet, in their own namespaces; a prompt, or a scenario."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import click

from p4gen import runs
from p4gen.builder import build
from p4gen.cli.labrequest import LabRequest, collectives, timer
from p4gen.cli.options import (
    arguments_of,
    json_option,
    out_option,
    spec_fields,
    spec_options,
    target_option,
)
from p4gen.cli.seeds import seed_option
from p4gen.cli.values import POLICY, TOPOLOGY
from p4gen.cli.verb import FiniteRange, verb
from p4gen.groups.connections import connection_entries
from p4gen.host.transport.clock import MS
from p4gen.inputs import parsed
from p4gen.labs import prerequisites
from p4gen.labs.job import LabJob, Wanted
from p4gen.labs.launch import LabResult, launch
from p4gen.labs.prompt.welcome import display_path
from p4gen.labs.scratch import scratch_folder
from p4gen.model import ENGINES
from p4gen.switch import targets
from p4gen.switch.running import Program
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec, is_generated

ADDRESS_FILE = Path("lab") / "manager"
"""Below ``--out``: where ``p4gen top`` looks for the manager of the running lab."""
_TIMEOUT = {targets.EMBEDDED: "50ms", targets.BMV2: "300ms"}
"""BMv2 handles about a thousand packets a second: a window must take much less time than this."""


@verb(
    examples=[
        ("star-4 --mode III", "a prompt"),
        ("tree-3-2 --mode II --collective allreduce --size 1M", "a scenario: run it, compare with NumPy, end"),
        ("leaf-spine --mode III --suite", "all collectives, under faults, over a link that is cut"),
        ("star-4 --collective reduce --size 64K --root 2 --loss 1%@h0", "with losses at one host"),
        (
            "tree-3-2 --groups 1 --policy time-shared --collective allreduce --ranks h0,h2 --ranks h1,h3",
            "groups that have the switches in turns",
        ),
        ("leaf-spine --policy aro --plan trees.json --collective allreduce", "over the trees of a plan"),
        ("star-4 --mode multiwrite", "a prompt: run allgather 64K; run dispatch tokens 32"),
        ("star-4 --mode scin --suite", "collectives that the switch starts"),
        ("leaf-spine --mode themis --collective alltoall --delay 1ms@spine0", "over connections that leaves spray"),
    ]
)
@click.argument("topology", type=TOPOLOGY)
@spec_options
@target_option
@click.option(
    "--engine", type=click.Choice(ENGINES), default="jit", show_default=True, help="What runs embedded switches."
)
@click.option(
    "--collective",
    type=click.Choice(tuple(collectives())),
    help="Run it, and end; alltoall over connections only, dispatch only where ranks write to each other.",
)
@click.option(
    "--set", multiple=True, metavar="NAME=VALUE", help="An option of a collective, as at the prompt: --set tokens=32."
)
@click.option("--size", metavar="BYTES", help="Each rank's data, such as 64K or 1M.  [1M]")
@click.option("--root", type=click.IntRange(0, 1023), help="Root rank of reduce and broadcast.  [0]")
@click.option(
    "--ranks",
    multiple=True,
    metavar="all|h0,h2,...",
    help="Hosts, in order of rank; several times for groups that call at the same time.  [the topology's ranks]",
)
@click.option(
    "--repeat", type=click.IntRange(1, 99_999), help="Collectives, one after another.  [1; --measure: 10, BMv2: 3]"
)
@click.option(
    "--loss",
    multiple=True,
    metavar="SHARE[@PLACE]",
    help="Lose packets at links, in both directions: 1% at all hosts' links, 5%@h1, 1%@leaf0-spine1; at a switch's "
    "links to other switches: 1%@spine0.",
)
@click.option("--delay", multiple=True, metavar="TIME[@PLACE]", help="Delay packets: 1ms@spine0.")
@click.option("--reorder", multiple=True, metavar="SHARE[@PLACE]", help="Delay some, so that packets are reordered.")
@click.option("--duplicate", multiple=True, metavar="SHARE[@PLACE]", help="Deliver packets twice.")
@click.option("--corrupt", multiple=True, metavar="SHARE[@PLACE]", help="Flip one to three bits.")
@click.option(
    "--bandwidth", multiple=True, metavar="RATE[@PLACE]", help="Limit links, in each direction: 20M (bit/s), 5M@s0-s1."
)
@click.option(
    "--fail",
    multiple=True,
    metavar="LINK[@FROM[-TO]]",
    help="Take a link down after a time: s0-s1@0.2s, s0-s1@0.2s-1s.",
)
@click.option("--suite", is_flag=True, help="All collectives, under loss, and over a link that fails and comes back.")
@click.option("--measure", is_flag=True, help="AllReduce of 4K, 64K and 1M compared with EPIC's Table 19.")
@seed_option("data and faults.")
@click.option("--timeout", metavar="TIME", help="Retransmission timer of queue pairs, 1ms to 60s.  [50ms; BMv2: 300ms]")
@click.option(
    "--deadline", type=FiniteRange(0.1, 86_400), default=120.0, show_default=True, help="Seconds for a scenario."
)
@click.option("--spray", type=click.Choice(("on", "off")), help="Whether leaves spray connections at first.  [on]")
@click.option("--policy", type=POLICY, help="Where the manager puts groups.  [lowest-common-switch]")
@click.option("--replan", type=click.Choice(("on", "off")), help="Whether groups move to faster trees.  [on]")
@click.option(
    "--plan", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="A plan of `p4gen route tree`, for the policy aro.  [P4GEN_PLAN]",
)  # fmt: skip
@click.option("--fallback", is_flag=True, help="Groups without a place call on a ring of their hosts.")
@click.option(
    "--duty",
    multiple=True,
    metavar="SHARE",
    help="Of time in which groups communicate, for policies that share it: of all, or once for each --ranks.",
)
@click.option("--pcap", is_flag=True, help="Capture every node from the start.")
@click.option("--verbose", is_flag=True, help="BMv2 logs every step of every packet.")
@out_option
@json_option
@click.pass_context
def command(ctx: click.Context, /, topology: str, spec_file: Path | None, **options: Any) -> None:
    """Bring up a network of switches and hosts with a manager, under Mininet.

    TOPOLOGY is a YAML file, a built-in topology's name (`p4gen topo` lists them), or clos:LxSxH (leaves, spines, hosts
    on each leaf). Without a scenario (--collective, --suite, --measure) there is a prompt, which takes commands from a
    pipe, too. Needs root and Mininet; it leaves nothing behind, however it ends. Exit status 1 when a result is wrong.

    If switches do not take part in collectives (--mode themis), hosts run them over connections with each other: on a
    ring, or as an AlltoAll. Leaves run the program; other switches only route. In labs of --mode multiwrite they write
    to each other, each packet to several hosts: AllGather and dispatch. In labs of --mode scin the switch reads their
    operands, and writes results and flags.
    """
    request = LabRequest(topology, spec_file, options)
    network, file = request.network()
    wanted = request.wanted(network)
    spec = request.spec(network, wanted)
    targets.check_runs(options["target"], spec.architecture)
    prerequisites.check_topology(network, spec)
    request.check_kind(spec)
    request.check_call(wanted, spec, network)
    timeout = options["timeout"] or _TIMEOUT[options["target"]]
    options["timeout"] = parsed("timeout", timer, timeout)
    request.check_policy(network)
    prerequisites.check(options["target"])
    outcome, folder = _run(network, file, spec, wanted, options)
    if options["as_json"]:
        click.echo(json.dumps({"target": options["target"], "folder": str(folder)} | outcome.result))
    elif outcome.status < 128:
        click.echo(f"logs and captures: {display_path(folder)}")
    ctx.exit(outcome.status)


def _run(
    topology: TopologySpec, file: Path, spec: ProgramSpec, wanted: Wanted, options: dict[str, Any]
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
        )
        outcome = launch(job, lock)
    arguments = _arguments(copy, spec, options, wanted.seed)
    versions = targets.versions(target)
    record = runs.RunRecord("lab", spec.program, target, arguments, wanted.seed, outcome.status == 0, versions)
    steps = outcome.result.get("steps", ())
    cases = [runs.Case("lab", s["name"], s["seconds"], s["problem"]) for s in steps]
    runs.write_record(folder, record, cases, {"result": outcome.result})
    return outcome, folder


def _built(spec: ProgramSpec, folder: Path, target: str) -> Program:
    built = build(spec, folder, use_p4c=target == targets.BMV2)
    stem = built.program.with_suffix("")
    json_file = stem.with_suffix(".json")
    return Program(built.program, stem.with_suffix(".p4info.txtpb"), json_file if json_file.exists() else None)


def _arguments(topology: Path, spec: ProgramSpec, options: dict[str, Any], seed: int) -> tuple[str, ...]:
    """The command line that repeats this run: with its copy of the topology, and the same seed."""
    found = ["lab", str(topology), *arguments_of(spec), "--seed", str(seed)]
    for name, value in options.items():
        if name in spec_fields() or name in ("out", "as_json", "seed"):
            continue
        for each in value if isinstance(value, tuple) else (value,):
            if each is True:
                found.append(f"--{name}")
            elif each is not None and each is not False:
                found += [f"--{name}", f"{each}ps" if name == "timeout" else str(each)]
    return tuple(found)
