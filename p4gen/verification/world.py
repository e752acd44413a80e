"""A scope, and the world that it describes: a network of configured switches, hosts' tasks, ticks, rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, get_type_hints

from p4gen.groups.group import SwitchConfig
from p4gen.host.transport.nic import Nic
from p4gen.host.transport.verbs import Recovery
from p4gen.layout import Word
from p4gen.model import EngineName
from p4gen.net.world.network import Network
from p4gen.program import compose, render
from p4gen.ptf.mutations import Mutation
from p4gen.records import from_plain, to_plain
from p4gen.verification.parts.hosts import SearchedTask
from p4gen.verification.parts.monitors import Monitor
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.message import MESSAGE
from p4gen.vocabulary.topology import TopologySpec


@dataclass(frozen=True)
class Budget:
    """How often the network may commit each fault in one run."""

    losses: int = 0
    duplicates: int = 0
    delays: int = 0
    """A packet is delayed: any others arrive before it."""
    corruptions: int = 0
    """A packet arrives with a wrong bit."""
    timeouts: int = 0
    """Timers and ticks that expire while packets are on their way."""
    forgeries: int = 0
    """Packets that the last host sends in another's name. Where switches know the senders, they change nothing; a
    forgery is no fault that excuses a violation."""

    def sentence(self) -> str:
        """The faults that the network may commit, in words."""
        counts = {
            "loss": self.losses,
            "duplicate": self.duplicates,
            "delay": self.delays,
            "corruption": self.corruptions,
            "early timeout": self.timeouts,
            "forgery": self.forgeries,
        }
        plurals = {"loss": "losses", "forgery": "forgeries"}
        faults = [f"{n} {name if n == 1 else plurals.get(name, name + 's')}" for name, n in counts.items() if n]
        return "at most " + ", ".join(faults) if faults else "no faults"


@dataclass(frozen=True)
class Rules:
    """Rules of a scope beyond those that hold for every scope."""

    no_drops: bool = False
    """Without a fault, no packet is dropped for a reason that is a loss."""
    no_repeats: bool = False
    """Without a fault, no host sends a packet twice, unless its timer has expired."""
    announces: Word = MESSAGE
    """The layout of control messages, which say how many packets follow."""
    recovery: Recovery | None = None
    """The recovery of switches that end connections: as receivers they send one NAK for each missing packet, as senders
    they retransmit what is asked for. Where no packet may be dropped, they answer everything that they should. None if
    they end none."""
    one_repeat: bool = False
    """No host retransmits more than one packet, unless its timer has expired."""
    in_order: bool = False
    """Hosts, and switches that are receivers, see from a later packet that one is missing."""
    repeats_requested: tuple[str, int, bool] | None = None
    """The arguments of ``monitors.RepeatsRequested``: a switch, whose host receives the packets that it requests
    without a timer if the loss is plain; the number of paths that PSNs take in turn; and whether losses between switch
    and host count."""
    filters: tuple[str, int, bool] | None = None
    """A switch that filters its host's NAKs; the number of paths that PSNs take in turn; and whether it knows all
    packets that have arrived (``filtering.Filtered``)."""
    checks: str | None = None
    """A switch that lets answers with a wrong ICRC leave as they came."""


@dataclass(frozen=True)
class World:
    """A network, and the tasks of its hosts. ``specs`` are switches' programs, ``mac`` and ``ip`` are hosts'
    addresses."""

    network: Network
    specs: Mapping[str, ProgramSpec]
    mac: Mapping[str, int]
    ip: Mapping[str, int]
    tasks: Mapping[str, Callable[[Nic], Sequence[SearchedTask]]]
    """Makes the tasks of hosts, by name."""
    rules: Rules
    first_psn: int
    configs: Mapping[str, SwitchConfig]
    """The configurations of switches."""
    texts: Mapping[str, str]
    """The texts of switches' programs."""
    ticks: Sequence[tuple[str, int, bytes, str]] = ()
    """For each tick that may have an effect: the switch, the port of its edge, the frame, a name."""
    unlike: Sequence[str] = ()
    """Hosts with roles that no other host has."""
    own_psns: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """By switch or host and its queue pair: the first PSN that it receives, if that is not ``first_psn``."""

    watches: Mapping[str, Sequence[Monitor]] = field(default_factory=dict)
    """Monitors of switches that only this family's programs have."""

    def first_psn_of(self, node: str, qp: int) -> int:
        """The first PSN that a queue pair of a switch or host receives."""
        return self.own_psns.get(node, {}).get(qp, self.first_psn)


@dataclass(frozen=True)
class Scope(ABC):
    """What a search explores: a program on a network, what its hosts do, and which faults the network may commit."""

    KIND: ClassVar = ""
    """The name of the kind of scopes in files; empty for those of a family, which have its name."""

    topology: TopologySpec
    program: ProgramSpec
    budget: Budget = field(default_factory=Budget, kw_only=True)
    engine: EngineName = field(default="jit", kw_only=True)
    fault: Mutation | None = field(default=None, kw_only=True)
    """A fault that is seeded into the program."""

    @abstractmethod
    def world(self) -> World:
        """Make the network. Raises ``InputError`` for a scope that cannot be searched."""
        ...

    @abstractmethod
    def sentence(self) -> str:
        """Describe program, topology and calls."""
        ...

    @abstractmethod
    def sound(self) -> Self | None:
        """This scope with the sound program; None if the scope's own program is meant to be sound."""
        ...

    @property
    def subject(self) -> str:
        """What ``sentence`` begins with: the program, its fault, the topology."""
        seeded = f", with the fault {self.fault.name}" if self.fault is not None else ""
        return f"{self.program.program}{seeded} on {self.topology.name}"

    def text(self, spec: ProgramSpec) -> str:
        """The text of a program, with the fault if there is one."""
        text = render(compose(spec)).text
        return text if self.fault is None else self.fault.apply(text)

    def as_data(self) -> dict[str, Any]:
        """The scope as plain values, for a file."""
        own = {each.name: to_plain(getattr(self, each.name)) for each in fields(self) if each.name != "engine"}
        named = {"topology": links_of(self.topology), "fault": None if self.fault is None else self.fault.to_dict()}
        return {"kind": self.KIND or self.program.family} | own | named

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Undo ``as_data``. Raises ``InputError`` or ``ValueError`` for data that is not a scope's."""
        kinds = get_type_hints(cls, include_extras=True)
        return cls(**{name: from_plain(kinds[name], value) for name, value in data.items() if name != "kind"})

    def with_engine(self, engine: EngineName) -> Self:
        """This scope on another engine."""
        return replace(self, engine=engine)

    def with_fault(self, fault: Mutation) -> Self:
        """This scope with a fault in the program."""
        return replace(self, fault=fault)


def links_of(topology: TopologySpec) -> dict[str, Any]:
    """A topology as plain values, without times and rates, which a search does not know."""
    fields = {"name", "root", "switches", "hosts", "ranks"}
    named = topology.model_dump(mode="json", exclude_unset=True, include=fields)
    return named | {"links": [list(link.ends) for link in topology.links]}
