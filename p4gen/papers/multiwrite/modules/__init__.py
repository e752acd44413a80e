"""The modules of MultiWrite's programs.

The paper replicates in software on relay nodes (section 5.1); these modules do the same in a switch, and keep what
reliable connections need: each edge of a context counts PSNs of its own, and an acknowledgement goes to the source once
all destinations that were named have acknowledged.
"""

from __future__ import annotations

from dataclasses import replace

from p4gen.arch import Feature
from p4gen.papers.multiwrite import words
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.program import common
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table

CONTEXTS = Size("contexts")
RINGS = Size("contexts", "slots")
EDGES = Size("edges")
ENDPOINTS = Size("contexts", "edges")
ENTRANCES = Size(2, "contexts", "edges")
_FOLDER = "multiwrite"


def holds(spec: MultiwriteSpec) -> bool:
    """Whether switches keep packets until their next hops have them."""
    return spec.holds


_COVERED = ("hdr.reth", "hdr.aeth", "hdr.immediate", "hdr.cnp", "hdr.payload")
"""What may follow the BTH."""

LOOKUP_TABLE = Module(
    name="LookupTable",
    folder=_FOLDER,
    gress="ingress",
    paper="section 4.1; the endpoints of reliable connections",
    purpose="whose packet it is: context and edge",
    part="lookup",
    needs=("hdr.ipv4", "hdr.bth", "hdr.aeth", "hdr.cnp", "hdr.payload"),
    provides=(
        Metadata("kind", "kind_t", "what kind of packet this is", kept=True),
        Metadata("context", "context_t", "the context: a source of a group", kept=True),
        Metadata("context_index", "bit<32>", "index of the context's words of state"),
        Metadata("edge", "edge_t", "ingress: the edge it came over; egress: the edge it leaves by", kept=True),
        Metadata("edge_bit", "edges_t", "that edge's bit"),
        Metadata("edge_index", "bit<32>", "index of that edge's words of state", wanted=holds),
        Metadata("edge_port", "bit<9>", "that edge's port", wanted=holds),
    ),
    tables=(
        Table("addresses", CONTEXTS, "IPv4 addresses of this switch's endpoints"),
        Table("endpoints", ENDPOINTS, "endpoint (IP, QP) to context and edge"),
        Table("entrances", ENTRANCES, "the ports by which an endpoint's packets come in"),
    ),
    drops=(
        Drop("unknown_qp", "no endpoint of this switch has that QP"),
        Drop("unknown_source", "the packet does not come from the endpoint's peer"),
        Drop("wrong_port", "the packet has not come in by a port of the endpoint: somebody else has sent it"),
        Drop("wrong_direction", "a write from a destination, or an answer from the source"),
    ),
)

VALIDATE_PACKET = replace(
    common.VALIDATE_PACKET,
    drops=(
        *common.VALIDATE_PACKET.drops,
        Drop("bad_opcode", "neither a write with a bitmap nor an answer to one"),
        Drop("bad_length", "not the length that this program was generated for, or padded"),
    ),
)

CHECK_ICRC = common.covering(common.CHECK_ICRC, *_COVERED)

FIND_CONTEXT = Module(
    name="FindContext",
    folder=_FOLDER,
    gress="ingress",
    paper="section 4.3: MultiWrite(S, M, B_S)",
    purpose="finds the source's state, and checks a write's key and place as its NIC would",
    part="source",
    needs=("hdr.reth", "kind", "context"),
    provides=(
        Metadata("epoch", "epoch_t", "generation of the context's state; older state counts as empty"),
        Metadata("first_psn", "psn_t", "the PSN that all its connections begin with"),
        Metadata("ring", "bit<32>", "first word of the context's rings of PSNs"),
        Metadata("ring_mask", "psn_t", "N - 1: their words, a power of two, less 1"),
        Metadata("rank", "bit<32>", "the source's rank"),
        Metadata("port", "bit<9>", "the port of the edge toward the source"),
        Metadata("source_edge", "edge_t", "that edge"),
        Metadata("first_hop", "bit<1>", "1: the source itself is at its other end"),
        Metadata("rkey", "bit<32>", "the key in its writes", wanted=holds),
        Metadata("group_number", "bit<16>", "its group, in the MWETH", wanted=lambda spec: spec.holds and spec.wide),
    ),
    tables=(Table("contexts", CONTEXTS, "context to its state, and to its source"),),
    drops=(
        Drop("not_served", "the context is not set up"),
        Drop("bad_key", "the RETH has another key than the group's"),
        Drop("bad_place", "the data would be outside the window"),
        Drop("bad_dma_length", "the RETH names another length than the packet has"),
        Drop("bad_header", "another version or group in the MWETH", wanted=lambda spec: spec.wide),
    ),
)

