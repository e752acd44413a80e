"""Random traffic for MultiWrite's programs, which differential tests send through two switches.

Everything derives from one seed. Sources mostly write in turn, with gaps, repetitions, writes beyond their range and
writes that are refused; destinations acknowledge about as much as they were sent, or report gaps. What sources and
destinations know of a context is rough, since the switches are not asked; each context begins anew from time to time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from p4gen.difftest import noise
from p4gen.difftest.events import Event, Mirroring, Packet, Replication, Request
from p4gen.difftest.family import Traffic
from p4gen.errors import InputError
from p4gen.model.entries import Entry
from p4gen.papers.multiwrite.control import WriteContext, WriteEdge
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.papers.multiwrite.traffic.frames import ACK, WINDOW_BYTES, Star, answer, write
from p4gen.papers.multiwrite.traffic.outputs import Outputs
from p4gen.rocev2.headers import AETH, BTH
from p4gen.rocev2.opcodes import Nak, NakCode, Opcode, RnrNak
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import ticks

_REQUEST_EVERY, _CONTEXTS, _LEAST_EDGES, _MOST_REMOVED, _BETWEEN = 40, 4, 3, 2, 6
_REMEMBERED: Final = 24
_NAK: Final = Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome
_RNR: Final = RnrNak(1).syndrome
_STARTS_CURSOR: Final = (Opcode.ACKNOWLEDGE, ticks.OPCODE)


@dataclass
class Stream:
    """A context, and roughly what its source and its destinations know: PSNs are counted from its first one."""

    context: WriteContext
    next: int = 0
    """The source's next write."""
    sent: dict[int, int] = field(default_factory=dict)
    """Copies for each edge so far."""
    waiting: list[tuple[int, dict[int, int]]] = field(default_factory=list)
    """Writes that are not everywhere, with the numbers of their copies by edge."""
    recent: list[tuple[int, int, bytes]] = field(default_factory=list)
    """The last writes: PSN, bitmap, data."""
    outputs: Outputs = field(default_factory=Outputs)
    """What comes back, if the program combines."""

    def wrote(self, bitmap: int, data: bytes) -> None:
        """The next write was one to these destinations."""
        self.recent = [*self.recent[-_REMEMBERED:], (self.next, bitmap, data)]
        copies = {edge.edge: self.sent.get(edge.edge, 0) for edge in self.context.edges if edge.reach & bitmap}
        self.sent |= {edge: number + 1 for edge, number in copies.items()}
        self.waiting.append((self.next, copies))
        self.next += 1

    def acknowledged(self, edge: int, number: int) -> None:
        """An edge has all its copies up to this one."""
        left = (
            (psn, {other: copy for other, copy in copies.items() if other != edge or copy > number})
            for psn, copies in self.waiting
        )
        self.waiting = [each for each in left if each[1]]


