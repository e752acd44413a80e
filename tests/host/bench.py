"""A NIC with one queue pair on a bench: frames in, frames out, by script. The far end is built with p4gen.rocev2 alone.

A script has one step a line (PSNs are relative to the initial one):

- ``recv N`` posts N receives of 64 bytes; ``send BYTES [imm=V] [write]`` posts a request
- ``read BYTES``, ``add NUMBER`` and ``swap NUMBER COMPARE`` post a READ and atomic operations; ``got BYTES`` says
  what the first of them brought that has not been asked for, in hexadecimal digits
- ``memory BYTES`` says what the region begins with, in hexadecimal digits
- ``< NAME PSN [ack] [len=N] [imm=V] [rkey=V] [va=V] [dma=N] [code=N] [msn=N] [with=N] [compare=N]
  [original=N]`` is a frame that arrives
- ``> NAME PSN [ack] …`` is the next frame that leaves; ``> nothing`` says that none does
- ``sq PSN`` and ``rq PSN`` set the PSN to send and to expect next
- ``wait 10us`` lets time pass; ``done send|recv ID [STATUS]`` is the next completion
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace

from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.transport.nic import BURST
from p4gen.host.transport.verbs import Completion, Operation, Peer, QpConfig, RecvWr, SendWr
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, AtomicAckETH, AtomicETH, Ethernet, ImmDt, IPv4
from p4gen.rocev2.opcodes import (
    Ack,
    Extension,
    Nak,
    Opcode,
    RnrNak,
    carries_payload,
    decode_syndrome,
    extensions,
    has_imm,
    has_reth,
)
from p4gen.rocev2.packet import RocePacket, parse, problems
from p4gen.vocabulary import units

MAC, IP, QP = 0x0200_0000_0001, 0x0A00_0001, 0x11
PEER = Peer(0x0200_0000_0002, 0x0A00_0002, 0x22, udp_src_port=0xC123)
MTU = 8
FIRST_PSN = 0xFF_FFFE
"""Two before the wrap, so that every script crosses it."""
REGION = 64

_SHORT = {"FIRST": "SEND_FIRST", "MIDDLE": "SEND_MIDDLE", "LAST": "SEND_LAST", "ONLY": "SEND_ONLY"}


class Bench:
    """See the module. ``frames`` that leave are checked in every derived field."""

    def __init__(self, config: QpConfig | None = None, burst: int = BURST) -> None:
        self.hosts = CompiledHosts(256, 1, burst=burst)
        self.loop = self.hosts.loop
        self.nic = self.hosts.add(MAC, IP)
        self.nic.line = self
        self.frames: deque[RocePacket] = deque()
        self.completions: deque[Completion] = deque()
        self.config = config or QpConfig(mtu=MTU, initial_psn=FIRST_PSN, max_outstanding=4, timeout_ps=0)
        self.pair = self.nic.create_pair(QP, PEER, self.config, self.completions.append)
        self.memory = bytearray(REGION)
        self.region = self.nic.domain.register(self.memory)
        self.buffers: list[bytearray] = []
        self._posted = 0
        self._fetched: deque[bytearray] = deque()

    def transmit(self, frame: bytes, at: int) -> int:
        """The line: a byte takes 80 ps."""
        faults = problems(frame)
        assert not faults, faults
        self.frames.append(parse(frame))
        return at + 80 * len(frame)

    def play(self, script: str) -> None:
        """Run a script; AssertionError at the first step that does not hold, or when frames are left over."""
        for number, line in enumerate(script.strip().splitlines(), 1):
            words = line.split("#")[0].split()
            if words:
                try:
                    self._step(words)
                except AssertionError as error:
                    raise AssertionError(f"step {number}, '{line.strip()}': {error}") from error
        assert not self.frames, f"left over: {[self._text(f) for f in self.frames]}"

    def _step(self, words: list[str]) -> None:
        match words[0]:
            case "recv":
                for _ in range(int(words[1])):
                    self.buffers.append(bytearray(REGION))
                    self.pair.post_recv(RecvWr(len(self.buffers) - 1, memoryview(self.buffers[-1])))
            case "send":
                options = _options(words[2:])
                data = bytes(i & 0xFF for i in range(int(words[1])))
                rkey = self.region.rkey if "write" in words else None
                self.pair.post_send(SendWr(self._posted, data, options.get("imm"), rkey, self.region.address))
                self._posted += 1
                self._settle()
            case "read" | "add" | "swap":
                self._fetch(words[0], [int(word) for word in words[1:]])
            case "got":
                brought = self._fetched.popleft().hex()
                assert brought == words[1], f"{brought} has come"
            case "memory":
                begins = self.memory[: len(words[1]) // 2].hex()
                assert begins == words[1], f"the region begins with {begins}"
            case "<":
                self.nic.receive(self.frame(words[1:]).to_bytes())
                self._settle()
            case ">":
                self._expect(words[1:])
            case "sq" | "rq":
                psn = (self.config.initial_psn + int(words[1])) & 0xFFFFFF
                (self.pair.set_sq_psn if words[0] == "sq" else self.pair.set_rq_psn)(psn)
            case "wait":
                self.loop.run(until=self.loop.now + units.duration(words[1]))
            case "done":
                assert self.completions, "nothing has completed"
                found = self.completions.popleft()
                text = f"{'recv' if found.receive else 'send'} {found.wr_id} {found.status}"
                wanted = " ".join(words[1:]) if len(words) > 3 else " ".join([*words[1:], "success"])
                assert text == wanted, f"{text} has completed"
            case other:
                raise AssertionError(f"no step {other}")

    def _fetch(self, what: str, numbers: list[int]) -> None:
        operation = {"read": Operation.READ, "add": Operation.FETCH_ADD, "swap": Operation.COMPARE_SWAP}[what]
        room = bytearray(numbers[0] if what == "read" else 8)
        value, compare = (0, 0) if what == "read" else (numbers[0], numbers[-1])
        place = (None, self.region.rkey, self.region.address)
        self.pair.post_send(SendWr(self._posted, memoryview(room), *place, False, operation, value, compare))
        self._fetched.append(room)
        self._posted += 1
        self._settle()

    def _settle(self) -> None:
        """Let the NIC send what it can, without much time passing."""
        self.loop.run(until=self.loop.now + 1_000_000)

    def frame(self, words: list[str]) -> RocePacket:
        """The frame that a script's words describe, sealed."""
        options = _options(words)
        psn = (self.config.initial_psn + int(words[1])) & 0xFFFFFF if words[0] != "CNP" else 0
        bth = BTH(0, QP, psn, ack_request="ack" in words)
        packet = RocePacket(Ethernet(MAC, PEER.mac), IPv4(PEER.ip, IP), UDP(PEER.udp_src_port), bth)
        if words[0] in ("ACK", "NAK", "RNR", "SYNDROME"):
            code = options.get("code", 0)
            form = {"ACK": 0b000, "RNR": 0b001, "NAK": 0b011}
            syndrome = code if words[0] == "SYNDROME" else form[words[0]] << 5 | (code or 31 * (words[0] == "ACK"))
            aeth = AETH(syndrome, options.get("msn", 0))
            return replace(packet, bth=replace(bth, opcode=int(Opcode.ACKNOWLEDGE)), aeth=aeth).sealed()
        opcode = Opcode[_SHORT.get(words[0], words[0])]
        packet = replace(packet, bth=replace(bth, opcode=int(opcode)))
        if opcode is Opcode.CNP:
            return replace(packet, payload=bytes(16)).sealed()
        if has_reth(opcode):
            address, rkey = options.get("va", self.region.address), options.get("rkey", self.region.rkey)
            packet = replace(packet, reth=RETH(address, rkey, options.get("dma", MTU)))
        also = extensions(opcode)
        if Extension.ATOMIC_ETH in also:
            address, rkey = options.get("va", self.region.address), options.get("rkey", self.region.rkey)
            atomic = AtomicETH(address, rkey, options.get("with", 0), options.get("compare", 0))
            packet = replace(packet, atomic_eth=atomic)
        if Extension.AETH in also:
            packet = replace(packet, aeth=AETH(Ack().syndrome, options.get("msn", 0)))
        if Extension.ATOMIC_ACK_ETH in also:
            packet = replace(packet, atomic_ack_eth=AtomicAckETH(options.get("original", 0)))
        if has_imm(opcode):
            packet = replace(packet, immdt=ImmDt(options.get("imm", 0)))
        size = options.get("len", MTU) if carries_payload(opcode) else 0
        return replace(packet, payload=bytes((psn + i) & 0xFF for i in range(size))).sealed()

    def _expect(self, words: list[str]) -> None:
        if words == ["nothing"]:
            assert not self.frames, f"sent {[self._text(f) for f in self.frames]}"
            return
        assert self.frames, "nothing was sent"
        packet = self.frames.popleft()
        assert (packet.eth.dst, packet.ip.dst, packet.bth.dst_qp) == (PEER.mac, PEER.ip, PEER.qp)
        text = self._text(packet).split()
        name, psn, *rest = words if words[0] != "CNP" else ["CNP", "0", *words[1:]]
        assert text[:2] == [name, psn], f"sent {' '.join(text)}"
        missing = [word for word in rest if word not in text]
        assert not missing, f"sent {' '.join(text)}"
        if "ack" not in rest:
            assert "ack" not in text, f"sent {' '.join(text)}"

    def _text(self, packet: RocePacket) -> str:
        bth = packet.bth
        psn = ((bth.psn - self.config.initial_psn + (1 << 23)) & 0xFFFFFF) - (1 << 23)
        if packet.aeth is not None and bth.opcode == Opcode.ACKNOWLEDGE:
            meaning = decode_syndrome(packet.aeth.syndrome)
            name = {Ack: "ACK", Nak: "NAK", RnrNak: "RNR"}.get(type(meaning), "SYNDROME")
            code = getattr(meaning, "code", getattr(meaning, "timer", 0))
            return f"{name} {psn} code={code} msn={packet.aeth.msn}"
        if bth.opcode == Opcode.CNP:
            return "CNP 0" + (" becn" if bth.becn else "")
        name = Opcode(bth.opcode).name
        name = next((short for short, full in _SHORT.items() if full == name), name)
        words = [name, str(psn), f"len={len(packet.payload)}"]
        words += ["ack"] if bth.ack_request else []
        words += [f"imm={packet.immdt.value}"] if packet.immdt is not None else []
        if packet.reth is not None:
            words += [f"dma={packet.reth.dma_length}", f"va={packet.reth.address - self.region.address}"]
        words += [f"msn={packet.aeth.msn}"] if packet.aeth is not None else []
        words += [f"original={packet.atomic_ack_eth.original}"] if packet.atomic_ack_eth is not None else []
        if packet.atomic_eth is not None:
            words += [f"with={packet.atomic_eth.swap_or_add}", f"compare={packet.atomic_eth.compare}"]
        return " ".join(words)


def _options(words: list[str]) -> dict[str, int]:
    return {m[1]: int(m[2], 0) for m in (re.match(r"(\w+)=(\w+)$", word) for word in words) if m}
