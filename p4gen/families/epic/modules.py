"""The IncEngine modules. Names are EPIC's (section 4.1) if EPIC has the module.

In addition to EPIC's: ValidatePacket and CheckIcrc keep corrupt packets from getting a recomputed, valid checksum,
SetIcrc makes its output acceptable to commodity NICs. TrackInvocation and ClassifyTraffic are the part of LookupTable
that depends on the collective; StartCursor, Retransmission and AdvanceCursor are EPIC's Retransmission, CheckOrder,
SendAck and MakeAck its SendAck, one for each stage of a pipeline.
"""

from __future__ import annotations

from p4gen.arch import Feature
from p4gen.families.epic import words
from p4gen.families.epic.spec import EpicSpec, Variant
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table
from p4gen.spec import Op

_SLOTS = Size("pipelines", "bank_slots")
_CONTEXTS = Size("pipelines", "bank_contexts")
_EDGES = Size("pipelines", "bank_edges")
_ENDPOINTS = Size("groups", "fan_in")


def _icrc(spec: EpicSpec) -> bool:
    return spec.icrc.checked


def _translated(spec: EpicSpec) -> bool:
    return not spec.mode.augmented


def _augmented(spec: EpicSpec) -> bool:
    return spec.mode.augmented


def _keeps_edges(spec: EpicSpec) -> bool:
    return _augmented(spec) or spec.loss_recovery.in_order


def _dynamic(spec: EpicSpec) -> bool:
    return spec.op is Op.DYNAMIC


def _notifies(spec: EpicSpec) -> bool:
    return spec.notifies


def _looked_up(spec: EpicSpec) -> tuple[Feature, ...]:
    """Cursors and packets from other pipelines arrive by recirculation."""
    if spec.mode.augmented:
        return Feature.TICKS, Feature.RECIRCULATION
    return (Feature.RECIRCULATION,) if spec.pipelines > 1 else ()


LOOKUP_TABLE = Module(
    name="LookupTable",
    folder="epic",
    gress="ingress",
    paper="Algorithm 1, line 16; Algorithm 2, line 21",
    purpose="whose packet it is: context and edge",
    part="lookup",
    needs=("hdr.ipv4", "hdr.bth", "hdr.aeth", "hdr.immediate", "hdr.cnp", "hdr.payload"),
    provides=(
        Metadata("kind", "kind_t", "what kind of packet this is", kept=True),
        Metadata("context", "context_t", "the group's context"),
        Metadata("edge", "edge_t", "ingress: the edge it came over; egress: the edge it leaves by", kept=True),
        Metadata("context_index", "bit<32>", "index of the context's words of state"),
        Metadata("edge_index", "bit<32>", "index of the edge's words of state", wanted=_keeps_edges),
        Metadata("edge_bit", "bitmap_t", "that edge's bit in the context's bitmaps"),
        Metadata("port", "bit<9>", "that edge's port", wanted=_augmented),
        Metadata("first_hop", "bit<1>", "1: a rank is at the other end of it", wanted=_augmented),
        Metadata(
            "pipeline",
            "pipeline_t",
            "the pipeline that it is in, or, in egress, goes to",
            kept=True,
            wanted=lambda spec: spec.pipelines > 1,
        ),
    ),
    tables=(
        Table("addresses", Size("groups"), "addresses that the IncEngine answers to"),
        Table("endpoints", _ENDPOINTS, "endpoint (IP, QP) to context and edge"),
    ),
    drops=(
        Drop("unknown_qp", "no endpoint of this switch has that QP"),
        Drop("unknown_source", "the packet does not come from the endpoint's peer"),
    ),
    uses=_looked_up,
)

VALIDATE_PACKET = Module(
    name="ValidatePacket",
    folder="epic",
    gress="ingress",
    paper="beside EPIC: InfiniBand 1.2.1, 9.6 (header validation)",
    purpose="a packet that a NIC would refuse must not reach any state",
    needs=("hdr.vlan", "hdr.ipv4", "hdr.udp", "hdr.bth", "kind"),
    drops=(
        Drop("truncated", "the frame ends before its headers say it does"),
        Drop("bad_ip_checksum", "the IPv4 header checksum is wrong"),
        Drop("bad_version", "the BTH version is not 0"),
        Drop("bad_pkey", "the P_Key is not the default partition's"),
        Drop("bad_opcode", "neither RC SEND nor an answer to one"),
        Drop("bad_length", "not the length that this program was generated for, or padded"),
    ),
)