REACH_PORTS = Module(
    name="ReachPorts",
    folder=_FOLDER,
    gress="ingress",
    paper="section 4.1: the union of egress ports",
    purpose="finds the edges behind which the bitmap's destinations are",
    part="copies",
    needs=("hdr.immediate", "context", "first_hop"),
    provides=(
        Metadata("out_mask", "edges_t", "edges that get a copy"),
        Metadata("answers", "bit<1>", "1: the source gets an answer"),
        Metadata("syndrome", "bit<8>", "the answer's AETH syndrome", kept=True),
    ),
    tables=(Table("edge_*.reach", CONTEXTS, "context to the destinations behind an edge"),),
    drops=(
        Drop("empty_bitmap", "no destination is named"),
        Drop("unreachable", "a destination is named that no edge leads to, or the source itself"),
        Drop("hop_limit", "has passed more switches than it may", wanted=lambda spec: spec.wide),
    ),
)

CHECK_RANGE = Module(
    name="CheckRange",
    folder=_FOLDER,
    gress="ingress",
    paper="EPIC Algorithm 2, lines 27 and 31",
    purpose="knows up to which PSN all destinations have all; a context has room for N PSNs from there on",
    part="range",
    needs=(
        "hdr.bth",
        "kind",
        "context_index",
        "epoch",
        "first_psn",
        "ring_mask",
        "lowest",
        "lowest_syndrome",
        "naks",
    ),
    changes=("answers", "syndrome"),
    provides=(
        Metadata("start", "psn_t", "the first PSN that is not yet at all its destinations"),
        Metadata("ahead", "bit<1>", "1: the context has no room for the PSN yet"),
    ),
    keeps=(Register("psn_start", words.START, CONTEXTS, "the first PSN that is not at all its destinations"),),
    drops=(Drop("waits", "an answer that says nothing new for the source", loss=False),),
)

CHECK_ORDER = Module(
    name="CheckOrder",
    folder=_FOLDER,
    gress="ingress",
    paper="EPIC Algorithm 2, lines 33-35",
    purpose="whether it is this packet's turn",
    part="order",
    needs=("hdr.bth", "kind", "context_index", "epoch", "first_psn", "ahead", "start"),
    changes=("answers", "syndrome"),
    provides=(
        Metadata("expected", "psn_t", "ePSN before this packet"),
        Metadata("fresh", "bit<1>", "1: a write that comes for the first time"),
        Metadata("repeated", "bit<1>", "1: a write that some destination may lack"),
    ),
    keeps=(Register("receive", words.RECEIVE, CONTEXTS, "the PSN that each source sends next"),),
    drops=(
        Drop("duplicate", "is at all its destinations; acknowledged again"),
        Drop("gap", "ahead of its turn: something before it is missing"),
        Drop("ahead", "more than N PSNs are not acknowledged"),
    ),
)

ASSIGN_PSN = Module(
    name="AssignPsn",
    folder=_FOLDER,
    gress="ingress",
    paper="beside the paper: destinations differ from packet to packet, and an RNIC takes no gaps",
    purpose="each edge counts its own PSNs; rings tell which PSN of the source belongs to which",
    part="sending",
    needs=(
        "hdr.bth",
        "hdr.aeth",
        "kind",
        "context_index",
        "edge_bit",
        "epoch",
        "first_psn",
        "ring",
        "ring_mask",
        "out_mask",
        "fresh",
    ),
    provides=(
        Metadata("psns", "psns_t", "the PSN of the copy for each edge"),
        Metadata("sent", "edges_t", "edges that have been sent this packet of the source"),
        Metadata("acked", "psn_t", "of an answer: the PSN up to which it acknowledges"),
        Metadata("believed", "bit<1>", "of an answer: 1: all up to there has been sent"),
        Metadata("following", "psn_t", "of an answer: the source's PSN of what was sent next"),
        Metadata("more", "bit<1>", "of an answer: 1: something was"),
    ),
    keeps=(
        Register("edge_*.next", words.NEXT, CONTEXTS, "the PSN that the next copy for an edge gets", EDGES),
        Register("edge_*.seen", 24, RINGS, "the PSN of an edge by the PSN of the source", EDGES),
        Register("edge_*.sources", 24, RINGS, "the PSN of the source by the PSN of an edge", EDGES),
    ),
)

COMBINE_ACKS = Module(
    name="CombineAcks",
    folder=_FOLDER,
    gress="ingress",
    paper="EPIC section 4.3 (ackPsn, nodeAckPsn), for destinations that differ from packet to packet",
    purpose="what all destinations have acknowledged that each packet named",
    part="progress",
    needs=(
        "hdr.bth",
        "hdr.aeth",
        "kind",
        "context_index",
        "edge_bit",
        "epoch",
        "first_psn",
        "expected",
        "fresh",
        "repeated",
        "psns",
        "sent",
        "acked",
        "believed",
        "following",
        "more",
    ),
    changes=("out_mask", "answers", "syndrome"),
    provides=(
        Metadata("lowest", "psn_t", "the least PSN of the source that an edge waits for"),
        Metadata("lowest_syndrome", "bit<8>", "what such an edge has said last, if that is a NAK"),
        Metadata("naks", "bit<1>", "1: this answer is a NAK of an edge that waits for it"),
    ),
    keeps=(Register("edge_*.acked", words.acked, CONTEXTS, "how far an edge has acknowledged", EDGES),),
    drops=(Drop("nobody_lacks", "a repetition of what its destinations have; acknowledged again", loss=False),),
)

