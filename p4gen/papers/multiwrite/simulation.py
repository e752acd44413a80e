"""A group of MultiWrite on the virtual network: hosts with RNICs, switches that run the program, links with faults."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from typing_extensions import override

from p4gen.errors import InputError
from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.model import EngineName
from p4gen.net.job import DrivenJob
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.net.world.ticks import UNIT
from p4gen.papers.multiwrite.control import edge_index
from p4gen.papers.multiwrite.placing import Addresses, Waypoint, WritePlacement, straight
from p4gen.papers.multiwrite.ranks.combining import ExpertMember
from p4gen.papers.multiwrite.ranks.hosts import Member
from p4gen.papers.multiwrite.ranks.layout import Layout
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.program.compilation import compile_spec
from p4gen.program.repair import wait
from p4gen.vocabulary.topology import TopologySpec


class Caller(Protocol):
    """Who makes calls, one after the other."""

    @property
    def done(self) -> bool:
        """Whether its last call has ended."""
        ...

    @property
    def problems(self) -> list[str]:
        """What went wrong, a sentence each; empty if nothing did."""
        ...


AnyCaller = TypeVar("AnyCaller", bound=Caller)


class Calls(Generic[AnyCaller]):
    """Calls of one caller, each as soon as it is done with the one before (``p4gen.net.job.Task``)."""

    def __init__(self, name: str, caller: AnyCaller, calls: Sequence[Callable[[AnyCaller], None]]) -> None:
        self.name = name
        self.caller = caller
        self.left = list(calls)
        """Those that have not begun."""

    def start(self) -> None:
        """Make the next call. Raises ``IndexError`` if all have begun."""
        self.left.pop(0)(self.caller)

    @property
    def due(self) -> bool:
        """Whether the next call can be made."""
        return bool(self.left) and self.caller.done

    @property
    def done(self) -> bool:
        """Whether all calls have ended."""
        return not self.left and self.caller.done

    @property
    def problem(self) -> str:
        """What is wrong; "" if nothing is."""
        return "; ".join(self.caller.problems)

    def parts(self) -> dict[str, object]:
        """Nothing: a run is not frozen."""
        return {}


@dataclass(frozen=True)
class Layer:
    """A tree for each rank's writes, and windows of their own for them."""

    packets: int
    """Packets of each source that windows have room for."""
    waypoint: Waypoint = straight
    peers: Callable[[int], Collection[int]] | None = None
    """The ranks that a rank writes to, which also write to it; None: all others."""


@dataclass(frozen=True)
class WriteConfig:
    """A run; every switch of ``topology`` runs the program of ``spec``."""

    topology: TopologySpec
    spec: MultiwriteSpec
    layers: tuple[Layer, ...]
    faults: Faults = field(default_factory=Faults)
    recovery: Recovery = Recovery.GO_BACK_N
    timeout: int = 100 * US
    """The NICs' retransmission timer, ps."""
    retry_count: int | None = None
    """Timeouts after which a NIC gives up; None: never."""
    dcqcn: DcqcnConfig | None = None
    seed: int = 1
    engine: EngineName = "interp"


