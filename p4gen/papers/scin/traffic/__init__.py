"""Random traffic for SCIN's programs, which differential tests send through two switches.

Everything derives from one seed. Ranks mostly do what their NICs do: they arrive, answer READs, acknowledge results and
flags, with losses, repetitions, NAKs and refusals; now and then a context hears nothing but ticks. What the switch has
asked them for is reckoned (``expected.py``), since it is not asked itself, and each context begins anew from time to
time, and soon after a call was aborted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from p4gen.difftest import noise
from p4gen.difftest.events import Event, Mirroring, Packet, Replication, Request
from p4gen.difftest.family import Traffic
from p4gen.errors import InputError
from p4gen.model.entries import Entry
from p4gen.papers.scin.control import Pattern, PullContext, PullEdge, Role, roles
from p4gen.papers.scin.headers import BUFFERS, CURSOR
from p4gen.papers.scin.spec import ScinSpec
from p4gen.papers.scin.traffic.draws import elements, scales
from p4gen.papers.scin.traffic.expected import ExpectedContext
from p4gen.papers.scin.traffic.frames import ACK, Star, answer, arrival, from_rank, response, tick
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH
from p4gen.rocev2.opcodes import Nak, NakCode, Opcode, RnrNak
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import ticks

_REQUEST_EVERY, _LEAST_EDGES, _MOST_REMOVED, _BETWEEN = 40, 3, 4, 6
_KEPT: Final = {"contexts", "addresses"}
"""Tables whose entries are not removed like others: those of contexts are in a way of their own, and without an address
no packet is the program's."""
_PATIENCE_WITH_ABORTED: Final = 25
"""Packets of a context whose call was aborted before it begins anew."""
_NAK: Final = Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome
_REFUSED: Final = Nak(NakCode.REMOTE_ACCESS_ERROR).syndrome
_RESPONSES: Final = (
    Opcode.READ_RESPONSE_FIRST,
    Opcode.READ_RESPONSE_MIDDLE,
    Opcode.READ_RESPONSE_LAST,
    Opcode.READ_RESPONSE_ONLY,
)
_STARTS_CURSOR: Final = (Opcode.SEND_ONLY_IMM, *_RESPONSES, Opcode.ACKNOWLEDGE, ticks.OPCODE)

Made = tuple[int, RocePacket, str]
"""Port, packet, kind."""