CHECK_ICRC = Module(
    name="CheckIcrc",
    gress="ingress",
    paper="beside EPIC: RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="a wrong invariant CRC must not be replaced by a right one",
    needs=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth", "hdr.immediate", "hdr.cnp", "hdr.payload", "hdr.icrc"),
    drops=(Drop("bad_icrc", "the invariant CRC is wrong"),),
    wanted=_icrc,
    uses=(Feature.PACKET_CRC,),
)

LEARN_TAG = Module(
    name="LearnTag",
    folder="epic",
    gress="ingress",
    paper="beside EPIC: IEEE 802.1Q",
    purpose="the VLAN tag of an edge, for what ticks have sent again",
    needs=("hdr.vlan", "kind", "edge_index"),
    changes=("hdr.ethernet", "hdr.vlan"),
    keeps=(Register("tags", words.TAG, _EDGES, "the VLAN tag of each edge"),),
)

FIND_CONTEXT = Module(
    name="FindContext",
    folder="epic",
    gress="ingress",
    paper="section 3.3.2",
    purpose="the group's state; what a control message says of itself",
    part="invocation",
    needs=("hdr.immediate", "kind", "context"),
    provides=(
        Metadata("epoch", "epoch_t", "generation of the context's state; older state counts as empty"),
        Metadata("first_psn", "psn_t", "the PSN that all its flows begin with", wanted=_augmented),
        Metadata("announced", "bit<32>", "what a control message announces; in Mode III 0 for data"),
        Metadata("code", "bit<8>", "collective and root"),
        Metadata("numbers", "numbers_t", "op and dtype", wanted=_dynamic),
    ),
    tables=(Table("contexts", Size("groups"), "context to the generation of its state"),),
    drops=(
        Drop("not_served", "the context is not set up"),
        Drop("unsupported", "announces an op or dtype that the program does not have"),
    ),
)

TRACK_INVOCATION = Module(
    name="TrackInvocation",
    folder="epic",
    gress="ingress",
    paper="section 3.3.2; Context's invocation states (Algorithm 1, line 14)",
    purpose="which collective a PSN belongs to, by what was announced",
    part="invocation",
    needs=("hdr.bth", "kind", "context_index", "epoch", "announced"),
    changes=("code", "answers", "answer_psn", "syndrome", "numbers"),
    provides=(
        Metadata("start", "psn_t", "the PSN of its control message; behind its own if unknown", wanted=_augmented),
        Metadata("end", "psn_t", "the last PSN of its announcement; its own if unknown", wanted=_augmented),
        Metadata("last_announced", "psn_t", "the last PSN of all announcements", wanted=_translated),
        Metadata("begins", "bit<1>", "1: a control message that announces something new", wanted=_translated),
    ),
    keeps=(
        Register("newest.announcement", words.ANNOUNCEMENT, _CONTEXTS, "each context's last announcement"),
        Register("previous.announcement", words.ANNOUNCEMENT, _CONTEXTS, "the one before"),
        Register("oldest.announcement", words.ANNOUNCEMENT, _CONTEXTS, "the one before that"),
    ),
    drops=(
        Drop("not_announced", "no announcement covers its PSN", wanted=_translated),
        Drop("mixed_control", "announces another collective than the edges before it did"),
    ),
)

