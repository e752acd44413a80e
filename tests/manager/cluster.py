"""A cluster in this process, in real time: hosts' loops, switches that run the generated program, sockets between them.

``FakeManager`` has just what hosts see of a manager, and does what a test tells it.
"""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from patience import until

from p4gen.groups.family import group_entries
from p4gen.groups.group import Memory, placed_edges
from p4gen.groups.ticks import tick
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.raw import RawNic
from p4gen.host.transport.clock import MS
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.manager.api import (
    Code,
    GroupSpec,
    GroupState,
    GroupStatus,
    HostAddresses,
    HostInfo,
    ManagerError,
    Membership,
    RankChannel,
    RankConfig,
    RankReport,
)
from p4gen.manager.ranks.host import Host
from p4gen.manager.ranks.rankconfigs import ring_ends
from p4gen.manager.ranks.ranks import first_psn
from p4gen.model import Model
from p4gen.model.jit import Batch
from p4gen.plan.placement.network import Placement, place
from p4gen.plan.placement.numbers import ring_in_a_row
from p4gen.plan.placement.placed import GroupRequest
from p4gen.plan.placement.served import served
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import ServingSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.ticks import PORT
from p4gen.vocabulary.topology import TopologySpec, load_topology

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
TICK_S = 0.02


class SocketPort:
    """One end of a socket pair, as ``p4gen.host.raw.FramePort`` wants it."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        end.setblocking(False)

    def fileno(self) -> int:
        return self._end.fileno()

    def receive(self) -> list[bytes]:
        frames: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while len(frames) < 64 and (frame := self._end.recv(4096)):
                frames.append(frame)
        return frames

    def send(self, frames: Sequence[bytes]) -> int:
        for number, frame in enumerate(frames):
            try:
                self._end.send(frame)
            except OSError:  # full, or closed
                return number
        return len(frames)


def socket_ports() -> tuple[SocketPort, SocketPort, list[socket.socket]]:
    """Two ends of a cable, and what is to be closed in the end."""
    ends = list(socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    return SocketPort(ends[0]), SocketPort(ends[1]), ends


class Switches:
    """All switches of a topology, in one thread; ``ports`` are the hosts' ends of cables, by switch and port."""

    def __init__(self, topology: TopologySpec, spec: ServingSpec, ports: Mapping[tuple[str, int], SocketPort]) -> None:
        self._topology, self._spec, self._ports = topology, spec, dict(ports)
        self._models = {s: Model(compile_spec(spec).program, engine="jit") for s in topology.switches}
        self._ticks: list[tuple[str, bytes]] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._by_descriptor = {port.fileno(): where for where, port in self._ports.items()}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def clear(self) -> None:
        """No groups; everything is forgotten."""
        with self._lock:
            self._ticks = []
            for model in self._models.values():
                model.reset()

    def configure(self, placement: Placement) -> None:
        self.clear()
        with self._lock:
            for name, config in placement.switches.items():
                config.install(self._models[name])
            if self._spec.wants_ticks:
                self._ticks = list(self._ticks_of(placement))

    def _ticks_of(self, placement: Placement) -> Iterator[tuple[str, bytes]]:
        ticked = group_entries(self._spec).ticked
        for key, context in (each for group in placement.groups for each in group.contexts):
            for placed in placed_edges(key.switch, [context]):
                if ticked(self._spec, context, placed.edge):
                    yield key.switch, tick(placed, TICK_S)

    def _due(self) -> Sequence[tuple[str, bytes]]:
        """The ticks of a round, each with its switch."""
        return self._ticks

    def _run(self) -> None:
        poll = select.poll()
        for descriptor in self._by_descriptor:
            poll.register(descriptor, select.POLLIN)
        next_tick = time.monotonic()
        while not self._stopping.is_set():
            inbox: deque[tuple[str, list[tuple[int, bytes]]]] = deque()
            arrived: defaultdict[str, list[tuple[int, bytes]]] = defaultdict(list)
            for descriptor, _ in poll.poll(TICK_S * 500):
                switch, port = self._by_descriptor[descriptor]
                arrived[switch] += ((port, frame) for frame in self._ports[switch, port].receive())
            with self._lock:
                if time.monotonic() >= next_tick:
                    next_tick = time.monotonic() + TICK_S
                    for switch, frame in self._due():
                        arrived[switch].append((PORT, frame))
                inbox += arrived.items()
                while inbox:
                    inbox += self._handle(*inbox.popleft()).items()

    def _handle(self, switch: str, frames: list[tuple[int, bytes]]) -> dict[str, list[tuple[int, bytes]]]:
        """Frames through a switch; what goes to other switches."""
        onwards: defaultdict[str, list[tuple[int, bytes]]] = defaultdict(list)
        out = self._models[switch].process_batch(Batch.of(frames))
        data = out.data.tobytes()
        for port, (start, end) in zip(out.ports.tolist(), pairwise(out.offsets.tolist()), strict=True):
            frame = data[start:end]
            cable = self._ports.get((switch, port))
            if cable is not None:
                cable.send([frame])
            elif port < len(links := self._topology.ports[switch]):
                far = links[port].other(switch)
                onwards[far].append((self._topology.ports[far].index(links[port]), frame))
        return onwards


