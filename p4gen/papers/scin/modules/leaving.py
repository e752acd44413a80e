"""Modules of SCIN's programs that make what leaves for a rank (section 3.4.1): READs, WRITEs, flags, ACKs."""

from __future__ import annotations

from p4gen.arch import Feature
from p4gen.papers.scin import words
from p4gen.papers.scin.sizes import EDGES, ENDPOINTS, FOLDER
from p4gen.program.module import Drop, Metadata, Module, Register, Table

REPLICATE_DATA = Module(
    name="ReplicateData",
    folder=FOLDER,
    gress="ingress",
    paper="section 3.4.1: READs to all sources, WRITEs to all destinations",
    purpose="one copy for each rank that may get one",
    needs=("leaves", "read_group", "write_group", "flag_group"),
    drops=(Drop("absorbed", "has done its work", loss=False),),
    uses=(Feature.MULTICAST,),
)

PRUNE_PORT = Module(
    name="PrunePort",
    folder=FOLDER,
    gress="egress",
    paper="section 3.4.2: source and destination masks",
    purpose="drops copies for ranks that are to get none",
    needs=("edge", "receivers"),
    drops=(Drop("not_wanted", "a copy for a rank that is to get none", loss=False),),
)

STORE_ADDRESSES = Module(
    name="StoreAddresses",
    folder=FOLDER,
    gress="egress",
    paper="section 3.4.2: the instruction's addresses",
    purpose="knows where each rank's operand and result are",
    part="memory",
    needs=("hdr.buffers", "context_index", "edge", "leaves", "stores"),
    provides=(
        Metadata("address", "bit<64>", "the rank's operand, or of a WRITE its result"),
        Metadata("rkey", "bit<32>", "the key"),
        Metadata("role", "role_t", "the queue pair that it is for"),
    ),
    keeps=(
        Register("source", words.BUFFER, EDGES, "where the operands are"),
        Register("result", words.BUFFER, EDGES, "where results go"),
    ),
)

MAKE_ACK = Module(
    name="MakeAck",
    folder=FOLDER,
    gress="egress",
    paper="section 3.3; InfiniBand 9.7.5.1",
    purpose="answers an arrival",
    needs=("answer_psn", "syndrome", "first_psn"),
    changes=("hdr.udp", "hdr.bth", "hdr.aeth", "hdr.immediate", "hdr.buffers", "role"),
)

MAKE_READ = Module(
    name="MakeRead",
    folder=FOLDER,
    gress="egress",
    paper="section 3.4.1, step 2",
    purpose="makes READ requests",
    needs=("leaves", "address", "rkey", "read_psn", "packets", "first"),
    may_need=("first_scales",),
    changes=("hdr.udp", "hdr.bth", "hdr.reth", "hdr.aeth", "hdr.cursor", "hdr.scales", "role"),
)

MAKE_WRITE = Module(
    name="MakeWrite",
    folder=FOLDER,
    gress="egress",
    paper="section 3.4.1, step 6",
    purpose="makes WRITEs of the result",
    needs=("hdr.bth", "address", "rkey", "first", "end", "again"),
    may_need=("number",),
    changes=("hdr.udp", "hdr.bth", "hdr.reth", "hdr.aeth", "hdr.immediate", "hdr.cursor", "role"),
)

MAKE_FLAG = Module(
    name="MakeFlag",
    folder=FOLDER,
    gress="egress",
    paper="section 3.3: flags",
    purpose="makes flags",
    needs=("context", "edge", "number", "status", "flag_psn"),
    may_need=("destinations", "written_flag_psn"),
    changes=(
        "hdr.udp",
        "hdr.bth",
        "hdr.reth",
        "hdr.aeth",
        "hdr.immediate",
        "hdr.cursor",
        "hdr.flag",
        "role",
    ),
    tables=(Table("flags", EDGES, "(context, rank) to where its flag is"),),
    drops=(Drop("unknown_edge", "a copy was made for a rank that has no flag"),),
)

TRANSLATE_HEADER = Module(
    name="TranslateHeader",
    folder=FOLDER,
    gress="egress",
    paper="InfiniBand 9.6",
    purpose="addresses each packet to the rank's queue pair",
    needs=("context", "edge", "role", "hdr.udp"),
    changes=("hdr.ethernet", "hdr.ipv4", "hdr.udp", "hdr.bth"),
    tables=(Table("edges", ENDPOINTS, "(context, rank, role) to the addresses and QPs of the two endpoints"),),
    drops=(Drop("unknown_edge", "a copy was made for a rank that has no addresses"),),
)
