"""Several nodes on the way from a source to its destinations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from writes import NAK, HopTest, SourceTest, Write, WriteTest

from p4gen.groups.group import Endpoint
from p4gen.papers.multiwrite.control import WriteContext
from p4gen.ptf.scenario import Output
from p4gen.rocev2.packet import parse

NEAR, LEAF, SPINE, FAR = 1, 2, 3, 4
"""Numbers of edges: a near destination, the way up to the source, the way down, and a destination behind it."""


class _Tiers(WriteTest):
    """A leaf, a spine and a leaf: three contexts of one switch, whose frames the test carries from one to the next.

    The source is behind edge 4 of the first leaf. Edge 3 of a node leads to edge 2 of the next one. Edge 1 of the
    first leaf, and edges 1 and 4 of the last one, lead to destinations of ranks 0, 2 and 3.
    """

    def unfit(self) -> str | None:
        return "the program has fewer than three contexts" if self.spec.contexts < 3 else None

    def nodes(self) -> list[WriteContext]:
        """The contexts, from the source on; each has its addresses, and its neighbour's at edges 2 and 3."""
        made = [
            self.star(
                3 if number == 0 else 1,
                number=number,
                at=0x0A000001 + (number << 16),
                first_hop=number == 0,
                behind={SPINE: 0b1100 if number == 0 else 0b1101},
            )
            for number in range(3)
        ]
        ranks = [{NEAR: 0b1, SPINE: 0b1100}, {SPINE: 0b1100}, {NEAR: 0b100, FAR: 0b1000}]
        cut = [
            replace(
                node,
                edges=tuple(
                    replace(edge, reach=behind.get(edge.edge, 0), window=edge.window if edge.edge != SPINE else None)
                    for edge in node.edges
                    if edge.edge in behind or edge.edge == node.source
                ),
                rank=3 if node.context == 0 else 1,
            )
            for node, behind in zip(made, ranks, strict=True)
        ]
        return self.cabled(cut)

    def cabled(self, nodes: list[WriteContext]) -> list[WriteContext]:
        """The nodes with each other as neighbours, and with one key for all."""
        ends: dict[tuple[int, int], Endpoint] = {}
        for node, after in pairwise(nodes):
            ends[node.context, SPINE] = after.toward.local
            ends[after.context, LEAF] = next(edge.local for edge in node.edges if edge.edge == SPINE)
        return [
            replace(
                node,
                rank=5,
                rkey=nodes[0].rkey,
                group=nodes[0].group,
                edges=tuple(
                    replace(edge, remote=ends.get((node.context, edge.edge), edge.remote)) for edge in node.edges
                ),
            )
            for node in nodes
        ]

    def goes_down(self, write: Write, copies: dict[int, int], to: WriteContext | None) -> Write:
        """A write is sent, its copies leave, and the one for the next node is what arrives there."""
        self.posts(write, copies)
        packet = parse(self.copy(write, SPINE, copies[SPINE]).frame)
        if to is None:
            return write
        reach = next(edge.reach for edge in write.context.edges if edge.edge == SPINE)
        return replace(write, context=to, bitmap=write.bitmap & reach, packet=packet)

    def says_up(self, node: WriteContext, edge: int, psn: int, start: int) -> Output:
        """A destination answers, and the node says something to the one before it."""
        packet = self.say(node, edge, psn)
        told = self.reply(node, packet, start)
        self.expect([told])
        return told

    def goes_up(self, answer: Output, node: WriteContext, start: int, syndrome: int = 0x1F) -> Output:
        """A node hears from the next one, and says something to the one before it."""
        self.send(self.ports[SPINE], answer.frame)
        told = self.reply(node, parse(answer.frame), start, syndrome)
        self.expect([told])
        return told


