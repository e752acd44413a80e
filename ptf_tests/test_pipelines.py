"""Several pipelines: one node of the IncTree in each, joined by internal edges, over which partial results recirculate.

A pipeline's memory is its own: nothing that arrives in one may touch what another keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from elements import Values
from inc import allreduce, broadcast_from, psns, reduce_to
from mode_ii import ModeIITest

from p4gen.groups.group import Edge, Endpoint, GroupContext, Pattern
from p4gen.host.collectives.control import Control
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Ack, Nak
from p4gen.vocabulary.message import Collective

UNANNOUNCED = "TrackInvocation.not_announced"


@dataclass(frozen=True)
class Rank:
    """Where a rank of a group is plugged in."""

    node: GroupContext
    edge: int


class Pipelines(ModeIITest):
    """A group with ranks on every pipeline."""

    ranks_each = 2

    def unfit(self) -> str | None:
        pipelines = self.spec.pipelines
        if pipelines == 1:
            return "the program has one pipeline"
        if self.spec.groups < pipelines:
            return f"the program serves {self.spec.groups} groups, and each pipeline takes one"
        needed = self.ranks_each + pipelines - 1
        return None if self.spec.fan_in >= needed else f"the program's fan-in is {self.spec.fan_in}, not {needed}"

    def spread(self, *, top: int = 0, patterns: Sequence[tuple[Callable[[int, int], Pattern], int]] = ()) -> list[Rank]:
        """A group's ranks, in the order of pipelines; its root is in pipeline ``top``. Configured, nothing announced.

        ``patterns`` are Reduce or Broadcast and the rank that it is to or from; AllReduce is always there.
        """
        pipelines = list(range(self.spec.pipelines))
        # The root's internal edges come after its ranks, in the order of pipelines; a leaf's only one comes last.
        inner = {pipeline: self.ranks_each + index for index, pipeline in enumerate(p for p in pipelines if p != top)}
        nodes = []
        for pipeline in pipelines:
            chosen = [allreduce(None if pipeline == top else self.ranks_each)]
            for make, root in patterns:
                home, edge = divmod(root, self.ranks_each)
                away = inner[home] if pipeline == top and home != top else self.ranks_each
                chosen.append(make(root, edge if pipeline == home else away))
            plain = self.make_group(
                self.ranks_each, context=pipeline, pipeline=pipeline, switch=0, channel=pipeline, patterns=chosen
            )
            others = [p for p in pipelines if p != top] if pipeline == top else [top]
            internal = tuple(
                self._internal(plain, self.ranks_each + i, pipeline, other) for i, other in enumerate(others)
            )
            nodes.append(replace(plain, edges=plain.edges + internal, base=0))
        self.serve(*nodes)
        return [Rank(node, edge) for node in nodes for edge in range(self.ranks_each)]

    def _internal(self, node: GroupContext, index: int, pipeline: int, other: int) -> Edge:
        local = node.edges[0].local
        return Edge(
            edge_id=1 + node.context * self.spec.fan_in + index,
            port=0,
            local=Endpoint(local.mac, local.ip, 0x8000 + 16 * pipeline + other),
            remote=Endpoint(local.mac, local.ip, 0x8000 + 16 * other + pipeline),
            first_hop=False,
            to_pipeline=other,
        )

    def opened(self, ranks: Sequence[Rank], *, psn: int | None = None) -> None:
        """All announce a large AllReduce."""
        for rank in ranks:
            self.announce(rank.node, [rank.edge], self.first_psn if psn is None else psn, self.call())
        self.equal("announcements back", len(self.outputs()), len(ranks))
        self.discount()

    def give(self, ranks: Sequence[Rank], who: Sequence[int], psn: int, values: Sequence[Values]) -> None:
        """These ranks contribute, in this order."""
        for number in who:
            rank = ranks[number]
            packet = self.contribution(rank.node, rank.edge, psn, values[number])
            self.send_from(rank.node, rank.edge, packet)

    def expect_to(self, ranks: Sequence[Rank], who: Sequence[int], expected: Sequence[tuple[int, Values]]) -> None:
        """These ranks, and nobody else, have received exactly these results."""
        nodes = self.nodes(ranks)
        for node, results in zip(nodes, self.received_by(*nodes), strict=True):
            due = [ranks[number].edge for number in who if ranks[number].node == node]
            self.check_results(node, results, expected, ranks=due)

    def nodes(self, ranks: Sequence[Rank]) -> list[GroupContext]:
        """The group's nodes, in the order of pipelines."""
        return list({rank.node.context: rank.node for rank in ranks}.values())

    def answer(self, rank: Rank, psn: int, syndrome: int = Ack().syndrome) -> None:
        self.send_from(rank.node, rank.edge, self.acknowledgement(rank.node, rank.edge, psn, syndrome))

    def expect_answered(self, ranks: Sequence[Rank], who: Sequence[int], *expected: tuple[int, int]) -> None:
        """These ranks, and nobody else, have received exactly these answers, as (PSN, syndrome)."""
        nodes = self.nodes(ranks)
        taken = dict(zip([node.context for node in nodes], self.received_by(*nodes), strict=True))
        for number, rank in enumerate(ranks):
            packets = taken[rank.node.context].of_rank[rank.edge]
            got = [(p.bth.psn, p.aeth.syndrome) for p in packets if p.aeth is not None]
            self.equal(f"rank {number}: answers", got, list(expected) if number in who else [])


