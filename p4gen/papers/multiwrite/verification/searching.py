"""What a search of states explores of MultiWrite: one source writes tokens to changing sets of ranks.

A run ends when the source's NIC has all its writes acknowledged and each destination has the tokens that named it. A
packet that is acknowledged, and missing somewhere, is sent by nobody any more, so such a run never ends: with a loss to
spare, the search finds every acknowledgement that comes too early. At each step a destination has the first tokens that
named it, each once and in order, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from typing_extensions import override

from p4gen.errors import InputError
from p4gen.groups.group import SwitchConfig
from p4gen.groups.ticks import tick
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.nic import Nic
from p4gen.host.transport.verbs import Completion, QpConfig, Recovery, Status
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.p4.compile import program_from
from p4gen.papers.multiwrite.control import Window
from p4gen.papers.multiwrite.headers import mtu
from p4gen.papers.multiwrite.placing import Addresses, End, WritePlacement
from p4gen.papers.multiwrite.ranks.layout import Layout, write_request
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.papers.multiwrite.verification.combining import Collector, Expert
from p4gen.verification.parts.hosts import SearchedTask
from p4gen.verification.world import Rules, Scope, World
from p4gen.vocabulary.ticks import EVERY_US

TOPOLOGY = "star-3"
SOURCE = 0
"""The rank that writes."""


class Sets(StrEnum):
    """The destinations of tokens, one after the other, then again."""

    CHANGING = "all, next, last"
    LAST_TWICE = "all, last, last"
    ALL = "all"


def named(token: int, ranks: int, sets: Sets = Sets.CHANGING) -> tuple[int, ...]:
    """The ranks that a token goes to."""
    known = {"all": tuple(range(1, ranks)), "next": (1,), "last": (ranks - 1,)}
    words = sets.split(", ")
    return known[words[token % len(words)]]


def token(number: int, size: int) -> bytes:
    """The bytes of a token, in which tokens differ: its number plus 1, ``size`` times."""
    return bytes([number + 1]) * size


class Writer:
    """The rank that writes (``p4gen.verification.parts.hosts.SearchedTask``)."""

    STATE = ("_acknowledged", "problem")

    def __init__(
        self, nic: Nic, end: End, config: QpConfig, spec: MultiwriteSpec, tokens: Sequence[tuple[int, ...]]
    ) -> None:
        self.name = f"rank {SOURCE}"
        self.problem = ""
        self._acknowledged = 0
        self._spec, self._tokens = spec, tokens
        self._pair = nic.create_pair(end.qp, end.peer, config, self._completed)

    def parts(self) -> dict[str, object]:
        """The task itself: the queue pair is a part of the NIC."""
        return {"task": self}

    def start(self) -> None:
        """Post the writes of all tokens."""
        size = self._spec.payload
        for number, ranks in enumerate(self._tokens):
            bitmap = sum(1 << rank for rank in ranks)
            self._pair.post_send(
                write_request(self._spec, SOURCE, number, token(number, size), bitmap, number * size, fence=False)
            )

    @property
    def done(self) -> bool:
        """Whether all writes are acknowledged."""
        return self._acknowledged == len(self._tokens)

    def forget_times(self) -> None:
        """Nothing: it keeps no times."""

    def _completed(self, completion: Completion) -> None:
        if completion.status is not Status.SUCCESS:
            self.problem = f"rank {SOURCE}: {completion.status}"
        elif completion.wr_id != self._acknowledged:
            self.problem = f"write {completion.wr_id + 1} is done before write {self._acknowledged + 1}"
        else:
            self._acknowledged += 1


class Destination:
    """A rank that is written to (``p4gen.verification.parts.hosts.SearchedTask``)."""

    STATE = ("_memory",)

    def __init__(self, nic: Nic, rank: int, end: End, config: QpConfig, layout: Layout, tokens: Sequence[int]) -> None:
        self.name = f"rank {rank}"
        self._layout, self._tokens, self._first_psn = layout, tokens, config.initial_psn
        self._memory = bytearray(layout.size)
        nic.domain.register(self._memory)
        self._pair = nic.create_pair(end.qp, end.peer, config, _ignored)

    def parts(self) -> dict[str, object]:
        """The task itself: the queue pair is a part of the NIC."""
        return {"task": self}

    def start(self) -> None:
        """Nothing: no receives are used."""

    @property
    def done(self) -> bool:
        """Whether all tokens that name the rank have come."""
        return self._pair.responder.expected == len(self._tokens)

    def forget_times(self) -> None:
        """Nothing: it keeps no times."""

    @property
    def problem(self) -> str:
        """How the window differs from the tokens that have come; "" if it does not."""
        come = self._pair.responder.expected
        if come > len(self._tokens):
            return f"{self.name}: {come} packets have come; {len(self._tokens)} tokens name it"
        right = bytearray(len(self._memory))
        size, layout = self._layout.spec.payload, self._layout
        for place, number in enumerate(self._tokens[:come]):
            slot = (self._first_psn + place) % layout.slots if layout.spec.appends else number
            right[slot * layout.slot_bytes : slot * layout.slot_bytes + size] = token(number, size)
        if right != self._memory:
            return f"{self.name}: after {come} packets its window is not that of the first {come} tokens for it"
        return ""


def _ignored(_: Completion) -> None:
    """A plain WRITE completes nothing at its destination."""


def _ticks(placement: WritePlacement) -> list[tuple[str, int, bytes, str]]:
    """``World.ticks``: those of the source's context, which is the first one at each switch."""
    return [
        (at.switch, at.edge.port, tick(at, EVERY_US / 1e6), f"{at.switch}, edge {at.edge.edge_id}")
        for at in placement.ticked
        if at.context == SOURCE
    ]