CLASSIFY_TRAFFIC = Module(
    name="ClassifyTraffic",
    folder="epic",
    gress="ingress",
    paper="Algorithm 1, line 16; Algorithm 2, line 21: class, fanin, outs",
    purpose="what the collective wants done with it",
    part="flow",
    needs=("hdr.bth", "kind", "context", "edge_bit", "code"),
    may_need=("pipeline",),
    provides=(
        Metadata("pattern", "bit<8>", "collective and root, as the control plane numbers them"),
        Metadata("traffic", "traffic_t", "the paper's class"),
        Metadata("task", "task_t", "what becomes of it", wanted=_translated),
        Metadata("slot", "slot_t", "index of the slot that its PSN maps to"),
        Metadata("slot_mask", "slot_t", "N - 1", wanted=_augmented),
        Metadata("source_mask", "bitmap_t", "edges whose contributions make a result"),
        Metadata("out_mask", "bitmap_t", "edges that answers are awaited from"),
        Metadata("out_group", "bit<16>", "multicast group of the edges that it, or the result, goes to"),
        Metadata("alone", "bit<1>", "1: a repetition is answered to its sender alone", wanted=_translated),
        Metadata("takes_slot", "bit<1>", "1: passed on, and takes its slot all the same", wanted=_translated),
        Metadata("pipe", "bit<1>", "EPIC's pipe: 0 aggregation, 1 broadcast", wanted=_augmented),
        Metadata("sync", "bit<1>", "1: nothing flows the other way (Reduce, Broadcast)", wanted=_augmented),
        Metadata(
            "at_root",
            "bit<1>",
            "1: at the root of an AllReduce",
            wanted=lambda spec: spec.variant is Variant.ROOT_COPIES,
        ),
    ),
    tables=(
        Table("patterns", Size("groups", 67), "(context, collective and root) to the edge toward the root"),
        Table("flows", Size("groups", 132), "(context, pattern, class) to slots, sources and output edges"),
    ),
    drops=(
        Drop("no_pattern", "the group does not run this collective, or none is announced"),
        Drop("no_flow", "in this collective, no such packet is expected over this edge"),
    ),
)

FILTER_ORDER = Module(
    name="FilterOrder",
    folder="epic",
    gress="ingress",
    paper="section C: an ePSN in the switch's endpoint state",
    purpose="what hosts that go back N send ahead of its turn need not touch the buffer",
    needs=("hdr.bth", "kind", "edge_index", "epoch", "last_announced"),
    keeps=(Register("expected", words.EXPECTED, _EDGES, "the PSN whose turn it is, of each edge"),),
    drops=(Drop("out_of_order", "ahead of its turn: it will be sent again"),),
    wanted=lambda spec: spec.loss_recovery.in_order,
)

CHECK_RANGE = Module(
    name="CheckRange",
    folder="epic",
    gress="ingress",
    paper="Algorithm 2, lines 6, 26-28 and 31: the pipe's psnStart",
    purpose="a pipe takes PSNs that it has a slot for, and no others",
    part="range",
    needs=(
        "hdr.bth",
        "kind",
        "context_index",
        "epoch",
        "first_psn",
        "end",
        "slot_mask",
        "source_mask",
        "out_mask",
        "pipe",
        "sync",
        "acked",
    ),
    may_need=("at_root",),
    provides=(Metadata("ahead", "bit<1>", "its pipe has no slot for the PSN yet"),),
    keeps=(
        Register("aggregation.psn_start", words.PROGRESS, _CONTEXTS, "psnStart of each context's aggregation pipe"),
        Register("broadcast.psn_start", words.PROGRESS, _CONTEXTS, "the same of its broadcast pipe"),
    ),
)

CHECK_ORDER = Module(
    name="CheckOrder",
    folder="epic",
    gress="ingress",
    paper="Algorithm 2, lines 12 and 33-35; section H.4: arrived, epsn, nak_sent",
    purpose="whether it is this packet's turn, and what its sender is told",
    part="order",
    needs=(
        "hdr.bth",
        "hdr.immediate",
        "kind",
        "edge_index",
        "first_hop",
        "epoch",
        "first_psn",
        "ahead",
        "now_acked",
        "passes",
    ),
    may_need=("numbers",),
    changes=("numbers",),
    provides=(
        Metadata("accepted", "bit<1>", "1: goes into its slot"),
        Metadata("answers", "bit<1>", "1: its sender gets an answer", kept=True),
        Metadata("answer_psn", "psn_t", "the answer's PSN", kept=True),
        Metadata("syndrome", "bit<8>", "the answer's AETH syndrome", kept=True),
        Metadata("msn", "bit<24>", "the answer's MSN; in a selective NAK how many packets it asks for", kept=True),
        Metadata("whole", "bit<1>", "1: nothing is missing", wanted=words.selective),
        Metadata("notifies", "bit<1>", "1: its sender gets a congestion notification", kept=True, wanted=_notifies),
    ),
    keeps=(Register("receive", words.receive, _EDGES, "what has arrived over each edge, and what has been announced"),),
    drops=(
        Drop("duplicate", "has arrived before; acknowledged again"),
        Drop("gap", "ahead of its turn: something before it is missing"),
        Drop("not_announced", "no announcement covers its PSN"),
        Drop("ahead", "beyond the pipe's range: its sender runs ahead of the others"),
    ),
)

