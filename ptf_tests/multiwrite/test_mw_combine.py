"""Combine: the outputs of a token's experts are added on their way back to its source."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from outputs import NUMBERS, CombineTest, Returned
from writes import INVALID, NAK

from p4gen.papers.multiwrite.control import WriteContext
from p4gen.rocev2 import psn as serial


class SumLeavesWithTheLastOutput(CombineTest):
    """Each token waits for its own set. Whoever comes last, the sum leaves with it, numbered as sums leave."""

    def runTest(self) -> None:
        context = self.served()
        sets = (2, 3, 4), (3,), (4, 2), (2, 3), tuple(self.others(context))
        sent: Counter[int] = Counter()
        for number, edges in enumerate(sets):
            outputs = []
            for edge in self.random.sample(edges, len(edges)):
                outputs.append(
                    self.output(context, edge, sent[edge], number, self.bits(edges), asks=self.random.random() < 0.5)
                )
                sent[edge] += 1
            self.adds(outputs, number)
        self.equal("drops", self.drops()["GatherToken.waits"], sum(len(edges) - 1 for edges in sets))


class TokensOfDifferentSetsAtOnce(CombineTest):
    """Outputs of many tokens of two sources in any order, each edge's own in the order of its PSNs: a token is complete
    when its set is, by brute force, and no edge counts for another token or another source. Slots serve again."""

    def runTest(self) -> None:
        contexts = self.at_both_ends()
        sent = {context.context: Counter[int]() for context in contexts}
        sums = dict.fromkeys(sent, 0)
        for call in range(3):
            owed: list[tuple[WriteContext, int, tuple[int, ...]]] = []
            for context in contexts:
                for place in range(self.spec.slots):
                    edges = self.others(context)
                    chosen = tuple(self.random.sample(edges, self.random.randint(1, len(edges))))
                    owed.append((context, call * self.spec.slots + place, chosen))
            queue = [(at, edge) for at, (_, _, edges) in enumerate(owed) for edge in edges]
            self.random.shuffle(queue)
            come: dict[int, list[Returned]] = {}
            for at, edge in queue:
                context, number, chosen = owed[at]
                output = self.output(context, edge, sent[context.context][edge], number, self.bits(chosen))
                sent[context.context][edge] += 1
                come.setdefault(at, []).append(output)
                self.come(output)
                if len(come[at]) < len(chosen):
                    self.expect_nothing()
                    continue
                self.expect([self.sum(come[at], sums[context.context])])
                sums[context.context] += 1


class OutputIsAddedOnce(CombineTest):
    """An output that comes again is acknowledged again, and added once: before the sum has left as well as after."""

    def runTest(self) -> None:
        context = self.served()
        first, last = (self.output(context, edge, 0, 5, self.bits([2, 3])) for edge in (2, 3))
        self.come(first)
        self.expect_nothing()
        self.come(first)
        self.expect([self.told(first, 1)])
        self.come(last)
        self.expect([self.sum([first, last], 0)])
        for output in (first, last):
            self.come(output)
            self.expect([self.told(output, 1)])
        self.equal("drops", self.drops()["CheckOrder.duplicate"], 3)


class GapOfOutputsIsNaked(CombineTest):
    """An output ahead of its turn is not added. The first one brings a NAK of the one that is due at its edge."""

    def runTest(self) -> None:
        context = self.served()
        both = self.bits([2, 3])
        due, ahead, further = (self.output(context, 2, psn, psn, both) for psn in range(3))
        self.come(ahead)
        self.expect([self.told(ahead, 0, NAK)])
        self.come(further)
        self.expect_nothing()
        other = self.output(context, 3, 0, 0, both)
        self.come(other)
        self.expect_nothing()
        self.come(due)
        self.expect([self.sum([other, due], 0)])
        self.come(further)
        self.expect([self.told(further, 1, NAK)])


class SumOfASwitchBelow(CombineTest):
    """Where outputs of several ranks come as the sum of a switch, that edge counts once. A switch that is not the
    source's own adds what is behind its edges, and passes the whole set on with its sum."""

    def runTest(self) -> None:
        last, far = self.spec.edges, 0b1100 << self.spec.edges - 1
        context = self.served(behind={last: far}, first_hop=False)
        elsewhere = 1 << 30
        tokens = (far | 0b10, (2, last)), (far & -far | elsewhere, (last,)), (0b110 | elsewhere, (3, 2))
        sent = Counter[int]()
        for number, (ranks, edges) in enumerate(tokens):
            self.adds([self.output(context, edge, sent[edge], number, ranks) for edge in edges], number)
            sent.update(edges)