def _both(plain: SwitchConfig, held: SwitchConfig | None) -> SwitchConfig:
    """A switch's routes, and what it holds for writes."""
    if held is None:
        return plain
    return SwitchConfig((*plain.entries, *held.entries), held.multicast_groups, held.clone_sessions)


@dataclass(frozen=True)
class WriteScope(Scope):
    """The first host writes tokens to the others; of a program that combines, the others send outputs of tokens that it
    has written before."""

    program: MultiwriteSpec
    packets: int = 3
    """Tokens."""
    recovery: Recovery = Recovery.GO_BACK_N
    first_psn: int = 5
    sets: Sets = Sets.CHANGING

    @property
    def _named(self) -> list[tuple[int, ...]]:
        """The ranks that each token goes to, in the order of tokens."""
        ranks = len(self.topology.rank_hosts)
        return [named(number, ranks, self.sets) for number in range(self.packets)]

    @override
    def sound(self) -> WriteScope | None:
        return None if self.fault is None else replace(self, fault=None)

    @override
    def sentence(self) -> str:
        does = f"writes {self.packets} tokens to other hosts"
        if self.program.combine:
            does = f"gets sums of {self.packets} tokens of other hosts"
        return f"{self.subject}: the first host {does}, in turn to {self.sets}; {self.budget.sentence()}"

    @override
    def world(self) -> World:
        topology, spec = self.topology, self.program
        ranks = len(topology.rank_hosts)
        if self.packets > spec.slots:
            raise InputError(f"{self.packets} packets; the program has {spec.slots} slots")
        layout = Layout(spec, ranks, self.packets)
        text = self.text(spec)
        addresses = Addresses.of(topology, spec)
        programs = dict.fromkeys(topology.switches, program_from(text, f"{spec.program}.p4"))
        network = Network(topology, addresses, programs, Faults(), 1, self.engine, payload=spec.payload)
        region = ProtectionDomain().register(bytearray(layout.size))  # hosts' have the same address and key
        windows = {
            (source, rank): layout.window(region.address, region.rkey, source)
            for source in range(ranks)
            for rank in range(ranks)
        }
        results = {rank: Window(region.address, region.rkey, layout.slot_shift) for rank in range(ranks)}
        placement = WritePlacement(
            topology,
            spec,
            windows,
            layout.size,
            [self.first_psn] * ranks,
            results=results if spec.combine else None,
        )
        for switch, held in placement.switches.items():
            held.install(network.switches[switch])
        config = QpConfig(
            mtu=mtu(spec),
            initial_psn=self.first_psn,
            max_outstanding=spec.slots,
            recovery=self.recovery,
            retry_count=None,
        )
        return World(
            network,
            dict.fromkeys(topology.switches, spec),
            addresses.mac,
            addresses.ip,
            {
                host: partial(self._tasks, rank, placement, config, layout)
                for rank, host in enumerate(topology.rank_hosts)
            },
            Rules(no_drops=True, no_repeats=True),
            self.first_psn,
            {name: _both(plain, placement.switches.get(name)) for name, plain in addresses.switches.items()},
            dict.fromkeys(topology.switches, text),
            _ticks(placement) if spec.wants_ticks else (),
            unlike=topology.hosts,
        )

    def _tasks(
        self, rank: int, placement: WritePlacement, config: QpConfig, layout: Layout, nic: Nic
    ) -> Sequence[SearchedTask]:
        if self.program.combine:
            return [self._combining(rank, placement, config, layout, nic)]
        if rank == SOURCE:
            return [Writer(nic, placement.sources[SOURCE], config, self.program, self._named)]
        mine = [number for number, ranks in enumerate(self._named) if rank in ranks]
        return [Destination(nic, rank, placement.destinations[SOURCE, rank], config, layout, mine)]

    def _combining(
        self, rank: int, placement: WritePlacement, config: QpConfig, layout: Layout, nic: Nic
    ) -> SearchedTask:
        if rank == SOURCE:
            return Collector(nic, placement.sources[SOURCE], config, layout, self._named)
        mine = [(number, ranks) for number, ranks in enumerate(self._named) if rank in ranks]
        return Expert(nic, rank, placement.destinations[SOURCE, rank], config, self.program.payload, mine)