class RandomTraffic:
    """An endless source of events for a program of ``spec``. Raises ``InputError`` if it has too few edges."""

    def __init__(self, spec: MultiwriteSpec, seed: int) -> None:
        if spec.edges < _LEAST_EDGES:
            raise InputError(f"{spec.program}: random traffic needs {_LEAST_EDGES} edges")
        self._spec = spec
        self._random = random.Random(seed)  # noqa: S311 - tests are to be repeated
        self._star = Star(spec, frozenset({spec.edges}))
        count = min(spec.contexts, _CONTEXTS)
        self._streams = [Stream(self._new(number, 1)) for number in range(count)]
        self._config = self._star.config([stream.context for stream in self._streams])
        self._entries = [*self._config.entries, *noise.routes(spec)]
        self._removed: list[Entry] = []
        self._recent: list[Packet] = []
        self._if_sound: list[Callable[[], None]] = []
        """What a stream learns of the packet in the making if nothing is wrong with it."""

    def setup(self) -> list[Event]:
        """The initial configuration."""
        groups = (Replication(group) for group in self._config.multicast_groups)
        sessions = (Mirroring(session) for session in self._config.clone_sessions)
        return [*(Request("insert", entry) for entry in self._entries), *groups, *sessions]

    def packets(self) -> Iterator[Event]:
        """Endless packets, with requests between them."""
        while True:
            if self._random.randrange(_REQUEST_EVERY) == 0:
                yield from self._request()
            yield self._remember(self._packet())

    # --- configuration ---

    def _new(self, number: int, epoch: int) -> WriteContext:
        """A context; the source of every third one is behind a switch."""
        rng, spec = self._random, self._spec
        source = spec.edges if number % 3 == 2 else 1 + number % (spec.edges - 1)
        first = rng.choice((rng.getrandbits(24), (1 << 24) - 5, (1 << 23) - 5))
        return self._star.context(number, source, epoch, first)

    def _request(self) -> Iterator[Event]:
        """An entry is removed or restored; or a context begins anew."""
        rng = self._random
        chance, number = rng.random(), rng.randrange(len(self._streams))
        if self._removed and chance < 0.3:
            yield Request("insert", self._removed.pop(rng.randrange(len(self._removed))))
        elif chance < 0.8 or len(self._removed) == _MOST_REMOVED:
            context = self._new(number, self._streams[number].context.epoch % 255 + 1)
            self._streams[number] = Stream(context)
            yield Request("modify" if chance < 0.7 else "delete", self._state(context))
            if chance >= 0.7:  # until then, nothing of it is served
                for _ in range(_BETWEEN):
                    yield self._remember(self._packet())
                yield Request("insert", self._state(context))
        else:
            entry = rng.choice([entry for entry in self._entries if entry.table != "contexts"])
            self._removed.append(entry)
            yield Request("delete", entry)

    def _state(self, context: WriteContext) -> Entry:
        """The entry that says where a context begins."""
        return next(entry for entry in self._star.config([context]).entries if entry.table == "contexts")

    def _remember(self, packet: Packet) -> Packet:
        self._recent = [*self._recent[-30:], packet]
        return packet

    # --- packets ---

    def _packet(self) -> Packet:
        rng, stream = self._random, self._random.choice(self._streams)
        chance = rng.random()
        self._if_sound.clear()
        if self._recent and chance < 0.03:
            return replace(rng.choice(self._recent), kind="repeated")
        if chance < 0.06:
            return noise.foreign(rng, self._spec.ports, self._streams[0].context.edges[0].local.ip)
        if self._spec.combine and rng.random() < 0.4:
            port, packet, kind = self._returned(stream)
        elif chance < 0.42:
            port, packet, kind = self._written(stream)
        elif chance < 0.9 or not self._spec.holds:
            port, packet, kind = self._answered(stream)
        else:
            port, packet, kind = self._ticked(stream)
        if rng.random() < 0.02:
            own, port, kind = port, rng.randrange(self._spec.ports), f"{kind} at another port"
            if port != own:  # it is refused
                self._if_sound.clear()
        frame = packet.to_bytes()
        if rng.random() < 0.03:
            return Packet(port, noise.spoilt(rng, frame), f"spoilt {kind}")
        for learn in self._if_sound:
            learn()
        return Packet(port, frame, kind)

    def _returned(self, stream: Stream) -> tuple[int, RocePacket, str]:
        rng, context = self._random, stream.context
        if rng.random() < 0.2:
            port, packet, kind = stream.outputs.answered(rng, context)
        else:
            port, packet, kind, learn = stream.outputs.draw(rng, self._spec, context, self._bitmap(context))
            self._if_sound.append(learn)
        return port, self._dressed(packet), kind

    def _written(self, stream: Stream) -> tuple[int, RocePacket, str]:
        rng, context, spec = self._random, stream.context, self._spec
        size = len(stream.waiting)
        chance, full = rng.random(), size >= spec.slots
        bitmap, data = self._bitmap(context), rng.randbytes(spec.payload)
        if chance < 0.08 or (full and chance < 0.3):
            psn, kind = stream.next + rng.choice((1, 1, 2, spec.slots - 1, spec.slots, 1 << 20)), "write out of turn"
        elif stream.recent and (chance < 0.25 or full):
            psn, bitmap, data = rng.choice(stream.recent)
            kind = "write again"
        elif chance < 0.31:
            bitmap = rng.choice((0, 1 << context.rank, bitmap | 1 << context.rank, 1 << spec.receivers - 1))
            psn, kind = stream.next, "write to others than destinations"
        else:
            psn, kind = stream.next, "write"
        fence = rng.random() < 0.1
        offset = rng.choice((0, 64, WINDOW_BYTES - spec.payload, WINDOW_BYTES, rng.getrandbits(32)))
        offset = offset if rng.random() < 0.1 else 64 * rng.randrange(16)
        limit, version = rng.choice((7,) * 12 + (1, 0)), rng.choice((1,) * 30 + (0,))
        made = write(spec, context, psn, bitmap, data, offset, fence=fence, hop_limit=limit, version=version)
        assert made.reth is not None
        if rng.random() < 0.04:
            length, key = rng.choice(((0, 1), (1, 0)))
            reth = replace(made.reth, rkey=made.reth.rkey + key, dma_length=made.reth.dma_length + length)
            return context.source - 1, self._dressed(replace(made, reth=reth)), "write with another key or length"
        if rng.random() < 0.02:
            short = replace(made, payload=made.payload[: rng.randrange(spec.payload)])
            return context.source - 1, self._dressed(short), "short write"
        if rng.random() < 0.03:
            other = replace(made, bth=replace(made.bth, opcode=rng.choice(noise.OPCODES)))
            return context.source - 1, self._dressed(other), "other opcode"
        refused = offset > WINDOW_BYTES - spec.payload or (spec.wide and (not version or not limit))
        if kind == "write" and not refused and not full:
            self._if_sound.append(partial(stream.wrote, bitmap, data))
        return context.source - 1, self._dressed(made), kind

    def _bitmap(self, context: WriteContext) -> int:
        """Some of the ranks that edges lead to, each alone or all of them now and then."""
        rng = self._random
        named = [1 << bit for edge in context.edges for bit in range(self._spec.receivers) if edge.reach >> bit & 1]
        return sum(rng.sample(named, rng.choice((1, 1, 2, 2, 3, len(named))) if len(named) > 2 else 1))

    def _answered(self, stream: Stream) -> tuple[int, RocePacket, str]:
        rng, context, spec = self._random, stream.context, self._spec
        edge = rng.choice([each for each in context.edges if each.reach])
        copies = [copies[edge.edge] for _, copies in stream.waiting if edge.edge in copies]
        number = rng.choice(copies) if copies and rng.random() < 0.7 else min(copies, default=0)
        if rng.random() < 0.1:
            number += rng.choice((-2, -1, 1, 2, spec.slots, 1 << 22))
        if rng.random() < 0.05:
            bth = BTH(Opcode.CNP, 0, 0, becn=True)
            packet = replace(answer(context, edge, 0), aeth=None, payload=bytes(16))
            return edge.edge - 1, self._dressed(self._to(packet, edge, bth)), "notification"
        wait = RnrNak(rng.randrange(32)).syndrome if rng.random() < 0.5 else _RNR
        syndrome = rng.choice((ACK,) * 8 + (_NAK, _NAK, _NAK, wait, 0x61, rng.getrandbits(8)))
        packet = answer(context, edge, number, syndrome, rng.getrandbits(24))
        kind = "ACK" if syndrome == ACK else "NAK"
        if rng.random() < 0.03:  # of a peer that is not the edge's, or from the source
            packet = replace(packet, ip=replace(packet.ip, src=packet.ip.src + 1))
            kind = f"{kind} of another peer"
        elif rng.random() < 0.03:
            packet = self._to(packet, context.toward, packet.bth)
            kind = f"{kind} of the source"
        else:
            self._if_sound.append(partial(stream.acknowledged, edge.edge, number - (syndrome != ACK)))
        return edge.edge - 1, self._dressed(packet), kind

    def _to(self, packet: RocePacket, edge: WriteEdge, bth: BTH) -> RocePacket:
        """The packet from the other end of an edge, to the switch's end of its connection."""
        ip = replace(packet.ip, src=edge.remote.ip)
        return replace(packet, ip=ip, bth=replace(bth, dst_qp=edge.local.qp))

    def _ticked(self, stream: Stream) -> tuple[int, RocePacket, str]:
        """A tick of the switch's agent."""
        rng = self._random
        edge = rng.choice(stream.context.edges)
        packet = answer(stream.context, edge, 0)
        bth = BTH(ticks.OPCODE, edge.local.qp, 0)
        tick = replace(packet, bth=bth, aeth=AETH(0, rng.choice((1, 2, 2, 40))))
        port = self._spec.architecture.cpu_port
        return (port if rng.random() < 0.95 else edge.edge - 1), self._dressed(tick), "tick"

    def _dressed(self, packet: RocePacket) -> RocePacket:
        """The packet as ``noise.vary`` has it. From one that the switch drops, nothing is learned."""
        found, sound = noise.vary(self._random, packet)
        if not sound:
            self._if_sound.clear()
        return found


def _goes_round(spec: MultiwriteSpec, frame: bytes) -> bool:
    return spec.holds and noise.has_opcode(frame, _STARTS_CURSOR)


FACET: Traffic[MultiwriteSpec] = Traffic(source=RandomTraffic, goes_round=_goes_round)
