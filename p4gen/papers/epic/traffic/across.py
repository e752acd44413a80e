"""Traffic for a program of Mode II and one of static groups, and what the lack of a capability excuses.

Both serve the same groups, each by entries of its own. A packet that the reference drops for a reason that the other
program cannot know is not given to that one: it would change state that the reference does not.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from typing import Final

from p4gen.difftest.across import Change, Expected, Sent, Step
from p4gen.difftest.events import Packet
from p4gen.errors import InputError
from p4gen.groups.config import configure
from p4gen.groups.group import GroupContext, SwitchConfig
from p4gen.model import Model
from p4gen.model.entries import Entry, MulticastGroup
from p4gen.papers.epic.capabilities import capabilities
from p4gen.papers.epic.conformance.needs import reason as dropped_for
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino import folding, static
from p4gen.papers.epic.traffic.source import REQUEST_EVERY, RandomTraffic
from p4gen.papers.epic.traffic.streams import SENDS, Stream
from p4gen.papers.epic.words import slot
from p4gen.program import compose
from p4gen.rocev2.codes import ECN_CE, ETHERTYPE_VLAN
from p4gen.rocev2.headers import IPv4, internet_checksum
from p4gen.rocev2.icrc import ICRC_SIZE, icrc
from p4gen.rocev2.layouts import ROCE, VLAN
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.psn import PSN_MASK

_CONTROL: Final = int(Opcode.SEND_ONLY_IMM)
_SLOTTED: Final = frozenset({*map(int, SENDS), _CONTROL})
_UNKNOWN: Final = frozenset(
    {"TrackInvocation.not_announced", "TrackInvocation.mixed_control", "ClassifyTraffic.no_pattern"}
)
"""Why packets are dropped for what was announced, or was not."""
_EARLY: Final = ("LookupTable", "ValidatePacket")
"""The modules that refuse packets before anything is known of their group."""
_OPCODE, _FLAGS = ROCE.at("bth.opcode"), ROCE.at("bth.ack_request")
_ACK_REQUEST: Final = 0x80
_IP, _TOS = ROCE.at("ipv4.version"), ROCE.at("ipv4.dscp")
_CHECKSUM, _LENGTH = (ROCE.bytes(f"ipv4.{name}").start for name in ("checksum", "total_length"))
_ECN: Final = 3
_ADDRESS, _QP, _PSN = (ROCE.bytes(name) for name in ("ipv4.dst_addr", "bth.dest_qp", "bth.psn"))
_HALF: Final = 1 << 23


class AcrossTraffic:
    """Random traffic for the groups of a program ``tested``, of which ``reference`` serves the same."""

    def __init__(self, reference: EpicSpec, tested: EpicSpec, seed: int) -> None:
        if tested.mode.augmented:
            raise InputError(
                f"{tested.program}: answers of mode III are not the same on all architectures: use --mode II"
            )
        self._specs = reference, tested
        self._source = RandomTraffic(tested, seed)
        self._random = self._source.random
        self._lacked = {each.name: each.reason for each in capabilities(tested)} if static(tested) else {}
        if static(reference):
            self._lacked = {name: why for name, why in self._lacked.items() if name not in dict(_named(reference))}
        self._drops = compose(tested).drops
        self._narrowed: dict[int, int] = {}
        """By a group's first slot, the bit of an edge that does not contribute."""
        self._removed: list[object] = []
        self._regrouped: dict[int, frozenset[int]] = {}
        """By the number of a multicast group, the edges that it still has."""

    @property
    def capabilities(self) -> Mapping[str, str]:
        """What only the reference has."""
        return self._lacked

    def setup(self) -> Change:
        """The initial configuration."""
        return self._change("the initial configuration")

    def steps(self) -> Iterator[Step]:
        """Endless packets, with changes among them; a change with number n precedes the n-th packet."""
        kinds: tuple[Callable[[], str], ...] = (
            self._new_epoch, self._new_epoch, self._narrow, self._toggle, self._toggle, self._regroup,
        )  # fmt: skip
        while True:
            if self._random.randrange(REQUEST_EVERY) == 0:
                yield self._change(self._random.choice(kinds)())
            yield self._source.packet()

    # --- configurations ---

    @property
    def streams(self) -> tuple[Stream, ...]:
        """What the ranks of each channel send."""
        return self._source.streams

    def _groups(self) -> list[GroupContext]:
        return [group for stream in self._source.streams for group in stream.served.contexts]

    def _change(self, why: str) -> Change:
        reference, tested = (self._configuration(spec) for spec in self._specs)
        return Change(reference, tested, why)

    def _configuration(self, spec: EpicSpec) -> SwitchConfig:
        config = configure(spec, self._groups(), self._source.routes(), self._source.next_hops)
        entries = tuple(self._altered(e) for e in config.entries if _key(e) not in self._removed)
        return SwitchConfig(entries, tuple(self._left(spec, group) for group in config.multicast_groups))

    def _left(self, spec: EpicSpec, group: MulticastGroup) -> MulticastGroup:
        """What is left of a multicast group."""
        edges = self._regrouped.get((group.group_id - 1) % folding.recirculating(spec) + 1)
        if edges is None:
            return group
        return replace(group, replicas=tuple(each for each in group.replicas if each.rid in edges))

    def _altered(self, entry: Entry) -> Entry:
        arguments = entry.action.args
        bit = self._narrowed.get(arguments.get("base", -1), 0)
        if "source_mask" not in arguments or not bit:
            return entry
        return replace(
            entry, action=replace(entry.action, args={**arguments, "source_mask": arguments["source_mask"] & ~bit})
        )

    def _new_epoch(self) -> str:
        """A group is initialised again: its slots hold old state, and its PSNs may be anywhere."""
        stream = self._random.choice(self._source.streams)
        self._renew(stream)
        return f"context {stream.served.contexts[0].context} has a new epoch"

    def _renew(self, *streams: Stream) -> None:
        for stream in streams:
            (group,) = stream.served.contexts
            stream.restart(stream.served.with_epoch(group.epoch % 255 + 1, self._random.randrange(1 << 24)))

    def _streams(self, bases: Container[int]) -> list[Stream]:
        """Those of the groups whose slots begin at ``bases``."""
        return [stream for stream in self._source.streams if stream.served.contexts[0].base in bases]

    def _narrow(self) -> str:
        """One edge of a group does not contribute for a while, or all do again. The group has a new epoch: one program
        remembers whether a slot is complete, the other compares it with the present sources."""
        if self._narrowed and self._random.random() < 0.8:
            self._renew(*self._streams(self._narrowed))
            self._narrowed.clear()
            return "all edges contribute"
        found = [e.action.args for e in configure(self._specs[1], self._groups()).entries]
        chosen = self._random.choice([args for args in found if "source_mask" in args])
        bits = [1 << bit for bit in range(32) if chosen["source_mask"] >> bit & 1]
        self._narrowed[chosen["base"]] = self._random.choice(bits)
        self._renew(*self._streams({chosen["base"]}))
        return f"an edge of the group with slots from {chosen['base']} on does not contribute"

    def _toggle(self) -> str:
        """An entry that both have is removed, or restored."""
        if self._removed and self._random.random() < 0.85:
            key = self._removed.pop(self._random.randrange(len(self._removed)))
            return f"restored: {key}"
        both = [[_key(e) for e in self._configuration(spec).entries] for spec in self._specs]
        self._removed.append(self._random.choice([key for key in both[0] if key in both[1]]))
        return f"removed: {self._removed[-1]}"

    def _regroup(self) -> str:
        """Results go to some of the edges only, or to all again."""
        group = self._random.choice(configure(self._specs[1], self._groups()).multicast_groups)
        edges = [each.rid for each in group.replicas]
        if self._random.random() < 0.4 and len(edges) > 1:
            edges = self._random.sample(edges, len(edges) - 1)
        number = (group.group_id - 1) % folding.recirculating(self._specs[1]) + 1
        self._regrouped[number] = frozenset(edges)
        return f"multicast group {number} has {len(edges)} edges"

    # --- exceptions ---

    def expect(self, packet: Packet, sent: Sent, reason: str, reference: Model) -> Expected:
        """What the tested program must send: the same, or what follows from a capability that it lacks."""
        if reason:
            name = self._excuse(packet.frame, reason, reference)
            return Expected(None, name) if name in self._lacked else Expected(sent, reasons=self._reasons(reason))
        if "early" in self._lacked and self._excluded(packet.frame):
            return Expected(None, "early")
        if "resealed" in self._lacked and self._goes_on(packet.frame):
            wrong = _wrong_bits(packet.frame)
            if wrong:
                return Expected([(port, _flipped(frame, wrong)) for port, frame in sent], "resealed")
        if "ack_request" in self._lacked and _opcode(packet.frame) in _SLOTTED:
            whole = _FLAGS + _shift(packet.frame) < len(packet.frame)
            sealed = self._specs[0].icrc.right
            altered = [(port, _as_asked(frame, packet.frame, sealed) if whole else frame) for port, frame in sent]
            if altered != list(sent):
                return Expected(altered, "ack_request")
        return Expected(sent)

    def _reasons(self, reason: str) -> frozenset[str]:
        """The reasons for which the tested program may drop what the reference drops for ``reason``. A packet may have
        several faults, and which one is named is no promise; but nothing that is refused may reach a slot."""
        if reason.startswith(_EARLY):
            early = (drop for drop in self._drops if drop.module.name in _EARLY)
            return frozenset(f"{drop.module.name}.{drop.drop.reason}" for drop in early)
        return frozenset({dropped_for(self._specs[1], reason)})

    def _excuse(self, frame: bytes, reason: str, reference: Model) -> str:
        """The capability without which a program takes what the reference drops for this reason."""
        match reason:
            case "CheckDuplicate.mixed_opcode":
                return "mixed_opcode"
            case "CheckDuplicate.early":
                return "early"
            case "CheckDuplicate.stale":
                if "half" in self._lacked:
                    return "half" if self._ahead(frame, reference) == _HALF else ""
                return "stale"
            case "ValidatePacket.truncated":
                return "truncated"
            case "ValidatePacket.bad_length" if len(frame) > _datagram_end(frame):
                return "padding"
            case "ClassifyTraffic.no_pattern" if _opcode(frame) == _CONTROL:
                return ""  # it announces what the group does not take
            case _ if reason in _UNKNOWN:
                return "announcements"
        return ""

    def _ahead(self, frame: bytes, reference: Model) -> int:
        """How far the PSN of a packet's slot is ahead of the packet's."""
        (psn,) = _numbers(frame, _PSN)
        for group, _ in self._edges(frame):
            word = reference.register("slots", group.base + (psn & (group.slots - 1)))
            return (slot(self._specs[0]).unpack(word)["psn"] - psn) & PSN_MASK
        return 0

    def _excluded(self, frame: bytes) -> bool:
        """Whether a packet is from an edge that does not contribute. In a slot that is complete it counts as repeated
        where the slot says so, and as new where its bitmap is compared."""
        return any(self._narrowed.get(group.base, 0) >> edge & 1 for group, edge in self._edges(frame))

    def _goes_on(self, frame: bytes) -> bool:
        """Whether a packet is data from a node above."""
        toward = ((group.toward(group.patterns[0]), 1 << edge) for group, edge in self._edges(frame))
        return _opcode(frame) in SENDS and any(above == bit for above, bit in toward)

    def _edges(self, frame: bytes) -> Iterator[tuple[GroupContext, int]]:
        """The group and the edge of a packet; nothing if it is no group's."""
        end = _numbers(frame, _ADDRESS, _QP)
        for group in self._groups():
            yield from ((group, i) for i, edge in enumerate(group.edges) if (edge.local.ip, edge.local.qp) == end)


