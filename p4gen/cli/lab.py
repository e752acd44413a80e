"""``p4gen lab``: switches, hosts and a manager under Mininet, in their own namespaces; a prompt, or a scenario."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from p4gen import runs
from p4gen.builder import build
from p4gen.cli.options import (
    arguments_of,
    json_option,
    out_option,
    spec_fields,
    spec_from,
    spec_options,
    target_option,
)
from p4gen.cli.seeds import drawn, seed_option
from p4gen.cli.values import POLICY, TOPOLOGY, parsed
from p4gen.cli.verb import FiniteRange, verb
from p4gen.errors import InputError
from p4gen.families import collective, families
from p4gen.groups.connections import connection_entries
from p4gen.host.collectives.control import Collective
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.clock import MS
from p4gen.inputs import shown as shown_value
from p4gen.lab import bandwidths, faults, prerequisites
from p4gen.lab.calls import check_calls, room
from p4gen.lab.impairments import check_withstood, links_at
from p4gen.lab.job import LabJob, Wanted
from p4gen.lab.launch import Outcome, launch
from p4gen.lab.peercalls import ALLTOALL, COLLECTIVES, PeerCall
from p4gen.lab.scenario import write_call
from p4gen.lab.scratch import scratch_folder
from p4gen.lab.welcome import shown
from p4gen.lab.writecalls import LabWrites, writes_of
from p4gen.model import ENGINES
from p4gen.net.config import Call
from p4gen.net.faults import parse_place
from p4gen.placement.network import contexts_needed
from p4gen.placement.placed import GroupRequest
from p4gen.placement.policy import find_policy
from p4gen.placement.served import served
from p4gen.spec import CollectiveSpec, ProgramSpec, ServingSpec, units
from p4gen.spec.clos import clos_fields
from p4gen.spec.topology import TopologySpec, is_generated, load_topology, packaged
from p4gen.switch import targets
from p4gen.switch.running import Program

ADDRESS_FILE = Path("lab") / "manager"
"""Below ``--out``: where ``p4gen top`` looks for the manager of the running lab."""
_LONGEST_TIMER = 60_000 * MS
_SCENARIO = ("collective", "size", "set", "root", "ranks", "repeat", "fail")
_TIMEOUT = {targets.EMBEDDED: "50ms", targets.BMV2: "300ms"}
"""BMv2 handles about a thousand packets a second: a window must take much less time than this."""
_ON_BMV2 = {"window": "4", "message": "2"}
"""Defaults of programs on BMv2, for the same reason."""
_MEASURED = {"lanes": "256", "window": "32", "message": "8"}
"""Defaults of --measure: EPIC's packets of 1 KiB (§J), and enough in flight that a process finds
many whenever it wakes up."""

_REPEAT = {targets.EMBEDDED: 10, targets.BMV2: 3}
"""Calls of each size that --measure makes by default; 1 MB takes BMv2 some seconds."""


def _of_writes() -> tuple[str, ...]:
    """Collectives that only families have whose ranks write to each other."""
    with_writes = [family.facet(LabWrites) for family in families().values() if family.answers(LabWrites)]
    return tuple(sorted({name for facet in with_writes for name in facet.collectives} - set(COLLECTIVES)))


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
        ("star-4 --mode multiwrite", "a prompt: run allgather 64K; run dispatch tokens 32"),
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
    type=click.Choice((*COLLECTIVES, *_of_writes())),
    help="Run it, and end; alltoall over connections only, dispatch with MultiWrite only.",
)
@click.option(
    "--set", multiple=True, metavar="NAME=VALUE", help="An option of a dispatch, as at the prompt: --set tokens=32."
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

    TOPOLOGY is a YAML file, or one of star-4, star-8, tree-3-2, tree-3-4, tree-5-2, leaf-spine, fat-tree-k4,
    or clos:LxSxH (leaves, spines, hosts on each leaf). Without a
    scenario (--collective, --suite, --measure) there is a prompt, which takes commands from a pipe, too. Needs root
    and Mininet; it leaves nothing behind, however it ends. Exit status 1 when a result is wrong.

    If switches do not take part in collectives (--mode themis), hosts run them over connections with each other: on a
    ring, or as an AlltoAll. Leaves run the program; other switches only route. In labs of --mode multiwrite they write
    to each other, each packet to several hosts: AllGather and dispatch.
    """
    request = _Request(topology, spec_file, options)
    network, file = request.network()
    wanted = request.wanted(network)
    spec = request.spec(network, wanted)
    targets.check_runs(options["target"], spec.architecture)
    prerequisites.check_topology(network, spec)
    request.check_kind(spec)
    request.check_call(wanted, spec, network)
    timeout = options["timeout"] or _TIMEOUT[options["target"]]
    options["timeout"] = parsed("--timeout", _timer, timeout)
    if options["policy"]:
        find_policy(options["policy"])
    prerequisites.check(options["target"])
    outcome, folder = _run(network, file, spec, wanted, options)
    if options["as_json"]:
        click.echo(json.dumps({"target": options["target"], "folder": str(folder)} | outcome.result))
    elif outcome.status < 128:
        click.echo(f"logs and captures: {shown(folder)}")
    ctx.exit(outcome.status)


