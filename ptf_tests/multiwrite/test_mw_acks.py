"""What the source is told, and when."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import permutations

from brute_force import Node
from writes import ACK, NAK, SourceTest, WriteTest

from p4gen.papers.multiwrite.control import WriteContext

ACCESS = 0x62
"""NAK, remote access error: a window is not what the control plane thinks."""
RNR = 0x2E


@dataclass
class _Flow:
    """What a source has sent, and up to where it has heard that all is everywhere."""

    context: WriteContext
    node: Node
    told: int = 0


class AckWaitsForAllOfThisPacket(SourceTest):
    """The source hears of a packet when the last of its destinations has acknowledged, in every order."""

    def runTest(self) -> None:
        context = self.served()
        for psn, order in enumerate(permutations((2, 3, 4))):
            self.posts(self.write(context, psn, self.bits(order)), dict.fromkeys(order, psn))
            for edge in order:
                self.says(context, edge, psn, psn + 1 if edge == order[-1] else None)
        self.equal("dropped", self.drops(), Counter({"CheckRange.waits": 12}) + self._pruned(6))

    def _pruned(self, writes: int) -> Counter[str]:
        return Counter({"PrunePort.not_named": writes * (self.spec.edges - 3)} if self.spec.prunes else {})


class IdleEdgeDoesNotHoldBack(SourceTest):
    """An edge that nothing was sent to, or that has acknowledged all, counts for nothing."""

    def runTest(self) -> None:
        context = self.served()
        self.posts(self.write(context, 0, self.bits([2])), {2: 0})
        self.says(context, 2, 0, 1)
        for psn in range(1, 4):
            self.posts(self.write(context, psn, self.bits([3])), {3: psn - 1})
            self.says(context, 3, psn - 1, psn + 1)
        self.posts(self.write(context, 4, self.bits([2])), {2: 1})
        self.says(context, 2, 1, 5)


class SlowEdgeHoldsItsPacketsOnly(SourceTest):
    """Packets for others go on to N while one destination is silent; then one answer tells of them all."""

    def runTest(self) -> None:
        context = self.served()
        self.posts(self.write(context, 0, self.bits([2])), {2: 0})
        self.says(context, 2, 0, 1)
        self.posts(self.write(context, 1, self.bits([3])), {3: 0})
        for psn in range(2, self.spec.slots + 1):
            self.posts(self.write(context, psn, self.bits([2])), {2: psn - 1})
            self.says(context, 2, psn - 1, None)
        self.says(context, 3, 0, self.spec.slots + 1)


class VaryingSets(SourceTest):
    """Random sets of two sources at different edges, answers in random order, some cumulative, some lost: what each
    source hears is what brute force finds."""

    def runTest(self) -> None:
        flows = [_Flow(context, Node(self.others(context))) for context in self.at_both_ends()]
        for _ in range(200):
            flow = self.random.choice(flows)
            context, node = flow.context, flow.node
            waiting = [edge for edge in node.acked if node.acked[edge] < len(node.copies[edge])]
            room = node.sent - node.start < self.spec.slots
            if room and (not waiting or self.random.random() < 0.5):
                edges = self.random.sample(list(node.acked), self.random.randint(1, len(node.acked)))
                psn = node.sent
                self.posts(self.write(context, psn, self.bits(edges)), node.send(edges))
                continue
            edge = self.random.choice(waiting)
            number = self.random.randrange(node.acked[edge], len(node.copies[edge]))
            if self.random.random() < 0.2:
                psn = self.random.randrange(node.start, node.sent)  # the source sends something again
                copies, lacking = [e for e in node.copies if psn in node.copies[e]], node.lacking(psn)
                more = [e for e in node.copies if e in copies or self.random.random() < 0.3]  # which changes nothing
                write = self.write(context, psn, self.bits(more))
                self.post(write)
                flow.told = node.start
                repeated = [self.copy(write, e, q) for e, q in lacking.items()]
                self.expect(repeated or [self.reply(context, write.packet, node.start)])
                continue
            node.acknowledge(edge, number)
            self.says(context, edge, number, node.start if node.start != flow.told else None)
            flow.told = node.start


class CumulativeAckCoversSeveral(SourceTest):
    """An ACK stands for all before it."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(5):
            self.posts(self.write(context, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.says(context, 2, 3, None)
        self.says(context, 3, 4, 4)
        self.says(context, 2, 4, 5)


class NakWaitsForSlowerEdges(SourceTest):
    """A NAK acknowledges all before its PSN, so the source hears it when the other edges have come as far."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(3):
            self.posts(self.write(context, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.says(context, 2, 1, None, syndrome=NAK)
        self.says(context, 3, 2, 1, told=NAK)
        self.posts(self.write(context, 1, self.bits([2, 3])), {2: 1})
        self.posts(self.write(context, 2, self.bits([2, 3])), {2: 2})
        self.says(context, 2, 2, 3)


class NakIsHeardAtOnce(SourceTest):
    """A NAK of what holds everything up goes to the source, translated into its PSN; each time it is said."""

    def runTest(self) -> None:
        context = self.served()
        self.posts(self.write(context, 0, self.bits([3])), {3: 0})
        self.posts(self.write(context, 1, self.bits([2])), {2: 0})
        self.posts(self.write(context, 2, self.bits([2, 3])), {2: 1, 3: 1})
        self.says(context, 3, 0, 1)
        self.says(context, 3, 1, None, syndrome=NAK)
        for _ in range(2):
            self.says(context, 2, 0, 1, syndrome=NAK, told=NAK)
            self.says(context, 2, -1, None)
        self.says(context, 2, 1, 2, syndrome=NAK, told=NAK)
        self.says(context, 3, 1, None)
        self.says(context, 2, 1, 3)


class WaitingNakIsNotErased(SourceTest):
    """A NAK that waits for slower edges outlasts an ACK of the same that comes again."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(2):
            self.posts(self.write(context, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.says(context, 2, 1, None, syndrome=ACCESS)
        self.says(context, 2, 0, None)
        self.says(context, 3, 1, 1, told=ACCESS)


class AnswerToAFenceIsNoEvent(WriteTest):
    """The answer to a fence that comes too early is not solicited itself."""

    def runTest(self) -> None:
        context = self.served()
        write = self.write(context, 1, self.bits([2]), fence=True)
        self.post(write)
        self.expect([self.reply(context, write.packet, 0, NAK)])


class NakIsForgottenWhenMended(SourceTest):
    """Once an edge has acknowledged more, what it missed is no longer asked for."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(3):
            self.posts(self.write(context, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.says(context, 2, 1, None, syndrome=NAK)
        self.says(context, 2, 1, None)
        self.says(context, 3, 2, 2)
        self.says(context, 2, 2, 3)
        self.posts(self.write(context, 3, self.bits([2])), {2: 3})
        self.says(context, 2, 3, 4)


class NakOfWhatIsNotSentIsForgotten(SourceTest):
    """A destination that has all, and asks for what comes next, has said nothing of what it gets then."""

    def runTest(self) -> None:
        context = self.served()
        self.posts(self.write(context, 0, self.bits([2])), {2: 0})
        self.says(context, 2, 1, 1, syndrome=ACCESS)
        self.posts(self.write(context, 1, self.bits([3])), {3: 0})
        self.posts(self.write(context, 2, self.bits([2])), {2: 1})
        self.says(context, 3, 0, 2)
        self.says(context, 2, 1, 3)


class OneNakAmongEqualsIsHeard(SourceTest):
    """Several destinations wait for one packet: what one of them has said of it is heard, though others have said
    nothing."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(2):
            self.posts(self.write(context, psn, self.bits([2, 3, 4])), {2: psn, 3: psn, 4: psn})
        self.says(context, 3, 1, None, syndrome=ACCESS)
        self.says(context, 2, 0, None)
        self.says(context, 4, 0, 1, told=ACCESS)


class OthersNaksAreNotHeard(SourceTest):
    """What is heard of a packet is said of that packet: not what a destination says that waits for a later one, nor one
    that waits for nothing, not even of PSN 0."""

    def runTest(self) -> None:
        context = self.served(first_psn=(1 << 24) - 1)
        self.posts(self.write(context, 0, self.bits([2, 4])), {2: 0, 4: 0})
        self.says(context, 4, 1, None, syndrome=ACCESS)
        self.posts(self.write(context, 1, self.bits([3])), {3: 0})
        self.says(context, 2, 0, 1)
        self.posts(self.write(context, 2, self.bits([2, 3])), {2: 1, 3: 1})
        self.posts(self.write(context, 3, self.bits([4])), {4: 1})
        self.posts(self.write(context, 4, self.bits([4])), {4: 2})
        self.says(context, 4, 2, None, syndrome=ACCESS)
        self.says(context, 3, 0, 2)


class OvertakenNakIsForgotten(SourceTest):
    """A NAK that comes behind an ACK of what it asks for says nothing of what its edge waits for now."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(3):
            self.posts(self.write(context, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.says(context, 2, 1, None)
        self.says(context, 2, 1, None, syndrome=NAK)
        self.says(context, 3, 1, 2)
        self.says(context, 3, 2, None)
        self.says(context, 2, 2, 3)


class OtherNaksKeepTheirSyndrome(SourceTest):
    """Of a destination that refuses, or is not ready, the source hears what it said."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(2):
            self.posts(self.write(context, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.says(context, 2, 0, 0, syndrome=RNR, told=RNR)
        self.says(context, 2, 0, None)
        self.says(context, 2, 1, None, syndrome=ACCESS)
        self.says(context, 3, 1, 1, told=ACCESS)


class AckBeyondSentIsIgnored(SourceTest):
    """An answer to what was never sent is not believed."""

    def runTest(self) -> None:
        context = self.served()
        self.says(context, 2, 0, None)
        self.posts(self.write(context, 0, self.bits([2, 3])), {2: 0, 3: 0})
        for psn in (1, 2, 100, 1 << 22):
            self.says(context, 2, psn, None)
            self.says(context, 2, psn + 1, None, syndrome=NAK)
        self.says(context, 3, 0, None)
        self.says(context, 2, 0, 1)


class OldAckChangesNothing(SourceTest):
    """An answer that another one has overtaken, or that comes twice, says nothing new, not even while PSN 0 is waited
    for."""

    def runTest(self) -> None:
        context = self.served(first_psn=(1 << 24) - 3)
        for psn in range(4):
            self.posts(self.write(context, psn, self.bits([2, 3])), {2: psn, 3: psn})
        self.says(context, 3, 3, None)
        self.says(context, 2, 2, 3)
        for old in (2, 1, 0):
            self.says(context, 2, old, None)
            self.says(context, 2, old, None, syndrome=NAK)
        self.says(context, 2, 3, 4)
        self.says(context, 2, 3, None)
        self.says(context, 2, 3, None, syndrome=NAK)


class AnswersWrap(SourceTest):
    """PSNs are compared as serial numbers, the source's and those of edges."""

    def runTest(self) -> None:
        context = self.served(first_psn=(1 << 24) - 2)
        node = Node([2, 3])
        for psn in range(5):
            numbers = node.send([2, 3] if psn % 2 else [3])
            self.posts(self.write(context, psn, self.bits(numbers)), numbers)
        for edge, number, start in ((3, 2, 1), (2, 0, 3), (3, 4, None), (2, 1, 5)):
            self.says(context, edge, number, start)


class NotificationGoesToTheSource(WriteTest):
    """A destination's congestion notification reaches the source, whatever it has acknowledged."""

    def runTest(self) -> None:
        context = self.served(source=2)
        toward = context.toward
        for edge in self.others(context)[:2]:
            packet = self.notification(context, edge)
            self.send(self.ports[edge], packet.to_bytes())
            (output,) = self.outputs()
            expected = replace(
                packet,
                eth=replace(packet.eth, dst=toward.remote.mac, src=toward.local.mac),
                ip=self.translated(packet.ip, toward.local.ip, toward.remote.ip),
                udp=replace(packet.udp, src_port=toward.udp_src_port, checksum=0),
                bth=replace(packet.bth, dst_qp=toward.remote.qp),
            )
            self.equal("frame", output, self._out(3, expected, packet))


class MarksStay(SourceTest):
    """A mark of congestion reaches the destinations, and does not come back on an answer."""

    def runTest(self) -> None:
        context = self.served()
        marked = self.write(context, 0, self.bits([2, 3]), ecn=3)
        self.posts(marked, {2: 0, 3: 0})
        self.says(context, 2, 0, None)
        self.says(context, 3, 0, 1)
        self.post(marked)
        self.expect([self.reply(context, marked.packet, 1, ACK)])
