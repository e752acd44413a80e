"""Repair by each hop: what a node tells the one before it, what it keeps, and what it sends again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from brute_force import Node
from writes import NAK, HopTest, Write

from p4gen.papers.multiwrite.control import WriteContext
from p4gen.ptf.scenario import Output
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH, UDP
from p4gen.rocev2.opcodes import Nak, NakCode, Opcode, RnrNak
from p4gen.rocev2.packet import RocePacket

RNR = RnrNak(1).syndrome
ACCESS = Nak(NakCode.REMOTE_ACCESS_ERROR).syndrome


class _Repair(HopTest):
    def sent(self, context: WriteContext, *edges: tuple[int, ...]) -> tuple[list[Write], Node]:
        """Writes of the source, each to some edges, and what the node owes."""
        node = Node(self.others(context))
        writes = []
        for psn, mine in enumerate(edges):
            numbers = node.send(mine)
            writes.append(self.write(context, psn, self.bits(mine), fence=psn == 2, ecn=psn % 3))
            self.posts(writes[-1], numbers)
        return writes, node

    def resent(
        self, context: WriteContext, edge: int, naked: int, again: dict[int, Write], syndrome: int = NAK
    ) -> None:
        """An edge NAKs one of its copies, and these are sent again."""
        packet = self.say(context, edge, naked, syndrome)
        self.expect([self.again(write, edge, number, packet) for number, write in again.items()])

    def asked(self, context: WriteContext, psn: int, *edges: int) -> Write:
        """A write that asks for an answer."""
        write = self.write(context, psn, self.bits(edges))
        return replace(write, packet=replace(write.packet, bth=replace(write.packet.bth, ack_request=True)).sealed())


class HopAcknowledgesAtOnce(HopTest):
    """A write that asks for it is acknowledged when it is there, whatever its destinations say. A mark of congestion
    goes on to them, and does not come back."""

    def runTest(self) -> None:
        context = self.served()
        for psn in range(self.spec.slots):
            write = self.write(context, psn, self.bits([2, 3]), ecn=3 if psn % 4 else psn // 4)
            asks = psn % 2 == 1
            packet = replace(write.packet, bth=replace(write.packet.bth, ack_request=asks)).sealed()
            self.posts(replace(write, packet=packet), {2: psn, 3: psn})


class GapIsNakedWithThePsnThatIsDue(_Repair):
    """A gap is reported once, with the PSN that is missing; what is ahead of its turn reaches nobody."""

    def runTest(self) -> None:
        context = self.served()
        self.sent(context, (2, 3), (2,))
        first, second = (self.write(context, psn, self.bits([2])) for psn in (3, 4))
        self.post(first)
        self.expect([self.reply(context, first.packet, 2, NAK)])
        self.post(second)
        self.expect_nothing()
        self.equal("dropped", self.drops()["CheckOrder.gap"], 2)
        self.posts(self.write(context, 2, self.bits([3])), {3: 1})
        again = self.write(context, 4, self.bits([2]))
        self.post(again)
        self.expect([self.reply(context, again.packet, 3, NAK)])


class RepetitionIsAcknowledgedAgain(_Repair):
    """What has come before reaches nobody again, but its sender is answered."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2,), (2, 3), (3,))
        for write in writes:
            self.post(write)
            self.expect([self.reply(context, write.packet, 3)])
        self.equal("dropped", self.drops()["CheckOrder.duplicate"], 3)


class AheadIsToldToWait(HopTest):
    """A source beyond N packets gets an RNR NAK and a notification of congestion; what follows is no gap of its own."""

    def runTest(self) -> None:
        context = self.served()
        count = self.spec.slots
        for psn in range(count):
            self.posts(self.write(context, psn, self.bits([2])), {2: psn})
        beyond = self.write(context, count, self.bits([3]))
        told = [self.reply(context, beyond.packet, count, RNR), self.notified(context, beyond.packet)]
        self.refused_with(context, beyond, told)
        self.post(self.write(context, count + 1, self.bits([3])))
        self.expect_nothing()
        self.refused_with(context, beyond, told)
        self.says(context, 2, 0, None)
        self.posts(beyond, {3: 0})
        further = self.write(context, count + 1, self.bits([3]))
        self.post(further)
        told = [self.reply(context, further.packet, count + 1, RNR), self.notified(context, further.packet)]
        self.expect(told)

    def refused_with(self, _context: WriteContext, write: Write, told: list[Output]) -> None:
        """A write is dropped, and the source is told."""
        before = self.drops()
        self.post(write)
        self.expect(told)
        self.equal("dropped", self.drops() - before, {"CheckOrder.ahead": 1})

    def notified(self, context: WriteContext, of: RocePacket) -> Output:
        """The notification that the source gets."""
        ends = context.toward
        packet = RocePacket(
            self.framed(ends.local.mac, ends.remote.mac, ends.local.ip),
            self.translated(of.ip, ends.local.ip, ends.remote.ip),
            UDP(ends.udp_src_port),
            BTH(Opcode.CNP, ends.remote.qp, 0, becn=True),
            payload=bytes(16),
        )
        icrc = None if self.spec.icrc.right else of.icrc
        return Output(self.ports[context.source], packet.sealed(icrc=icrc).to_bytes())