class RanksThatAskForTheImpossible(CombineTest):
    """A set that is empty, has the source, or a rank that nobody knows; an output that nobody has asked for; another
    key, or a number too large: the sender is told, and no state changes."""

    def runTest(self) -> None:
        context = self.served()
        source = 1 << context.rank
        for ranks, reason in (
            (0, "ReachPorts.empty_bitmap"),
            (0b10 | source, "ReachPorts.unreachable"),
            (0b10 | 1 << 31, "ReachPorts.unreachable"),
            (0b100, "ReachPorts.not_asked"),
        ):
            output = self.output(context, 2, 0, 0, ranks)
            self.refused(self.ports[2], output.packet.to_bytes(), reason, [self.told(output, 0, INVALID)])
        for output, reason in (
            (self.output(context, 2, 0, 0, 0b10, key=7), "FindContext.bad_key"),
            (self.output(context, 2, 0, NUMBERS, 0b10), "FindContext.bad_place"),
        ):
            self.refused(self.ports[2], output.packet.to_bytes(), reason)
        self.adds([self.output(context, 2, 0, NUMBERS - 1, 0b10)], 0)


class NobodyAnswersForAnother(CombineTest):
    """An output counts only by a port of its edge, and from its address; so does an answer to a sum."""

    def runTest(self) -> None:
        context = self.served()
        output = self.output(context, 2, 0, 0, 0b110)
        for edge in (1, 3, 4):
            self.refused(self.ports[edge], output.packet.to_bytes(), "LookupTable.wrong_port")
        ip = output.packet.ip
        forged = replace(output.packet, ip=replace(ip, src=ip.src + 1)).sealed()
        self.refused(self.ports[2], forged.to_bytes(), "LookupTable.unknown_source")
        outputs = [output, self.output(context, 3, 0, 0, 0b110)]
        self.adds(outputs, 0)
        nak = self.answer(context, context.source, 0, NAK)
        self.refused(self.ports[2], nak.to_bytes(), "LookupTable.wrong_port")
        packet = self.say(context, context.source, 0, NAK)
        self.expect([self.sum(outputs, 0, packet)])


class OutputsThatContradictEachOther(CombineTest):
    """A second output of a token by the same edge, another set for it, another token in its slot: the sender's queue
    pair breaks (NAK, invalid request), and the sum is right."""

    def runTest(self) -> None:
        context = self.served()
        ranks = self.bits([2, 3, 4])
        slots = self.spec.slots
        outputs = [self.output(context, 2, 0, 1, ranks)]
        self.come(outputs[0])
        self.expect_nothing()
        for output, reason in (
            (self.output(context, 2, 1, 1, ranks), "twice"),
            (self.output(context, 3, 0, 1, self.bits([2, 3])), "other_set"),
            (self.output(context, 4, 0, 1 + slots, ranks), "busy"),
        ):
            before = self.drops()
            self.come(output)
            self.expect([self.told(output, output.psn, INVALID)])
            self.equal("drops", self.drops() - before, {f"GatherToken.{reason}": 1})
        outputs += [self.output(context, edge, 1, 1, ranks) for edge in (3, 4)]
        self.come(outputs[1])
        self.expect_nothing()
        self.come(outputs[2])
        self.expect([self.sum(outputs, 0)])