TRACK_SENT = Module(
    name="TrackSent",
    folder="epic",
    gress="ingress",
    paper="Algorithm 2, line 15: maxPsnSent; InfiniBand 9.7.5.1.1",
    purpose="an answer to what was never sent must not be believed",
    needs=("hdr.bth", "kind", "context_index", "epoch", "first_psn", "slot_mask", "pipe"),
    keeps=(
        Register("aggregation.sent", words.PROGRESS, _CONTEXTS, "maxPsnSent of each context's aggregation pipe"),
        Register("broadcast.sent", words.PROGRESS, _CONTEXTS, "the same of its broadcast pipe"),
    ),
    drops=(Drop("never_sent", "answers a PSN that was never sent, or sent too long ago to matter"),),
)

RECEIVE_ACK = Module(
    name="ReceiveAck",
    folder="epic",
    gress="ingress",
    paper="Algorithm 2, lines 14, 24 and 27; Algorithm 3, lines 1-3",
    purpose="how far each edge has acknowledged what it was sent",
    part="progress",
    needs=(
        "hdr.bth",
        "hdr.aeth",
        "kind",
        "context_index",
        "edge_bit",
        "epoch",
        "first_psn",
        "start",
        "out_mask",
        "sync",
    ),
    provides=(
        Metadata("acked", "psn_t", "the least lastAcked of a pipe's output edges; of a tick, that of its edge"),
        Metadata("now_acked", "psn_t", "up to which this answer says that a flow that stands still is through"),
        Metadata("passes", "bit<1>", "1: this answer says so"),
    ),
    keeps=(
        Register("edge_*.acked", words.PROGRESS, _CONTEXTS, "lastAcked of one edge of each context", Size("fan_in")),
    ),
)

RESEND_TIMER = Module(
    name="ResendTimer",
    folder="epic",
    gress="ingress",
    paper="Algorithm 2, line 14; Algorithm 3, lines 3 and 14: resend",
    purpose="when an edge that acknowledges nothing is sent it again, and when it is given up",
    part="progress",
    needs=("hdr.bth", "hdr.aeth", "kind", "edge_index", "epoch", "acked", "complete"),
    provides=(Metadata("stalled", "bit<1>", "1: a tick that sends again what is outstanding"),),
    keeps=(Register("timers", words.TIMER, _EDGES, "the timer of what each edge has not acknowledged"),),
)

NOTIFY_CONGESTION = Module(
    name="NotifyCongestion",
    folder="epic",
    gress="ingress",
    paper="section 4.4, congestion control; DCQCN's notification point",
    purpose="a rank whose packets arrive marked, or beyond the range, is to slow down",
    part="order",
    needs=("hdr.ipv4", "kind", "edge_index", "first_hop", "notifies"),
    changes=("notifies",),
    keeps=(Register("notified", 1, _EDGES, "whether an edge has been sent a CNP since its last tick"),),
    wanted=_notifies,
)

COUNT_MESSAGES = Module(
    name="CountMessages",
    folder="epic",
    gress="ingress",
    paper="beside EPIC: InfiniBand 9.7.7.2 (message sequence number)",
    purpose="how many messages an edge has sent whole",
    part="order",
    needs=("hdr.bth", "edge_index", "epoch", "accepted"),
    may_need=("syndrome", "whole"),
    changes=("msn",),
    keeps=(Register("completed", words.completed, _EDGES, "the MSN of what each edge is answered with"),),
)

START_CURSOR = Module(
    name="StartCursor",
    folder="epic",
    gress="ingress",
    paper="Algorithm 3, lines 8 and 9",
    purpose="a NAK, or a tick without progress, sets a retransmission going",
    part="path",
    needs=("hdr.bth", "hdr.aeth", "kind", "port", "acked", "stalled"),
    changes=("hdr.bth", "hdr.aeth"),
    provides=(Metadata("goes_round", "bit<1>", "1: recirculates"),),
    drops=(Drop("not_needed", "not a loss: an answer or a tick that has done its work", loss=False),),
)

