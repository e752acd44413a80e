"""The IncEngine modules there are. Names are EPIC's (section 4.1) where EPIC has the module.

Two come on top: ValidatePacket and CheckIcrc keep a switch that recomputes checksums from laundering
corrupt packets, and SetIcrc makes its output acceptable to commodity NICs.
"""

from __future__ import annotations

from p4gen.inc.module import Drop, Metadata, Module, Register, Size, Table
from p4gen.spec import Icrc, ProgramSpec

_SLOTS = Size("groups", "slots_per_group")
_EDGES = Size("groups", "fan_in")


def _icrc(spec: ProgramSpec) -> bool:
    return spec.icrc is Icrc.RECOMPUTE


LOOKUP_TABLE = Module(
    name="LookupTable",
    gress="ingress",
    paper="Algorithm 1, line 16",
    purpose="whose packet is it, and what is to become of it",
    needs=("hdr.ipv4", "hdr.bth"),
    provides=(
        Metadata("traffic", "traffic_t", "what kind of packet this is"),
        Metadata("announced", "bit<32>", "what a control message announces; 0 for data"),
        Metadata("context", "context_t", "the group's context"),
        Metadata("edge", "edge_t", "ingress: the edge it came over; egress: the edge it leaves by"),
        Metadata("edge_bit", "bitmap_t", "that edge's bit in the context's bitmaps"),
        Metadata("epoch", "epoch_t", "generation of the group's state; older state counts as empty"),
        Metadata("slot", "slot_t", "index of the slot that this PSN maps to"),
        Metadata("source_mask", "bitmap_t", "edges whose contributions make a result"),
        Metadata("result_group", "bit<16>", "multicast group of the edges that get the result"),
    ),
    tables=(
        Table("addresses", Size("groups"), "addresses that the IncEngine answers to"),
        Table("endpoints", _EDGES, "endpoint (IP, QP) to context and edge"),
        Table("invocations", Size("groups", 2), "(context, traffic) to what is done"),
    ),
    drops=(
        Drop("unknown_qp", "no endpoint of this switch has that QP"),
        Drop("unknown_source", "the packet does not come from the endpoint's peer"),
        Drop("not_served", "the group does not take this kind of packet"),
        Drop("not_a_source", "the edge does not contribute to this collective"),
    ),
)

VALIDATE_PACKET = Module(
    name="ValidatePacket",
    gress="ingress",
    paper="beside EPIC: InfiniBand 1.2.1, 9.6 (header validation)",
    purpose="a packet that a NIC would refuse must not reach any state",
    needs=("hdr.ipv4", "hdr.udp", "hdr.bth", "traffic"),
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
    needs=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.icrc"),
    drops=(Drop("bad_icrc", "the invariant CRC is wrong"),),
    wanted=_icrc,
)

CHECK_DUPLICATE = Module(
    name="CheckDuplicate",
    gress="ingress",
    paper="Algorithm 1, lines 20 and 28-30",
    purpose="each edge contributes to a slot once",
    needs=("hdr.bth", "announced", "slot", "epoch", "edge_bit", "source_mask", "slot_use"),
    provides=(Metadata("complete", "bit<1>", "1: every source has contributed to the slot"),),
    keeps=(
        Register("slots", 104, _SLOTS, "{epoch 8, PSN 24, AckReq 1, opcode 7, announced 32, bitmap 32} of each slot"),
    ),
    drops=(
        Drop("stale", "its slot already serves a newer PSN"),
        Drop("mixed_opcode", "the edges do not agree where messages begin and end"),
        Drop("mixed_control", "the edges do not announce the same collective"),
        Drop("duplicate", "already in the slot, which waits for others"),
    ),
)

RECYCLE_BUFFER = Module(
    name="RecycleBuffer",
    gress="ingress",
    paper="Algorithm 1, lines 24 and 34-36, made lazy",
    purpose="a slot that holds an older PSN, or an older epoch, starts afresh",
    needs=("hdr.bth", "epoch"),
    provides=(Metadata("slot_use", "slot_use_t", "what this packet means to its slot"),),
)

AGGREGATE_DATA = Module(
    name="AggregateData",
    gress="ingress",
    paper="Algorithm 1, lines 21-23 and 31-33",
    purpose="reduces the payload into the slot, and hands the slot's content back",
    needs=("hdr.payload", "slot", "slot_use", "context"),
    keeps=(Register("lane_*.partial", 32, _SLOTS, "partial result of one lane", Size("lanes")),),
    drops=(Drop("absorbed", "not a loss: the contribution is in its slot, which waits for others"),),
)

REPLICATE_DATA = Module(
    name="ReplicateData",
    gress="ingress",
    paper="Algorithm 1, line 25",
    purpose="one copy of the result for each edge that gets it",
    needs=("result_group",),
)

REFLECT_ACK = Module(
    name="ReflectAck",
    gress="ingress",
    paper="section 4.3, AllReduce workflow, step 4",
    purpose="the answer to a result answers the contribution of the same PSN",
    needs=("hdr.aeth", "hdr.cnp", "traffic"),
)

FORWARD = Module(
    name="Forward",
    gress="ingress",
    paper="Algorithm 1, line 27",
    purpose="routes everything that no endpoint claims",
    needs=("hdr.ipv4",),
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

TRANSLATE_HEADER = Module(
    name="TranslateHeader",
    gress="egress",
    paper="Algorithm 1, line 26",
    purpose="addresses each packet to the endpoint at the other end of its edge",
    needs=("hdr.ethernet", "hdr.ipv4", "hdr.udp", "hdr.bth", "edge"),
    tables=(Table("edges", _EDGES, "edge to the addresses and QPs of its two endpoints"),),
    drops=(Drop("unknown_edge", "a copy was made for an edge that has no addresses"),),
)

SET_ICRC = Module(
    name="SetIcrc",
    gress="egress",
    paper="beside EPIC: RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="a NIC drops what leaves with a stale invariant CRC",
    needs=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.icrc"),
    wanted=_icrc,
)