class SlotServesAnotherToken(CombineTest):
    """A slot whose token is complete serves the next one, whatever its number is: also that which it had, one wrap of
    numbers later."""

    def runTest(self) -> None:
        context = self.served()
        both = self.bits([2, 3])
        for psn, number in enumerate((3, 3 + self.spec.slots, 3, 3, NUMBERS - self.spec.slots + 3)):
            self.adds([self.output(context, edge, psn, number, both) for edge in (2, 3)], psn)


class NewEpochForgetsOutputs(CombineTest):
    """After a change of epoch nothing counts that has come before; PSNs begin anew."""

    def runTest(self) -> None:
        context = self.served()
        both = self.bits([2, 3])
        self.come(self.output(context, 2, 0, 0, both))
        self.adds([self.output(context, 3, 0, 1, self.bits([3]))], 0)
        renewed = self.star(epoch=2)
        self.renew(renewed)
        self.adds([self.output(renewed, edge, 0, 0, both) for edge in (3, 2)], 0)


class MarkOfAnyOutput(CombineTest):
    """A sum is marked as congested if any of its outputs was, and no other one is, though its slot has had marks; ACKs
    are not marked."""

    def runTest(self) -> None:
        context = self.served()
        both = self.bits([2, 3])
        for psn, marks in enumerate(((3, 2), (2, 3), (2, 2), (1, 1))):
            outputs = [
                self.output(context, edge, psn, 0, both, ecn=ecn, asks=True)
                for edge, ecn in zip((2, 3), marks, strict=True)
            ]
            self.adds(outputs, psn)


class AcknowledgedSums(CombineTest):
    """What the source acknowledges of its sums says nothing of its tokens, nor the other way round."""

    def runTest(self) -> None:
        context = self.served()
        slots = self.spec.slots
        for psn in range(slots):
            self.posts(self.write(context, psn, 0b10), {2: psn})
        for psn in range(slots):
            self.adds([self.output(context, 2, psn, serial.add(context.first_psn, psn), 0b10)], psn)
        self.says(context, context.source, slots - 3, None)
        beyond = self.write(context, slots, 0b10)
        drops = self.drops()
        self.post(beyond)
        self.settle()
        self.outputs()
        self.equal("drops", self.drops() - drops, {"CheckOrder.ahead": 1})
        self.says(context, 2, slots - 1, None)
        self.posts(beyond, {2: slots})
        for psn in range(slots + 1, 2 * slots):
            self.posts(self.write(context, psn, 0b10), {2: psn})
        self.says(context, context.source, slots - 1, None)
        last = [self.output(context, 2, slots, slots, 0b10)]
        self.adds(last, slots)
        packet = self.say(context, context.source, 0, NAK)
        self.expect([self.sum(last, slots, packet)])


class LostSumsAreSentAgain(CombineTest):
    """What the source NAKs leaves again, with all that has followed: the same sums under the same PSNs. What it has
    acknowledged does not."""

    def runTest(self) -> None:
        context = self.served()
        sums = []
        for number in range(5):
            edges = (2, 3) if number % 2 else (4,)
            sent = sum(1 for before in range(number) if before % 2 == number % 2)
            outputs = [
                self.output(context, edge, sent, 7 - number, self.bits(edges), ecn=(2, 3)[number == 3])
                for edge in edges
            ]
            self.adds(outputs, number)
            sums.append(outputs)
        for naked in (0, 2):
            packet = self.say(context, context.source, naked, NAK)
            self.expect([self.sum(outputs, psn, packet) for psn, outputs in enumerate(sums) if psn >= naked])
        self.says(context, context.source, 3, None)
        packet = self.say(context, context.source, 1, NAK)
        self.expect([self.sum(sums[4], 4, packet)])
        self.says(context, context.source, 4, None)
        self.say(context, context.source, 1, NAK)
        self.expect_nothing()


class TickSendsSumsAgain(CombineTest):
    """A source that says nothing gets its sums again by its edge's timer, and no edge else gets anything."""

    def runTest(self) -> None:
        context = self.served()
        outputs = [self.output(context, edge, 0, 2, 0b110) for edge in (2, 3)]
        self.adds(outputs, 0)
        tick = self.tick(context, context.source)
        self.expect_nothing()
        for edge in self.others(context):
            self.tick(context, edge)
            self.expect_nothing()
        tick = self.tick(context, context.source)
        self.expect([self.sum(outputs, 0, tick)])
        self.says(context, context.source, 0, None)
        for _ in range(4):
            self.tick(context, context.source)
            self.expect_nothing()


