"""The configuration of a lab, as a file for the process inside the namespaces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from p4gen.families import WrittenSpec
from p4gen.labs.softroce.guest import Machine
from p4gen.plan.placement.windows import Schedule
from p4gen.records import from_plain, to_plain
from p4gen.switch import targets
from p4gen.switch.running import Program
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import Link, TopologySpec, load_topology

JOIN_S = 120.0
"""Seconds in which all ranks must have been told of a group."""

JOB_FILE, RESULT_FILE, LOCK_FILE = "job.json", "result.json", "lock"
"""File names in the lab's scratch folder."""
LAST_WORD = b"end"
"""The lab's message to its launcher when it ends by itself, successfully or not."""


@dataclass(frozen=True)
class Wanted:
    """What to do once the lab is up: a prompt, or a scenario. Texts are as the user gave them, and have been checked.

    Impairments are (kind, share or time, place), in the order of the command line.
    """

    what: str = "prompt"
    """``prompt``, ``scenario``, ``suite``, ``measure``, ``bandwidths`` or ``programs``."""
    collective: str = "allreduce"
    """Of ``measure`` may be "": all that the program serves."""
    size: int = 1 << 20
    root: int = 0
    ranks: tuple[str, ...] = ()
    repeat: int = 1
    impairments: tuple[tuple[str, str, str], ...] = ()
    outages: tuple[tuple[str, str, float, float], ...] = ()
    """Links (two nodes) that fail, when, and when they are restored (0: not), in seconds after the first call."""
    seed: int = 0
    as_json: bool = False
    spray: bool = True
    """Whether connections are sprayed from the start."""
    given: tuple[tuple[str, str], ...] = ()
    """Options of a collective that has its own, by name."""
    deadline: float = 120.0
    """Seconds after which a scenario has failed."""
    others: tuple[tuple[str, ...], ...] = ()
    """Ranks of further groups, which make the same calls at the same time."""
    fallback: bool = False
    """Whether groups without a place call on a ring."""
    bandwidths: tuple[tuple[str, int], ...] = ()
    """Links that have a bandwidth of their own, by name, in bit/s in each direction."""
    command: str = ""
    """The user's own program: what a shell runs on every host, instead of the lab's daemons."""
    sizes: tuple[int, int, int] | None = None
    """Of ``bandwidths``: the first size, the last one, and the factor between sizes."""
    duties: tuple[float, ...] = ()
    """The shares of time in which groups communicate: one for all, or one for each."""
    schedules: tuple[Schedule | None, ...] = ()
    """The windows in which groups begin their calls, by the groups' numbers."""
    period: float = 1.0
    """Of windows, in seconds."""
    room: int | None = None
    """The bytes that a host may hold for a call; None if hosts share this machine's memory."""

    def called(self, served: frozenset[Collective]) -> frozenset[Collective]:
        """What groups are for, of the collectives that programs can serve: a scenario's own, and Barriers between its
        calls; all of them if users say later what they call."""
        called = (
            (self.collective, Collective.BARRIER) if self.collective and self.what in ("scenario", "measure") else ()
        )
        return frozenset(each for each in served if each in called) or served

    def ahead(self, size: int) -> int:
        """The bytes of data that hosts may draw before their calls, of those they would; guests have no room."""
        return size if self.room is None else 0

    def duty(self, number: int) -> float:
        """That of the group of this number, from 0."""
        return self.duties[number if len(self.duties) > 1 else 0] if self.duties else 1.0

    def schedule(self, number: int) -> Schedule | None:
        """That of the group of this number, from 0."""
        return self.schedules[number] if self.schedules else None


@dataclass(frozen=True)
class LabJob:
    """A lab: its network, program, target, and folders."""

    topology: TopologySpec
    topology_file: Path
    """The file it is read from: the run's own copy."""
    spec: WrittenSpec
    program: Program
    """The program of switches with hosts, or of all switches."""
    target: str
    engine: str
    folder: Path
    """The folder for the run's logs and captures."""
    scratch: Path
    """The folder for sockets; removed at the end."""
    address_file: Path
    """The file in which ``p4gen top`` finds the manager's address."""
    wanted: Wanted
    timeout_ms: float = 50.0
    """The retransmission timeout of queue pairs."""
    pcap: bool = False
    """Whether to capture everything from the start."""
    verbose: bool = False
    """Whether BMv2 logs every step of every packet."""
    policy: str | None = None
    """The manager's placement policy (``find_policy``); None for its default."""
    core_spec: WrittenSpec | None = None
    core_program: Program | None = None
    """The program of switches without hosts, if it is another one."""
    replan: bool = True
    """Whether the manager moves groups to faster trees by itself."""
    plan: Path | None = None
    """The plan of the policy ``aro``: the run's own copy."""
    tenants: Path | None = None
    """The file of the manager's tenants: the hosts of each are a job of its own, whose ranks ask over TLS."""
    certificates: Path | None = None
    """The folder with those of tenants, and of ``manager``, as ``scripts/certs`` makes them."""
    machines: Mapping[str, Machine] = field(default_factory=dict)
    """The virtual machines of hosts that are guests with Soft-RoCE, by the hosts' names."""

    @property
    def grouped(self) -> bool:
        """Whether the manager has groups; otherwise connections."""
        return self.spec.serves_groups

    @property
    def pace(self) -> str:
        """The target whose sizes and times are right for this lab: with guests, which are as slow, those of BMv2."""
        return targets.BMV2 if self.machines else self.target

    @property
    def bridged(self) -> tuple[Link, ...]:
        """The links that have a bridge in the middle: all on BMv2, otherwise those that may have faults there, and
        those with a bandwidth of their own."""
        topology = self.topology
        if self.target == targets.BMV2:
            return topology.links
        places = {place for _, _, place in self.wanted.impairments} - {"", *topology.hosts}
        between = set(topology.switches) if places or not self.spec.takes_part else set()
        limited = dict(self.wanted.bandwidths)
        return tuple(link for link in topology.links if set(link.ends) <= between or link.name in limited)

    def spec_of(self, switch: str) -> ProgramSpec:
        """The spec of the program that a switch runs: ``core_spec``, if there is one, for switches without hosts."""
        return self.spec if self.core_spec is None or self._leaf(switch) else self.core_spec

    def program_of(self, switch: str) -> Program:
        """The files of what a switch runs."""
        return self.program if self.core_program is None or self._leaf(switch) else self.core_program

    def ports_of(self, switch: str) -> dict[int, Link]:
        """A switch's links by its ports, as its program numbers them."""
        arch = self.spec_of(switch).architecture
        return {arch.front_port(number): link for number, link in enumerate(self.topology.ports[switch])}

    def _leaf(self, switch: str) -> bool:
        return any(link.other(switch) in self.topology.hosts for link in self.topology.ports[switch])

    def save(self, path: Path) -> None:
        """Write the job as JSON, with the path of its topology's file in place of the topology."""
        fields = to_plain(self)
        del fields["topology"]
        path.write_text(json.dumps(fields), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> LabJob:
        """Read the job that ``save`` wrote."""
        fields = json.loads(path.read_text(encoding="utf-8"))
        return from_plain(cls, fields | {"topology": load_topology(Path(fields["topology_file"]))})