RELAY_NOTIFICATION = Module(
    name="RelayNotification",
    folder="epic",
    gress="ingress",
    paper="section 4.4, congestion control",
    purpose="congestion notifications reach those who send",
    needs=("port", "out_group"),
    uses=(Feature.MULTICAST,),
)

CHECK_DUPLICATE = Module(
    name="CheckDuplicate",
    folder="epic",
    gress="ingress",
    paper="Algorithm 1, lines 20 and 28-30; Algorithm 2, line 33",
    purpose="each edge contributes to a slot once",
    part="buffer",
    needs=("hdr.ipv4", "hdr.bth", "edge_bit", "epoch", "slot", "source_mask"),
    may_need=("kind", "announced", "last_announced"),
    changes=("hdr.ipv4", "hdr.bth", "announced", "answers", "answer_psn", "syndrome"),
    provides=(Metadata("complete", "bit<1>", "1: every source has contributed to the slot"),),
    keeps=(Register("slots", words.slot, _SLOTS, "what each slot serves, and whose contributions it has"),),
    drops=(
        Drop(
            "stale",
            "its slot already serves a newer PSN",
            wanted=lambda spec: _translated(spec) or spec.variant is Variant.PSN_RECYCLING,
        ),
        Drop("mixed_opcode", "the edges do not agree where messages begin and end"),
        Drop("mixed_control", "its slot holds another announcement, or data", wanted=_augmented),
        Drop("duplicate", "already in the slot, which waits for others", wanted=_translated),
    ),
)

RECYCLE_BUFFER = Module(
    name="RecycleBuffer",
    folder="epic",
    gress="ingress",
    paper="Algorithm 1, lines 24 and 34-36, made lazy",
    purpose="a slot that holds an older PSN, or an older epoch, starts afresh",
    within="CheckDuplicate",
    part="buffer",
    needs=("hdr.bth", "epoch"),
    provides=(Metadata("slot_use", "slot_use_t", "what this packet means to its slot"),),
)

RETRANSMISSION = Module(
    name="Retransmission",
    folder="epic",
    gress="ingress",
    paper="Algorithm 3, lines 9-14",
    purpose="a cursor's pass: the packet in a slot goes out again",
    needs=("hdr.udp", "hdr.bth", "hdr.aeth", "port", "announced", "complete"),
    changes=("hdr.ipv4", "hdr.udp", "hdr.aeth", "hdr.immediate", "hdr.payload"),
    drops=(Drop("done", "not a loss: a cursor that has reached the last packet to send", loss=False),),
    uses=(Feature.CLONE,),
)

AGGREGATE_DATA = Module(
    name="AggregateData",
    folder="epic",
    gress="ingress",
    paper="Algorithm 1, lines 21, 23 and 31-33; Algorithm 2, lines 37 and 39",
    purpose="reduces the payload into the slot, and hands the slot's content back",
    needs=("hdr.payload", "slot", "slot_use"),
    may_need=("context", "numbers"),
    changes=("hdr.payload",),
    keeps=(Register("lane_*.partial", 32, _SLOTS, "partial result of one lane", Size("lanes")),),
)

REPLICATE_DATA = Module(
    name="ReplicateData",
    folder="epic",
    gress="ingress",
    paper="Algorithm 1, lines 22 and 25; Algorithm 2, lines 38 and 40",
    purpose="one copy of the result for each edge that gets it",
    needs=("out_group", "complete"),
    may_need=("slot_use", "alone"),
    drops=(Drop("absorbed", "not a loss: the contribution is in its slot, which waits for others", loss=False),),
    uses=(Feature.MULTICAST,),
)

REFLECT_ACK = Module(
    name="ReflectAck",
    folder="epic",
    gress="ingress",
    paper="section 4.3, AllReduce workflow, step 4",
    purpose="the answer to a result answers the contribution of the same PSN",
    needs=(),
)

