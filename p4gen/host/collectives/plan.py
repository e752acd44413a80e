"""How collectives are divided into phases with one root each, on the channels of a group (EPIC §3.3, §4.3, §A).

Three patterns appear on the wire: AllReduce (and Barrier, an AllReduce without data), Reduce to a root, Broadcast from
a root. A ReduceScatter is one Reduce per rank, an AllGather one Broadcast per rank; their phases announce REDUCE and
BROADCAST. A rank announces what it sends: every rank in an AllReduce, all but the root in a Reduce, the root in a
Broadcast.

**Group PSN synchronisation** (§4.3). Asymmetric patterns advance the PSNs of one direction of a connection only.

- ``SUBGROUPS``: each pattern has a connection of its own, with PSNs of its own: 2N + 1 channels. All phases of a
  ReduceScatter or an AllGather run at the same time.
- ``REFINED``: one connection. Phases run one after the other. After an asymmetric phase each rank advances the PSN of
  the idle direction, and all ranks pass a Barrier. Without the Barrier, a rank that has its Broadcast result could go
  on to any number of further phases while others still wait for a lost packet, but a switch remembers only two
  announcements. And in Mode III a rank that has sent its part of a Reduce knows only that the next hop has it.

**Two announcements** are also the limit with subgroups if a send completes as soon as the next hop has it
(``hop_by_hop``, Mode III). After an AllReduce, a Barrier, a ReduceScatter or an AllGather a rank knows that every rank
has begun it and has completed everything before. After a Reduce or a Broadcast it does not know this, and could run
ahead as far as the switches' pipes reach. So CommLib passes a Barrier before the third such phase in a row on a
channel. All ranks call the same collectives in the same order, so they all pass it. In Mode II a send completes only
when the result has been received.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final

from p4gen.errors import InputError
from p4gen.host.collectives.control import Control
from p4gen.host.transport.verbs import Peer, QpConfig
from p4gen.vocabulary import DType, Op, Overflow
from p4gen.vocabulary.message import ROOTS, Collective, max_packets
from p4gen.vocabulary.reductions import single_ops

ChannelKey = tuple[Collective, int]
"""The pattern and its root: (ALLREDUCE, 0), (REDUCE, r), (BROADCAST, r)."""
SYMMETRIC: Final[ChannelKey] = (Collective.ALLREDUCE, 0)
"""The channel of AllReduce and Barrier; the only one with refined synchronisation."""
ANNOUNCEMENTS: Final = 2
"""Number of control messages of one context that a switch remembers."""

_PATTERN: Final = {
    Collective.ALLREDUCE: Collective.ALLREDUCE,
    Collective.BARRIER: Collective.ALLREDUCE,
    Collective.REDUCE: Collective.REDUCE,
    Collective.REDUCE_SCATTER: Collective.REDUCE,
    Collective.BROADCAST: Collective.BROADCAST,
    Collective.ALLGATHER: Collective.BROADCAST,
}


class PsnSync(StrEnum):
    """How a group's PSNs are kept synchronised across asymmetric collectives (EPIC §4.3), see the module's
    docstring."""

    SUBGROUPS = "subgroups"
    REFINED = "refined"
    """For hosts that can set PSNs."""


class Flow(StrEnum):
    """When a rank that sends and receives may post message j of a window of W (EPIC §4.2)."""

    RESULTS = "results"
    """Once the result of message j - W has arrived and its send has completed."""
    ACKS = "acks"
    """Once the send of message j - W has completed: "rank windows progress independently" (§4.4). All receives are
    posted beforehand, so that no result arrives at a receiver that is not ready."""


@dataclass(frozen=True)
class Connection:
    """One queue pair of a rank: its number, its peer (the IncTree's endpoint of the rank's edge), its attributes."""

    qp: int
    peer: Peer
    qp_config: QpConfig


@dataclass(frozen=True)
class GroupConfig:
    """What InitGroup gives to one rank: its place in the group, its connections, and the program's capabilities."""

    rank: int
    size: int
    channels: Mapping[ChannelKey, Connection]
    """With subgroups, a channel for each pattern that is served, up to 2N + 1; with refined synchronisation,
    ``SYMMETRIC`` only. All have the same MTU, the program's payload."""
    window: int
    """W, in messages."""
    message: int
    """M, in packets."""
    dtype: DType = DType.INT32
    op: Op = Op.SUM
    """With DYNAMIC, each call chooses its op and dtype."""
    overflow: Overflow | None = None
    sync: PsnSync = PsnSync.SUBGROUPS
    flow: Flow = Flow.RESULTS
    hop_by_hop: bool = False
    """Whether a send completes when the next hop has it (Mode III), not when its result has arrived."""
    roots: int = ROOTS
    """The ranks that control messages of the program can name as roots."""
    ring: int = 0
    """Packets of the ring of each channel that results are written to (``CollectiveSpec.ring``); 0: they are sent."""
    channel_memory: int = 0
    """Bytes of memory that each channel has for it, in the order of ``channels``."""

    def __post_init__(self) -> None:
        if SYMMETRIC not in self.channels:
            raise ValueError("a group needs a channel for AllReduce and Barrier")
        if len({connection.qp_config.mtu for connection in self.channels.values()}) != 1:
            raise ValueError("the channels of a group must have the same MTU")

    @property
    def memory(self) -> int:
        """Bytes that results are written to."""
        return len(self.channels) * self.channel_memory

    @property
    def packet(self) -> int:
        """Payload of a packet, in bytes."""
        return self.channels[SYMMETRIC].qp_config.mtu

    def kind(self, dtype: DType, op: Op | None) -> tuple[Op, DType]:
        """Op and dtype of a call. Raises ``InputError`` when the program on the tree does not support them."""
        if self.op is Op.DYNAMIC:
            if op is Op.DYNAMIC:
                raise InputError(f"op dynamic: each call must name one of {', '.join(single_ops())}")
            if not dtype.number_format.integer and dtype is not self.dtype:
                also = "" if self.dtype.number_format.integer else f" and {self.dtype}"
                raise InputError(f"elements are {dtype}; the program on the tree works on integers{also}")
            return op or Op.SUM, dtype
        if dtype is not self.dtype:
            raise InputError(f"elements are {dtype}; the program on the tree works on {self.dtype}")
        if op is not None and op is not self.op:
            raise InputError(f"op {op}: the program on the tree does {self.op}")
        return self.op, dtype

    def channel(self, collective: Collective, root: int) -> ChannelKey:
        """The channel on which a phase of ``collective`` runs."""
        pattern = _PATTERN[collective]
        if self.sync is PsnSync.REFINED or pattern is Collective.ALLREDUCE:
            return SYMMETRIC
        return pattern, root

    def check_served(self, collective: Collective, root: int) -> None:
        """Raises ``InputError`` when the group has no channel for a collective."""
        if self.channel(collective, root) not in self.channels or (self.size > self.roots and collective.every_root):
            raise InputError(f"{collective}: the program on the tree serves {', '.join(sorted(self.served()))}")

    def served(self) -> list[Collective]:
        """The collectives for which the group has all channels, whatever the root; of more than ``roots`` ranks, the
        first ones can be roots."""
        roots = range(min(self.size, self.roots))
        found = [c for c in Collective if all(self.channel(c, root) in self.channels for root in roots)]
        return [each for each in found if self.size <= self.roots or not each.every_root]