class SwitchesWaitForTheirTimers(HopTest):
    """Between switches nothing is said about what is ahead: the one before has a timer."""

    def runTest(self) -> None:
        context = self.served(first_hop=False)
        count = self.spec.slots
        for psn in range(count):
            self.posts(self.write(context, psn, self.bits([2])), {2: psn})
        for _ in range(2):
            for psn in (count, count + 1):
                self.post(self.write(context, psn, self.bits([3])))
                self.expect_nothing()
        self.says(context, 2, 0, None)
        self.posts(self.write(context, count, self.bits([3])), {3: 0})


class SlotFreedByTheLastOfItsSet(HopTest):
    """A packet is kept until the last of its next hops has acknowledged it; other edges do not matter."""

    def runTest(self) -> None:
        context = self.served(first_hop=False)
        count = self.spec.slots
        self.posts(self.write(context, 0, self.bits([2, 3, 4])), {2: 0, 3: 0, 4: 0})
        for psn in range(1, count):
            self.posts(self.write(context, psn, self.bits([3])), {3: psn})
        beyond = self.write(context, count, self.bits([3]))
        for edge, number in ((3, count - 1), (4, 0)):
            self.says(context, edge, number, None)
            self.post(beyond)
            self.expect_nothing()
        self.says(context, 2, 0, None)
        self.posts(beyond, {3: count})
        for psn in range(count + 1, 2 * count):
            self.posts(self.write(context, psn, self.bits([2])), {2: psn - count})
        self.post(self.write(context, 2 * count, self.bits([2])))
        self.expect_nothing()


class SlotsOfVaryingSets(_Repair):
    """Random sets of two sources at different edges, random orders of ACKs and NAKs: exactly those packets are taken
    that there is room for, and exactly those are sent again that an edge lacks, by brute force."""

    def runTest(self) -> None:
        flows = [(context, Node(self.others(context)), list[Write]()) for context in self.at_both_ends()]
        for _ in range(300):
            context, node, writes = self.random.choice(flows)
            waiting = [edge for edge in node.acked if node.acked[edge] < len(node.copies[edge])]
            if waiting and self.random.random() < 0.4:
                edge = self.random.choice(waiting)
                number = self.random.randrange(max(0, node.acked[edge] - 2), len(node.copies[edge]))
                if self.random.random() < 0.7:
                    node.acknowledge(edge, number)
                    self.says(context, edge, number, None)
                    continue
                node.acknowledge(edge, number - 1)
                lacks = range(node.acked[edge], len(node.copies[edge]))
                self.resent(context, edge, number, {again: writes[node.copies[edge][again]] for again in lacks})
                continue
            edges = self.random.sample(list(node.acked), self.random.randint(1, len(node.acked)))
            write = self.write(context, node.sent, self.bits(edges))
            if node.sent - node.start < self.spec.slots:
                writes.append(write)
                self.posts(write, node.send(edges))
            else:
                self.post(write)
                self.expect_nothing()


class NakResendsFromThere(_Repair):
    """That edge gets what it has not acknowledged, under the PSNs that it had, each with its own bitmap; no other
    edge gets anything."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2, 3), (3,), (2, 4), (2, 3, 4), (3,))
        self.resent(context, 2, 1, {1: writes[2], 2: writes[3]})
        self.resent(context, 3, 0, {0: writes[0], 1: writes[1], 2: writes[3], 3: writes[4]})
        self.says(context, 3, 2, None)
        self.resent(context, 3, 3, {3: writes[4]})
        self.resent(context, 3, 3, {3: writes[4]})


class NakOfASwitchKeepsItsBitmap(_Repair):
    """What is sent again to a switch names the destinations behind it, and has the key of the group."""

    def runTest(self) -> None:
        far = 0b1100 << self.spec.edges - 1
        last = self.spec.edges
        context = self.served(behind={last: far})
        writes = [self.write(context, psn, bits, fence=psn == 1) for psn, bits in enumerate((far & -far, far | 0b10))]
        self.posts(writes[0], {last: 0})
        self.posts(writes[1], {2: 0, last: 1})
        self.resent(context, last, 0, dict(enumerate(writes)))


class LateNakStartsWithWhatIsLacking(_Repair):
    """A NAK that ACKs have overtaken brings nothing again that its edge has."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, *[(2, 3)] * 5)
        self.says(context, 2, 2, None)
        self.resent(context, 2, 1, {3: writes[3], 4: writes[4]})
        self.says(context, 2, 4, None)
        self.resent(context, 2, 1, {})
        self.resent(context, 2, 5, {})


