"""What bitmaps copies have, and what becomes of the header that holds them."""

from __future__ import annotations

from writes import HOPS, WriteTest

from p4gen.papers.multiwrite.control import WriteContext
from p4gen.papers.multiwrite.headers import mweth
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import parse


class _Trees(WriteTest):
    """Two edges lead to switches, with several ranks behind each."""

    def tree(self) -> WriteContext:
        rest = range(self.spec.edges, self.spec.receivers)
        ranks = [rank for rank in rest if rank % 2], [rank for rank in rest if rank % 2 == 0]
        self.left, self.right = (sum(1 << rank for rank in half) for half in ranks)
        return self.served(behind={2: self.left, 3: self.right})

    def some(self, ranks: int) -> int:
        """Some of these ranks."""
        return self.random.getrandbits(self.spec.receivers) & ranks or ranks

    def bitmap_of(self, frame: bytes) -> int:
        packet = parse(frame)
        if self.spec.wide:
            layout = mweth(self.spec.receivers)
            return layout.word.unpack(int.from_bytes(packet.payload[: layout.size]))["bitmap"]
        assert packet.immdt is not None
        return packet.immdt.value


class CopyCarriesItsBitsOnly(_Trees):
    """A copy for another switch names the destinations behind it, and no others."""

    def runTest(self) -> None:
        context = self.tree()
        for psn in range(6):
            bitmap = self.some(self.left) | self.some(self.right) | self.bits([4])
            self.posts(self.write(context, psn, bitmap), {2: psn, 3: psn, 4: psn})


class BitsAreDisjointOverPorts(_Trees):
    """Every destination is named by exactly one copy."""

    def runTest(self) -> None:
        context = self.tree()
        self.post(self.write(context, 0, self.left | self.right))
        bitmaps = [self.bitmap_of(output.frame) for output in self.outputs()]
        self.equal("copies", len(bitmaps), 2)
        self.equal("destinations named twice", bitmaps[0] & bitmaps[1], 0)
        self.equal("destinations named", bitmaps[0] | bitmaps[1], self.left | self.right)


class EveryBitCounts(_Trees):
    """Each bit of the bitmap leads to its destination's edge, up to the last one."""

    def runTest(self) -> None:
        context = self.tree()
        counted = {2: 0, 3: 0}
        for psn, rank in enumerate(range(self.spec.receivers - 8, self.spec.receivers)):
            edge = 2 if self.left >> rank & 1 else 3
            self.posts(self.write(context, psn, 1 << rank), {edge: counted[edge]})
            self.says(context, edge, counted[edge], psn + 1)
            counted[edge] += 1


class HopLimitEnds(_Trees):
    """Each switch takes one off; a write with none left goes no further."""

    def unfit(self) -> str | None:
        return None if self.spec.wide else "immediate data has no room for a hop limit"

    def runTest(self) -> None:
        context = self.tree()
        limits = (HOPS, 1, 255)
        for psn, limit in enumerate(limits):
            self.posts(self.write(context, psn, self.left, mweth_fields={"hop_limit": limit}), {2: psn})
        spent = self.write(context, len(limits), self.left, mweth_fields={"hop_limit": 0})
        self.post(spent)
        self.equal("frames that leave at once", len(self.outputs()), 1)  # the source, a rank, is told
        self.equal("dropped", self.drops()["ReachPorts.hop_limit"], 1)


class HeaderIsChecked(_Trees):
    """Another version of the MWETH, or another group, is refused."""

    def unfit(self) -> str | None:
        return None if self.spec.wide else "the bitmap is in the immediate data"

    def runTest(self) -> None:
        context = self.tree()
        for field, value in (("version", 0), ("version", 2), ("group_id", context.group + 1)):
            write = self.write(context, 0, self.left, mweth_fields={field: value})
            self.refused(self.ports[1], write.packet.to_bytes(), "FindContext.bad_header")


class LastHopStripsTheHeader(WriteTest):
    """A destination gets a plain WRITE: opcode, UDP length, total length, and no byte of the bitmap."""

    def runTest(self) -> None:
        context = self.served()
        write = self.write(context, 0, self.bits([2]))
        self.post(write)
        (output,) = self.outputs()
        packet = parse(output.frame)
        named = mweth(self.spec.receivers).size if self.spec.wide else 4
        self.equal("opcode", packet.bth.opcode, Opcode.WRITE_ONLY)
        self.equal("frame length", len(output.frame), len(write.packet.to_bytes()) - named)
        self.equal("UDP length", packet.udp.length, write.packet.udp.length - named)
        self.equal("total length", packet.ip.total_length, write.packet.ip.total_length - named)
        self.equal("data", packet.payload, write.data)


class FenceIsDeliveredWithImmediate(WriteTest):
    """A fence completes a receive at every destination, and says whose it is."""

    def runTest(self) -> None:
        context = self.served(source=2)
        everybody = self.others(context)
        fence = self.write(context, 0, self.bits(everybody), fence=True)
        self.posts(fence, dict.fromkeys(everybody, 0))
        self.posts(self.write(context, 1, self.bits(everybody)), dict.fromkeys(everybody, 1))


class FenceIsLast(_Trees):
    """Nothing of its source leaves behind a fence that the source sent before it, on any edge."""

    def runTest(self) -> None:
        context = self.tree()
        everybody = self.left | self.right | self.bits([4])
        counted = dict.fromkeys((2, 3, 4), 0)
        writes = []
        for psn in range(5):
            bitmap = self.random.choice((self.left, self.right, self.bits([4]), everybody))
            writes.append(self.write(context, psn, bitmap))
        writes.append(self.write(context, 5, everybody, fence=True))
        expected = []
        for write in writes:
            for edge in self.edges_of(context, write.bitmap):
                expected.append(self.copy(write, edge, counted[edge]))
                counted[edge] += 1
            if self.spec.holds and write.packet.bth.ack_request:
                expected.append(self.reply(context, write.packet, write.psn + 1))
        for write in writes:
            self.post(write)
        self.expect(expected)


class SubtreesDoNotMix(_Trees):
    """Of two sources, different ranks are behind an edge: each one's copies name those of its own."""

    def unfit(self) -> str | None:
        return "the program has one context" if self.spec.contexts < 2 else None

    def runTest(self) -> None:
        first = self.tree()
        second = self.star(number=1, at=0x0A010001, behind={2: self.right, 3: self.left})
        self.serve(second)
        for psn in range(3):
            bitmap = self.some(self.left) | self.some(self.right)
            for context in (first, second):
                self.posts(self.write(context, psn, bitmap), {2: psn, 3: psn})
