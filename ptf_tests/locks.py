"""Groups that share a block of slots by a lock in the switch (EPIC section 6.2): what their scenarios share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from elements import Values
from inc import IncTest, allreduce

from p4gen.groups.group import GroupContext
from p4gen.host.collectives.control import Control
from p4gen.papers.epic.locks import verdicts
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import BTH
from p4gen.rocev2.opcodes import Opcode, RnrNak
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import Op
from p4gen.vocabulary.message import Collective, Lease

Received = list[list[tuple[int, str]]]
"""By edge: the results that it got, as PSN and content."""
GRANTED, REFUSED = "granted", "refused"


class LockTest(IncTest):
    """A test with groups that share blocks."""

    modes: ClassVar[tuple[Mode, ...]] = (Mode.II, Mode.III)
    children: ClassVar[int] = 3
    silent: tuple[int, ...] = ()
    """Edges whose acknowledgements are lost."""
    wraps: ClassVar[bool] = False
    """Whether the lock's PSN is the last before they wrap."""

    def setUp(self) -> None:
        super().setUp()
        if self.wraps:
            self.first_psn = (1 << 24) - 2
        found = verdicts(self.spec)
        self.verdict = {GRANTED: found.granted, REFUSED: found.refused}

    def misfit(self, spec: EpicSpec) -> str | None:
        return super().misfit(spec) or (None if spec.locks else "groups have slots of their own")

    # --- groups ---

    def sharing(
        self, context: int, *, parent: bool = False, lock: int | None = None, pipeline: int = 0
    ) -> GroupContext:
        """A node whose slots are a block, by default the last one."""
        lock = self.spec.locks - 1 if lock is None else lock
        count = min(self.children, self.spec.fan_in - parent)
        pattern = allreduce(count if parent else None)
        group = self.make_group(
            count + parent, context=context, epoch=context + 1, patterns=[pattern], pipeline=pipeline
        )
        if parent:
            *below, last = group.edges
            group = replace(group, edges=(*below, replace(last, first_hop=False)))
        size, spec = self.spec.slots_per_group, self.spec
        base = spec.pipes * (spec.groups * spec.own_slots + lock * size)
        return replace(group, base=base, base_down=base + size if spec.pipes > 1 else None, block=lock)

    def pair(self, *, parent: bool = False) -> tuple[GroupContext, GroupContext]:
        """Two configured groups with one block; the second one is at the root of its tree."""
        groups = self.sharing(0, parent=parent), self.sharing(1)
        self.serve(*groups)
        return groups

    def below(self, group: GroupContext) -> Sequence[int]:
        """The children's edges."""
        toward = group.patterns[0].toward
        return range(len(group.edges) if toward is None else toward)

    def psn(self, offset: int) -> int:
        """A PSN by how far it is behind the first one."""
        return serial.add(self.first_psn, offset)

    # --- calls ---

    def lease(self, kind: Lease) -> Control:
        """The control message of an acquire or a release."""
        op = Op.SUM if self.spec.op is Op.DYNAMIC else self.spec.op
        packets = int(kind is Lease.ACQUIRE)
        return Control(Collective.BARRIER, packets, kind, op, self.spec.dtype, self.spec.roots)

    def acquire(self, group: GroupContext, at: int, ranks: Sequence[int] | None = None, say: str = GRANTED) -> Received:
        """The packets with which edges acquire, from an offset of PSNs on. Returns the results of the second one."""
        ranks = self.below(group) if ranks is None else ranks
        self.announce(group, ranks, self.psn(at), self.lease(Lease.ACQUIRE))
        self.collect(group)
        for rank in ranks:
            self.send_from(group, rank, self.claim(group, rank, at, say))
        return self.collect(group)

    def claim(self, group: GroupContext, rank: int, at: int, say: str = GRANTED) -> RocePacket:
        """The packet that says whether an edge refuses."""
        first, rest = (self.verdict[each].to_bytes(self.spec.lane_bits // 8) for each in (say, GRANTED))
        bth = BTH(Opcode.SEND_ONLY, 0, self.psn(at + 1), ack_request=True)
        return self.from_rank(group, rank, bth, payload=first + rest * (self.spec.lanes - 1))

    def release(self, group: GroupContext, at: int, ranks: Sequence[int] | None = None) -> Received:
        """The packet with which edges release, at an offset of PSNs."""
        ranks = self.below(group) if ranks is None else ranks
        self.announce(group, ranks, self.psn(at), self.lease(Lease.RELEASE))
        return self.collect(group)

    def contributed(self, group: GroupContext, at: int, values: Sequence[Values]) -> Received:
        """An AllReduce of one packet by all children, from an offset of PSNs on."""
        ranks = self.below(group)
        self.announce(group, ranks, self.psn(at), self.call(packets=1))
        self.collect(group)
        self.contribute(group, ranks, self.psn(at + 1), values)
        return self.collect(group)

    def collect(self, group: GroupContext) -> Received:
        """The results that edges have received, which acknowledge them where switches wait for that."""
        found: Received = []
        for rank, packets in enumerate(self.received(group).of_rank):
            results = [each for each in packets if each.aeth is None and each.bth.opcode != Opcode.CNP]
            found.append([(each.bth.psn, self.content(each)) for each in results])
            if self.spec.terminates and rank not in self.silent:
                self.send_from(group, rank, *(self.acknowledgement(group, rank, each.bth.psn) for each in results))
        return found

    def content(self, packet: RocePacket) -> str:
        """What a result says: what it announces, a verdict, or its payload."""
        if packet.immdt is not None:
            return f"announces {packet.immdt.value:#x}"
        size = self.spec.lane_bits // 8
        if packet.payload == self.verdict[GRANTED].to_bytes(size) * self.spec.lanes:
            return GRANTED
        return REFUSED if packet.payload[:size] in self._refusals(size) else packet.payload.hex()

    def _refusals(self, size: int) -> set[bytes]:
        """What the first lane may be if some of the children refuse."""
        if self.spec.op in (Op.MIN, Op.MAX):
            return {self.verdict[REFUSED].to_bytes(size)}
        return {(count * self.verdict[REFUSED]).to_bytes(size) for count in range(1, self.children + 2)}

    def check_results(self, got: Received, at: int, content: str, ranks: Sequence[int]) -> None:
        """Check that these edges got one result, and the others none."""
        wanted = [[(self.psn(at), content)] if rank in ranks else [] for rank in range(len(got))]
        self.equal("results", got, wanted)

    def is_free(self, other: GroupContext, at: int) -> bool:
        """Whether another group gets the block, which it then releases. It takes three PSNs, from an offset on."""
        got = self.acquire(other, at)
        free = got[0] == [(self.psn(at + 1), GRANTED)]
        self.check_results(got, at + 1, GRANTED if free else REFUSED, self.below(other))
        if free:
            self.release(other, at + 2)
        return free

    def expect_call(self, group: GroupContext, at: int) -> None:
        """Check that an AllReduce without a parent works. It takes two PSNs."""
        values = self.random_values(len(group.edges))
        got = self.contributed(group, at, values)
        self.check_results(got, at + 1, self.encode(self.reduced(values)).hex(), range(len(group.edges)))

    def expect_denied(self, group: GroupContext, rank: int, packet: RocePacket) -> None:
        """Check that a packet gets no result, leaves no trace in slots, and is counted."""
        slots = self.control.registers("slots")
        before = self.losses()
        self.send_from(group, rank, packet)
        received = self.received(group)
        self.equal("slots", self.control.registers("slots"), slots)
        reason = "CheckOrder.ahead" if self.spec.terminates else "AcquireLease.denied"
        self.equal("drops", self.losses() - before, {reason: 1})
        answers = [[each.aeth.syndrome for each in got if each.aeth is not None] for got in received.of_rank]
        answer = [RnrNak(1).syndrome] if self.spec.terminates and self.spec.notifies else []
        self.equal("answers", answers, [answer if edge == rank else [] for edge in range(len(group.edges))])
