"""Updates and results as frames: UDP with SwitchML's header, or RDMA WRITEs; elements are in network byte order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p4gen.layout import Stack
from p4gen.papers.switchml.control import MlJob
from p4gen.papers.switchml.headers import KEY, PORT, SWITCHML
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.rocev2 import icrc, layouts
from p4gen.rocev2.datagrams import datagram, is_datagram
from p4gen.rocev2.headers import BTH, RETH, UDP, Ethernet, HeaderError, ImmDt, IPv4
from p4gen.rocev2.opcodes import UcOpcode
from p4gen.rocev2.packet import RocePacket, parse
from p4gen.rocev2.psn import PSN_MASK

_STACK: Final = Stack(layouts.ETHERNET, layouts.IPV4, layouts.UDP, SWITCHML)
_HEADER: Final = _STACK.start("switchml")
_QP_MASK: Final = (1 << layouts.QP_BITS) - 1
_FROM, _TO = _STACK.bytes("ipv4.src_addr"), _STACK.bytes("ipv4.dst_addr")


@dataclass(frozen=True)
class Update:
    """What a worker sends of its vector, or gets as the sum."""

    job: int
    epoch: int
    version: int
    slot: int
    offset: int
    data: bytes
    """The elements."""

    @property
    def _names(self) -> dict[str, int]:
        return {"job": self.job, "epoch": self.epoch, "version": self.version, "slot": self.slot}

    def frame(self, ethernet: Ethernet, ip: IPv4, src_port: int = PORT) -> bytes:
        """The frame with these headers; lengths and the IPv4 checksum are filled in, UDP has none."""
        header = SWITCHML.word.pack(**self._names, offset=self.offset).to_bytes(SWITCHML.size)
        return datagram(ethernet, ip, (src_port, PORT), header + self.data)

    def write(self, ethernet: Ethernet, ip: IPv4, first_qp: int, psn: int, rkey: int | None = None) -> RocePacket:
        """The same as an RDMA WRITE. ``first_qp`` is the receiver's queue pair for slot 0; the key is that of a switch,
        unless it is given."""
        qp, key = first_qp + self.slot & _QP_MASK, KEY.pack(**self._names) if rkey is None else rkey
        bth, reth = BTH(UcOpcode.UC_WRITE_ONLY_IMM, qp, psn), RETH(4 * self.offset, key, len(self.data))
        udp, immediate = UDP(0xC000 | qp & 0x3FFF), ImmDt(self.offset)
        return RocePacket(ethernet, ip, udp, bth, reth, immdt=immediate, payload=self.data).sealed()

    @classmethod
    def parse(cls, frame: bytes, source: int, destination: int) -> Update | None:
        """The update in a frame without a VLAN tag from one IPv4 address to another; None if there is none."""
        ends = int.from_bytes(frame[_FROM]), int.from_bytes(frame[_TO])
        if len(frame) < _STACK.size or not is_datagram(frame, PORT) or ends != (source, destination):
            return None
        word = int.from_bytes(frame[_HEADER : _STACK.size])
        return cls(**SWITCHML.word.unpack(word), data=frame[_STACK.size :])

    @classmethod
    def described(cls, frame: bytes) -> tuple[str, str] | None:
        """As ``p4gen.net.collectives.kinds.Kinds.describe`` for updates and results."""
        found = cls.parse(frame, int.from_bytes(frame[_FROM]), int.from_bytes(frame[_TO]))
        if found is not None:
            return "DATA", f"slot {found.slot} version {found.version} offset {found.offset}"
        written = _written(frame)
        if written is None:
            return None
        packet, reth, offset = written
        return "DATA", f"QP {packet.bth.dst_qp:#x} key {reth.rkey:#010x} offset {offset}"


def sent(spec: SwitchmlSpec, job: MlJob, number: int, update: Update, psn: int) -> bytes:
    """An update as the job's worker of this number, from 1, sends it; over RoCEv2 with a PSN modulo 2^24."""
    own = job.workers[number - 1]
    ethernet, ip = Ethernet(job.mac, own.mac), IPv4(own.ip, job.ip)
    if spec.roce:
        return update.write(ethernet, ip, first_qp(number), psn & PSN_MASK).to_bytes()
    return update.frame(ethernet, ip)


def received(spec: SwitchmlSpec, job: MlJob, number: int, frame: bytes) -> tuple[int, int, bytes] | None:
    """Slot, offset and elements of a result for that worker; None for any other frame."""
    own = job.workers[number - 1]
    if not spec.roce:
        update = Update.parse(frame, job.ip, own.ip)
        if update is None or (update.job, update.epoch) != (job.number, job.epoch):
            return None
        return update.slot, update.offset, update.data
    written = _written(frame)
    if written is None or (spec.icrc.right and not icrc.check(frame)):
        return None
    packet, reth, offset = written
    slot = packet.bth.dst_qp - own.qp & _QP_MASK
    known = packet.ip.src, packet.ip.dst, reth.rkey, reth.address, reth.dma_length
    if slot >= job.slots or known != (job.ip, own.ip, own.rkey, 4 * offset, len(packet.payload)):
        return None
    return slot, offset, packet.payload


def first_qp(number: int) -> int:
    """The switch's queue pair for slot 0 of that worker."""
    return number << 16


def _written(frame: bytes) -> tuple[RocePacket, RETH, int] | None:
    """A frame that is such a WRITE, its RETH, and its immediate data; None for another frame."""
    try:
        packet = parse(frame)
    except HeaderError:
        return None
    if packet.bth.opcode != UcOpcode.UC_WRITE_ONLY_IMM or packet.reth is None or packet.immdt is None:
        return None
    return packet, packet.reth, packet.immdt.value