class ResentPayloadIsTheSlots(_Repair):
    """After many packets, each slot has the newest one's headers and data, as often as it is asked for."""

    def runTest(self) -> None:
        context = self.served()
        count = self.spec.slots
        writes = []
        for psn in range(2 * count + 3):
            writes.append(self.write(context, psn, self.bits([2]), fence=psn % 3 == 1, ecn=(0, 2, 1)[psn % 3]))
            self.posts(writes[-1], {2: psn})
            if psn < count + 5:
                self.says(context, 2, psn, None)
        start = count + 5
        for _ in range(2):
            self.resent(context, 2, start, {psn: writes[psn] for psn in range(start, len(writes))})


class CursorEndsAtNext(_Repair):
    """A cursor sends what was sent, to the last packet, and no more; what comes later is sent once."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2,), (2,))
        self.resent(context, 2, 0, {0: writes[0], 1: writes[1]})
        self.posts(self.write(context, 2, self.bits([2, 3])), {2: 2, 3: 0})
        self.resent(context, 4, 0, {})


class CursorsWrap(_Repair):
    """PSNs wrap between the first and the last one that are sent again."""

    def runTest(self) -> None:
        context = self.served(first_psn=(1 << 24) - 2)
        writes, _ = self.sent(context, (3,), (2, 3), (2, 3), (2,))
        self.resent(context, 2, 0, {0: writes[1], 1: writes[2], 2: writes[3]})
        self.resent(context, 3, 1, {1: writes[1], 2: writes[2]})


class TickResendsWhatIsLacking(_Repair):
    """Two ticks without progress, and the timer doubles: what an edge has not acknowledged is sent again."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2, 3), (2,), (3,))
        due = {2: {0: writes[0], 1: writes[1]}, 3: {0: writes[0], 1: writes[2]}}
        for edge, again in due.items():
            self.tick(context, edge)
            self.expect_nothing()
            packet = self.tick(context, edge)
            self.expect([self.again(write, edge, number, packet) for number, write in again.items()])
        for stalls in (True, True, False, True):  # after 3, 5, 7 and 9 units
            packet = self.tick(context, 3)
            self.expect([self.again(write, 3, n, packet) for n, write in due[3].items()] if stalls else [])
        self.says(context, 2, 0, None)
        self.tick(context, 2)
        self.expect_nothing()
        packet = self.tick(context, 2)
        self.expect([self.again(writes[1], 2, 1, packet)])
        self.says(context, 2, 1, None)
        for _ in range(4):
            self.tick(context, 2)
            self.expect_nothing()


class TicksOfIdleEdgesDoNothing(_Repair):
    """Where nothing is outstanding, ticks bring nothing, before the first packet and after the last ACK."""

    def runTest(self) -> None:
        context = self.served()
        for edge in self.others(context):
            for _ in range(3):
                self.tick(context, edge)
        self.expect_nothing()
        self.sent(context, (2,))
        for _ in range(3):
            self.tick(context, 3)
        self.expect_nothing()


class NotReadyIsWaitedFor(_Repair):
    """After an RNR NAK of a next hop nothing is sent again until the time is over that it asks for."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2, 3), (2,))
        self.resent(context, 2, 0, {}, syndrome=RNR)
        self.tick(context, 2, units=1)
        self.expect_nothing()
        packet = self.tick(context, 2, units=1)
        self.expect([self.again(write, 2, number, packet) for number, write in enumerate(writes)])


class RepeatsAreOneRefusal(_Repair):
    """What is under way is refused with RNR NAKs of one PSN, which prolong nothing; what is sent again and refused
    waits twice as long."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2, 3), (2,))
        for units in (1, 2, 4):
            for _ in range(3):
                self.resent(context, 2, 0, {}, syndrome=RNR)
            for _ in range(units):
                self.tick(context, 2, units=1)
                self.resent(context, 2, 0, {}, syndrome=RNR)
            packet = self.tick(context, 2, units=1)
            self.expect([self.again(write, 2, number, packet) for number, write in enumerate(writes)])