def _named(spec: EpicSpec) -> Iterator[tuple[str, str]]:
    return ((each.name, each.reason) for each in capabilities(spec))


def _key(entry: Entry) -> tuple[object, ...]:
    return entry.table, tuple(sorted((name, repr(match)) for name, match in entry.match.items()))


def _shift(frame: bytes) -> int:
    """How far a VLAN tag moves what follows it."""
    return VLAN.size if frame[ROCE.bytes("ethernet.ether_type")] == ETHERTYPE_VLAN.to_bytes(2) else 0


def _numbers(frame: bytes, *fields: slice) -> tuple[int, ...]:
    """Header fields of a frame, with or without a VLAN tag."""
    shift = _shift(frame)
    return tuple(int.from_bytes(frame[at.start + shift : at.stop + shift]) for at in fields)


def _opcode(frame: bytes) -> int:
    at = _OPCODE + _shift(frame)
    return frame[at] if at < len(frame) else -1


def _datagram_end(frame: bytes) -> int:
    at = _LENGTH + _shift(frame)
    return _IP + _shift(frame) + int.from_bytes(frame[at : at + 2])


def _wrong_bits(frame: bytes) -> int:
    """The bits of a frame's ICRC that are wrong."""
    return int.from_bytes(frame[-ICRC_SIZE:]) ^ int.from_bytes(icrc(frame[_IP + _shift(frame) : -ICRC_SIZE]))


