"""Where a write's data goes at its destinations."""

from __future__ import annotations

from dataclasses import replace

from writes import KEY, RING, SLOT_SHIFT, SourceTest, WriteTest

from p4gen.rocev2 import psn as serial
from p4gen.rocev2.packet import parse


class EachDestinationHasItsAddressAndKey(WriteTest):
    """The address and the key are those of the destination's window, as RETHs of plain WRITEs have them."""

    def runTest(self) -> None:
        context = self.served()
        everybody = self.others(context)
        self.post(self.write(context, 0, self.bits(everybody), offset=0))
        found = {output.port: parse(output.frame).reth for output in self.outputs()}
        for edge in everybody:
            reth, window = found[self.ports[edge]], self.window(0, edge)
            assert reth is not None
            place = context.first_psn % RING << SLOT_SHIFT if self.spec.appends else 0
            self.equal(f"edge {edge}: address", reth.address, window.base + place)
            self.equal(f"edge {edge}: key", reth.rkey, window.rkey)
            self.equal(f"edge {edge}: DMA length", reth.dma_length, self.spec.payload)


class OffsetIsAdded(WriteTest):
    """The same offset at all destinations, up to the last one of the window."""

    def unfit(self) -> str | None:
        return "destinations have rings" if self.spec.appends else None

    def runTest(self) -> None:
        context = self.served()
        everybody = self.others(context)
        offsets = (0, 64, 1 << 19, context.window_bytes - self.spec.payload)
        for psn, offset in enumerate(offsets):
            copies = dict.fromkeys(everybody, psn)
            self.posts(self.write(context, psn, self.bits(everybody), offset=offset), copies)


class WindowsAreNotOverrun(WriteTest):
    """A write that would end beyond the window touches nothing."""

    def runTest(self) -> None:
        context = self.served()
        last = context.window_bytes - self.spec.payload
        for offset in (last + 1, context.window_bytes, 1 << 40, (1 << 64) - 1):
            write = self.write(context, 0, self.bits([2]), offset=offset)
            self.refused(self.ports[1], write.packet.to_bytes(), "FindContext.bad_place")


class AppendFollowsThePsn(WriteTest):
    """Each destination's ring is filled slot after slot, whatever the others get, and wraps."""

    def unfit(self) -> str | None:
        return None if self.spec.appends else "offsets are the source's"

    def runTest(self) -> None:
        context = self.served()
        counted = {2: 0, 3: 0}
        for psn in range(3 * RING):
            edges = self.random.choice(([2], [3], [2, 3]))
            self.post(self.write(context, psn, self.bits(edges), offset=0))
            for output in (each for each in self.outputs() if each.port != self.ports[1]):
                edge = next(edge for edge, port in self.ports.items() if port == output.port)
                reth = parse(output.frame).reth
                assert reth is not None
                slot = serial.add(context.first_psn, counted[edge]) % RING
                self.equal(f"edge {edge}: address", reth.address, self.window(0, edge).base + (slot << SLOT_SHIFT))
            for edge in edges:
                self.says(context, edge, counted[edge], psn + 1 if edge == edges[-1] else None)
                counted[edge] += 1


class PlaceIsStableUnderRepetition(SourceTest):
    """What is sent again goes to the place of its first copy."""

    def runTest(self) -> None:
        context = self.served()
        writes = [self.write(context, psn, self.bits([2, 3] if psn % 2 else [3])) for psn in range(4)]
        copies = [{3: 0}, {2: 0, 3: 1}, {3: 2}, {2: 1, 3: 3}]
        for write, numbers in zip(writes, copies, strict=True):
            self.posts(write, numbers)
        for write, numbers in zip(writes, copies, strict=True):
            self.posts(write, numbers)


class RkeyIsNeverTheSources(WriteTest):
    """The group's key, with which a source writes, reaches no destination."""

    def runTest(self) -> None:
        context = self.served()
        everybody = self.others(context)
        for psn in range(3):
            self.post(self.write(context, psn, self.bits(everybody), fence=psn == 2))
        for output in self.outputs():
            reth = parse(output.frame).reth
            assert reth is not None
            self.equal(f"port {output.port}: the group's key", reth.rkey == KEY, False)


class WrongLengthSourceKeyTouchesNothing(WriteTest):
    """What a NIC would refuse is dropped before it reaches any state."""

    def runTest(self) -> None:
        context = self.served()
        port = self.ports[1]
        good = self.write(context, 0, self.bits([2])).packet
        assert good.reth is not None
        wrong = {
            "FindContext.bad_key": replace(good, reth=replace(good.reth, rkey=good.reth.rkey ^ 1)),
            "FindContext.bad_dma_length": replace(good, reth=replace(good.reth, dma_length=good.reth.dma_length - 1)),
            "LookupTable.unknown_source": replace(good, ip=replace(good.ip, src=good.ip.src + 1)),
            "LookupTable.unknown_qp": replace(good, bth=replace(good.bth, dst_qp=0xABCDEF)),
            "ValidatePacket.bad_length": replace(good, payload=good.payload[:-4]),
            "ValidatePacket.bad_opcode": replace(good, bth=replace(good.bth, opcode=0x04)),
            "ValidatePacket.bad_version": replace(good, bth=replace(good.bth, version=1)),
            "ValidatePacket.bad_pkey": replace(good, bth=replace(good.bth, pkey=0x1234)),
        }
        for reason, packet in wrong.items():
            self.refused(port, packet.sealed().to_bytes(), reason)
        self.refused(port, good.to_bytes()[:-1], "ValidatePacket.truncated")
        if self.spec.icrc.checked:
            self.refused(port, replace(good, icrc=bytes(4)).to_bytes(), "CheckIcrc.bad_icrc")


class WritesComeFromTheSourceOnly(WriteTest):
    """A notification from the source is dropped; so is its answer, or a write from a destination, where nothing is
    combined."""

    def runTest(self) -> None:
        context = self.served()
        ends = context.edges[1]
        good = self.write(context, 0, self.bits([3])).packet
        ip = replace(good.ip, src=ends.remote.ip, dst=ends.local.ip)
        write = replace(good, ip=ip, bth=replace(good.bth, dst_qp=ends.local.qp)).sealed()
        combined = ((self.ports[2], write), (self.ports[1], self.answer(context, 1, 0)))
        for port, packet in (
            *(() if self.spec.combine else combined),
            (self.ports[1], self.notification(context, 1)),
        ):
            self.refused(port, packet.to_bytes(), "LookupTable.wrong_direction")