class OldAnswersHoldTicks(_Repair):
    """ACKs that say nothing new answer what was sent twice: a tick behind them does not count."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2, 3), (2,))
        self.says(context, 2, 0, None)
        self.tick(context, 2)
        for _ in range(4):
            self.says(context, 2, 0, None)
            self.tick(context, 2)
            self.expect_nothing()
        packet = self.tick(context, 2)
        self.expect([self.again(writes[1], 2, 1, packet)])


class LongRoundTripsAreLearned(_Repair):
    """Old ACKs behind a wait tell that what was sent again was for nothing: in the next wait the next hop is sent its
    oldest packet only."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2,), (2,), (2,))
        self.tick(context, 2)
        self.expect_nothing()
        packet = self.tick(context, 2)
        self.expect([self.again(write, 2, number, packet) for number, write in enumerate(writes)])
        for _ in range(2):
            self.says(context, 2, 0, None)
            self.tick(context, 2)
            self.expect_nothing()
        packet = self.tick(context, 2)
        self.expect([self.again(writes[1], 2, 1, packet)])


class OtherNaksBringNothingAgain(_Repair):
    """A NAK that reports no loss acknowledges what is before it, and that is all."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2,), (2,), (2,))
        self.resent(context, 2, 1, {}, syndrome=ACCESS)
        self.resent(context, 2, 1, {1: writes[1], 2: writes[2]})


class NakBeyondSentIsIgnored(_Repair):
    """An answer to what was never sent is not believed."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2, 3), (2, 3))
        for number in (3, 4, 1 << 20):
            self.resent(context, 2, number, {})
            self.says(context, 2, number, None)
        self.resent(context, 2, 0, dict(enumerate(writes)))


class NewEpochKeepsNothing(_Repair):
    """In a new generation nothing is sent again that was kept in an older one."""

    def runTest(self) -> None:
        self.sent(self.served(), (2, 3), (2,), (2,))
        new = self.star(epoch=2)
        self.renew(new)
        for _ in range(3):
            self.tick(new, 2)
        self.resent(new, 2, 1, {})
        self.expect_nothing()
        write = self.write(new, 0, self.bits([2]))
        self.posts(write, {2: 0})
        self.resent(new, 2, 0, {0: write})


class ForgedTicksAndCursors(_Repair):
    """Ticks come from the agent and cursors from the switch itself, and from nowhere else."""

    def runTest(self) -> None:
        context = self.served()
        self.sent(context, (2, 3))
        for opcode in (0xC0, 0xC1):
            packet = self._from(context, 2, BTH(opcode, 0, context.first_psn), AETH(1, context.first_psn))
            self.refused(
                self.ports[2],
                packet.to_bytes(),
                "ValidatePacket.bad_opcode" if opcode == 0xC1 else "ValidatePacket.bad_length",
            )
        agent = self.spec.architecture.cpu_port
        cursor = self._from(context, 2, BTH(0xC1, 0, context.first_psn), AETH(1, context.first_psn))
        self.refused(agent, cursor.to_bytes(), "LookupTable.wrong_port")
        if not self.spec.combine:
            tick = self._from(context, 1, BTH(0xC0, 0, 0), AETH(0, 2))
            self.refused(agent, tick.to_bytes(), "LookupTable.wrong_direction")


class AckOvertakesACursor(_Repair):
    """A cursor that waits between two passes when its edge acknowledges all ends with the next pass, whatever has been
    sent since; a NAK of what is acknowledged starts none."""

    def runTest(self) -> None:
        context = self.served()
        self.sent(context, (2,), (2,), (2,))
        self.hold()
        self.say(context, 2, 0, NAK)
        self.says(context, 2, 2, None)
        self.say(context, 2, 1, NAK)
        self.posts(self.write(context, 3, self.bits([2])), {2: 3})
        before = self.drops()
        self.one_pass()
        self.go()
        self.expect_nothing()
        self.equal("dropped", self.drops() - before, Counter({"Retransmission.done": 1}))


class NewEpochEndsCursors(_Repair):
    """A cursor that waits between two passes when its context begins anew finds nothing to send: what is kept is of
    another epoch, or another packet."""

    def runTest(self) -> None:
        context = self.served()
        self.sent(context, (2,), (2,), (2,))
        for epoch, back in ((2, 0), (3, self.spec.slots)):
            self.hold()
            self.say(context, 2, 0, NAK)
            new = self.star(epoch=epoch, first_psn=serial.add(self.first_psn, -back))
            self.renew(new)
            if back:
                self.posts(self.write(new, 0, self.bits([3])), {3: 0})
            before = self.drops()
            self.one_pass()
            self.go()
            self.expect_nothing()
            self.equal("dropped", self.drops() - before, Counter({"Retransmission.done": 1}))
            self.renew(context)


class TagsOfNaksStay(_Repair):
    """What is sent again has the tag of the packet that asks for it."""

    def runTest(self) -> None:
        context = self.served()
        writes, _ = self.sent(context, (2, 3), (2,))
        packet = replace(self.answer(context, 2, 0, NAK), vlan=7 << 13 | 9).sealed()
        self.send(self.ports[2], packet.to_bytes())
        self.expect([self.again(write, 2, number, packet) for number, write in enumerate(writes)])