@dataclass
class FakeManager:
    """Tells hosts what the test says, and lets ranks wait for each other."""

    switches: Switches
    topology: TopologySpec
    spec: ServingSpec
    groups_ranks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sync: PsnSync = PsnSync.REFINED
    reports: dict[tuple[str, int], RankReport] = field(default_factory=dict)
    agreed: list[tuple[int, dict[int, int], int]] = field(default_factory=list)
    """(generation, completed by rank, first call) of each ``ready`` that all ranks came to."""
    hold_ready: threading.Event = field(default_factory=threading.Event)
    generation: int = 0
    memories: tuple[Memory, ...] = ()
    """What the ranks of the group have offered, if switches address it."""
    offers: dict[str, Memory] = field(default_factory=dict)
    """What hosts have offered when they were asked."""
    absent: bool = False
    """Nobody reaches the manager."""
    leased: bool = False
    """Whether groups have their switches by leases."""
    on_begin: Callable[[int, int], bool] = lambda generation, call: True
    """What ``begin_call`` does."""
    begun: list[tuple[int, int]] = field(default_factory=list)
    """(generation, call) of each ``begin_call``."""
    ended: list[tuple[int, int, int]] = field(default_factory=list)
    """(generation, rank, completed) of each ``end_call``."""

    def __post_init__(self) -> None:
        self.hold_ready.set()
        self._news: dict[str, queue.SimpleQueue[Membership | None]] = defaultdict(queue.SimpleQueue)
        self._joined: defaultdict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        self._changed = threading.Condition()
        self.placement: Placement | None = None

    # --- what tests say ---

    def activate(self, **groups: tuple[str, ...]) -> None:
        """Place all groups (``groups`` are new ones), as a new generation."""
        self.groups_ranks |= groups
        self.generation += 1
        requests = [
            # Far from the PSNs of before, of which packets may be under way; so it is in a manager, by chance.
            GroupRequest(
                ranks,
                sync=self.sync,
                collectives=served(self.spec, ranks)[1] if self.memories else frozenset(Collective),
                epoch=self.generation,
                first_psn=(self.generation * 0x345671 - 20) % (1 << 24),
                memories=self.memories,
                barriers=not self.spec.own_state,
            )
            for ranks in self.groups_ranks.values()
        ]
        placement = self.placement = place(self.topology, self.spec, requests)
        self.switches.configure(placement)
        for (name, ranks), placed in zip(self.groups_ranks.items(), placement.groups, strict=True):
            for rank, host in enumerate(ranks):
                config = RankConfig(
                    name,
                    self.generation,
                    rank,
                    len(ranks),
                    self.addresses(host),
                    tuple(RankChannel(c.key, c.ends[rank].qp, c.ends[rank].peer) for c in placed.channels),
                    placed.request.first_psn,
                    self.spec.slots_per_group,
                    self.sync,
                    self.spec,
                    leased=self.leased,
                    memory=self.memories[rank] if self.memories else None,
                )
                self._tell(host, Membership(name, GroupState.ACTIVE, self.generation, config))

    def ask(self, name: str, ranks: Sequence[str], size: int) -> None:
        """Ask hosts for memory, which is then that of the ranks."""
        self.offers.clear()
        for host in ranks:
            self._tell(host, Membership(name, GroupState.INSTALLING, self.generation, offer=size))
        until(lambda: len(self.offers) == len(ranks))
        self.memories = tuple(self.offers[host] for host in ranks)

    def ring(self, name: str) -> None:
        """A group's calls run on a ring, as a new generation; switches only route."""
        self.generation += 1
        ranks = self.groups_ranks[name]
        placement = self.placement = place(self.topology, self.spec, [])
        self.switches.configure(placement)
        first = 0x1000 * self.generation
        ring, ips = ring_in_a_row(first, len(ranks)), [placement.ip[each] for each in ranks]
        for rank, host in enumerate(ranks):
            config = RankConfig(
                name,
                self.generation,
                rank,
                len(ranks),
                self.addresses(host),
                (),
                first_psn(first),
                0,
                self.sync,
                self.spec,
                ring_ends(ring, rank, self.addresses(host).gateway, ips),
                self.leased,
            )
            self._tell(host, Membership(name, GroupState.ACTIVE, self.generation, config))

    def forget(self) -> None:
        """Generations begin anew, as those of another group do."""
        with self._changed:
            self._joined.clear()

    def break_group(self, name: str, reason: str) -> None:
        self.switches.clear()
        for host in self.groups_ranks[name]:
            self._tell(host, Membership(name, GroupState.BROKEN, self.generation, reason=reason))

    def destroy(self, name: str) -> None:
        self.switches.clear()
        for host in self.groups_ranks.pop(name):
            self._tell(host, Membership(name, GroupState.REMOVING, self.generation, gone=True))

    def hang_up(self) -> None:
        """All watches end."""
        for news in self._news.values():
            news.put(None)

    def _tell(self, host: str, news: Membership) -> None:
        self._news[host].put(news)

    def addresses(self, host: str) -> HostAddresses:
        assert self.placement is not None
        return HostAddresses(self.placement.mac[host], self.placement.ip[host], self.placement.gateway[host])

    # --- what hosts ask ---

    def watch(self, host: str) -> Iterator[Membership]:
        if self.absent:
            raise ManagerError(Code.UNREACHABLE, "the manager does not answer")
        while (news := self._news[host].get()) is not None:
            yield news

    def ready(self, group: str, generation: int, rank: int, completed: int, timeout: float = 60.0) -> int:
        self.hold_ready.wait()
        with self._changed:
            joined = self._joined[group, generation]
            joined[rank] = completed
            size = len(self.groups_ranks[group])
            if len(joined) == size:
                self.agreed.append((generation, dict(joined), min(joined.values())))
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: len(joined) == size or generation != self.generation, timeout):
                raise ManagerError(Code.UNREACHABLE, "other ranks did not come")
            if generation != self.generation:
                raise ManagerError(Code.REFUSED, f"generation {generation} is over")
            return min(joined.values())

    def begin_call(self, group: str, generation: int, call: int) -> bool:
        self.begun.append((generation, call))
        return self.on_begin(generation, call)

    def offer_memory(self, group: str, host: str, memory: Memory) -> None:
        self.offers[host] = memory

    def end_call(self, group: str, generation: int, rank: int, completed: int) -> None:
        self.ended.append((generation, rank, completed))

    def report_rank(self, report: RankReport) -> None:
        self.group(report.group)
        self.reports[report.group, report.rank] = report

    def register_host(self, host: HostInfo) -> HostAddresses:
        if self.absent:
            raise ManagerError(Code.UNREACHABLE, "the manager does not answer")
        return self.addresses(host.name)

    def group(self, name: str) -> GroupStatus:
        if self.absent:
            raise ManagerError(Code.UNREACHABLE, "the manager does not answer")
        if name not in self.groups_ranks:
            raise ManagerError(Code.NOT_FOUND, f"there is no group {name}")
        return GroupStatus(GroupSpec(name, self.groups_ranks[name]), GroupState.ACTIVE, self.generation)