@dataclass(frozen=True)
class _Request:
    """The command line, checked before anything is started. Methods raise ``InputError`` or ``UsageError``."""

    topology: str
    spec_file: Path | None
    options: dict[str, Any]

    def network(self) -> tuple[TopologySpec, Path]:
        """The topology, and the file that it is in."""
        path = Path(self.topology)
        return load_topology(path), path if path.exists() or is_generated(path) else packaged(self.topology)

    def spec(self, topology: TopologySpec, wanted: Wanted) -> ProgramSpec:
        """The program, of switches with hosts. If it has a context for each pattern, it has as many as the group of the
        scenario's ranks, or of all, takes, unless the command line says how many."""
        o = self.options
        flags = {name: o[name] for name in spec_fields()}
        spec = spec_from(self.spec_file, flags)
        default: dict[str, str] = {}
        if self.spec_file is None and isinstance(spec, CollectiveSpec):
            default |= _MEASURED if o["measure"] else {}
            default |= _ON_BMV2 if o["target"] == targets.BMV2 else {}
        given = {name: value for name, value in flags.items() if value is not None}
        if isinstance(spec, ServingSpec) and spec.writes:
            fitted: ProgramSpec = writes_of(spec).fitted(spec, topology)
            return fitted
        spec = spec_from(self.spec_file, default | given) if default else spec
        if isinstance(spec, CollectiveSpec) and "groups" not in spec.model_fields_set:
            hosts = wanted.ranks or topology.rank_hosts
            sync, collectives = served(spec, hosts)
            request = GroupRequest(hosts, sync=sync, collectives=collectives)
            if sync is PsnSync.SUBGROUPS and (needed := contexts_needed(topology, [request])) > spec.groups:
                spec = spec_from(self.spec_file, default | given | {"groups": str(needed)})
        return spec

    def check_kind(self, spec: ProgramSpec) -> None:
        """Whether the options go with the program: in-network collectives, or connections between hosts."""
        o = self.options
        if isinstance(spec, ServingSpec) and spec.writes:
            for name in ("measure", "spray", "root", "fallback", "duty", "replan"):
                if o[name]:
                    raise click.UsageError(f"--{name} goes with other programs: ranks of {spec.family} only write")
            return
        if o["collective"] in _of_writes() or o["set"]:
            wrong = "--set" if o["set"] else f"--collective {o['collective']}"
            raise click.UsageError(f"{wrong} goes with programs whose hosts write to each other (--mode multiwrite)")
        if isinstance(spec, CollectiveSpec):
            if o["collective"] == ALLTOALL:
                raise InputError(
                    f"{spec.program}: its switches do not take part in an alltoall; --mode themis runs it without them"
                )
            if o["spray"]:
                raise click.UsageError("--spray goes with programs that know connections, as with --mode themis")
            return
        if connection_entries(spec) is None:
            collective(spec)
        for name in ("measure", "policy", "fallback", "duty", "replan"):
            if o[name]:
                raise click.UsageError(f"--{name} goes with programs that take part in collectives")

    def wanted(self, topology: TopologySpec) -> Wanted:
        """What to do, checked against the topology."""
        o = self.options
        chosen = [name for name in ("collective", "suite", "measure") if o[name]]
        if len(chosen) > 1:
            raise click.UsageError(f"--{chosen[0]} or --{chosen[1]}, not both")
        what = {"collective": "scenario"}.get(chosen[0], chosen[0]) if chosen else "prompt"
        if what == "prompt":
            given = [f"--{name}" for name in _SCENARIO if o[name]] + ["--json"] * o["as_json"]
            if given:
                raise click.UsageError(f"{given[0]} goes with a scenario: give --collective, --suite or --measure, too")
        if what == "measure" and len(o["ranks"]) > 1:
            raise click.UsageError("--measure is about one group: give --ranks once")
        if what == "suite" and (o["ranks"] or o["size"] or o["repeat"] or o["set"]):
            raise click.UsageError("--suite has its own sizes and ranks")
        collective = o["collective"] or str(Collective.ALLREDUCE)
        if collective == Collective.BARRIER and o["size"]:
            raise click.UsageError("a barrier has no data: omit --size")
        ranks = [self._ranks(text, topology) for text in o["ranks"]]
        duties = tuple(parsed("--duty", _duty, text) for text in o["duty"])
        if len(duties) > 1 and len(duties) != len(ranks):
            raise click.UsageError("--duty is given once, or as often as --ranks")
        return Wanted(
            what,
            collective,
            0 if collective == Collective.BARRIER else parsed("--size", units.size, o["size"] or "1M"),
            o["root"] or 0,
            ranks[0] if ranks else (),
            o["repeat"] or (_REPEAT[o["target"]] if what == "measure" else 1),
            tuple(self._impairments(topology)),
            tuple(_outage(text, topology) for text in o["fail"]),
            drawn(o["seed"]),
            o["as_json"],
            o["spray"] != "off",
            tuple(_given(text) for text in o["set"]),
            o["deadline"],
            tuple(each or topology.rank_hosts for each in ranks[1:]),
            o["fallback"],
            bandwidths.parse(o["bandwidth"], topology),
            duties,
        )

    def check_call(self, wanted: Wanted, spec: ProgramSpec, topology: TopologySpec) -> None:
        """Whether the group can do the scenario's call, and withstand its faults."""
        for kind, _, _ in wanted.impairments:
            check_withstood(spec, kind)
        if wanted.what != "scenario":
            return
        hosts = wanted.ranks or topology.rank_hosts
        if wanted.others and not isinstance(spec, CollectiveSpec):
            raise click.UsageError("--ranks several times goes with programs that take part in collectives")
        if isinstance(spec, ServingSpec) and spec.writes:
            call = write_call(spec, wanted, len(hosts))
            if self.options["size"] and call.collective not in writes_of(spec).sized:
                raise click.UsageError(f"--size does not go with {call.collective}, which has options (--set)")
        elif isinstance(spec, CollectiveSpec):
            for each in (hosts, *wanted.others):
                check_calls([Call(Collective(wanted.collective), wanted.size, wanted.root)], spec, each)
        else:
            PeerCall(wanted.collective, wanted.size, wanted.root).check(len(hosts))
            room(wanted.collective, wanted.size, len(hosts))

    def _ranks(self, text: str, topology: TopologySpec) -> tuple[str, ...]:
        if text == "all":
            return ()
        names = tuple(name.strip() for name in text.split(","))
        for name in names:
            if name not in topology.hosts:
                raise InputError(f"--ranks: there is no host '{name}'; there are {', '.join(topology.hosts)}")
        if len(set(names)) != len(names):
            raise InputError("--ranks: a host can be only one rank")
        return names

    def _impairments(self, topology: TopologySpec) -> list[tuple[str, str, str]]:
        found = []
        for kind in faults.KINDS:
            for text in self.options[kind]:
                value, place = parse_place(text)
                faults.parse(kind, value)
                if place and place not in topology.hosts:
                    try:
                        links_at(topology, place)
                    except InputError as error:
                        raise InputError(f"--{kind} {text}: {error.reason}") from None
                found.append((kind, value, place))
        return found