class RandomTraffic:
    """An endless source of events for a program of ``spec``. Raises ``InputError`` if it has too few edges."""

    def __init__(self, spec: ScinSpec, seed: int) -> None:
        if spec.edges < _LEAST_EDGES:
            raise InputError(f"{spec.program}: random traffic needs {_LEAST_EDGES} edges")
        self._spec = spec
        self._random = random.Random(seed)  # noqa: S311 - tests are to be repeated
        self._star = Star(spec)
        every = (1 << min(spec.edges, 6)) - 1
        patterns = (Pattern(every, every), Pattern(0b011, 0b110), Pattern(every, 0b100), Pattern(0b010, every))
        self._streams = [self._new(number, pattern, 1) for number, pattern in enumerate(patterns[: spec.contexts])]
        self._config = self._star.config([stream.context for stream in self._streams])
        self._entries = [*self._config.entries, *noise.routes(spec)]
        self._removed: list[Entry] = []
        self._recent: list[Packet] = []
        self._if_sound: list[Callable[[], None]] = []
        """What is known of a context after the packet in the making if nothing is wrong with it."""

    def setup(self) -> list[Event]:
        """The initial configuration."""
        groups = (Replication(group) for group in self._config.multicast_groups)
        sessions = (Mirroring(session) for session in self._config.clone_sessions)
        return [*(Request("insert", entry) for entry in self._entries), *groups, *sessions]

    def packets(self) -> Iterator[Event]:
        """Endless packets, with requests between them."""
        while True:
            over = [at for at, stream in enumerate(self._streams) if stream.old > _PATIENCE_WITH_ABORTED]
            if over:
                yield from self._anew(over[0])
            elif self._random.randrange(_REQUEST_EVERY) == 0:
                yield from self._request()
            yield self._remember(self._packet())

    # --- configuration ---

    def _new(self, number: int, pattern: Pattern, epoch: int) -> ExpectedContext:
        rng = self._random
        first = rng.choice((rng.getrandbits(24), (1 << 24) - 9, (1 << 23) - 9))
        context = self._star.context(number, pattern, epoch, first)
        return ExpectedContext(context, self._spec.slots, self._spec.wave, self._spec.scaled)

    def _request(self) -> Iterator[Event]:
        """An entry is removed or restored; or a context begins anew."""
        rng = self._random
        chance = rng.random()
        if chance < 0.15:
            yield from self._anew(rng.randrange(len(self._streams)))
        elif self._removed and (chance < 0.5 or len(self._removed) == _MOST_REMOVED):
            yield Request("insert", self._removed.pop(rng.randrange(len(self._removed))))
        else:
            table = rng.choice([*sorted({entry.table for entry in self._entries} - _KEPT), "flags", "flags"])
            entry = rng.choice([entry for entry in self._entries if entry.table == table])
            self._removed.append(entry)
            yield Request("delete", entry)

    def _anew(self, number: int) -> Iterator[Event]:
        """A context gets another epoch, at once, or after a time in which nothing of it is served."""
        rng, old = self._random, self._streams[number].context
        stream = self._new(number, Pattern(old.sources, old.destinations), old.epoch % 255 + 1)
        self._streams[number] = stream
        at_once = rng.random() < 0.7
        yield Request("modify" if at_once else "delete", self._state(stream.context))
        if not at_once:
            for _ in range(_BETWEEN):
                yield self._remember(self._packet())
            yield Request("insert", self._state(stream.context))

    def _state(self, context: PullContext) -> Entry:
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
        stream.old += stream.aborted
        if self._recent and chance < 0.03:
            return replace(rng.choice(self._recent), kind="repeated")
        if chance < 0.06:
            return noise.foreign(rng, self._spec.ports, stream.context.edges[0].local[0].ip)
        port, packet, kind = self._made(stream)
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

    def _made(self, stream: ExpectedContext) -> Made:
        """What a rank sends, or the agent."""
        rng = self._random
        if stream.silent:
            stream.silent -= 1
            if rng.random() < 0.8:
                return self._ticked(stream)
        elif rng.random() < 0.006:
            stream.silent = rng.randrange(self._spec.patience + 6)
        chance = rng.random()
        if chance < 0.02:
            return self._odd(stream)
        if chance < 0.06:
            return self._ticked(stream)
        if chance < 0.09:
            return self._read_answer(stream)
        if stream.finished:
            made = self._arrives if rng.random() < 0.7 else self._takes_flag
        elif rng.random() < 0.04:
            made = rng.choice((self._arrives, self._takes_flag))
        else:
            unfreed = (stream.released - stream.freed) / self._spec.slots
            sources = stream.of(stream.context.sources)
            waits = not any(stream.missing(edge) or stream.missing_scales(edge) for edge in sources)
            made = self._acknowledges if rng.random() < (0.9 if waits else min(0.5, unfreed)) else self._gives
        return made(stream)

    def _arrives(self, stream: ExpectedContext) -> Made:
        """An arrival; an earlier one again, one ahead of its time, one that announces something else."""
        rng, context, spec = self._random, stream.context, self._spec
        absent = stream.of(stream.participants & ~stream.arrived)
        edge = rng.choice(absent if absent and rng.random() < 0.9 else context.edges)
        if not stream.arrived and stream.finished:
            stream.announced = rng.choice((0, 1, 2, spec.wave, spec.slots, rng.randrange(3 * spec.slots)))
            stream.announced_exact = spec.exact is not None and rng.random() < 0.5
        call, packets, other, kind = stream.number + 1, stream.announced, 0, "arrival"
        exact = stream.announced_exact
        chance = rng.random()
        if not stream.finished or (chance < 0.06 and stream.number >= 0):
            call, packets, exact, kind = stream.number, stream.packets, stream.exact, "arrival again"
        elif chance < 0.08:
            call, kind = call + rng.choice((1, 2, 1 << 22, -2)), "arrival out of turn"
        elif chance < 0.09:
            other, kind = 1, "arrival with other numbers"
        elif chance < 0.12 and stream.arrived:
            kind = "arrival that disagrees"
            if spec.exact and rng.random() < 0.5:
                exact = not exact
            else:
                packets += 1
            self._if_sound.append(stream.is_aborted)
        elif not stream.aborted:
            self._if_sound.append(partial(stream.has_arrived, edge))
        buffers = rng.randbytes(BUFFERS.size)
        form = spec.exact_form if exact else spec
        return self._from(edge, arrival(form, context, edge, call, packets, buffers, other), kind)

    def _gives(self, stream: ExpectedContext) -> Made:
        """Data that was asked for; some of it is lost, comes again, or was never asked for."""
        rng, context, spec = self._random, stream.context, self._spec
        edges = stream.of(context.sources)
        if spec.scaled and rng.random() < (0.6 if any(map(stream.missing_scales, edges)) else 0.03):
            return self._gives_scales(stream)
        chance, kind = rng.random(), "response"
        edge = rng.choice([edge for edge in edges if stream.missing(edge)] or edges)
        missing = stream.missing(edge)
        if not missing or chance < 0.1:
            away = rng.choice((-1, -2, -spec.slots, 0, 1, spec.wave, 1 << 20))
            psn, kind = rng.choice((stream.released, stream.asked)) + away, "response out of turn"
        else:
            psn = missing[0] if chance < 0.8 else rng.choice(missing)
        if chance > 0.95:
            edge, kind = rng.choice(context.edges), "response of anybody"
        data = elements(spec, rng)
        if rng.random() < 0.02:
            data, kind = data[: rng.randrange(spec.payload)], "short response"
        elif stream.released <= psn < stream.asked and edge in stream.of(context.sources):
            self._if_sound.append(partial(stream.has_come, edge, psn))
        return self._from(edge, response(context, edge, psn, data, rng.choice(_RESPONSES)), kind)

    def _gives_scales(self, stream: ExpectedContext) -> Made:
        """Scales that were asked for, and others."""
        rng, context = self._random, stream.context
        edges = stream.of(context.sources)
        edge = rng.choice([edge for edge in edges if stream.missing_scales(edge)] or edges)
        lacking, kind = stream.missing_scales(edge), "scales"
        if lacking and rng.random() < 0.92:
            wave = rng.choice((lacking[0], rng.choice(lacking)))
            self._if_sound.append(partial(stream.has_scales, edge, wave))
        else:
            wave, kind = stream.awaited + rng.choice((-1, -2, 0, self._spec.waves, 1 << 20)), "scales out of turn"
        opcode = Opcode.READ_RESPONSE_ONLY if rng.random() < 0.9 else rng.choice(_RESPONSES)
        if opcode is Opcode.READ_RESPONSE_MIDDLE:
            self._if_sound.clear()
        data = scales(self._spec, rng)
        return self._from(edge, response(context, edge, wave, data, opcode, Role.SCALES), kind)

    def _acknowledges(self, stream: ExpectedContext) -> Made:
        """ACKs and NAKs of results: of any that were written, of earlier and of later ones."""
        rng, context = self._random, stream.context
        edge = rng.choice(stream.of(context.destinations))
        last = stream.released - 1
        psn = rng.randint(stream.freed, max(last, stream.freed)) if rng.random() < 0.6 else last
        chance, kind = rng.random(), "ACK"
        if chance < 0.06:
            psn += rng.choice((-1, -self._spec.slots, 1, 2, 1 << 22, -(1 << 22)))
        if chance > 0.95:
            edge = rng.choice(context.edges)
        syndrome = ACK
        if rng.random() < 0.25:
            syndrome = rng.choice((*(_NAK,) * 12, *(RnrNak(rng.randrange(32)).syndrome,) * 6, _REFUSED, 0x63))
            kind = "NAK"
        if syndrome in (_REFUSED, 0x63):
            kind = "refusal"
            if psn <= stream.released:
                self._if_sound.append(stream.is_aborted)
        elif context.destinations >> (edge.edge - 1) & 1:
            self._if_sound.append(partial(stream.is_acknowledged, edge, psn + (syndrome == ACK)))
        return self._from(edge, answer(context, edge, Role.WRITE, psn, syndrome, rng.getrandbits(24)), kind)

    def _read_answer(self, stream: ExpectedContext) -> Made:
        """A NIC has missed a READ, or has no use for it."""
        rng, context = self._random, stream.context
        edge = rng.choice(stream.of(context.sources))
        missing = stream.missing(edge)
        psn = rng.choice(missing) if missing and rng.random() < 0.8 else stream.asked + rng.randrange(-9, 9)
        role = Role.READ
        if self._spec.scaled and rng.random() < 0.4:
            role, psn = (
                Role.SCALES,
                rng.choice(stream.missing_scales(edge) or [stream.waves_end + rng.randrange(-3, 3)]),
            )
        syndrome = rng.choice((*(_NAK,) * 14, ACK, RnrNak(1).syndrome, _REFUSED, rng.getrandbits(8)))
        if syndrome >> 5 == 3 and syndrome != _NAK and not stream.finished:
            self._if_sound.append(stream.is_aborted)
        return self._from(edge, answer(context, edge, role, psn, syndrome), "answer to a READ")

    def _takes_flag(self, stream: ExpectedContext) -> Made:
        """A flag is acknowledged, or was lost."""
        rng = self._random
        unflagged = stream.of(stream.participants & ~stream.flagged)
        edge = rng.choice(unflagged if unflagged and rng.random() < 0.9 else stream.context.edges)
        chance = rng.random()
        psn = stream.number + (0 if chance < 0.95 else rng.choice((-1, 1, 1 << 20)))
        syndrome = ACK if chance < 0.9 else rng.choice((_NAK, _REFUSED, RnrNak(2).syndrome))
        if psn == stream.number and syndrome == ACK:
            self._if_sound.append(partial(stream.has_flag, edge))
        return self._from(edge, answer(stream.context, edge, Role.SYNC, psn, syndrome), "answer to a flag")

    def _ticked(self, stream: ExpectedContext) -> Made:
        """A tick of the switch's agent, which somebody may forge."""
        rng = self._random
        edge = rng.choice(stream.context.edges)
        if rng.random() < 0.05:
            return self._from(edge, tick(edge), "forged tick")
        self._if_sound.append(partial(stream.is_ticked, self._spec.patience))
        return self._spec.architecture.cpu_port, self._dressed(tick(edge)), "tick"

    def _odd(self, stream: ExpectedContext) -> Made:
        """What no rank sends to that queue pair: another opcode, a forged cursor, a notification, another peer's."""
        rng, context = self._random, stream.context
        edge, role = rng.choice(context.edges), rng.choice(roles(self._spec))
        psn = serial.add(context.first_psn, stream.asked)
        chance, about = rng.random(), BTH(rng.choice(noise.OPCODES), 0, psn)
        if chance < 0.3:
            bth = BTH(Opcode.CNP, 0, 0, becn=True)
            return self._from(edge, from_rank(edge, role, bth, payload=bytes(16)), "notification")
        if chance < 0.5:
            forged = replace(about, opcode=ticks.InternalOpcode.CURSOR)
            packet = from_rank(edge, role, forged, payload=rng.randbytes(CURSOR.size))
            return self._from(edge, packet, "forged cursor")
        if chance < 0.7:
            packet = from_rank(edge, role, replace(about, opcode=Opcode.ACKNOWLEDGE), aeth=AETH(ACK, 0))
            packet = replace(packet, ip=replace(packet.ip, src=packet.ip.src + 1))
            return self._from(edge, packet, "another peer's")
        size = rng.choice((0, 4, BUFFERS.size, self._spec.payload))
        return self._from(edge, from_rank(edge, role, about, payload=rng.randbytes(size)), "other opcode")

    def _from(self, edge: PullEdge, packet: RocePacket, kind: str) -> Made:
        return edge.port, self._dressed(packet), kind

    def _dressed(self, packet: RocePacket) -> RocePacket:
        """The packet as ``noise.vary`` has it. From one that the switch drops, nothing is learned."""
        found, sound = noise.vary(self._random, packet)
        if not sound:
            self._if_sound.clear()
        return found


def _goes_round(_spec: ScinSpec, frame: bytes) -> bool:
    return noise.has_opcode(frame, _STARTS_CURSOR)


FACET: Traffic[ScinSpec] = Traffic(source=RandomTraffic, goes_round=_goes_round)