REPLICATE_DATA = Module(
    name="ReplicateData",
    folder=_FOLDER,
    gress="ingress",
    paper="section 4.1: one copy a port",
    purpose="one copy for each next hop",
    needs=("out_mask",),
    uses=(Feature.MULTICAST,),
)

RELAY_NOTIFICATION = Module(
    name="RelayNotification",
    folder=_FOLDER,
    gress="ingress",
    paper="beside the paper: DCQCN",
    purpose="a destination's congestion notification goes to the source",
    needs=("port", "source_edge"),
    changes=("edge",),
)

SEND_ACK = Module(
    name="SendAck",
    folder=_FOLDER,
    gress="ingress",
    paper="EPIC Algorithm 2, line 35",
    purpose="the packet itself becomes the source's answer",
    part="answer",
    needs=("first_psn", "port", "source_edge", "syndrome", "start"),
    changes=("edge",),
    provides=(
        Metadata("turns", "bit<1>", "1: it becomes the answer"),
        Metadata("answer_psn", "psn_t", "the answer's PSN", kept=True),
        Metadata("msn", "bit<24>", "the answer's MSN: each packet is a message", kept=True),
    ),
)

ANSWER_ARP = replace(common.ANSWER_ARP, paper="beside the paper: RFC 826")
FORWARD = replace(common.FORWARD, paper="section 4.1: unicast")

PRUNE_PORT = Module(
    name="PrunePort",
    folder=_FOLDER,
    gress="egress",
    paper="section 4.1",
    purpose="drops copies for edges that the bitmap does not name",
    needs=("edge", "out_mask"),
    drops=(Drop("not_named", "a copy for an edge behind which no destination is", loss=False),),
    wanted=lambda spec: spec.prunes,
)

NUMBER_COPY = Module(
    name="NumberCopy",
    folder=_FOLDER,
    gress="egress",
    paper="beside the paper: see AssignPsn",
    purpose="a copy gets the PSN of its edge, and asks for an acknowledgement",
    needs=("edge", "psns"),
    changes=("hdr.bth",),
)

REWRITE_BITMAP = Module(
    name="RewriteBitmap",
    folder=_FOLDER,
    gress="egress",
    paper="section 4.1: each copy has the destinations behind its port",
    purpose="cuts the bitmap down to what is behind the edge",
    needs=("context", "edge"),
    changes=("hdr.immediate",),
    tables=(Table("subtrees", ENDPOINTS, "(context, edge) that lead to a switch: the destinations behind it"),),
)

PLACE_WRITE = Module(
    name="PlaceWrite",
    folder=_FOLDER,
    gress="egress",
    paper="section 4.3: the buffers B_i",
    purpose="at the last hop it becomes a plain WRITE into the destination's window",
    needs=("context", "edge", "rank"),
    changes=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.reth", "hdr.immediate"),
    tables=(Table("windows", ENDPOINTS, "(context, edge) that lead to a destination: its window"),),
)

MAKE_ACK = Module(
    name="MakeAck",
    folder=_FOLDER,
    gress="egress",
    paper="EPIC Algorithm 3, lines 4-7",
    purpose="the answer itself",
    needs=("hdr.ipv4", "hdr.udp", "answer_psn", "syndrome", "msn"),
    changes=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.reth", "hdr.aeth", "hdr.immediate", "hdr.payload"),
)

TRANSLATE_HEADER = Module(
    name="TranslateHeader",
    folder=_FOLDER,
    gress="egress",
    paper="EPIC Algorithm 1, line 26",
    purpose="addresses each packet to the endpoint at the other end of its edge",
    needs=("context", "edge"),
    changes=("hdr.ethernet", "hdr.ipv4", "hdr.udp", "hdr.bth"),
    tables=(Table("edges", ENDPOINTS, "(context, edge) to the addresses and QPs of its two endpoints"),),
    drops=(Drop("unknown_edge", "a copy was made for an edge that has no addresses"),),
)

SET_ICRC = common.covering(common.SET_ICRC, *_COVERED)

ALL = (
    LOOKUP_TABLE,
    VALIDATE_PACKET,
    CHECK_ICRC,
    FIND_CONTEXT,
    REACH_PORTS,
    CHECK_RANGE,
    CHECK_ORDER,
    ASSIGN_PSN,
    COMBINE_ACKS,
    REPLICATE_DATA,
    RELAY_NOTIFICATION,
    SEND_ACK,
    ANSWER_ARP,
    FORWARD,
    MAKE_ACK,
    PRUNE_PORT,
    NUMBER_COPY,
    REWRITE_BITMAP,
    PLACE_WRITE,
    TRANSLATE_HEADER,
    SET_ICRC,
)
"""Those of a program where the source repairs losses, in the order in which a packet meets them."""