class TwoTierTree(_Tiers, SourceTest):
    """What the last leaf misses is asked for from the source, whose repetition reaches only who lacks it."""

    def runTest(self) -> None:
        leaf, spine, last = self.nodes()
        self.serve(leaf, spine, last)
        first = self.write(leaf, 0, 0b1101)
        at_spine = self.goes_down(first, {NEAR: 0, SPINE: 0}, spine)
        at_last = self.goes_down(at_spine, {SPINE: 0}, last)
        self.posts(at_last, {NEAR: 0, FAR: 0})

        # Only far destinations: the near one's PSN stands still. The copy on the spine's last edge is lost.
        second = self.write(leaf, 1, 0b1000)
        at_spine = self.goes_down(second, {SPINE: 1}, spine)
        lost = self.goes_down(at_spine, {SPINE: 1}, None)
        third = self.write(leaf, 2, 0b1001)
        at_last = self.goes_down(self.goes_down(third, {NEAR: 1, SPINE: 2}, spine), {SPINE: 2}, last)

        # The last leaf misses it, and asks for the first packet that is not at all its destinations.
        self.post(at_last)
        nak = self.reply(last, at_last.packet, 0, NAK)
        self.expect([nak])
        # What it wants is what the spine waits for, and, of the source, the first packet; the first leaf's near
        # destination has not acknowledged, but waits for nothing older.
        nak = self.goes_up(nak, spine, 0, NAK)
        nak = self.goes_up(nak, leaf, 0, NAK)
        self.equal("port of what the source hears", nak.port, self.ports[leaf.source])

        # Everything is acknowledged but what was lost; the source goes back, and only who lacks something gets it.
        self.says(leaf, NEAR, 1, None)
        self.says(last, FAR, 0, None)
        ack = self.says_up(last, NEAR, 0, 1)
        ack = self.goes_up(ack, spine, 1)
        ack = self.goes_up(ack, leaf, 1)
        again = self.goes_down(second, {SPINE: 1}, spine)
        again = self.goes_down(again, {SPINE: 1}, last)
        self.equal("a repetition", again.packet.to_bytes(), self.copy(lost, SPINE, 1).frame)
        self.posts(again, {FAR: 1})
        ack = self.says_up(last, FAR, 1, 2)
        ack = self.goes_up(ack, spine, 2)
        self.goes_up(ack, leaf, 2)


class TwoTierTreeOfHops(_Tiers, HopTest):
    """What the last leaf misses comes from the spine: the source has long been acknowledged."""

    def runTest(self) -> None:
        leaf, spine, last = self.nodes()
        self.serve(leaf, spine, last)
        first, second, third = self.write(leaf, 0, 0b1101), self.write(leaf, 1, 0b1000), self.write(leaf, 2, 0b1001)
        self.arrives(self.down(self.down(first, {NEAR: 0, SPINE: 0}, spine), {SPINE: 0}, last), {NEAR: 0, FAR: 0})
        lost = self.down(second, {SPINE: 1}, spine)
        self.down(lost, {SPINE: 1}, last)
        at_last = self.down(self.down(third, {NEAR: 1, SPINE: 2}, spine), {SPINE: 2}, last)

        self.post(at_last)
        nak = self.reply(last, at_last.packet, 1, NAK)
        self.expect([nak])
        self.send(self.ports[SPINE], nak.frame)
        heard = parse(nak.frame)
        again = [self.again(write, SPINE, number, heard) for write, number in ((lost, 1), (self.at_spine[2], 2))]
        self.expect(again)
        for output, copies, start in zip(again, ({FAR: 1}, {FAR: 2}), (2, 3), strict=True):
            write = replace(at_last, packet=parse(output.frame), psn=start - 1, bitmap=0b1000)
            write = replace(write, data=(second, third)[start - 2].data, offset=(second, third)[start - 2].offset)
            self.arrives(write, copies)

    def setUp(self) -> None:
        super().setUp()
        self.at_spine: list[Write] = []

    def arrives(self, write: Write, copies: dict[int, int]) -> None:
        """A write comes to a node, which answers it if it is asked to."""
        self.posts(write, copies)

    def down(self, write: Write, copies: dict[int, int], to: WriteContext) -> Write:
        """A write goes one node further."""
        found = self.goes_down(write, copies, to)
        if to.context == 1:
            self.at_spine.append(found)
        return found
