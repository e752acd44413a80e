"""The modules of Themis's programs. RecordPsn or RecordClass, JudgeNack and BlockedNack are Themis-D; SprayPath is
Themis-S.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from p4gen.arch import Feature
from p4gen.papers.themis import words
from p4gen.papers.themis.spec import Cm, Spread, ThemisSpec, Variant
from p4gen.program import common
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table

_CONNECTIONS = Size("connections")
_BODIES = tuple(f"hdr.{name}" for name in common.BODIES if name != "aeth")
"""Headers of programs of other families, which Themis may be beside."""


def _sprays(spec: ThemisSpec) -> bool:
    return spec.sprays


def filters(spec: ThemisSpec) -> bool:
    """Whether it is Themis-D."""
    return spec.filters


def _by_psn(spec: ThemisSpec) -> bool:
    return spec.by_psn


def _walks(spec: ThemisSpec) -> bool:
    return spec.walks


def by_class(spec: ThemisSpec) -> bool:
    """Whether evidence is kept by class."""
    return spec.by_class


def _destroys(spec: ThemisSpec) -> bool:
    return spec.variant is Variant.DESTRUCTIVE_QUEUE


def _by(*spreads: Spread) -> Callable[[ThemisSpec], bool]:
    return lambda spec: spec.spread in spreads and (spec.sprays or not spec.by_psn) and spec.tiers == 2


COPY_CM = Module(
    name="CopyCm",
    folder="themis",
    gress="ingress",
    paper="section 3.3, handshakes of NICs; InfiniBand 12.6",
    purpose="copies RDMA CM messages of hosts to the CPU port, so that the manager registers their connections",
    part="cm",
    needs=("hdr.ipv4", "hdr.bth", "hdr.mad"),
    provides=(Metadata("copied", "bit<1>", "1: an RDMA CM message, which is copied", kept=True),),
    tables=(Table("cm_sources", Size("ports"), "ports and addresses of the hosts whose messages are copied"),),
    wanted=lambda spec: spec.cm is Cm.COPY,
)

FIND_FLOW = Module(
    name="FindFlow",
    folder="themis",
    gress="ingress",
    paper="section 3.3, the flow table",
    purpose="finds a packet's connection, and what this switch does for it",
    part="flow",
    needs=("hdr.ipv4", "hdr.bth", "hdr.aeth"),
    provides=(
        Metadata("kind", "kind_t", "what kind of packet this is"),
        Metadata("path_set", "path_set_t", "the paths that its connection is sprayed over"),
        Metadata("connection", "bit<32>", "index of the connection's words of state", wanted=filters),
        Metadata("epoch", "epoch_t", "generation of the connection; older state counts as empty", wanted=filters),
        Metadata("port", "bit<9>", "the port on which the connection's answers arrive", wanted=filters),
        Metadata("requester", "qp_t", "the destination QP of the connection's answers", kept=True, wanted=filters),
        Metadata("answer_port", "bit<16>", "UDP source port of the connection's answers", kept=True, wanted=filters),
        Metadata("answer_tos", "bit<8>", "their DSCP and ECN", kept=True, wanted=filters),
        Metadata("again", "bit<1>", "1: a recirculated NACK", wanted=_walks),
    ),
    tables=(
        Table(
            "data_flows", Size("connections", 2), "destination (IP, QP) of requests: connections sprayed or filtered"
        ),
        Table("answer_flows", _CONNECTIONS, "destination (IP, QP) of answers: connections whose NACKs are filtered"),
    ),
    wanted=_by_psn,
    uses=lambda spec: (Feature.RECIRCULATION,) if spec.walks else (),
)

CHECK_ANSWER = Module(
    name="CheckAnswer",
    folder="themis",
    gress="ingress",
    paper="beside Themis: RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="keeps answers that a NIC would refuse from changing state; they are routed unchanged",
    needs=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth", "hdr.icrc", "port"),
    may_need=_BODIES,
    changes=("kind",),
    wanted=filters,
)

CHECK_REQUEST = Module(
    name="CheckRequest",
    folder="themis",
    gress="ingress",
    paper="beside Themis: RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="keeps requests that the NIC would discard from changing state; they are routed unchanged",
    part="request",
    needs=("kind",),
    may_need=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth", "hdr.icrc", *_BODIES),
    changes=("kind",),
    provides=(
        Metadata("residue", "bit<32>", "what the CRC-32 of a sound datagram is", wanted=lambda spec: spec.icrc.checked),
    ),
    wanted=lambda spec: spec.filters and not spec.narrow,
)

FIND_PATH = Module(
    name="FindPath",
    folder="themis",
    gress="ingress",
    paper="section 3.2, Eq. 1: PSN mod N",
    purpose="finds the path of a PSN, relative to its connection's base",
    part="path",
    needs=("hdr.bth", "path_set"),
    changes=("kind",),
    provides=(
        Metadata("path", "path_t", "path of this PSN"),
        Metadata("stride", "stride_t", "PSNs since the last one of this path", wanted=by_class),
    ),
    tables=(Table("paths", Size("path_sets", 256), "path set and PSN to path"),),
    wanted=_by_psn,
)

_PATH_MAP = Size("path_sets", "paths")

MAP_PATH = Module(
    name="MapPath",
    folder="themis",
    gress="ingress",
    paper="section 3.2, Figure 3: the PathMap",
    purpose="changes the UDP source port, so that ECMP takes a PSN's path in every tier",
    needs=("hdr.udp", "hdr.bth", "kind", "path_set", "path"),
    changes=("hdr.udp", "hdr.bth"),
    tables=(Table("path_map", _PATH_MAP, "path set and path to a change of the port"),),
    wanted=lambda spec: spec.sprays and spec.tiers > 2,
)

RESTORE_PORT = Module(
    name="RestorePort",
    folder="themis",
    gress="ingress",
    paper="beside Themis: the ICRC covers the UDP source port",
    purpose="restores the original UDP source port for the NIC",
    needs=("hdr.udp", "hdr.bth", "path_set", "path"),
    changes=("hdr.udp", "hdr.bth"),
    tables=(Table("restored_ports", _PATH_MAP, "path set and path to a change of the port"),),
    wanted=lambda spec: spec.filters and spec.tiers > 2,
)

RECORD_PSN = Module(
    name="RecordPsn",
    folder="themis",
    gress="ingress",
    paper="section 3.3, the ring-based PSN queue",
    purpose="keeps the newest PSNs sent to a NIC; each pass compares a NACK with some of them",
    part="queue",
    needs=("hdr.bth", "kind", "connection", "epoch", "again", "path"),
    provides=(
        Metadata("newest", "place_t", "the place after the newest PSN that a NACK is compared with", kept=True),
        Metadata("visited", "count_t", "number of PSNs compared so far", kept=True),
        Metadata("ends", "bit<1>", "1: no PSN is left to compare"),
        Metadata("larger", "bit<1>", "1: a PSN larger than ePSN was found", kept=True),
        Metadata("same_path", "bit<1>", "1: a larger PSN took the path of ePSN", kept=True),
        Metadata("arrived", "bit<1>", "1: ePSN itself was found", kept=True),
        Metadata("late", "bit<1>", "1: ePSN arrived after a larger one", kept=True),
        Metadata("newer", "count_t", "number of PSNs newer than the first larger one", kept=True, wanted=_destroys),
    ),
    keeps=(
        Register("tails", words.tail, _CONNECTIONS, "how far each queue is filled"),
        Register(
            "bank_*.psns", words.psns, Size("connections", "queue_rows"), "PSNs by place", instances=Size("queue_banks")
        ),
    ),
    wanted=_walks,
)

_CLASSES = Size("connections", "paths")

RECORD_CLASS = Module(
    name="RecordClass",
    folder="themis",
    gress="ingress",
    paper="beside Themis: in place of the queue of section 3.3",
    purpose="keeps the newest PSN and the newest gap of each path; one pass compares a NACK with them",
    part="classes",
    needs=("hdr.bth", "kind", "connection", "epoch", "path_set", "path", "stride"),
    provides=(
        Metadata("larger", "bit<1>", "1: a PSN larger than ePSN has passed"),
        Metadata("late", "bit<1>", "1: ePSN, or a larger PSN, came after a larger one"),
        Metadata("arrived", "bit<1>", "1: ePSN itself has passed"),
        Metadata("missing", "bit<1>", "1: ePSN is in the newest gap of its class"),
        Metadata("forgotten", "bit<1>", "1: whether ePSN has passed is not known any longer"),
    ),
    keeps=(
        Register("newest", words.NEWEST, _CLASSES, "how far each class has come"),
        Register("gaps", words.GAP, _CLASSES, "its newest gap"),
        Register("order", words.ORDER, _CONNECTIONS, "how far each connection has come"),
    ),
    wanted=by_class,
)

JUDGE_NACK = Module(
    name="JudgeNack",
    folder="themis",
    gress="ingress",
    paper="section 3.3, Eq. 3",
    purpose="decides by the PSN queue whether a NACK reports a loss",
    part="judgement",
    needs=("ends", "larger", "same_path", "arrived", "late"),
    provides=(Metadata("verdict", "verdict_t", "the verdict on a NACK"),),
    wanted=_walks,
)
JUDGE_BY_CLASS = replace(
    JUDGE_NACK,
    purpose="decides by what is known of ePSN's path whether a NACK reports a loss",
    needs=("larger", "late", "arrived", "missing", "forgotten"),
    wanted=by_class,
)

BLOCKED_NACK = Module(
    name="BlockedNack",
    folder="themis",
    gress="ingress",
    paper="section 3.4, BePSN and Valid",
    purpose="remembers the NACK blocked last, until its packet has passed or is known to be lost",
    part="nack",
    needs=("hdr.bth", "hdr.aeth", "kind", "connection", "epoch", "path", "verdict"),
    may_need=("again",),
    changes=("hdr.udp", "hdr.bth", "hdr.aeth"),
    provides=(
        Metadata("made", "bit<1>", "1: a NACK is to be made, or has been", kept=True),
        Metadata("psn", "psn_t", "its ePSN", kept=True),
        Metadata("msn", "bit<24>", "its MSN", kept=True),
        Metadata("changed", "bit<1>", "1: this switch has made or changed the packet"),
        Metadata("goes_round", "bit<1>", "1: the NACK recirculates", wanted=_walks),
    ),
    keeps=(
        Register("blocked", words.blocked, _CONNECTIONS, "the NACK that is judged or blocked"),
        Register("msns", 24, _CONNECTIONS, "its MSN"),
    ),
    drops=(Drop("blocked", "a NACK that reports no loss, as far as is known", loss=False),),
    wanted=filters,
)

SPRAY_PATH = Module(
    name="SprayPath",
    folder="themis",
    gress="ingress",
    paper="section 3.2",
    purpose="chooses among equal-cost next hops",
    within="Forward",
    needs=("hdr.bth",),
    may_need=("kind", "path"),
    wanted=_by(Spread.PSN, Spread.THEMIS),
)
SPRAY_AT_RANDOM = replace(SPRAY_PATH, paper="section 2.2", wanted=_by(Spread.RANDOM), uses=(Feature.RANDOM,))
SPREAD_FLOWLETS = replace(
    SPRAY_PATH,
    paper="section 2.3",
    keeps=(Register("flowlets", words.FLOWLET, Size(4096), "when a connection sent last, and where"),),
    wanted=_by(Spread.FLOWLET),
    uses=(Feature.RANDOM, Feature.TIME),
)
ROUTE_ADAPTIVELY = replace(
    SPRAY_PATH,
    paper="section 5",
    keeps=(Register("queue_*.length", 32, Size(1), "bytes in the queue of a next hop", instances=Size("paths")),),
    wanted=_by(Spread.ADAPTIVE),
    uses=(Feature.RANDOM,),
)

ANSWER_ARP = replace(common.ANSWER_ARP, paper="beside Themis: RFC 826")

FORWARD = replace(common.FORWARD, paper="section 3.2: ECMP, which gives P_base")

MAKE_NACK = Module(
    name="MakeNack",
    folder="themis",
    gress="egress",
    paper="section 3.4: on behalf of the RNIC",
    purpose="makes the NACK of a lost packet, from a copy of the packet that shows the loss",
    needs=("hdr.ipv4", "hdr.udp", "hdr.bth", "requester", "answer_port", "answer_tos", "psn", "msn"),
    changes=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth", *_BODIES, "hdr.icrc"),
    wanted=filters,
)

SET_ICRC = Module(
    name="SetIcrc",
    gress="egress",
    paper="beside Themis: RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="updates the invariant CRC of changed packets, which a NIC checks",
    needs=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth"),
    changes=("hdr.icrc",),
    wanted=lambda spec: spec.filters and spec.icrc.right,
    uses=(Feature.PACKET_CRC,),
)

MODULES = (
    COPY_CM,
    FIND_FLOW,
    CHECK_ANSWER,
    CHECK_REQUEST,
    FIND_PATH,
    MAP_PATH,
    RESTORE_PORT,
    RECORD_PSN,
    RECORD_CLASS,
    JUDGE_NACK,
    JUDGE_BY_CLASS,
    BLOCKED_NACK,
    SPRAY_PATH,
    SPRAY_AT_RANDOM,
    SPREAD_FLOWLETS,
    ROUTE_ADAPTIVELY,
    ANSWER_ARP,
    FORWARD,
    MAKE_NACK,
    SET_ICRC,
)
"""In the order in which the flow may first apply them."""