@dataclass(frozen=True)
class Phase:
    """A part of a collective with one root, on one channel: what this rank sends, and where it receives."""

    channel: ChannelKey
    control: Control
    send: memoryview | None
    """Elements in the machine's order, as in ``receive``; None when this rank only receives."""
    receive: memoryview | None
    """None when it only sends."""
    added: bool = False
    """Whether CommLib added the phase to synchronise; it has no result."""


@dataclass(frozen=True)
class Step:
    """Phases that run at the same time, each on its own channel. The next step begins when all have ended."""

    phases: tuple[Phase, ...]
    move_idle: bool = False
    """Whether the PSN of the idle direction is set to that of the other one afterwards (refined synchronisation)."""


@dataclass(frozen=True)
class Part:
    """The data of a collective that belongs to one root."""

    root: int
    send: memoryview | None
    receive: memoryview | None


@dataclass
class Planner:
    """Divides collectives into steps. It remembers what it has planned, so plan calls in their order."""

    STATE: ClassVar = ("_unconfirmed",)

    config: GroupConfig
    _unconfirmed: Counter[ChannelKey] = field(default_factory=Counter)
    """By channel: number of phases that other ranks may not have completed."""

    def plan(self, collective: Collective, parts: Sequence[Part], op: Op, dtype: DType) -> list[Step]:
        """The steps of a collective. Raises ``InputError`` when the group has no channel for it."""
        config = self.config
        for part in parts:
            config.check_served(collective, part.root)
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
        """The phases of a part. As one control message announces at most ``max_packets`` packets, there may be
        several."""
        config = self.config
        whole = part.send if part.send is not None else part.receive
        assert whole is not None
        pattern = collective if collective is Collective.BARRIER else _PATTERN[collective]
        step = max_packets(config.roots) // config.message * config.message * config.packet
        for start in range(0, max(1, len(whole)), step):
            piece = slice(start, start + step)
            control = Control(pattern, len(whole[piece]) // config.packet, part.root, op, dtype, config.roots)
            send, receive = (None if side is None else side[piece] for side in (part.send, part.receive))
            yield Phase(config.channel(collective, part.root), control, send, receive)

    def _bounded(self, phases: tuple[Phase, ...]) -> Iterable[Step]:
        """A step on subgroups, preceded by a Barrier if a switch might otherwise need to remember too many
        announcements."""
        unconfirmed = self._unconfirmed
        if self.config.hop_by_hop and any(unconfirmed[p.channel] >= ANNOUNCEMENTS for p in phases):
            unconfirmed.clear()
            yield self._barrier()
        if len(phases) == self.config.size:
            # Every rank sends to every other: a rank that has completed these phases knows that all have begun them.
            unconfirmed.clear()
        unconfirmed.update(p.channel for p in phases)
        yield Step(phases)

    def _barrier(self) -> Step:
        config = self.config
        op = Op.SUM if config.op is Op.DYNAMIC else config.op
        control = Control(Collective.BARRIER, 0, 0, op, config.dtype, config.roots)
        empty = memoryview(b"")
        return Step((Phase(SYMMETRIC, control, empty, empty, added=True),))
