"""What only programs over RoCEv2 have: queue pairs, remote keys, opcodes, PSNs, and the invariant CRC."""

from __future__ import annotations

from dataclasses import replace

from malformed import malformed
from updates import UpdateTest

from p4gen.papers.switchml.control import MlJob
from p4gen.papers.switchml.frames import Update, first_qp
from p4gen.ptf.icrcs import with_icrc
from p4gen.ptf.scenario import Output
from p4gen.rocev2.packet import RocePacket, parse


class WriteTest(UpdateTest):
    """A job whose vectors are RDMA WRITEs."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.roce else "the program is for UDP")

    def write(self, job: MlJob, worker: int, update: Update, psn: int = 7) -> RocePacket:
        """What a worker sends."""
        return update.write(*self.headers(job, worker), first_qp(worker + 1), psn)


class MalformedWritesAreRefused(WriteTest):
    """What a NIC would refuse changes nothing: lengths, checksum, version, partition, padding, with a tag, too; nor
    does a length of the message that is not the packet's."""

    def runTest(self) -> None:
        job, vectors = self.served(), self.vectors()
        good = self.write(job, 0, self.update(job, vectors[0]))
        assert good.reth is not None
        for vlan in (None, 77):
            for frame, reason in malformed(replace(good, vlan=vlan), "bad_length"):
                self.refused(f"ValidatePacket.{reason}", 0, frame)
        longer = good.sealed(total_length=good.ip.total_length + 4).to_bytes() + bytes(4)
        self.refused("ValidatePacket.bad_length", 0, longer)
        for length in (0, good.reth.dma_length - 1, good.reth.dma_length + 4, good.reth.dma_length | 1 << 31):
            other = replace(good, reth=replace(good.reth, dma_length=length)).sealed()
            self.refused("ValidatePacket.bad_length", 0, other.to_bytes())
        self.complete(job, vectors)


class OtherOpcodesAreRefused(WriteTest):
    """A switch of SwitchML takes WRITEs with immediate data, of one packet, over unreliable connections, and no other
    operation; from strangers, too, it takes none."""

    def runTest(self) -> None:
        job, vectors = self.served(), self.vectors()
        good = self.write(job, 0, self.update(job, vectors[0]))
        for opcode in (0x04, 0x0A, 0x0B, 0x11, 0x24, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x6B, 0x81):
            other = replace(good, bth=replace(good.bth, opcode=opcode)).sealed()
            for port in (0, 5):
                self.refused("ValidatePacket.bad_opcode", port, other.to_bytes())
        self.complete(job, vectors)


class QueuePairsAreOfWorkersAndSlots(WriteTest):
    """A worker has a queue pair for each slot, and contributes over no other one."""

    def runTest(self) -> None:
        job, vectors = self.served(), self.vectors()
        for slot in range(3):
            good = self.write(job, 0, self.update(job, vectors[0], slot=slot))
            for qp in (good.bth.dst_qp ^ 1 << bit for bit in range(24)):
                other = replace(good, bth=replace(good.bth, dst_qp=qp)).sealed()
                self.refused("LookupTable.wrong_qp", 0, other.to_bytes())
        self.complete(job, vectors)


class EachBitOfTheKeyCounts(WriteTest):
    """A key with any other bit is that of another job, generation or slot, or of the slot's other buffer."""

    def runTest(self) -> None:
        job, vectors = self.served(), self.vectors()
        good = self.write(job, 0, self.update(job, vectors[0]))
        assert good.reth is not None
        for bit in (*range(15), *range(16, 32)):
            other = replace(good, reth=replace(good.reth, rkey=good.reth.rkey ^ 1 << bit)).sealed()
            reason = "LookupTable.wrong_qp" if bit < 15 else "FindJob.wrong_epoch" if bit < 24 else None
            self.refused(reason or "LookupTable.unknown_worker", 0, other.to_bytes())
        for use in (1, 2):
            self.complete(job, vectors, use)


