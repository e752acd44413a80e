"""Runs of MultiWrite for ``p4gen sim run``: AllGather and dispatch on a topology, every byte beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from p4gen.errors import Diagnostic, InputError
from p4gen.families.multiwrite.calls import Call, Choice, Dispatch, Gather, choose, memory_problem
from p4gen.families.multiwrite.hosts import Member, pieces_of
from p4gen.families.multiwrite.simulation import WriteConfig, WriteSimulation
from p4gen.families.multiwrite.spec import MultiwriteSpec
from p4gen.host.transport.clock import SECOND, US
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import shown
from p4gen.net.network import Network
from p4gen.net.own import Outcome, OwnOption, OwnRuns, RunOrder, outcome
from p4gen.spec import units
from p4gen.spec.topology import TopologySpec

ALLGATHER, DISPATCH = "allgather", "dispatch"
_SIZE: Final = 1 << 20
_MOST_DATA: Final = 1 << 30
"""Bytes that all ranks may get in a call; they are held in memory, and so are NumPy's."""
_WIDTHS: Final = (32, 64, 128, 256, 512, 1024)
_HEADERS: Final = 150
"""Bytes of a packet beside its data, more or less: for the time that a packet takes."""


def _count(text: str) -> int:
    value = units.size(text)
    if not 1 <= value <= 1 << 20:
        raise ValueError(f"a number from 1 to {1 << 20:,}, not {shown(text)}")
    return value


OPTIONS: Final = {
    "tokens": OwnOption("dispatch: tokens of each rank", "64", _count),
    "hidden": OwnOption("dispatch: bytes of a token, such as 7168", "1K", _count),
    "experts": OwnOption("dispatch: experts of all ranks together, the same number each", "64", _count),
    "top": OwnOption("dispatch: experts that each token goes to", "8", _count),
    "choice": OwnOption("dispatch: how tokens choose their experts", "random", Choice, tuple(map(str, Choice))),
}


def fitted(spec: MultiwriteSpec, topology: TopologySpec) -> MultiwriteSpec:
    """The program with as many edges, contexts and bits as a group of all ranks takes, unless the spec says how
    many."""
    ranks = len(topology.rank_hosts)
    degree = max(len(topology.ports[switch]) for switch in topology.switches)
    wanted: dict[str, object] = {
        "receivers": next((width for width in _WIDTHS if width >= max(ranks, spec.receivers)), _WIDTHS[-1]),
        "contexts": max(ranks, spec.contexts),
        "edges": max(degree, spec.edges),
        "ports": max(degree, spec.ports),
    }
    given = spec.model_dump(mode="json", exclude_unset=True)
    return MultiwriteSpec.model_validate(wanted | given)


