"""Mode III for architectures whose registers have few actions, an experiment: static groups, connections hop by hop.

PSNs count from a group's first one and stand in the upper bits of words of 32 bits, each beside the group's epoch: so a
word of another epoch counts as 0, and one comparison with 0 tells which of two PSNs comes first. A packet meets
registers in the order lastAcked and psnStart, ePSN, NAK sent and MSN, slots, payload and opcodes, maxPsnSent, timers.
``capabilities.CAPABILITIES_III`` says what such programs lack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from p4gen.layout import Field, Header, HeaderField, Word
from p4gen.papers.epic import words
from p4gen.papers.epic.spec import NARROW_FAN_IN, Congestion, EpicSpec
from p4gen.papers.epic.tofino.limits import common_problems
from p4gen.rocev2.layouts import PSN_BITS

KINDS: Final = 9
"""Entries of ``flows`` for an edge: data, two announcements, answers in three passes, ticks, cursors, notifications."""
BURST: Final = 64
"""The most packets that one NAK or tick triggers."""
GIVEN_UP_BITS: Final = 19
"""After 2^19 ticks (10.5 s, if there is one every 20 us) nothing is sent again."""
KEPT: Final = 69
"""Bytes of an answer's copy: the bridge, and Ethernet with a tag, IPv4, UDP, BTH."""


def problems(spec: EpicSpec) -> Iterator[str]:
    """Why the program of a spec cannot be of this form, a sentence each."""
    arch = spec.architecture
    if spec.needs_order:
        yield (
            f"{spec.arch}: mode III compares serial numbers beside epochs in one access, three comparisons; a stateful "
            f'ALU of this chip has {arch.comparisons}. EPIC\'s authors: "we cannot implement Mode-I/III in Tofino". '
            "Use --arch t2na, where it is an experiment"
        )
        return
    if not spec.loss_recovery.in_order:
        how = spec.loss_recovery
        yield f"{spec.arch}: reliability {how} shifts words of 128 bits, which no stateful ALU does: use gbn"
    if spec.icrc.right:
        yield f"{spec.arch}: icrc {spec.icrc} needs a CRC over the payload, in passes of their own: use ignore"
    if spec.congestion is Congestion.CNP:
        yield f"{spec.arch}: congestion cnp needs a second mirrored copy beside an answer's: use none"
    if spec.fan_in > NARROW_FAN_IN:
        yield (
            f"{spec.arch}: fan_in {spec.fan_in} needs the minimum of {spec.fan_in} registers in a pass; "
            f"at most {NARROW_FAN_IN}: use --fan-in {NARROW_FAN_IN}"
        )
    if spec.architecture.front_ports(spec.ports)[-1] >= 1 << 7:
        yield f"{spec.arch}: {spec.ports} ports are of several pipes; mode III recirculates in pipe 0: use --ports 62"
    yield from common_problems(spec)


def cursor_session(spec: EpicSpec) -> int:
    """The mirror session of cursors: that of the port by which packets recirculate."""
    return spec.architecture.port_session(spec.architecture.recirculation_port)


def passes() -> Mapping[str, int]:
    """How many times a packet goes through the chip at most, by the program's ``kind_t``."""
    once = dict.fromkeys(("ORDINARY", "DATA", "CONTROL"), 1)
    return once | {
        "ANSWER": 3 + BURST,
        "NOTIFICATION": 1,
        "MALFORMED": 1,
        "TICK": 1 + BURST,
        "CURSOR": BURST,
        "CHECKED": 2 + BURST,
        "COUNTED": 1 + BURST,
    }


_EPOCH: Final = Field("epoch", 32, "epoch")
_ZEROS: Final = Field("zeros", 8, "zeros")
PROGRESS: Final = Word(Field("psn", PSN_BITS, "PSNs since the group's first"), _ZEROS, _EPOCH)
"""A PSN that marks progress."""
COUNT: Final = Word(Field("msn", 32, "MSN"), _EPOCH)
TIMER: Final = Word(
    Field("acked", PSN_BITS, "PSNs that are acknowledged"), words.EPOCH, Field("ticks", 32, "ticks since")
)
SLOT: Final = Word(
    Field("psn", PSN_BITS, "PSN"),
    words.EPOCH,
    Field("ack_request", 1, "AckReq"),
    Field("zeros", 23, "zeros"),
    Field("bitmap", 8, "bitmap"),
)
BRIDGE: Final = Header(
    "bridge",
    "What ingress tells egress, in front of the packet or of its mirrored copy; it never leaves the switch",
    (
        HeaderField("edge", 16, "the edge it came over", type="edge_t"),
        HeaderField("form", 8, "what it is", type="form_t"),
        HeaderField("copy_psn", PSN_BITS, "the PSN of an answer, or a cursor's next one", type="psn_t"),
        HeaderField("syndrome", 8, "an answer's AETH syndrome"),
        HeaderField("msn", 32, "its MSN", type="int<32>"),
    ),
    noted=True,
)
REST: Final = Header(
    "rest",
    "What the session keeps of an answer's copy behind its headers, if it has no tag",
    (HeaderField("unused", 32, "not used"),),
)
MIRRORED: Final = {
    "when": "MIRRORED",
    "header": "bridge_t",
    "session": "meta.answer.copy_session",
    "fields": (
        "meta.lookup.edge",
        "meta.answer.copy_form",
        "meta.answer.copy_psn",
        "meta.order.syndrome",
        "meta.order.msn",
    ),
}
"""What the template ``arch/tna/deparser`` asks for."""


def layouts() -> dict[str, Word]:
    """The layouts of all words, by the last part of their registers' names."""
    progress = dict.fromkeys(("acked", "expected", "psn_start", "sent"), PROGRESS)
    return progress | {"completed": COUNT, "slots": SLOT, "timers": TIMER}