def _given(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise InputError(f"--set {text}: it has to be NAME=VALUE")
    return name, value


def _timer(text: str) -> int:
    """A retransmission timer, ps. One shorter than a process's wake-up time would retransmit everything for ever."""
    value = units.duration(text)
    if not MS <= value <= _LONGEST_TIMER:
        raise ValueError(f"a retransmission timer in real time must be 1ms to 60s, not {shown_value(text)}")
    return value


def _duty(text: str) -> float:
    """A share of time that is not nothing."""
    value = units.share(text)
    if not value:
        raise ValueError("a group that never communicates needs no switches")
    return value


def _outage(text: str, topology: TopologySpec) -> tuple[str, str, float, float]:
    where, _, times = text.partition("@")
    a, _, b = where.partition("-")
    start, _, end = times.partition("-")
    if not any({a, b} == set(link.ends) for link in topology.links):
        names = ", ".join(link.name for link in topology.links)
        raise InputError(f"--fail {text}: there is no link '{where}'; there are {names}")
    seconds = [parsed("--fail", units.duration, time) / 1e12 if time else 0.0 for time in (start, end)]
    if end and seconds[1] <= seconds[0]:
        raise InputError(f"--fail {text}: it would be restored before it fails")
    return a, b, seconds[0], seconds[1]


def _run(
    topology: TopologySpec, file: Path, spec: ProgramSpec, wanted: Wanted, options: dict[str, Any]
) -> tuple[Outcome, Path]:
    """Build the program and run the lab, in a folder of its own."""
    target, out = options["target"], options["out"]
    folder = runs.new_folder(out, "lab", f"{topology.name}-{spec.program}", target).absolute()
    copy = folder / "topology.yaml"
    if is_generated(file):
        copy.write_text(json.dumps(clos_fields(str(file))), encoding="utf-8")
    else:
        shutil.copyfile(file, copy)
    program = _built(spec, folder / "program", target)
    facet = None if isinstance(spec, CollectiveSpec) else connection_entries(spec)
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
