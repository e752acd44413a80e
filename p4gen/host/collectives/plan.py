"""What a collective is made of: phases with one root each, on the channels of a group (EPIC §3.3, §4.3, §A).

Three patterns reach the wire: AllReduce (and Barrier, an AllReduce of nothing), Reduce to a root, Broadcast from a
root. A ReduceScatter is as many Reduces as ranks, an AllGather as many Broadcasts; their phases announce REDUCE and
BROADCAST. A rank announces what it sends: all in an AllReduce, all but the root in a Reduce, the root in a Broadcast.

**Group PSN synchronisation** (§4.3). Asymmetric patterns move one direction of a connection and not the other.

- ``SUBGROUPS``: each pattern has a connection of its own, so that each has PSNs of its own: 2N + 1 channels. All
  phases of a ReduceScatter or an AllGather are under way at once.
- ``REFINED``: one connection. Phases follow each other; after an asymmetric one each rank moves the PSN of the
  direction that was idle, and all pass a Barrier. Without it a Broadcast's first receiver would go on to the next
  phase, or be the root of it, while others still wait for a lost packet of this one, and so by any number of phases,
  while a switch remembers two announcements. And a rank that has sent its part of a Reduce in Mode III knows only that
  the next hop has it.

**Two announcements** bind subgroups too, once a send's completion is the next hop's word alone (``hop_by_hop``, Mode
III). After an AllReduce, a Barrier, a ReduceScatter or an AllGather a rank knows that everyone has begun it and is
through with all before. After a Reduce or a Broadcast it knows nothing of the kind, and would be free to run ahead as
far as the switches' pipes reach. So CommLib passes a Barrier before the third phase of a channel in a row. All ranks
call the same collectives in the same order (as everywhere), so they all do. In Mode II a send completes once the result
is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final

from p4gen.errors import InputError
from p4gen.host.collectives.control import MAX_PACKETS, Collective, Control
from p4gen.host.transport.verbs import Peer, QpConfig
from p4gen.spec import DType, Op, Overflow
from p4gen.spec.reductions import OPS

ChannelKey = tuple[Collective, int]
"""The pattern and its root: (ALLREDUCE, 0), (REDUCE, r), (BROADCAST, r)."""
SYMMETRIC: Final[ChannelKey] = (Collective.ALLREDUCE, 0)
"""The channel of AllReduce and Barrier, and with refined synchronisation of everything."""
ANNOUNCEMENTS: Final = 2
"""Control messages of one context that a switch remembers."""

_PATTERN: Final = {
    Collective.ALLREDUCE: Collective.ALLREDUCE,
    Collective.BARRIER: Collective.ALLREDUCE,
    Collective.REDUCE: Collective.REDUCE,
    Collective.REDUCE_SCATTER: Collective.REDUCE,
    Collective.BROADCAST: Collective.BROADCAST,
    Collective.ALLGATHER: Collective.BROADCAST,
}


class PsnSync(StrEnum):
    """How a group's PSNs stay together over asymmetric collectives (EPIC §4.3). See the module."""

    SUBGROUPS = "subgroups"
    REFINED = "refined"
    """For hosts that can set PSNs."""


class Flow(StrEnum):
    """When a rank that sends and receives may post message j of a window of W (EPIC §4.2)."""

    RESULTS = "results"
    """Once the result of message j - W is there and its send has completed."""
    ACKS = "acks"
    """Once the send of message j - W has completed: "rank windows progress independently" (§4.4). All room for results
    is posted ahead, so that none meets a receiver that is not ready."""


@dataclass(frozen=True)
class Connection:
    """One queue pair of a rank: its number, its far end (the IncTree's endpoint of the rank's edge), its attributes."""

    qp: int
    peer: Peer
    qp_config: QpConfig


