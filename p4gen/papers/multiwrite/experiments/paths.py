"""Writes over several trees at once on the virtual network: what the paper's studies compare.

Each layer of trees has a way for the writes of every source: straight, or past a relay's switch. A write to one rank is
a plain write, so that unicast and MultiWrite run over the same connections, and differ in nothing but how often data
is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from p4gen.errors import InputError
from p4gen.host.transport.clock import MS, US, duration_text
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.verbs import Completion, QpConfig, Status
from p4gen.model import EngineName
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.papers.multiwrite.control import Window
from p4gen.papers.multiwrite.headers import mtu
from p4gen.papers.multiwrite.placing import Addresses, Waypoint, WritePlacement
from p4gen.papers.multiwrite.ranks.layout import write_request
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary.topology import TopologySpec

_LOOK: Final = US // 50
"""The time between two looks at what has arrived, ps."""
_STALL: Final = MS
"""The time without an arrival after which a run is given up."""
_TIMEOUT: Final = 50 * MS
"""The NICs' timer: nothing is lost, and so none expires."""


@dataclass(frozen=True)
class Piece:
    """A write of a rank: over which layer of trees, its data, to whom, and where in their windows."""

    source: int
    layer: int
    data: bytes
    ranks: tuple[int, ...]
    offset: int


class Paths:
    """The hosts and switches of a topology. Raises ``InputError`` if the program cannot serve them."""

    def __init__(
        self,
        topology: TopologySpec,
        spec: MultiwriteSpec,
        layers: Sequence[Waypoint],
        window_bytes: int,
        seed: int = 1,
        engine: EngineName = "jit",
    ) -> None:
        self._spec = spec
        ranks = range(len(topology.rank_hosts))
        programs = dict.fromkeys(topology.switches, compile_spec(spec).program)
        self.network = Network(
            topology,
            Addresses.of(topology, spec),
            programs,
            Faults(),
            seed,
            engine,
            payload=mtu(spec),
        )
        nics = [self.network.nics[host] for host in topology.rank_hosts]
        self.memory = [bytearray(window_bytes) for _ in ranks]
        """The window of each rank."""
        regions = [nic.domain.register(memory) for nic, memory in zip(nics, self.memory, strict=True)]
        windows = {
            (source, rank): Window(regions[rank].address, regions[rank].rkey) for source in ranks for rank in ranks
        }
        self._writers: dict[tuple[int, int], QueuePair] = {}
        self._readers: dict[int, list[QueuePair]] = {rank: [] for rank in ranks}
        self._problems: list[str] = []
        self._left = 0
        config = QpConfig(
            mtu=mtu(spec), max_outstanding=spec.slots, initial_psn=seed, timeout_ps=_TIMEOUT, retry_count=None
        )
        placement: WritePlacement | None = None
        for layer, waypoint in enumerate(layers):
            placement = WritePlacement(
                topology, spec, windows, window_bytes, [seed] * len(ranks), waypoint=waypoint, after=placement
            )
            for source, end in placement.sources.items():
                self._writers[source, layer] = nics[source].create_pair(end.qp, end.peer, config, self._on_sent)
            for (_, rank), end in placement.destinations.items():
                pair = nics[rank].create_pair(end.qp, end.peer, config, _nothing)
                self._readers[rank].append(pair)
        assert placement is not None
        for switch, held in placement.switches.items():
            held.install(self.network.switches[switch])

    def run(self, pieces: Iterable[Piece]) -> list[int]:
        """All ranks write their pieces, in their order. Returns when each rank has all that it gets, ps; 0 for one that
        gets nothing.

        Raises ``InputError`` if something is lost, or connections break.
        """
        wanted: Counter[int] = Counter()
        for piece in pieces:
            wanted.update(dict.fromkeys(piece.ranks, len(piece.data) // self._spec.payload))
            self._left += len(piece.data) // self._spec.payload
            self._post(piece)
        loop, ended = self.network.loop, [0] * len(self.memory)
        missing, seen, since = set(wanted), 0, loop.now
        while missing or self._left:
            loop.run(until=loop.now + _LOOK)
            for rank in [rank for rank in missing if self._arrived(rank) >= wanted[rank]]:
                ended[rank] = loop.now
                missing.discard(rank)
            if (done := sum(map(self._arrived, wanted)) - self._left) != seen:
                seen, since = done, loop.now
            if self._problems or loop.now - since > _STALL:
                raise InputError(*self._problems or [f"nothing has arrived since {duration_text(since)}"])
        lost = self.network.lost({})
        if lost:
            raise InputError(f"packets are lost: {dict(lost)}")
        return ended

    def _post(self, piece: Piece) -> None:
        bitmap = sum(1 << rank for rank in piece.ranks)
        writer, size = self._writers[piece.source, piece.layer], self._spec.payload
        for at in range(0, len(piece.data), size):
            data = piece.data[at : at + size]
            writer.post_send(write_request(self._spec, piece.source, 0, data, bitmap, piece.offset + at, fence=False))

    def packets(self, *directions: str) -> int:
        """Packets so far on directions of links (``n0>leaf0``), answers included."""
        return sum(self.network.directions[name].packets for name in directions)

    def _arrived(self, rank: int) -> int:
        return sum(pair.responder.expected for pair in self._readers[rank])

    def _on_sent(self, completion: Completion) -> None:
        self._left -= 1
        if completion.status is not Status.SUCCESS:
            self._problems.append(f"a write ends with {completion.status}")


def _nothing(_: Completion) -> None:
    """A plain WRITE completes nothing at its destination."""