class WriteSimulation(DrivenJob[Calls[Any]]):
    """A group of all ranks of a topology. Raises ``InputError`` if the program cannot serve it."""

    def __init__(self, config: WriteConfig) -> None:
        self.config = config
        topology, spec = config.topology, config.spec
        if spec.icrc.patched and any(impairment.corrupt for impairment in config.faults.impairments):
            raise InputError(
                f"{spec.program} does not check the ICRC of writes, so it takes corrupt headers for right ones: no "
                "packets may be corrupted on links"
            )
        chance = random.Random(f"{config.seed} PSNs")  # noqa: S311 - a simulation, to be repeatable
        ranks = range(len(topology.rank_hosts))
        programs = dict.fromkeys(topology.switches, compile_spec(spec).program)
        addresses = Addresses.of(topology, spec)
        network = Network(
            topology,
            addresses,
            programs,
            config.faults,
            config.seed,
            config.engine,
            payload=spec.payload,
        )
        super().__init__(network, dict.fromkeys(topology.switches, spec), config.timeout)
        for nic in self.network.nics.values():
            nic.checks_icrc = spec.icrc.right
        self.first_psns = [[chance.randrange(1 << 24) for _ in ranks] for _ in config.layers]
        """Those of the sources' contexts, by layer and rank."""
        self.layers: list[list[Member]] = []
        """The ranks on each layer."""
        placement: WritePlacement | None = None
        for number in range(len(config.layers)):
            placement = self._lay(number, placement)
        assert placement is not None
        for switch, held in placement.switches.items():
            held.install(self.network.switches[switch])
        self._ticked = placement.ticked if spec.wants_ticks else ()
        if spec.wants_ticks:
            self.start_ticks(self._ticked, spec.architecture.cpu_port)

    @property
    def members(self) -> list[Member]:
        """The ranks on the first layer."""
        return self.layers[0]

    def _lay(self, number: int, before: WritePlacement | None) -> WritePlacement:
        """A layer's trees, beside those ``before``, and its ranks with their connections."""
        config, psns = self.config, self.first_psns[number]
        layer, hosts = config.layers[number], config.topology.rank_hosts
        ranks, layout = range(len(hosts)), Layout(config.spec, len(hosts), layer.packets)
        kind = ExpertMember if config.spec.combine else Member
        members = [kind(self.network.nics[host], rank, layout) for rank, host in enumerate(hosts)]
        windows = {
            (source, rank): layout.window(members[rank].region.address, members[rank].region.rkey, source)
            for source in ranks
            for rank in ranks
        }
        placement = WritePlacement(
            config.topology,
            config.spec,
            windows,
            layout.size,
            psns,
            waypoint=layer.waypoint,
            after=before,
            results={member.rank: layout.results(member.region.address, member.region.rkey) for member in members}
            if config.spec.combine
            else None,
        )
        for rank, member in enumerate(members):
            others = layer.peers(rank) if layer.peers is not None else [other for other in ranks if other != rank]
            member.connect(
                placement.sources[rank],
                {source: placement.destinations[source, rank] for source in others},
                dict(enumerate(psns)),
                recovery=config.recovery,
                timeout_ps=config.timeout,
                retry_count=config.retry_count,
                rnr_retry=None,
                dcqcn=config.dcqcn,
            )
        self.layers.append(members)
        return placement

    @override
    def longest_wait(self) -> int:
        spec, switches = self.config.spec, self.network.switches
        words = (
            switches[edge.switch].register("timers", edge_index(spec, edge.context, edge.edge.edge_id))
            for edge in self._ticked
        )
        return max(map(wait, words), default=0) * UNIT

    # --- running ---

    def run_calls(self, *calls: Callable[[Member], None]) -> int:
        """The ranks on the first layer make these calls; see ``drive``."""
        return self.drive(self.members, calls)

    def drive(self, callers: Sequence[AnyCaller], calls: Sequence[Callable[[AnyCaller], None]]) -> int:
        """All callers make these calls, each as soon as it is done with the one before. Returns the time of the last
        event, ps.

        Raises ``InputError``, with the reason, for a run that does not end, and for errors of connections.
        """
        self.tasks = [Calls(f"caller {number}", caller, calls) for number, caller in enumerate(callers)]
        return self.finished()

    @override
    def advance(self) -> bool:
        for task in self.tasks:
            if task.due:
                task.start()
                self.wake()
        return self.done

    @override
    def failures(self) -> Sequence[str]:
        """Errors of connections: what they carried does not come any more."""
        return [problem for task in self.tasks for problem in task.caller.problems]

    def copies(self) -> Counter[str]:
        """Packets on each direction of the links so far, by name."""
        return Counter({name: direction.packets for name, direction in self.network.directions.items()})