def _flipped(frame: bytes, bits: int) -> bytes:
    """A frame with these bits of its ICRC flipped."""
    return frame[:-ICRC_SIZE] + (int.from_bytes(frame[-ICRC_SIZE:]) ^ bits).to_bytes(ICRC_SIZE)


def _as_asked(frame: bytes, arrived: bytes, sealed: bool) -> bytes:
    """A result without the AckReq and the mark (CE) that other contributions gave it, but with those of the packet that
    it is made of. The IPv4 checksum covers the mark, and the ICRC, if it is right (``sealed``), AckReq."""
    made, here, there = bytearray(frame), _shift(frame), _shift(arrived)
    made[_FLAGS + here] &= arrived[_FLAGS + there] | ~_ACK_REQUEST & 0xFF
    if frame[_TOS + here] & _ECN == ECN_CE:
        made[_TOS + here] = frame[_TOS + here] & ~_ECN | arrived[_TOS + there] & _ECN
    if made[_TOS + here] != frame[_TOS + here]:
        made[_CHECKSUM + here : _CHECKSUM + here + 2] = bytes(2)
        header = bytes(made[_IP + here : _IP + here + IPv4.SIZE])
        made[_CHECKSUM + here : _CHECKSUM + here + 2] = internet_checksum(header).to_bytes(2)
    if sealed and made[_FLAGS + here] != frame[_FLAGS + here]:
        made[-ICRC_SIZE:] = icrc(bytes(made[_IP + here : -ICRC_SIZE]))
    return bytes(made)
