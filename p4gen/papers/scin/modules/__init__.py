"""The modules of SCIN's programs, and those of them that keep and route packets."""

from __future__ import annotations

from dataclasses import replace

from p4gen.arch import Feature
from p4gen.papers.scin.modules import calls, leaving, repair, scales
from p4gen.papers.scin.sizes import CONTEXTS, ENDPOINTS, ENTRANCES, FOLDER
from p4gen.papers.scin.spec import ScinSpec
from p4gen.program import common
from p4gen.program.module import Drop, Metadata, Module, Table

_COVERED = (
    "hdr.reth",
    "hdr.aeth",
    "hdr.immediate",
    "hdr.buffers",
    "hdr.flag",
    "hdr.cursor",
    "hdr.cnp",
    "hdr.payload",
)
"""What may follow the BTH."""

LOOKUP_TABLE = Module(
    name="LookupTable",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.2: the INC flag; here the endpoints of reliable connections",
    purpose="whose packet it is, and of what kind",
    part="lookup",
    needs=("hdr.ipv4", "hdr.bth", "hdr.aeth", "hdr.buffers", "hdr.cursor", "hdr.cnp", "hdr.payload"),
    provides=(
        Metadata("kind", "kind_t", "what kind of packet this is", kept=True),
        Metadata("context", "context_t", "the context: a group"),
        Metadata("context_index", "bit<32>", "index of the context's words of state"),
        Metadata("edge", "edge_t", "ingress: the rank it came from; egress: the rank it is for"),
        Metadata("edge_bit", "edges_t", "that rank's bit"),
    ),
    tables=(
        Table("addresses", CONTEXTS, "IPv4 addresses of this switch's endpoints"),
        Table("endpoints", ENDPOINTS, "endpoint (IP, QP) to context, rank and role"),
        Table("entrances", ENTRANCES, "the ports by which an endpoint's packets come in"),
    ),
    drops=(
        Drop("unknown_qp", "no endpoint of this switch has that QP"),
        Drop("unknown_source", "the packet does not come from the endpoint's peer"),
        Drop("wrong_port", "the packet has not come in by a port of the endpoint: somebody else has sent it"),
    ),
    uses=(Feature.TICKS, Feature.RECIRCULATION),
)

VALIDATE_PACKET = replace(
    common.VALIDATE_PACKET,
    drops=(
        *common.VALIDATE_PACKET.drops,
        Drop("bad_length", "its lengths contradict each other, or it is padded"),
        Drop("unknown", "of an opcode or a length that the queue pair has no use for, or forged"),
    ),
)

CHECK_ICRC = common.covering(common.CHECK_ICRC, *_COVERED)

ANSWER_ARP = replace(common.ANSWER_ARP, paper="beside the paper: RFC 826")
FORWARD = replace(common.FORWARD, paper="section 3.2: the switch core")

SET_ICRC = common.covering(common.SET_ICRC, *_COVERED)

_ALL = (
    LOOKUP_TABLE,
    VALIDATE_PACKET,
    CHECK_ICRC,
    calls.FIND_CONTEXT,
    calls.TRACK_CALL,
    calls.TRACK_ARRIVAL,
    calls.RECEIVE_ACK,
    calls.ISSUE_WAVE,
    scales.TRACK_SCALES,
    calls.CHECK_DUPLICATE,
    calls.RELEASE_RESULT,
    calls.AGGREGATE_DATA,
    scales.AGGREGATE_BLOCKS,
    scales.REQUANTISE,
    repair.NOTICE_GAP,
    repair.RETRANSMISSION,
    scales.REREAD_SCALES,
    repair.SIGNAL_COMPLETION,
    repair.NOTE_PROGRESS,
    repair.WATCH_PROGRESS,
    repair.ANSWER_NAK,
    repair.START_CURSOR,
    leaving.REPLICATE_DATA,
    ANSWER_ARP,
    FORWARD,
    repair.ADVANCE_CURSOR,
    leaving.PRUNE_PORT,
    leaving.STORE_ADDRESSES,
    leaving.MAKE_ACK,
    leaving.MAKE_READ,
    leaving.MAKE_WRITE,
    leaving.MAKE_FLAG,
    leaving.TRANSLATE_HEADER,
    SET_ICRC,
)

_READS_SCALES = ("LookupTable", "CheckIcrc", "MakeWrite", "SetIcrc")


def modules(spec: ScinSpec) -> tuple[Module, ...]:
    """The modules that a program may have; those of one with scales know the header that they are in."""
    own = tuple(calls.issue_wave(spec) if module is calls.ISSUE_WAVE else module for module in _ALL)
    if not spec.scaled:
        return own
    return tuple(
        replace(module, needs=(*module.needs, "hdr.scales")) if module.name in _READS_SCALES else module
        for module in own
    )
