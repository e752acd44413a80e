"""What programs of static groups (``static``) lack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p4gen.papers.epic.spec import NARROW_FAN_IN, EpicSpec
from p4gen.papers.epic.tofino import folding, tells_stale


@dataclass(frozen=True)
class Capability:
    """What a program lacks, and why."""

    name: str
    reason: str


CAPABILITIES: Final = (
    Capability("announcements", "groups are static: three announcements a context are 192 bits; a word has 64"),
    Capability("patterns", "a group runs one pattern, as nothing remembers which of several was announced"),
    Capability("mixed_opcode", "a slot's PSN, epoch and bitmap fill its words, so the operation is not kept in it"),
    Capability("early", "whether a slot is complete is known behind its access, which has started it afresh by then"),
    Capability(
        "ack_request",
        "a slot's PSN, epoch and bitmap fill its words: a result has the AckReq and the mark of its last packet",
    ),
    Capability("padding", "ingress does not know a frame's length, so bytes behind a datagram are not noticed"),
    Capability("overflows", "the sum is the one result of a lane's stateful ALU, so saturated packets are not counted"),
    Capability("dynamic", "op dynamic needs 8 actions a lane: six reductions, write and recall; a register has 4"),
    Capability("floats", "a stateful ALU has no elements of floating point; it has integers of 8, 16 and 32 bits"),
    Capability(
        "pipelines", "partial results of pipelines are recirculated and merged; each pipe works for itself here"
    ),
    Capability("in_order", "reliability gbn compares PSNs of 24 bits with a sum, in one access; an ALU has none of 24"),
)
"""What all static programs lack."""
BROADCAST: Final = Capability("broadcast", "answers to it need a register for each edge: use --serves all")
"""What programs with ``serves reductions`` lack as well."""
BROADCASTING: Final = (
    Capability(
        "acknowledged",
        "an access compares twice: an ACK takes the place of a NAK of the next PSN, and what was acknowledged half the "
        "number space ago counts as ahead",
    ),
    Capability(
        "truncated", "the parser looks ahead for a syndrome: a frame that ends behind its BTH is ordinary traffic"
    ),
)
"""What programs with ``serves all`` lack."""
ICRC: Final = Capability("icrc", "it is neither checked nor set: the NICs must ignore it")
"""What programs with ``icrc ignore`` lack as well."""
FOLDED: Final = (
    Capability("truncated", "each pipe parses its own part of a payload: it takes a frame that ends in a later part"),
    Capability("apart", "a slot is the same in all pipes, so that groups in different pipes need different slots"),
)
"""What programs lack that fold a payload."""
SEALED: Final = Capability(
    "resealed",
    "no pass sees all of a payload that goes on as it came: a wrong ICRC stays wrong as its headers change",
)
"""What programs lack that fold a payload and set ICRCs."""
FIFO: Final = Capability("stale", "an ALU has two comparisons and one result; links must keep the order of packets")
"""What programs without ``tells_stale`` lack as well."""
HALF: Final = Capability("half", "PSNs 2^23 apart differ by a number without an opposite: the packet's counts as newer")
"""What the others lack."""

_LIKE_II: Final = (
    "announcements",
    "patterns",
    "mixed_opcode",
    "padding",
    "overflows",
    "dynamic",
    "floats",
    "pipelines",
    "icrc",
)
CAPABILITIES_III: Final = (
    *(each for each in (*CAPABILITIES, ICRC) if each.name in _LIKE_II),
    Capability("selective", "reliability sr and sack keep 128 PSNs an edge in a word; a stateful ALU cannot shift one"),
    Capability("notifications", "a packet has one mirrored copy, which is its answer; slots do not keep marks"),
    Capability(
        "timers",
        "a timer only counts ticks: neither RNR NAKs nor old ACKs make it wait, it learns no round trips, and counts "
        "no edge given up",
    ),
    Capability("left_over", "a slot that holds the present PSN and epoch since 255 epochs ago is not told apart"),
    Capability("learned_tags", "what a tick has sent again has no VLAN tag: tags of edges are not kept"),
    Capability("generator", "ticks come by the port of the CPU, not from the packet generator"),
    Capability("fan_in", f"a pass takes the minimum of a register for each edge: groups have at most {NARROW_FAN_IN}"),
)
"""What programs of Mode III lack (``static_iii``)."""


def capabilities(spec: EpicSpec) -> tuple[Capability, ...]:
    """Capabilities of the suite that a program does not have, with reasons."""
    if spec.mode.augmented:
        return CAPABILITIES_III
    found = (*CAPABILITIES, *(() if spec.icrc.right else (ICRC,)), HALF if tells_stale(spec) else FIFO)
    found = (*found, *(BROADCASTING if spec.broadcasts else (BROADCAST,)))
    folded = () if not folding.folded(spec) else FOLDED[1:] if spec.broadcasts else FOLDED
    return (*found, *folded, *((SEALED,) if folding.chunks(spec) else ()))


def lack(spec: EpicSpec, name: str) -> str:
    """That a program lacks the capability of this name, as a sentence, and why."""
    (found,) = (each for each in capabilities(spec) if each.name == name)
    return f"{spec.arch} programs lack {name}: {found.reason}"
