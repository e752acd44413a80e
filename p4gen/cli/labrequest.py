"""The command line of ``p4gen lab``: what it asks for, checked before anything is started."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from p4gen.cli.nccltests import asked_range
from p4gen.cli.options import (
    spec_fields,
    spec_from,
)
from p4gen.cli.windows import schedules
from p4gen.errors import InputError
from p4gen.families import collective, families, flag_name, serving
from p4gen.groups.connections import connection_entries
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.clock import MS, SECOND
from p4gen.inputs import drawn, parsed, quote
from p4gen.labs.calls import CallOrder, LabMembers, calls_by_size, members_of
from p4gen.labs.job import Wanted
from p4gen.labs.network import bandwidths, faults
from p4gen.labs.network.impairments import check_withstood, links_at
from p4gen.labs.runs.figures import figures_of
from p4gen.labs.softroce import asked, guest
from p4gen.manager.access.tenants import OPERATOR, load_tenants
from p4gen.manager.remote.tls import read_identity
from p4gen.net.world.faults import parse_place
from p4gen.plan.placement.network import contexts_needed
from p4gen.plan.placement.placed import GroupRequest
from p4gen.plan.placement.policy import find_policy
from p4gen.plan.placement.served import served
from p4gen.plan.placement.windows import Schedule
from p4gen.switch import targets
from p4gen.vocabulary import ProgramSpec, units
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, is_generated, load_topology, packaged

_LONGEST_TIMER = 60_000 * MS
_SCENARIO = ("collective", "size", "set", "root", "ranks", "repeat", "fail")
_ON_BMV2 = {"window": "4", "message": "2"}
"""Defaults of programs on BMv2, for the same reason."""
_WITH_GUESTS = {"reliability": "gbn"}
"""Defaults of programs for hosts with Linux's own RoCE stack, which takes packets in order only."""
_MEASURED = {"lanes": "256", "window": "32", "message": "8"}
"""Defaults of --measure: EPIC's packets of 1 KiB (§J), and enough in flight that a process finds
many whenever it wakes up."""
_MEASURED_WITH_GUESTS = {"window": "16"}
"""As many packets in flight as rdma_rxe has unacknowledged."""
_WORK = {"collective": "scenario", "nccl_tests": "bandwidths", "exec": "programs"}
"""What options are for, where it has another name."""
_REPEAT = {targets.EMBEDDED: 10, targets.BMV2: 3}
"""Calls of each size that --measure and --nccl-tests make by default; 1 MB takes BMv2 some seconds."""


def collectives() -> dict[str, list[str]]:
    """The collectives of all families' labs, with the modes that have each."""
    found: dict[str, list[str]] = {str(each): [] for each in Collective}
    for family in families().values():
        for name in family.facet(LabMembers).collectives if family.answers(LabMembers) else ():
            found.setdefault(name, []).extend(family.modes)
    return found