class Cluster:
    """All of a topology's hosts in one group ``g``, as yet of generation 0: the test activates it."""

    def __init__(self, spec: ServingSpec, topology: str = "star-4", *, timeout_ms: int = 30) -> None:
        self.spec = spec
        self.topology = load_topology(TOPOLOGIES / f"{topology}.yaml")
        self._timeout = timeout_ms * MS
        self._stack = contextlib.ExitStack()
        self.hosts: dict[str, Host] = {}
        self.nics: dict[str, RawNic] = {}
        self.loops: dict[str, RealTimeLoop] = {}

    def __enter__(self) -> Cluster:
        topology, stack = self.topology, self._stack
        ends: dict[str, SocketPort] = {}
        ports = {}
        for host in topology.hosts:
            link = topology.ports[host][0]
            switch = link.other(host)
            ends[host], ports[switch, topology.ports[switch].index(link)], sockets = socket_ports()
            for end in sockets:
                stack.callback(end.close)
        self.switches = Switches(topology, self.spec, ports)
        self.switches.start()
        stack.callback(self.switches.stop)
        self.manager = FakeManager(self.switches, topology, self.spec)
        stack.callback(self.manager.hang_up)
        self.manager.placement = place(topology, self.spec, [])
        for host in topology.hosts:
            loop = self.loops[host] = RealTimeLoop()
            addresses = self.manager.addresses(host)
            self.nics[host] = RawNic(loop, ends[host], addresses.mac, addresses.ip)
            self.hosts[host] = Host(self.manager, host, self.nics[host], timeout_ps=self._timeout)
            loop.start()
            stack.callback(loop.close)
            stack.callback(self.hosts[host].close)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
