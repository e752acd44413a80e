"""Groups over several pipelines: each pipeline is a node with memory of its own, and nodes talk over internal edges.

Seen from outside, such a switch behaves like one node with all of its edges; internal packets must not be visible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from elements import Values
from mode_iii import DOWN, ModeIIITest, Seen, ack_of, again, control_of, data_of, nak_of, to

from p4gen.groups.group import Edge, GroupContext, Pattern
from p4gen.host.collectives.control import Control
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

EVERY = tuple(Reliability)
CHILDREN = 2
Wanted = tuple[GroupContext, Seen, Seen]
Place = tuple[int, int]
"""A rank: (pipeline, edge)."""


class PipelineTest(ModeIIITest):
    """Two ranks on each pipeline; ``root`` is the pipeline whose node is the IncTree's root."""

    reliability = EVERY
    root = 1
    base = 0
    """The first slot of every node, in its own pipeline's memory."""

    def unfit(self) -> str | None:
        spec = self.spec
        if spec.pipelines == 1:
            return "the program has one pipeline"
        needed = CHILDREN + spec.pipelines - 1
        if spec.fan_in < needed or spec.groups < spec.pipelines or spec.ports < CHILDREN * spec.pipelines:
            return f"a group over {spec.pipelines} pipelines takes as many contexts, and a fan-in of {needed}"
        return super().unfit()

    def setUp(self) -> None:
        super().setUp()
        self.pipelines = range(self.spec.pipelines)
        self.ranks: list[Place] = [(pipeline, edge) for pipeline in self.pipelines for edge in range(CHILDREN)]

    def nodes(self, collective: Collective, rank: Place = (0, 0)) -> list[GroupContext]:
        """Configured nodes for AllReduce, or a Reduce to, or a Broadcast from a rank, by pipeline."""
        made = [self.make_group(CHILDREN, context=p, pipeline=p, switch=0, channel=p) for p in self.pipelines]
        groups = []
        for pipeline, group in enumerate(made):
            others = [p for p in self.pipelines if p != pipeline] if pipeline == self.root else [self.root]
            edges = [*group.edges, *(self.internal(made, pipeline, other) for other in others)]
            if collective is Collective.ALLREDUCE:
                toward = None if pipeline == self.root else CHILDREN
            elif pipeline == rank[0]:
                toward = rank[1]
            else:
                toward = CHILDREN + (others.index(rank[0]) if pipeline == self.root else 0)
            root = 0 if collective is Collective.ALLREDUCE else self.ranks.index(rank)
            pattern = Pattern(collective, root, toward)
            groups.append(replace(group, edges=tuple(edges), patterns=(pattern,), base=self.base))
        groups = [replace(group, base_down=group.base + self.window) for group in groups]
        self.serve(*groups)
        return groups

    def internal(self, groups: Sequence[GroupContext], pipeline: int, other: int) -> Edge:
        """One end of the edge between two pipelines' nodes."""
        local = groups[pipeline].edges[0].local
        ends = [replace(local, qp=0x5000 + 16 * here + there) for here, there in ((pipeline, other), (other, pipeline))]
        index = CHILDREN + (other - (other > self.root) if pipeline == self.root else 0)
        edge_id = 1 + pipeline * self.spec.fan_in + index
        return Edge(edge_id, 0, ends[0], ends[1], first_hop=False, to_pipeline=other)

    def begin_all(self, groups: list[GroupContext], sources: list[Place], outputs: list[Place], packets: int) -> None:
        (pattern,) = groups[0].patterns
        value = Control(
            pattern.collective, packets, pattern.root, self.numbers.op, self.numbers.dtype, self.spec.roots
        ).encode()
        for pipeline, edge in sources:
            self.announce(groups[pipeline], [edge], self.psn(0), value)
        self.check_places(groups, sources, outputs, self.psn(0), control_of(self.psn(0), value))
        self.ack_all(groups, outputs, self.psn(0))

    def ack_all(self, groups: list[GroupContext], places: list[Place], psn: int) -> None:
        for pipeline, edge in places:
            self.ack(groups[pipeline], [edge], psn)
        self.expect_nothing()

    def push_all(
        self, groups: list[GroupContext], sources: Sequence[Place], psn: int, values: Mapping[Place, Values]
    ) -> None:
        for pipeline, edge in sources:
            self.send_from(groups[pipeline], edge, self.packet_of(groups[pipeline], edge, psn, values[pipeline, edge]))

    def check_places(
        self, groups: list[GroupContext], sources: Sequence[Place], outputs: Sequence[Place], psn: int, result: str
    ) -> None:
        """Every source has received an ACK and every output the result; other edges have received nothing."""
        self.check_all(
            *(
                (
                    group,
                    to([edge for p, edge in sources if p == pipeline], ack_of(psn)),
                    to([edge for p, edge in outputs if p == pipeline], result),
                )
                for pipeline, group in enumerate(groups)
            )
        )

    def round_all(
        self, groups: list[GroupContext], sources: list[Place], outputs: list[Place], psn: int, *, acked: bool = True
    ) -> str:
        values = dict(zip(sources, self.random_values(len(sources)), strict=True))
        self.push_all(groups, self.random.sample(sources, len(sources)), psn, values)
        result = data_of(psn, self.encode(self.reduced(list(values.values()))))
        self.check_places(groups, sources, outputs, psn, result)
        if acked:
            self.ack_all(groups, outputs, psn)
        return result