class WriteRun:
    """A run (``p4gen.net.own.OwnRun``). Raises ``InputError`` if the program cannot serve it."""

    def __init__(self, order: RunOrder) -> None:
        assert isinstance(order.program, MultiwriteSpec)
        self._order, topology = order, order.topology
        self.spec = fitted(order.program, topology)
        ranks = len(topology.rank_hosts)
        drawn = np.random.default_rng(order.seed)
        make = {ALLGATHER: self._gather, DISPATCH: self._dispatch}[order.collective]
        packets, what, draw = make(ranks)
        self.title = f"{what} on {topology.name}, {self.spec.program}, {self._recovery}"
        if packets * self.spec.payload * ranks * ranks > _MOST_DATA:
            raise InputError(f"{what}: all ranks' windows together have {_MOST_DATA >> 20:,} MiB at most")
        self.calls = [draw(drawn) for _ in range(order.repeat)]
        """What all ranks call, one after the other."""
        self.simulation = WriteSimulation(
            WriteConfig(
                topology,
                self.spec,
                packets,
                order.faults,
                self._recovery,
                self._timeout(ranks) if order.timeout is None else order.timeout,
                order.retry_count,
                order.dcqcn,
                order.seed,
                order.engine,
            )
        )
        self._problems: list[str] = []

    @property
    def _recovery(self) -> Recovery:
        return self._order.recovery or Recovery.GO_BACK_N

    @property
    def network(self) -> Network:
        """See ``OwnRun``."""
        return self.simulation.network

    @property
    def programs(self) -> Mapping[str, MultiwriteSpec]:
        """See ``OwnRun``."""
        return dict.fromkeys(self._order.topology.switches, self.spec)

    def _timeout(self, ranks: int) -> int:
        """Twice the time in which all packets that sources may have outstanding pass the slowest link."""
        topology = self._order.topology
        slowest: int = min(topology.setting(link, "bandwidth") for link in topology.links)
        bits = 8 * ranks * self.spec.slots * (self.spec.payload + _HEADERS)
        return max(100 * US, 2 * bits * SECOND // slowest)

    # --- calls ---

    def _gather(self, ranks: int) -> tuple[int, str, Callable[[np.random.Generator], Call]]:
        size = _SIZE if self._order.size is None else self._order.size
        unit = ranks * self.spec.payload
        if size % unit or not size:
            raise InputError(
                Diagnostic("--size", f"allgather of {size} bytes: it has to be a positive multiple of {unit}")
            )
        block = size // ranks

        def draw(chance: np.random.Generator) -> Call:
            return Gather(chance.integers(0, 256, (ranks, block), np.uint8))

        return block // self.spec.payload, f"{ALLGATHER} of {size:,} bytes, {ranks} ranks", draw

    def _dispatch(self, ranks: int) -> tuple[int, str, Callable[[np.random.Generator], Call]]:
        o = self._order.options
        tokens, hidden, experts, top = o["tokens"], o["hidden"], o["experts"], o["top"]
        choice = Choice(o["choice"])
        if self._order.size is not None:
            raise InputError(Diagnostic("--size", "is for allgather; dispatch has --tokens and --hidden"))
        if experts % ranks:
            raise InputError(Diagnostic("--experts", f"{experts} experts do not divide among {ranks} ranks"))
        if top > experts:
            raise InputError(Diagnostic("--top", f"a token cannot go to {top} of {experts} experts"))
        packets = tokens * pieces_of(self.spec, hidden)
        if packets >= 1 << 16:
            raise InputError(Diagnostic("--tokens", f"they take {packets:,} packets; a fence can tell of 65,535"))

        def draw(chance: np.random.Generator) -> Call:
            data = chance.integers(0, 256, (ranks, tokens, hidden), np.uint8)
            return Dispatch(data, choose(choice, ranks, tokens, experts, top, chance))

        what = f"{DISPATCH} of {tokens:,} tokens of {hidden:,} bytes by each of {ranks} ranks, to {top} of {experts}"
        return packets, f"{what} experts ({choice})", draw

    # --- running ---

    def run(self, progress: Callable[[int, int], None] | None = None) -> Outcome:
        """See ``OwnRun``."""
        simulation = self.simulation
        stuck: tuple[str, ...] = ()
        steps = [self._step(number) for number in range(len(self.calls))]
        try:
            simulation.run(*steps, progress=progress)
        except InputError as error:
            stuck = tuple(str(diagnostic) for diagnostic in error.diagnostics)
        errors = [] if stuck else list(self._wrong())
        duration = simulation.network.loop.now if stuck else max(member.ended for member in simulation.members)
        came = sum(pair.responder.expected for pair in simulation.pairs)
        rate = came * self.spec.payload * 8 * SECOND / len(simulation.members) / duration if duration else 0.0
        return outcome(
            self.network,
            simulation.pairs,
            simulation.drops(),
            duration,
            errors=[*self._problems, *errors],
            stuck=stuck,
            said=[f"{came:,} packets have come to ranks in their order, {rate / 1e9:.2f} Gb/s of data a rank"],
            figures={"program": self.spec.program, "received": came, "gbps_received": round(rate / 1e9, 3)},
        )

    def _step(self, number: int) -> Callable[[Member], None]:
        def make(member: Member) -> None:
            self._check(member, number)
            self.calls[number].start(member)

        return make

    def _check(self, member: Member, number: int) -> None:
        """A rank's result of the call before."""
        if number and (problem := self.calls[number - 1].problem(member)):
            self._problems.append(f"rank {member.rank}, call {number}: {problem}")

    def _wrong(self) -> Iterator[str]:
        """The last call's results, and windows: after all calls, they hold what NumPy says, and nothing else."""
        simulation = self.simulation
        for member in simulation.members:
            if problem := self.calls[-1].problem(member):
                yield f"rank {member.rank}, call {len(self.calls)}: {problem}"
            if problem := memory_problem(member, self.calls, simulation.first_psns):
                yield f"rank {member.rank}: {problem}"


FACET = OwnRuns((ALLGATHER, DISPATCH), OPTIONS, WriteRun)
