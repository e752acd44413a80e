"""The headers of EPIC's programs, outermost first: those of RoCEv2, and the payload of lanes."""

from __future__ import annotations

from dataclasses import replace

from p4gen.layout import Datagram, Header, HeaderField
from p4gen.papers.epic.codes import OwnOpcode
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino import bridge, static
from p4gen.papers.epic.tofino import iii as static_iii
from p4gen.papers.epic.tofino.folding import chunks, fold, folded
from p4gen.rocev2 import layouts as roce
from p4gen.rocev2.opcodes import Opcode
from p4gen.vocabulary.formats import LANE
from p4gen.vocabulary.message import message_of


def immediate(spec: EpicSpec) -> Header:
    """The immediate data of control messages."""
    layout = message_of(spec.roots)
    return replace(
        roce.IMMEDIATE,
        meaning="Immediate data (InfiniBand 9.3.6): what a control message announces (EPIC 3.3.2)",
        fields=(HeaderField("value", layout.bits, "what is announced", layout),),
    )


def payload(spec: EpicSpec) -> Header:
    """The payload of data packets."""
    element, one = "an element", "One element"
    if spec.elements > spec.lanes:
        element, one = "two elements, the first in the high half", "Two elements"
    return Header(
        "payload",
        f"{one} for each lane" + (", of the part that a pass works on" if folded(spec) else ""),
        (HeaderField("lane", spec.lane_bits, element, type=LANE),),
        count=spec.pass_lanes,
    )


def headers(spec: EpicSpec) -> tuple[Header, ...]:
    """Headers of a program, in the order in which packets have them."""
    hop_by_hop = static(spec) and spec.mode.augmented
    return (
        *((static_iii.BRIDGE if hop_by_hop else bridge(spec),) if static(spec) else ()),
        *((fold(spec),) if folded(spec) else ()),
        roce.ETHERNET,
        roce.VLAN,
        roce.ARP,
        roce.IPV4,
        roce.UDP,
        roce.BTH,
        *((roce.RETH,) if spec.uses_memory else ()),
        roce.AETH,
        immediate(spec),
        roce.CNP,
        payload(spec),
        *chunks(spec),
        roce.ICRC,
        *((static_iii.REST,) if hop_by_hop else ()),
    )


def datagrams(spec: EpicSpec) -> tuple[Datagram, ...]:
    """What ranks and switches send each other."""
    sends = (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY)
    answers = Datagram("ACK", "an answer", (roce.AETH,), (Opcode.ACKNOWLEDGE,))
    internal = {
        OwnOpcode.TICK: "time for an edge to look whether it makes progress",
        OwnOpcode.CHECKED: "an answer in its second pass",
        OwnOpcode.COUNTED: "an answer in its third pass",
        OwnOpcode.CURSOR: "sends slots again; never leaves the switch",
    }
    own = [code for code in internal if static(spec) or code not in (OwnOpcode.CHECKED, OwnOpcode.COUNTED)]
    return (
        *(_placed(spec) if spec.uses_memory else ()),
        Datagram("DATA", "a packet of a contribution or of a result", (_whole(spec),), sends),
        Datagram("CONTROL", "a control message: which collective comes", (immediate(spec),), (Opcode.SEND_ONLY_IMM,)),
        Datagram("CNP", "a congestion notification", (roce.CNP,), (Opcode.CNP,)),
        answers,
        *(
            replace(answers, meaning=internal[code], opcodes=(code,), inner=code is not OwnOpcode.TICK)
            for code in (own if spec.mode.augmented else ())
        ),
    )


def _placed(spec: EpicSpec) -> tuple[Datagram, ...]:
    """Results as ranks get them, by WRITE."""
    reth, last, data = roce.RETH, immediate(spec), _whole(spec)
    made = (
        ("ONLY", "a result that is a message", (reth, last, data), Opcode.WRITE_ONLY_IMM),
        ("FIRST", "the first packet of a message of results", (reth, data), Opcode.WRITE_FIRST),
        ("LAST", "the last one", (last, data), Opcode.WRITE_LAST_IMM),
        ("DATA", "one between them", (data,), Opcode.WRITE_MIDDLE),
    )
    return tuple(Datagram(name, what, body, (opcode,), made=True) for name, what, body, opcode in made)


def _whole(spec: EpicSpec) -> Header:
    """The payload as it is on a link, whatever a pass works on."""
    return replace(payload(spec), count=spec.lanes)