class AllReduceOverPipelines(PipelineTest):
    """Every rank is acknowledged at once; the result of all pipelines reaches all ranks; slots are used again."""

    def runTest(self) -> None:
        groups = self.nodes(Collective.ALLREDUCE)
        self.begin_all(groups, self.ranks, self.ranks, 1 << 12)
        for offset in range(1, self.window + 3 if self.window < 16 else 6):
            self.round_all(groups, self.ranks, self.ranks, self.psn(offset))
        self.equal("losses", dict(self.losses()), {})


class AllReduceOverPipelinesWithAnotherRoot(AllReduceOverPipelines):
    root = 0


class AllReduceOverPipelinesAcrossTheWrap(AllReduceOverPipelines):
    wraps = True


class EachPipelineAcknowledgesItsOwn(PipelineTest):
    """A contribution is acknowledged by its pipeline, independently of the others."""

    def runTest(self) -> None:
        groups = self.nodes(Collective.ALLREDUCE)
        self.begin_all(groups, self.ranks, self.ranks, 9)
        values = dict(zip(self.ranks, self.random_values(len(self.ranks)), strict=True))
        *early, last = self.random.sample(self.ranks, len(self.ranks))
        for place in early:
            self.push_all(groups, [place], self.psn(1), values)
            self.check_places(groups, [place], [], self.psn(1), "")
        self.push_all(groups, [last], self.psn(1), values)
        result = data_of(self.psn(1), self.encode(self.reduced(list(values.values()))))
        self.check_places(groups, [last], self.ranks, self.psn(1), result)


class ReduceOverPipelines(PipelineTest):
    """To a rank on each pipeline in turn, the root's and others."""

    place: Place = (0, 1)

    def runTest(self) -> None:
        groups = self.nodes(Collective.REDUCE, self.place)
        sources = [place for place in self.ranks if place != self.place]
        self.begin_all(groups, sources, [self.place], 1 << 12)
        for offset in range(1, self.window + 3 if self.window < 16 else 6):
            self.round_all(groups, sources, [self.place], self.psn(offset))


class ReduceOverPipelinesToTheRootsPipeline(ReduceOverPipelines):
    place = (1, 0)


class BroadcastOverPipelines(PipelineTest):
    """From a rank on each pipeline in turn, the root's and others."""

    place: Place = (0, 1)

    def runTest(self) -> None:
        groups = self.nodes(Collective.BROADCAST, self.place)
        outputs = [place for place in self.ranks if place != self.place]
        self.begin_all(groups, [self.place], outputs, 1 << 12)
        for offset in range(1, self.window + 3 if self.window < 16 else 6):
            self.round_all(groups, [self.place], outputs, self.psn(offset))


class BroadcastOverPipelinesFromTheRootsPipeline(BroadcastOverPipelines):
    place = (1, 0)


class LostResultsOnEveryPipeline(PipelineTest):
    """A NAK brings what its own pipeline's slots hold, to its own edge."""

    reliability = (Reliability.GBN,)

    def runTest(self) -> None:
        groups = self.nodes(Collective.ALLREDUCE)
        self.begin_all(groups, self.ranks, self.ranks, 1 << 12)
        sent = [self.round_all(groups, self.ranks, self.ranks, self.psn(o), acked=False) for o in (1, 2, 3)]
        for pipeline, edge in self.ranks:
            self.nak(groups[pipeline], edge, self.psn(2))
            wanted = {edge: [again(result) for result in sent[1:]]}
            self.check_all(*((group, {}, wanted if p == pipeline else {}) for p, group in enumerate(groups)))