class AnyPsnIsTaken(WriteTest):
    """A WRITE of one packet begins wherever the one before ended, so its PSN says nothing (InfiniBand 9.8.2). Sums are
    numbered by the queue pair that they are for, again in a new generation."""

    def runTest(self) -> None:
        job, vectors = self.served(2), self.vectors(2)
        self.served(2, number=9, base=4, slots=2)
        for use, psn in enumerate((5, 4, 5, 1 << 23, (1 << 24) - 1, 0)):
            for worker in (0, 1):
                packet = self.write(job, worker, self.update(job, vectors[worker], use), psn)
                self.send(worker, packet.to_bytes())
                self.icrc = packet.icrc
            total = self.total(job, vectors, use)
            self.expect([self.result(job, worker, total) for worker in (0, 1)])
            self.answered(job, use % 2, self.update(job, vectors[use % 2], use), total)
        for other in self.jobs:
            for slot in (1, 0):
                self.complete(other, self.vectors(2), 6, slot)


class SumsOfAllQueuePairsAreNumbered(WriteTest):
    """Each worker has as many queue pairs as its job has slots: those of the first and the last slots have their own
    numbers."""

    def runTest(self) -> None:
        job = self.served(self.spec.fan_in, base=0, slots=self.spec.slots)
        for use in range(3):
            for slot in sorted({0, 1, job.slots - 1})[use:]:
                self.complete(job, self.vectors(len(job.workers)), use, slot)


class SumsAreWrittenWhereVectorsSay(WriteTest):
    """Address and immediate data of a sum are those of the vector that completes it, or asks for it again; so are the
    bits of the BTH that ask the NIC for something."""

    def runTest(self) -> None:
        job = self.served(1)
        update = self.update(job, self.vectors(1)[0])
        for address in (0, 0x123456789ABCDEF0, (1 << 64) - 4):
            good = self.elsewhere(self.write(job, 0, update), address).sealed()
            self.send(0, good.to_bytes())
            expected = self.elsewhere(parse(self.result(job, 0, update).frame), address)
            icrc = None if self.spec.icrc.right else good.icrc
            self.expect([Output(0, expected.sealed(icrc=icrc).to_bytes())])

    def elsewhere(self, packet: RocePacket, address: int) -> RocePacket:
        """The same WRITE to an address, with these bits."""
        assert packet.reth is not None
        bth = replace(packet.bth, solicited=True, ack_request=True, mig_request=True)
        return replace(packet, bth=bth, reth=replace(packet.reth, address=address))


class CorruptWritesTouchNothing(WriteTest):
    """A WRITE with a wrong ICRC is dropped before it reaches any state; without the check it counts, and where ICRCs
    are set the sum has a right one."""

    def runTest(self) -> None:
        job, vectors = self.served(2), self.vectors(2)
        update = self.update(job, vectors[0])
        good = self.write(job, 0, update)
        wrong = (replace(good, payload=bytes((good.payload[0] ^ 1, *good.payload[1:]))), replace(good, icrc=bytes(4)))
        if self.spec.icrc.checked:
            for packet in (*wrong, good.sealed(icrc=good.icrc[::-1])):
                self.refused("CheckIcrc.bad_icrc", 0, packet.to_bytes())
            self.contribute(job, 0, update)
            self.expect_nothing()
        else:
            self.refused("ReplicateData.absorbed", 0, wrong[1].to_bytes())
        self.contribute(job, 1, self.update(job, vectors[1]))
        self.expect([self.result(job, worker, self.total(job, vectors)) for worker in (0, 1)])


class IcrcAtTheLimits(WriteTest):
    """A right ICRC of all ones, or of zeros, is right."""

    def unfit(self) -> str | None:
        return super().unfit() or (None if self.spec.icrc.checked else "the program does not check the ICRC")

    def runTest(self) -> None:
        job = self.served(1)
        for use, wanted in enumerate((b"\xff" * 4, bytes(4))):
            update = self.update(job, self.vectors(1)[0], use)
            packet = with_icrc(self.write(job, 0, update), wanted)
            self.send(0, packet.to_bytes())
            self.equal("frames sent", len(self.outputs()), 1)