@dataclass(frozen=True)
class LabRequest:
    """The command line, checked before anything is started. Methods raise ``InputError`` or ``UsageError``."""

    topology: str
    spec_file: Path | None
    options: dict[str, Any]

    def network(self) -> tuple[TopologySpec, Path]:
        """The topology, and the file that it is in."""
        path = Path(self.topology)
        return load_topology(path), path if path.exists() or is_generated(path) else packaged(self.topology)

    def guests(self, topology: TopologySpec) -> dict[str, str]:
        """The versions of Linux of hosts that are virtual machines, by host."""
        return asked.parse(self.options["hosts"] or "", topology)

    def spec(self, topology: TopologySpec, wanted: Wanted) -> ProgramSpec:
        """The program, of switches with hosts. If it has a context for each pattern, it has as many as the group of the
        scenario's ranks, or of all, takes, unless the command line says how many."""
        o = self.options
        flags = {name: o[name] for name in spec_fields()}
        spec = spec_from(self.spec_file, flags)
        guests = self.guests(topology)
        default: dict[str, str] = {}
        if self.spec_file is None and spec.takes_part:
            default |= _MEASURED if o["measure"] else {}
            default |= _MEASURED_WITH_GUESTS if o["measure"] and guests else {}
            default |= _ON_BMV2 if o["target"] == targets.BMV2 else {}
            default |= _WITH_GUESTS if guests else {}
        given = {name: value for name, value in flags.items() if value is not None}
        if spec.serves_groups and not spec.takes_part:
            fitted: ProgramSpec = members_of(spec).fitted(spec, topology)
            return fitted
        spec = spec_from(self.spec_file, default | given) if default else spec
        if spec.takes_part and "groups" not in spec.model_fields_set:
            hosts = wanted.ranks or topology.rank_hosts
            sync, collectives = served(serving(spec), hosts, asked.syncs(hosts, guests))
            request = GroupRequest(
                hosts, sync=sync, collectives=wanted.called(collectives), possible_roots=serving(spec).roots
            )
            if sync is PsnSync.SUBGROUPS and (needed := contexts_needed(topology, [request])) > serving(spec).groups:
                spec = spec_from(self.spec_file, default | given | {"groups": str(needed)})
        return spec

    def check_kind(self, spec: ProgramSpec) -> None:
        """Whether the options go with the program: in-network collectives, or connections between hosts."""
        o = self.options
        if spec.serves_groups and not spec.takes_part:
            for name in ("measure", "spray", "fallback", "duty", "turn", "replan"):
                if o[name]:
                    raise click.UsageError(f"--{name} goes with programs that take part in CommLib's collectives")
        elif spec.takes_part:
            if o["spray"]:
                raise click.UsageError("--spray goes with programs that know connections, as with --mode themis")
        else:
            if connection_entries(spec) is None:
                collective(spec)
            for name in ("measure", "policy", "fallback", "duty", "turn", "replan"):
                if o[name]:
                    raise click.UsageError(f"--{name} goes with programs that take part in collectives")
        name, known = o["collective"], members_of(spec).collectives
        if name and name not in known:
            modes = " or ".join(collectives()[name])
            raise click.UsageError(
                f"--collective {name} goes with --mode {modes}; {spec.program} has {', '.join(known)}"
            )

    def check_policy(self, topology: TopologySpec) -> None:
        """Whether there is such a policy, and the plan is one for this topology."""
        policy, plan = self.options["policy"], self.options["plan"]
        if plan is not None:
            if policy != "aro":
                raise click.UsageError("--plan is for --policy aro")
            from p4gen.plan.route.jobsplan import read_plans  # noqa: PLC0415 - only plans need it

            read_plans(plan, topology)
        if policy:
            find_policy(policy)

    def wanted(self, topology: TopologySpec) -> Wanted:
        """What to do, checked against the topology."""
        o = self.options
        collective = o["collective"] or ("" if o["measure"] else str(Collective.ALLREDUCE))
        sizes = asked_range(o, collective)
        kind = "nccl_tests" if sizes else "measure" if o["measure"] else "collective"
        chosen = [name for name in dict.fromkeys((kind, "measure", "suite", "exec")) if o[name]]
        if len(chosen) > 1:
            raise click.UsageError(f"{flag_name(chosen[0])} or --{chosen[1]}, not both")
        what = _WORK.get(chosen[0], chosen[0]) if chosen else "prompt"
        if what == "prompt":
            given = [f"--{name}" for name in _SCENARIO if o[name]]
            if given:
                raise click.UsageError(f"{given[0]} goes with a scenario: give --collective, --suite or --measure, too")
        if what in ("measure", "bandwidths") and len(o["ranks"]) > 1:
            raise click.UsageError(f"{flag_name(chosen[0])} is about one group: give --ranks once")
        if what == "programs":
            self._check_programs(topology)
        if what == "suite" and (o["ranks"] or o["size"] or o["repeat"] or o["set"]):
            raise click.UsageError("--suite has its own sizes and ranks")
        if collective == Collective.BARRIER and o["size"]:
            raise click.UsageError("a barrier has no data: omit --size")
        ranks = [self._ranks(text, topology) for text in o["ranks"]]
        if o["tenants"] or o["tls"]:
            self._check_tenants(topology, (ranks or [()])[0] or topology.rank_hosts)
        duties = tuple(parsed("duty", _duty, text) for text in o["duty"])
        if len(duties) > 1 and len(duties) != len(ranks):
            raise click.UsageError("--duty is given once, or as often as --ranks")
        return Wanted(
            what,
            collective,
            0 if collective == Collective.BARRIER else parsed("size", units.size, o["size"] or "1M"),
            o["root"] or 0,
            ranks[0] if ranks else (),
            o["repeat"] or (_REPEAT[o["target"]] if what in ("measure", "bandwidths") else 1),
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
            o["exec"] or "",
            sizes,
            duties,
            self._schedules(what, len(ranks), topology),
            units.duration(o["period"] or "1s") / SECOND,
            guest.ROOM if self.guests(topology) else None,
        )

    def _schedules(self, what: str, groups: int, topology: TopologySpec) -> tuple[Schedule | None, ...]:
        """Those of the groups of ``--ranks``, by number."""
        o = self.options
        if not o["turn"]:
            if o["period"]:
                raise click.UsageError("--period goes with --turn")
            return ()
        if what != "scenario" or groups < 2:
            raise click.UsageError("--turn goes with --collective and --ranks several times")
        if o["duty"] or self.guests(topology):
            raise click.UsageError("--turn goes neither with --duty nor with guests, whose clocks differ")
        names = [f"g{number}" for number in range(groups)]
        found = schedules("turn", o["turn"], names, "lab")
        if problems := [text for each in found.values() for text in each.problems()]:
            raise InputError(f"--turn: {problems[0]}")
        seconds = parsed("period", units.duration, o["period"] or "1s") / SECOND
        periods = -(-(o["repeat"] or 1) // min(len(each.windows) for each in found.values()))
        if not 0 < (periods + 2) * seconds <= o["deadline"]:
            raise InputError(f"--period: {periods} periods of {seconds:g} s, and 2 to start, do not fit --deadline")
        return tuple(map(found.get, names))

    def _check_programs(self, topology: TopologySpec) -> None:
        """Whether the options go with programs of the user's."""
        o = self.options
        for name in ("size", "set", "root", "repeat", "duty"):
            if o[name]:
                raise click.UsageError(f"--{name} does not go with --exec: the programs make the calls")
        if len(o["ranks"]) > 1:
            raise click.UsageError("--exec takes --ranks once: a program may create groups of its own")
        guests = self.guests(topology).keys()
        if guests and Path.cwd() == Path("/"):
            raise click.UsageError("guests mount the working directory, which cannot be /: run it in another one")
        own = set(topology.hosts) - guests
        for kind in faults.KINDS:
            for text in o[kind]:
                place = parse_place(text)[1]
                if place in own or (own and not place):
                    raise click.UsageError(
                        f"--{kind} {text} does not go with --exec, as programs' own NICs have no faults: name a "
                        "switch, a link between switches, or a host that is a guest"
                    )

    def _check_tenants(self, topology: TopologySpec, hosts: Iterable[str]) -> None:
        """Whether each of the hosts belongs to a tenant that has a certificate."""
        file, folder = self.options["tenants"], self.options["tls"]
        if not (file and folder and self.options["exec"]) or self.guests(topology):
            raise click.UsageError("--tenants FILE and --tls DIR go with each other, --exec, and p4gen's own hosts")
        tenants = load_tenants(file)
        owners = {host: tenants.owner(host) for host in hosts}
        if free := [host for host, owner in owners.items() if owner == OPERATOR]:
            raise InputError(f"{file}: {free[0]} belongs to no tenant")
        for name in ("manager", *owners.values()):
            read_identity(folder / name)

    def check_call(self, wanted: Wanted, spec: ProgramSpec, topology: TopologySpec) -> None:
        """Whether the group can do the scenario's call, and withstand its faults."""
        for kind, _, _ in wanted.impairments:
            check_withstood(spec, kind)
        hosts = wanted.ranks or topology.rank_hosts
        if wanted.what == "measure":
            figures_of(spec, wanted, len(hosts))
        if wanted.what == "bandwidths":
            calls_by_size(spec, wanted, len(hosts))
        if wanted.what != "scenario":
            return
        if wanted.others and not spec.serves_groups:
            raise click.UsageError("--ranks several times goes with programs that serve groups")
        for each in (hosts, *wanted.others):
            CallOrder.wanted(spec, wanted, len(each))
        if self.options["size"] and wanted.collective not in members_of(spec).sized:
            raise click.UsageError(f"--size does not go with {wanted.collective}, which has options (--set)")

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


def timer(text: str) -> int:
    """A retransmission timer, ps. One shorter than a process's wake-up time would retransmit everything for ever."""
    value = units.duration(text)
    if not MS <= value <= _LONGEST_TIMER:
        raise ValueError(f"a retransmission timer in real time must be 1ms to 60s, not {quote(text)}")
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
    seconds = [parsed("fail", units.duration, time) / 1e12 if time else 0.0 for time in (start, end)]
    if end and seconds[1] <= seconds[0]:
        raise InputError(f"--fail {text}: it would be restored before it fails")
    return a, b, seconds[0], seconds[1]