class TimersOfEveryPipeline(PipelineTest):
    """A tick's MSN names the pipeline of its edge."""

    def runTest(self) -> None:
        groups = self.nodes(Collective.ALLREDUCE)
        self.begin_all(groups, self.ranks, self.ranks, 1 << 12)
        sent = self.round_all(groups, self.ranks, self.ranks, self.psn(1), acked=False)
        for pipeline, edge in self.ranks:
            self.tick(groups[pipeline], edge)
            self.expect_nothing()
            self.tick(groups[pipeline], edge)
            wanted = {edge: [sent]}
            self.check_all(*((group, {}, wanted if p == pipeline else {}) for p, group in enumerate(groups)))


class GapsOnEveryPipeline(PipelineTest):
    """A packet out of order is reported by the pipeline at which it arrived."""

    reliability = (Reliability.GBN,)

    def runTest(self) -> None:
        groups = self.nodes(Collective.ALLREDUCE)
        self.begin_all(groups, self.ranks, self.ranks, 1 << 12)
        values = dict(zip(self.ranks, self.random_values(len(self.ranks)), strict=True))
        self.push_all(groups, self.ranks, self.psn(2), values)
        self.check_all(*((group, to(range(CHILDREN), nak_of(self.psn(1))), {}) for group in groups))


class SlowPipelineHoldsAllBack(PipelineTest):
    """One pipeline's ranks acknowledge nothing: results wait for it at the root, until ticks of the internal edge."""

    def runTest(self) -> None:
        groups = self.nodes(Collective.ALLREDUCE)
        self.begin_all(groups, self.ranks, self.ranks, 1 << 12)
        slow = next(pipeline for pipeline in self.pipelines if pipeline != self.root)
        late = [place for place in self.ranks if place[0] == slow]
        fast = [place for place in self.ranks if place[0] != slow]
        # The slow pipeline's broadcast pipe takes N results, and then refuses what the root sends.
        for offset in range(1, self.window + 1):
            self.round_all(groups, self.ranks, self.ranks, self.psn(offset), acked=False)
            self.ack_all(groups, fast, self.psn(offset))
        beyond = self.psn(self.window + 1)
        result = self.round_all(groups, self.ranks, fast, beyond)
        self.ack_all(groups, late, self.psn(1))
        internal = [i for i, edge in enumerate(groups[self.root].edges) if edge.to_pipeline == slow]
        self.tick(groups[self.root], *internal)
        self.expect_nothing()
        self.tick(groups[self.root], *internal)
        self.check_places(groups, [], late, beyond, result)
        self.equal("losses", set(self.losses()), {"CheckOrder.ahead"})


class PipelinesShareNoMemory(PipelineTest):
    """Nodes on two pipelines that have nothing to do with each other, with the same slots, PSNs and edges' numbers."""

    def runTest(self) -> None:
        one = self.make_flow(DOWN, edges=2)
        made = self.node(*one.group.patterns, edges=2, context=1, pipeline=1)
        group = replace(made, base=one.group.base, base_down=one.group.base_down)
        other = replace(one, group=group)
        self.serve(one.group, group)
        value = self.immediate(one, 5)
        for flow in (one, other):
            self.announce(flow.group, flow.sources, self.psn(0), value)
        wanted = control_of(self.psn(0), value)
        self.check_all(*((f.group, to(f.sources, ack_of(self.psn(0))), to(f.outputs, wanted)) for f in (one, other)))
        rounds = [self.inputs(flow) for flow in (one, other)]
        for flow, values in zip((one, other), rounds, strict=True):
            self.push(flow, flow.sources, self.psn(1), values)
        self.check_all(
            *(
                (f.group, to(f.sources, ack_of(self.psn(1))), to(f.outputs, self.result(self.psn(1), values)))
                for f, values in zip((one, other), rounds, strict=True)
            )
        )
        for flow, values in zip((one, other), rounds, strict=True):
            self.tick(flow.group, *flow.outputs, *flow.outputs)
            mine: Wanted = (flow.group, {}, to(flow.outputs, wanted, self.result(self.psn(1), values)))
            rest: list[Wanted] = [(f.group, {}, {}) for f in (one, other) if f is not flow]
            self.check_all(mine, *rest)
        self.equal("losses", dict(self.losses()), {})