class StateStaysInItsBank(ModeIITest):
    """What arrives in a pipeline touches its own bank of every register, which is one run of cells."""

    def unfit(self) -> str | None:
        return "the program has one pipeline" if self.spec.pipelines == 1 else None

    def runTest(self) -> None:
        for pipeline in range(self.spec.pipelines):
            self.control.reset()
            group = self.make_group(3, pipeline=pipeline, patterns=[allreduce(), broadcast_from(0, 0)])
            self.serve(group)
            before, psn = self.state(), self.first_psn
            for pattern in group.patterns:
                self.open(group, psn=psn, pattern=pattern)
                for number in psns(serial.add(psn, 1), self.spec.slots_per_group):
                    self.contribute(group, [2, 1, 0] if pattern == allreduce() else [0], number, self.random_values(3))
                    for rank in (1, 2):
                        self.send_from(group, rank, self.acknowledgement(group, rank, number))
                psn = serial.add(psn, 1 + self.most_packets)
            self.equal("drops that lose something", set(self.losses()) - {"CombineAcks.waits"}, set())
            touched = {
                name: sorted({index * self.spec.pipelines // len(cells) for index, cell in enumerate(cells) if cell})
                for name, cells in self.state().items()
                if cells != before[name]
            }
            self.equal("banks touched", touched, {name: [pipeline] for name in touched})
            self.equal("registers touched", {"slots", "newest.announcement", "node_acked"} <= set(touched), True)


class PartialResultsAreMerged(Pipelines):
    """Ranks of all pipelines in any order: one result for all, at ports of every pipeline, and nothing else."""

    def runTest(self) -> None:
        for top in range(self.spec.pipelines):
            self.control.reset()
            ranks = self.spread(top=top)
            self.opened(ranks)
            for psn in psns(self.random_psn(), 4):
                values = self.random_values(len(ranks))
                order = self.random.sample(range(len(ranks)), len(ranks))
                self.give(ranks, order[:-1], psn, values)
                self.expect_nothing()
                self.give(ranks, order[-1:], psn, values)
                self.expect_to(ranks, range(len(ranks)), [(psn, self.reduced(values))])
            self.equal("drops that lose something", self.losses(), {})


class StreamOverPipelines(Pipelines):
    """Several times as many packets as slots, over the wrap: every pipeline recycles in step."""

    def runTest(self) -> None:
        ranks = self.spread(top=self.spec.pipelines - 1)
        slots = self.spec.slots_per_group
        first = serial.add(0, -slots)
        self.opened(ranks, psn=serial.add(first, -1))
        for psn in psns(first, min(3 * slots, 96)):
            values = self.random_values(len(ranks))
            self.give(ranks, range(len(ranks)), psn, values)
            self.expect_to(ranks, range(len(ranks)), [(psn, self.reduced(values))])


class RepetitionComesBackToItsPipeline(Pipelines):
    """A rank of the root's pipeline is answered alone; a rank of another one, together with those beside it."""

    def runTest(self) -> None:
        ranks = self.spread(top=1)
        self.opened(ranks)
        psn, values = self.random_psn(), self.random_values(len(ranks))
        self.give(ranks, range(len(ranks)), psn, values)
        result = (psn, self.reduced(values))
        self.expect_to(ranks, range(len(ranks)), [result])
        state = self.state()
        for number, rank in enumerate(ranks):
            beside = [n for n, other in enumerate(ranks) if other.node == rank.node]
            self.give(ranks, [number], psn, values)
            self.expect_to(ranks, [number] if rank.node.pipeline == 1 else beside, [result])
        self.equal("registers", self.state(), state)


class EachPipelineLearnsFromControlMessages(Pipelines):
    """Data is refused in a pipeline that no control message has come through, whatever others know."""

    def runTest(self) -> None:
        ranks = self.spread()
        psn, (values,) = self.random_psn(), self.random_values(1)
        first, last = ranks[0], ranks[-1]
        self.announce(first.node, [first.edge], self.first_psn, self.call())
        packet = self.contribution(last.node, last.edge, psn, values)
        self.refused(last.node, last.edge, packet, UNANNOUNCED)
        self.opened(ranks)
        everybody = [values] * len(ranks)
        self.give(ranks, range(len(ranks)), psn, self._scaled(everybody))
        self.equal("results", len(self.outputs()), len(ranks))

    def _scaled(self, values: Sequence[Values]) -> list[Values]:
        return [value // len(values) for value in values]


class ForgedPartialResult(Pipelines):
    """Over an internal edge comes only what recirculates: a frame from outside, addressed like one, is refused."""

    def runTest(self) -> None:
        ranks = self.spread(top=0)
        self.opened(ranks)
        psn, (values,) = self.random_psn(), self.random_values(1)
        top = ranks[0].node
        inner = next(index for index, edge in enumerate(top.edges) if edge.to_pipeline is not None)
        packet = self.contribution(top, inner, psn, values)
        self.refused(top, 0, packet, "LookupTable.wrong_port")


class BarrierOverPipelines(Pipelines):
    """Control messages of all ranks become one for each of them."""

    def runTest(self) -> None:
        ranks = self.spread(top=1)
        call: Control = self.call(Collective.BARRIER, 0)
        for psn in psns(self.random_psn(), 3):
            for rank in ranks[1:]:
                self.announce(rank.node, [rank.edge], psn, call)
            self.expect_nothing()
            self.announce(ranks[0].node, [ranks[0].edge], psn, call)
            packets = [self.parse(output) for output in self.outputs()]
            got = [(p.bth.psn, p.immdt.value) for p in packets if p.immdt is not None]
            self.equal("announcements", got, [(psn, call.encode())] * len(ranks))


class ReduceOverPipelines(Pipelines):
    """To a rank in the root's pipeline and to one in another: result over there, its answers back to all senders."""

    def runTest(self) -> None:
        count = self.ranks_each * self.spec.pipelines
        targets = (0, count - 1, self.ranks_each)
        ranks = self.spread(patterns=[(reduce_to, root) for root in targets])
        psn = self.first_psn
        for root in targets:
            senders = [number for number in range(count) if number != root]
            for number in senders:
                self.announce(ranks[number].node, [ranks[number].edge], psn, self.call(reduce_to(root, 0), 2))
            self.equal("announcements", len(self.outputs()), 1)
            for data in psns(serial.add(psn, 1), 2):
                values = self.random_values(count)
                self.give(ranks, self.random.sample(senders, len(senders)), data, values)
                self.expect_to(ranks, [root], [(data, self.reduced([values[number] for number in senders]))])
                for syndrome in (Ack().syndrome, Nak().syndrome):
                    self.answer(ranks[root], data, syndrome)
                    self.expect_answered(ranks, senders, (data, syndrome))
            psn = serial.add(psn, 3)


class BroadcastOverPipelines(Pipelines):
    """From a rank in any pipeline to all others; their ACKs are aggregated in each pipeline, and again at the next."""

    def runTest(self) -> None:
        count = self.ranks_each * self.spec.pipelines
        origins = (0, count - 1, self.ranks_each)
        ranks = self.spread(patterns=[(broadcast_from, root) for root in origins])
        psn = self.first_psn
        for root in origins:
            others = [number for number in range(count) if number != root]
            self.announce(ranks[root].node, [ranks[root].edge], psn, self.call(broadcast_from(root, 0), 3))
            self.equal("announcements", len(self.outputs()), len(others))
            numbers = psns(serial.add(psn, 1), 3)
            (values,) = self.random_values(1)
            self.send_from(
                ranks[root].node,
                ranks[root].edge,
                *(self.contribution(ranks[root].node, ranks[root].edge, number, values) for number in numbers),
            )
            self.expect_to(ranks, others, [(number, values) for number in numbers])
            for data in numbers:
                *most, last = self.random.sample(others, len(others))
                for number in most:
                    self.answer(ranks[number], data)
                self.expect_nothing()
                self.answer(ranks[last], data)
                self.expect_answered(ranks, [root], (data, Ack().syndrome))
            psn = serial.add(psn, 4)


class NakOverPipelines(Pipelines):
    """A NAK waits in its pipeline, and then at the next one, until all others have come as far."""

    def runTest(self) -> None:
        ranks = self.spread(patterns=[(broadcast_from, 0)])
        self.announce(ranks[0].node, [0], self.first_psn, self.call(broadcast_from(0, 0), 9))
        self.outputs()
        numbers = psns(serial.add(self.first_psn, 1), 9)
        *most, last = self.random.sample(range(1, len(ranks)), len(ranks) - 1)
        self.answer(ranks[last], numbers[3], Nak().syndrome)
        for number in most[:-1]:
            self.answer(ranks[number], numbers[8])
        self.expect_nothing()
        self.answer(ranks[most[-1]], numbers[1])
        self.expect_answered(ranks, [0], (numbers[1], Ack().syndrome))
        self.answer(ranks[most[-1]], numbers[8])
        self.expect_answered(ranks, [0], (numbers[3], Nak().syndrome))


class BanksAreApart(Pipelines):
    """A group in each pipeline, with the same slots, on the same PSNs at the same time."""

    def runTest(self) -> None:
        pipelines = range(self.spec.pipelines)
        groups = [replace(self.make_group(2, context=pipeline, pipeline=pipeline), base=0) for pipeline in pipelines]
        self.ready(*groups)
        numbers = psns(self.random_psn(), 4)
        rounds = [[self.random_values(2) for _ in numbers] for _ in groups]
        for index, psn in enumerate(numbers):
            turns = [(pipeline, rank) for pipeline in pipelines for rank in (0, 1)]
            for pipeline, rank in self.random.sample(turns, len(turns)):
                self.contribute(groups[pipeline], [rank], psn, rounds[pipeline][index])
        for group, results, values in zip(groups, self.received_by(*groups), rounds, strict=True):
            expected = [(psn, self.reduced(v)) for psn, v in zip(numbers, values, strict=True)]
            self.check_results(group, results, expected)
        self.equal("drops that lose something", self.losses(), {})


class BroadcastStateIsApart(Pipelines):
    """ackPsns of a group in one pipeline are no others' business."""

    def runTest(self) -> None:
        pipelines = range(self.spec.pipelines)
        patterns = [broadcast_from(0, 0)]
        groups = [self.make_group(3, context=pipeline, pipeline=pipeline, patterns=patterns) for pipeline in pipelines]
        self.ready(*groups)
        psn = self.random_psn()
        for group in groups:
            self.send_from(group, 1, self.acknowledgement(group, 1, psn))
        self.expect_nothing()
        for group in reversed(groups):
            self.send_from(group, 2, self.acknowledgement(group, 2, psn))
            self.expect_answers(group, [0], (psn, Ack().syndrome))


class PacketInAForeignPipeline(Pipelines):
    """A rank's packet comes in over a port of another pipeline, which is none of its ports: refused there."""

    def runTest(self) -> None:
        group = self.make_group(2, context=0, pipeline=0)
        self.ready(group)
        psn, values = self.random_psn(), self.random_values(2)
        self.contribute(group, [0], psn, values)
        packet = self.contribution(group, 1, psn, values[1]).to_bytes()
        edge = group.edges[1]
        for pipeline in range(1, self.spec.pipelines):
            port = pipeline * (self.spec.ports // self.spec.pipelines)
            elsewhere = replace(group, edges=(group.edges[0], replace(edge, port=port)))
            self.refused(elsewhere, 1, packet, "LookupTable.wrong_port")
        self.contribute(group, [1], psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])