COMBINE_ACKS = Module(
    name="CombineAcks",
    folder="epic",
    gress="ingress",
    paper="section 4.3, Broadcast workflow: ackPsn, nodeAckPsn",
    purpose="the answers to a broadcast become one",
    needs=("hdr.bth", "hdr.aeth", "context_index", "edge_bit", "out_mask", "begins"),
    changes=("hdr.bth", "hdr.aeth"),
    keeps=(
        Register("edge_*.acked", words.ANSWER, _CONTEXTS, "ackPsn of one edge of each context", Size("fan_in")),
        Register("node_acked", 24, _CONTEXTS, "nodeAckPsn of each context"),
    ),
    drops=(Drop("waits", "not a loss: others have not acknowledged as much", loss=False),),
)

SEND_ACK = Module(
    name="SendAck",
    folder="epic",
    gress="ingress",
    paper="Algorithm 2, line 35",
    purpose="the answer leaves as the packet itself, or beside it",
    part="answer",
    needs=("port", "complete"),
    provides=(Metadata("turns", "bit<1>", "1: it becomes the answer itself"),),
    uses=(Feature.CLONE,),
)

ANSWER_ARP = Module(
    name="AnswerArp",
    gress="ingress",
    paper="beside EPIC: RFC 826",
    purpose="hosts learn the MAC addresses of the switch's own IPv4 addresses",
    needs=("hdr.ethernet", "hdr.arp"),
    changes=("hdr.ethernet", "hdr.arp"),
    tables=(Table("neighbours", Size(1024), "the switch's own IPv4 addresses to its MAC address"),),
    drops=(Drop("not_ours", "asks for another address than this switch's, or is not a request"),),
)

FORWARD = Module(
    name="Forward",
    gress="ingress",
    paper="Algorithm 1, line 27",
    purpose="routes everything that no endpoint claims",
    needs=("hdr.ipv4", "hdr.udp"),
    changes=("hdr.ethernet", "hdr.ipv4"),
    tables=(
        Table("routes", Size(1024), "longest prefix to next hop, or to a set of them (ECMP)"),
        Table("next_hops", Size("ports", 4), "next hop to port and MAC addresses"),
    ),
    drops=(
        Drop("not_ipv4", "neither IPv4 nor for the IncEngine"),
        Drop("no_route", "no route, or no such next hop"),
        Drop("ttl_expired", "the TTL is used up"),
    ),
)

ADVANCE_CURSOR = Module(
    name="AdvanceCursor",
    folder="epic",
    gress="egress",
    paper="Algorithm 3, line 9",
    purpose="a cursor goes round once for each slot",
    needs=("hdr.bth", "goes_round"),
    changes=("hdr.bth",),
    uses=(Feature.RECIRCULATION,),
)

MAKE_ACK = Module(
    name="MakeAck",
    folder="epic",
    gress="egress",
    paper="Algorithm 3, lines 4-7",
    purpose="the answer itself",
    needs=("hdr.ipv4", "hdr.udp", "answer_psn", "syndrome", "msn"),
    changes=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth", "hdr.immediate", "hdr.cnp", "hdr.payload"),
)

TRANSLATE_HEADER = Module(
    name="TranslateHeader",
    folder="epic",
    gress="egress",
    paper="Algorithm 1, line 26",
    purpose="addresses each packet to the endpoint at the other end of its edge",
    part="path",
    needs=("edge",),
    changes=("hdr.ethernet", "hdr.ipv4", "hdr.udp", "hdr.bth", "edge", "pipeline"),
    provides=(
        Metadata("goes_round", "bit<1>", "1: recirculates", wanted=lambda s: not s.mode.augmented and s.pipelines > 1),
    ),
    tables=(Table("edges", _ENDPOINTS, "edge to the addresses and QPs of its two endpoints"),),
    drops=(Drop("unknown_edge", "a copy was made for an edge that has no addresses"),),
)

SET_ICRC = Module(
    name="SetIcrc",
    gress="egress",
    paper="beside EPIC: RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="a NIC drops what leaves with a stale invariant CRC",
    needs=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth", "hdr.immediate", "hdr.cnp", "hdr.payload"),
    changes=("hdr.icrc",),
    wanted=_icrc,
    uses=(Feature.PACKET_CRC,),
)
