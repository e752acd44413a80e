"""Answers, ordinary traffic, and what is done to each copy that leaves."""

from __future__ import annotations

from dataclasses import replace

from p4gen.arch import Feature
from p4gen.papers.epic import words
from p4gen.papers.epic.modules.common import (
    CONTEXTS,
    COVERED,
    ENDPOINTS,
)
from p4gen.program import common, repair
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table

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
        Register("edge_*.acked", words.ANSWER, CONTEXTS, "ackPsn of one edge of each context", Size("fan_in")),
        Register("node_acked", 24, CONTEXTS, "nodeAckPsn of each context"),
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

ANSWER_ARP = replace(
    common.ANSWER_ARP,
    paper="beside EPIC: RFC 826",
    purpose="hosts learn the MAC addresses of the switch's own IPv4 addresses",
)

FORWARD = replace(
    common.FORWARD,
    paper="Algorithm 1, line 27",
    purpose="routes everything that no endpoint claims",
    drops=(Drop("not_ipv4", "neither IPv4 nor for the IncEngine"), *common.FORWARD.drops[1:]),
)

ADVANCE_CURSOR = replace(repair.ADVANCE_CURSOR, paper="Algorithm 3, line 9")

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
    tables=(Table("edges", ENDPOINTS, "edge to the addresses and QPs of its two endpoints"),),
    drops=(Drop("unknown_edge", "a copy was made for an edge that has no addresses"),),
)

SET_ICRC = replace(
    common.covering(common.SET_ICRC, *COVERED),
    paper="beside EPIC: RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="a NIC drops what leaves with a stale invariant CRC",
)