@dataclass(frozen=True)
class GroupConfig:
    """What InitGroup hands to one rank: its place in the group, its connections, and what the program can do."""

    rank: int
    size: int
    channels: Mapping[ChannelKey, Connection]
    """With subgroups those of the patterns that are served, up to 2N + 1; with refined ``SYMMETRIC`` alone. All have
    one MTU, the program's payload."""
    window: int
    """W, messages."""
    message: int
    """M, packets."""
    dtype: DType = DType.INT32
    op: Op = Op.SUM
    """With DYNAMIC each call chooses op and dtype."""
    overflow: Overflow | None = None
    sync: PsnSync = PsnSync.SUBGROUPS
    flow: Flow = Flow.RESULTS
    hop_by_hop: bool = False
    """A send completes when the next hop has it (Mode III), not when its result is there."""

    def __post_init__(self) -> None:
        if SYMMETRIC not in self.channels:
            raise ValueError("a group needs the channel of AllReduce and Barrier")
        if len({connection.qp_config.mtu for connection in self.channels.values()}) != 1:
            raise ValueError("the channels of a group have one MTU")

    @property
    def packet(self) -> int:
        """Bytes of a packet's payload."""
        return self.channels[SYMMETRIC].qp_config.mtu

    def kind(self, dtype: DType, op: Op | None) -> tuple[Op, DType]:
        """Op and dtype of a call; ``InputError`` when the program on the tree does not do them."""
        if self.op is Op.DYNAMIC:
            if op is Op.DYNAMIC:
                raise InputError(f"op dynamic: each call says one of {', '.join(OPS)}")
            return op or Op.SUM, dtype
        if dtype is not self.dtype:
            raise InputError(f"elements are {dtype}; the program on the tree works on {self.dtype}")
        if op is not None and op is not self.op:
            raise InputError(f"op {op}: the program on the tree does {self.op}")
        return self.op, dtype

    def channel(self, collective: Collective, root: int) -> ChannelKey:
        """The channel that a phase of ``collective`` takes."""
        pattern = _PATTERN[collective]
        if self.sync is PsnSync.REFINED or pattern is Collective.ALLREDUCE:
            return SYMMETRIC
        return pattern, root

    def served(self) -> list[Collective]:
        """The collectives for which all channels are there, whatever the root."""
        return [c for c in Collective if all(self.channel(c, root) in self.channels for root in range(self.size))]


@dataclass(frozen=True)
class Phase:
    """One stretch of a collective with one root, on one channel: what this rank sends, and where it receives."""

    channel: ChannelKey
    control: Control
    send: memoryview | None
    """None when this rank only receives."""
    receive: memoryview | None
    """None when it only sends."""
    added: bool = False
    """CommLib's own, to synchronise: nobody's result."""


@dataclass(frozen=True)
class Step:
    """Phases that are under way at once, each on a channel of its own; the next step begins when all have ended."""

    phases: tuple[Phase, ...]
    move_idle: bool = False
    """Afterwards the PSN of the direction that was idle goes to where the other is (refined)."""


@dataclass(frozen=True)
class Part:
    """What a caller's collective has for one root."""

    root: int
    send: memoryview | None
    receive: memoryview | None


@dataclass
class Planner:
    """Cuts collectives into steps. It remembers what it has planned, so plan in the order of the calls."""

    STATE: ClassVar = ("_unconfirmed",)

    config: GroupConfig
    _unconfirmed: Counter[ChannelKey] = field(default_factory=Counter)
    """Phases of each channel of which others may not have seen the end."""

    def plan(self, collective: Collective, parts: Sequence[Part], op: Op, dtype: DType) -> list[Step]:
        """The steps of a collective; ``InputError`` when the group has no channel for it."""
        config = self.config
        for part in parts:
            if config.channel(collective, part.root) not in config.channels:
                raise InputError(f"{collective}: the program on the tree serves {', '.join(sorted(config.served()))}")
        stretches = [list(self._stretches(collective, part, op, dtype)) for part in parts]
        together = list(zip(*stretches, strict=True))
        if _PATTERN[collective] is Collective.ALLREDUCE:
            self._unconfirmed.clear()
            return [Step(phases) for phases in together]
        if config.sync is PsnSync.REFINED:
            phases = [phase for same in together for phase in same]
            return [step for p in phases for step in (Step((p,), move_idle=True), self._barrier())]
        return [step for phases in together for step in self._bounded(phases)]

    def _stretches(self, collective: Collective, part: Part, op: Op, dtype: DType) -> Iterable[Phase]:
        """A control message can announce so many packets; more go as several phases."""
        config = self.config
        whole = part.send if part.send is not None else part.receive
        assert whole is not None
        pattern = collective if collective is Collective.BARRIER else _PATTERN[collective]
        step = MAX_PACKETS // config.message * config.message * config.packet
        for start in range(0, max(1, len(whole)), step):
            piece = slice(start, start + step)
            control = Control(pattern, len(whole[piece]) // config.packet, part.root, op, dtype)
            send, receive = (None if side is None else side[piece] for side in (part.send, part.receive))
            yield Phase(config.channel(collective, part.root), control, send, receive)

    def _bounded(self, phases: tuple[Phase, ...]) -> Iterable[Step]:
        """A step on subgroups, behind a Barrier when a switch could be left with one announcement too many."""
        unconfirmed = self._unconfirmed
        if self.config.hop_by_hop and any(unconfirmed[p.channel] >= ANNOUNCEMENTS for p in phases):
            unconfirmed.clear()
            yield self._barrier()
        if len(phases) == self.config.size:
            # Everybody sends to everybody: who is through with it knows that all have begun it.
            unconfirmed.clear()
        unconfirmed.update(p.channel for p in phases)
        yield Step(phases)

    def _barrier(self) -> Step:
        dynamic = self.config.op is Op.DYNAMIC
        control = Control(Collective.BARRIER, 0, 0, Op.SUM if dynamic else self.config.op, self.config.dtype)
        empty = memoryview(b"")
        return Step((Phase(SYMMETRIC, control, empty, empty, added=True),))