class RecycledSlotIsPassedOver(CombineTest):
    """The source has a sum, though its ACK was lost, when it asks for another token in the same slot. What is sent
    again is what slots still have, and never another token's data in its place."""

    def runTest(self) -> None:
        context = self.served(first_hop=False)
        slots = self.spec.slots
        both = self.bits([2, 3])
        sent = Counter[int]()

        def outputs(number: int) -> list[Returned]:
            found = [self.output(context, edge, sent[edge], number, both) for edge in (2, 3)]
            sent.update((2, 3))
            return found

        sums = [outputs(number) for number in (0, 1, 2)]
        for psn, each in enumerate(sums):
            self.adds(each, psn)
        waiting = outputs(slots)
        self.come(waiting[0])
        self.expect_nothing()
        packet = self.say(context, context.source, 0, NAK)
        self.expect([self.sum(sums[psn], psn, packet) for psn in (1, 2)])
        self.come(waiting[1])
        self.expect([self.sum(waiting, 3)])
        packet = self.say(context, context.source, 0, NAK)
        again = [self.sum(each, psn, packet) for psn, each in ((1, sums[1]), (2, sums[2]), (3, waiting))]
        self.expect(again)
        wrapped = outputs(2)
        self.come(wrapped[0])
        self.expect_nothing()
        packet = self.say(context, context.source, 2, NAK)
        self.expect([self.sum(waiting, 3, packet)])
        self.come(wrapped[1])
        self.expect([self.sum(wrapped, 4)])
        more = outputs(1 + slots)
        self.come(more[0])
        self.expect_nothing()
        packet = self.say(context, context.source, 1, NAK)
        self.expect([self.sum(each, psn, packet) for psn, each in ((2, wrapped), (3, waiting), (4, wrapped))])


class BothWaysAtOnce(CombineTest):
    """Tokens go out and outputs come back over the same connections, each way under PSNs of its own."""

    def runTest(self) -> None:
        context = self.served()
        edges = self.others(context)
        out, back, sums = Counter[int](), Counter[int](), 0
        for psn in range(3 * self.spec.slots):
            chosen = self.random.sample(edges, self.random.randint(1, len(edges)))
            self.posts(self.write(context, psn, self.bits(chosen)), {edge: out[edge] for edge in chosen})
            out.update(chosen)
            for edge in chosen:
                self.says(context, edge, out[edge] - 1, None)
            if self.random.random() < 0.5:
                outputs = [self.output(context, edge, back[edge], psn, self.bits(chosen)) for edge in chosen]
                self.adds(outputs, sums)
                back.update(chosen)
                sums += 1
                if self.random.random() < 0.5:
                    self.says(context, context.source, sums - 1, None)


class EachSourceHasItsWindow(CombineTest):
    """Two sources whose switch this is get their sums in windows of their own."""

    def unfit(self) -> str | None:
        return "the program has one context" if self.spec.contexts < 2 else None

    def runTest(self) -> None:
        first, second = self.star(), self.star(self.spec.edges - 1, number=1, at=0x0A010001)
        self.serve(first, second)
        for psn, number in enumerate((3, 2 * self.spec.slots + 1)):
            for context in (first, second):
                self.adds([self.output(context, edge, psn, number, self.bits([2, 3])) for edge in (3, 2)], psn)


class NewEpochEndsCursorsOfSums(CombineTest):
    """A cursor that waits between two passes when its context begins anew finds no sum to send."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(3):
            self.adds([self.output(context, 2, psn, psn, 0b10)], psn)
        self.hold()
        self.say(context, context.source, 0, NAK)
        self.renew(self.star(epoch=2))
        before = self.drops()
        self.one_pass()
        self.go()
        self.expect_nothing()
        self.equal("dropped", self.drops() - before, {"Retransmission.done": 1})
