"""The modules of SCIN's programs: the paper's wave controller (section 3.4), and the repair of losses beside it."""

from __future__ import annotations

from dataclasses import replace

from p4gen.arch import Feature
from p4gen.families.scin import words
from p4gen.program import common
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table

CONTEXTS = Size("contexts")
EDGES = Size("contexts", "edges")
ENDPOINTS = Size(3, "contexts", "edges")
SLOTS = Size("contexts", "slots")
_FOLDER = "scin"
_ICRC_NEEDS = (
    "hdr.ipv4",
    "hdr.udp",
    "hdr.bth",
    "hdr.reth",
    "hdr.aeth",
    "hdr.immediate",
    "hdr.buffers",
    "hdr.flag",
    "hdr.cursor",
    "hdr.cnp",
    "hdr.payload",
)
_ROUND = ("what", "round_psn", "reason", "about", "asked", "announced")

LOOKUP_TABLE = Module(
    name="LookupTable",
    folder=_FOLDER,
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
    ),
    drops=(
        Drop("unknown_qp", "no endpoint of this switch has that QP"),
        Drop("unknown_source", "the packet does not come from the endpoint's peer"),
    ),
    uses=(Feature.TICKS, Feature.RECIRCULATION),
)

VALIDATE_PACKET = Module(
    name="ValidatePacket",
    folder=_FOLDER,
    gress="ingress",
    paper="InfiniBand 1.2.1, 9.6 (header validation)",
    purpose="keeps packets that a NIC would refuse from any state",
    needs=("hdr.vlan", "hdr.ipv4", "hdr.udp", "hdr.bth", "kind"),
    drops=(
        Drop("truncated", "the frame ends before its headers say it does"),
        Drop("bad_ip_checksum", "the IPv4 header checksum is wrong"),
        Drop("bad_version", "the BTH version is not 0"),
        Drop("bad_pkey", "the P_Key is not the default partition's"),
        Drop("bad_length", "its lengths contradict each other, or it is padded"),
        Drop("unknown", "of an opcode or a length that the queue pair has no use for, or forged"),
    ),
)

CHECK_ICRC = Module(
    name="CheckIcrc",
    gress="ingress",
    paper="RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="keeps a wrong invariant CRC from being replaced by a right one",
    needs=(*_ICRC_NEEDS, "hdr.icrc"),
    drops=(Drop("bad_icrc", "the invariant CRC is wrong"),),
    wanted=lambda spec: spec.icrc.checked,
    uses=(Feature.PACKET_CRC,),
)

FIND_CONTEXT = Module(
    name="FindContext",
    folder=_FOLDER,
    gress="ingress",
    paper="section 3.4.2: source and destination masks",
    purpose="finds whose memory is read and written",
    part="flow",
    needs=("kind", "context", "edge_bit"),
    provides=(
        Metadata("epoch", "epoch_t", "generation of the context's state; older state counts as empty"),
        Metadata("first_psn", "psn_t", "the PSN that all its connections begin with"),
        Metadata("slots", "bit<32>", "its first slot"),
        Metadata("sources", "edges_t", "ranks whose operands are read"),
        Metadata("destinations", "edges_t", "ranks that get the result"),
        Metadata("read_group", "bit<16>", "multicast group of the sources"),
        Metadata("write_group", "bit<16>", "of the destinations"),
        Metadata("flag_group", "bit<16>", "of both"),
    ),
    tables=(Table("contexts", CONTEXTS, "context to its masks and its state"),),
    drops=(
        Drop("not_served", "the context is not set up"),
        Drop("no_source", "data of a rank that is not read"),
        Drop("no_destination", "an answer of a rank that is not written to"),
    ),
)

TRACK_CALL = Module(
    name="TrackCall",
    folder=_FOLDER,
    gress="ingress",
    paper="section 3.4.2: the instruction that is executed",
    purpose="knows the call that runs, its PSNs and its status",
    part="call",
    needs=("hdr.bth", "hdr.cursor", "kind", "context_index", "epoch", "first_psn", "sources", "destinations"),
    changes=("leaves", "receivers", "what"),
    provides=(
        Metadata("first", "psn_t", "the first PSN of its data"),
        Metadata("end", "psn_t", "the PSN after its last"),
        Metadata("number", "psn_t", "its number: the PSN of its arrivals"),
        Metadata("status", "bit<8>", "0, or why it was aborted"),
    ),
    keeps=(Register("active", words.ACTIVE, CONTEXTS, "the call that runs"),),
    drops=(Drop("aborted", "the call that it belongs to was aborted", loss=False),),
)

TRACK_ARRIVAL = Module(
    name="TrackArrival",
    folder=_FOLDER,
    gress="ingress",
    paper="section 3.3: synchronisation",
    purpose="who has arrived; the last arrival starts the call",
    part="answer",
    needs=(
        "hdr.bth",
        "hdr.immediate",
        "context_index",
        "edge_bit",
        "epoch",
        "sources",
        "destinations",
        "number",
        "status",
    ),
    changes=("leaves", "what", "round_psn", "reason", "announced"),
    provides=(
        Metadata("answer_psn", "psn_t", "the PSN of the answer"),
        Metadata("syndrome", "bit<8>", "its AETH syndrome"),
        Metadata("stores", "bit<1>", "1: the addresses in the arrival are valid from now on"),
    ),
    keeps=(Register("arrivals", words.ARRIVALS, CONTEXTS, "who has arrived at the next call"),),
    drops=(
        Drop("ahead", "of a call after the next one"),
        Drop("aborted", "a call of the context was aborted"),
        Drop("other_numbers", "announces elements of another type than the program's"),
        Drop("disagrees", "announces something else than another rank"),
    ),
)

RECEIVE_ACK = Module(
    name="ReceiveAck",
    folder=_FOLDER,
    gress="ingress",
    paper="beside the paper: section 3.4.1 frees slots earlier, and loses nothing",
    purpose="what all destinations have acknowledged",
    part="progress",
    needs=(
        "hdr.bth",
        "hdr.aeth",
        "kind",
        "context_index",
        "edge_bit",
        "epoch",
        "first_psn",
        "destinations",
        "end",
        "number",
        "start",
    ),
    changes=("what", "round_psn", "reason", "about"),
    provides=(
        Metadata("acked", "psn_t", "the PSN up to which all have acknowledged"),
        Metadata("lacks", "edges_t", "ranks that have not acknowledged the cursor's PSN"),
        Metadata("naks", "bit<1>", "1: the answer is a NAK that something is done about"),
        Metadata("finishes", "bit<1>", "1: with this answer all of the call is acknowledged"),
    ),
    keeps=(Register("edge_*.acked", words.ACKED, CONTEXTS, "how far a rank has acknowledged", Size("edges")),),
    drops=(Drop("never_sent", "acknowledges what has not been written"),),
)

ISSUE_WAVE = Module(
    name="IssueWave",
    folder=_FOLDER,
    gress="ingress",
    paper="section 3.4.1, equation 1",
    purpose="reads the next wave when there is room for it",
    part="emission",
    needs=(
        "hdr.bth",
        "hdr.cursor",
        "kind",
        "context_index",
        "epoch",
        "first_psn",
        "sources",
        "destinations",
        "end",
        "acked",
        "naks",
        "finishes",
    ),
    changes=("what",),
    provides=(
        Metadata("leaves", "out_t", "what leaves because of this packet"),
        Metadata("receivers", "edges_t", "ranks that get it"),
        Metadata("read_psn", "psn_t", "the first PSN of a READ"),
        Metadata("packets", "psn_t", "how many it asks for"),
        Metadata("again", "bit<1>", "1: it is sent again"),
        Metadata("asked_end", "psn_t", "the PSN after the last that has been asked for"),
    ),
    keeps=(Register("next_read", words.NEXT_READ, CONTEXTS, "the PSN of the next wave"),),
    drops=(Drop("never_asked", "data that no READ has asked for"),),
)

CHECK_DUPLICATE = Module(
    name="CheckDuplicate",
    folder=_FOLDER,
    gress="ingress",
    paper="section 3.4.1: a wave's entry, IDLE, WAITING or READY",
    purpose="whose data a slot has",
    part="buffer",
    needs=("hdr.bth", "kind", "edge_bit", "epoch", "slots", "sources"),
    provides=(
        Metadata("slot", "bit<32>", "the packet's slot"),
        Metadata("slot_use", "use_t", "what it does with it"),
        Metadata("bitmap", "edges_t", "sources whose data it has"),
        Metadata("complete", "bit<1>", "1: it has the data of all"),
    ),
    keeps=(Register("slots", words.SLOTS, SLOTS, "what a slot holds"),),
    drops=(
        Drop("stale", "its slot holds a later PSN"),
        Drop("duplicate", "its slot has this rank's data"),
    ),
)

RELEASE_RESULT = Module(
    name="ReleaseResult",
    folder=_FOLDER,
    gress="ingress",
    paper="section 3.4.1, step 6",
    purpose="writes complete slots in the order of their PSNs",
    part="release",
    needs=("hdr.bth", "hdr.cursor", "kind", "context_index", "epoch", "first_psn", "destinations", "complete"),
    changes=("leaves", "receivers", "what", "round_psn"),
    provides=(Metadata("start", "psn_t", "the PSN of the next result"),),
    keeps=(Register("release", words.RELEASE, CONTEXTS, "up to where results have been written"),),
)

AGGREGATE_DATA = Module(
    name="AggregateData",
    folder=_FOLDER,
    gress="ingress",
    paper="section 3.4.2: the reduction",
    purpose="reduces data into its slot",
    needs=("slot", "slot_use"),
    changes=("hdr.payload",),
    keeps=(Register("lane_*.partial", 32, SLOTS, "an element of each slot", Size("lanes")),),
)

RETRANSMISSION = Module(
    name="Retransmission",
    folder=_FOLDER,
    gress="ingress",
    paper="beside the paper, whose network is lossless",
    purpose="a cursor's pass: what was lost is read or written again",
    needs=(
        "hdr.bth",
        "hdr.cursor",
        "sources",
        "first",
        "end",
        "lacks",
        "bitmap",
        "asked_end",
        "start",
    ),
    changes=("leaves", "receivers", "read_psn", "packets", "again", "what", "round_psn", "about", "asked"),
)

SIGNAL_COMPLETION = Module(
    name="SignalCompletion",
    folder=_FOLDER,
    gress="ingress",
    paper="section 3.3: flags",
    purpose="whose flag has arrived",
    part="flags",
    needs=(
        "hdr.bth",
        "hdr.aeth",
        "kind",
        "context_index",
        "edge_bit",
        "epoch",
        "first_psn",
        "sources",
        "destinations",
        "number",
    ),
    provides=(Metadata("unflagged", "edges_t", "ranks whose flag has not"),),
    keeps=(Register("flagged", words.FLAGGED, CONTEXTS, "ranks that have their flag"),),
)

WATCH_PROGRESS = Module(
    name="WatchProgress",
    folder=_FOLDER,
    gress="ingress",
    paper="beside the paper, whose network is lossless",
    purpose="a tick without progress has something sent again, or ends the call",
    needs=(
        "context_index",
        "epoch",
        "sources",
        "destinations",
        "end",
        "number",
        "status",
        "acked",
        "start",
        "asked_end",
        "unflagged",
    ),
    changes=("leaves", "receivers", "what", "round_psn", "reason", "about"),
    keeps=(Register("watched", words.WATCHED, CONTEXTS, "what there was at the last tick"),),
)

ANSWER_NAK = Module(
    name="AnswerNak",
    folder=_FOLDER,
    gress="ingress",
    paper="beside the paper, whose network is lossless",
    purpose="a READ that was lost is sent again, one that is refused ends the call",
    needs=("hdr.bth", "hdr.aeth", "edge_bit", "number"),
    changes=("what", "round_psn", "reason", "about"),
)

START_CURSOR = Module(
    name="StartCursor",
    folder=_FOLDER,
    gress="ingress",
    paper="beside the paper: one access to each register a pass",
    purpose="sends a cursor round for what takes a pass of its own",
    part="round",
    provides=(
        Metadata("what", "cursor_kind_t", "what a cursor does next", kept=True),
        Metadata("round_psn", "psn_t", "its PSN", kept=True),
        Metadata("reason", "bit<8>", "of an abort: the status", kept=True),
        Metadata("about", "edges_t", "ranks that it is about", kept=True),
        Metadata("asked", "edges_t", "ranks that have been asked in this wave", kept=True),
        Metadata("announced", "bit<32>", "what the arrivals announced", kept=True),
    ),
    uses=(Feature.CLONE,),
)

REPLICATE_DATA = Module(
    name="ReplicateData",
    folder=_FOLDER,
    gress="ingress",
    paper="section 3.4.1: READs to all sources, WRITEs to all destinations",
    purpose="one copy for each rank that may get one",
    needs=("leaves", "read_group", "write_group", "flag_group"),
    drops=(Drop("absorbed", "has done its work", loss=False),),
    uses=(Feature.MULTICAST,),
)

ANSWER_ARP = replace(common.ANSWER_ARP, paper="beside the paper: RFC 826")
FORWARD = replace(common.FORWARD, paper="section 3.2: the switch core")

ADVANCE_CURSOR = Module(
    name="AdvanceCursor",
    folder=_FOLDER,
    gress="egress",
    paper="beside the paper: see StartCursor",
    purpose="makes a cursor of a clone",
    needs=_ROUND,
    changes=(
        "hdr.ipv4",
        "hdr.udp",
        "hdr.bth",
        "hdr.aeth",
        "hdr.immediate",
        "hdr.buffers",
        "hdr.payload",
        "hdr.cursor",
    ),
    uses=(Feature.RECIRCULATION,),
)

PRUNE_PORT = Module(
    name="PrunePort",
    folder=_FOLDER,
    gress="egress",
    paper="section 3.4.2: source and destination masks",
    purpose="drops copies for ranks that are to get none",
    needs=("edge", "receivers"),
    drops=(Drop("not_wanted", "a copy for a rank that is to get none", loss=False),),
)

STORE_ADDRESSES = Module(
    name="StoreAddresses",
    folder=_FOLDER,
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
    folder=_FOLDER,
    gress="egress",
    paper="section 3.3; InfiniBand 9.7.5.1",
    purpose="answers an arrival",
    needs=("answer_psn", "syndrome", "first_psn"),
    changes=("hdr.udp", "hdr.bth", "hdr.aeth", "hdr.immediate", "hdr.buffers", "role"),
)

MAKE_READ = Module(
    name="MakeRead",
    folder=_FOLDER,
    gress="egress",
    paper="section 3.4.1, step 2",
    purpose="makes READ requests",
    needs=("address", "rkey", "read_psn", "packets", "first"),
    changes=("hdr.udp", "hdr.bth", "hdr.reth", "hdr.aeth", "hdr.cursor", "role"),
)

MAKE_WRITE = Module(
    name="MakeWrite",
    folder=_FOLDER,
    gress="egress",
    paper="section 3.4.1, step 6",
    purpose="makes WRITEs of the result",
    needs=("hdr.bth", "address", "rkey", "first", "end", "again"),
    changes=("hdr.udp", "hdr.bth", "hdr.reth", "hdr.aeth", "hdr.cursor", "role"),
)

MAKE_FLAG = Module(
    name="MakeFlag",
    folder=_FOLDER,
    gress="egress",
    paper="section 3.3: flags",
    purpose="makes flags",
    needs=("context", "edge", "number", "status"),
    changes=(
        "hdr.udp",
        "hdr.bth",
        "hdr.reth",
        "hdr.aeth",
        "hdr.immediate",
        "hdr.cursor",
        "hdr.payload",
        "hdr.flag",
        "role",
    ),
    tables=(Table("flags", EDGES, "(context, rank) to where its flag is"),),
    drops=(Drop("unknown_edge", "a copy was made for a rank that has no flag"),),
)

TRANSLATE_HEADER = Module(
    name="TranslateHeader",
    folder=_FOLDER,
    gress="egress",
    paper="InfiniBand 9.6",
    purpose="addresses each packet to the rank's queue pair",
    needs=("context", "edge", "role", "hdr.udp"),
    changes=("hdr.ethernet", "hdr.ipv4", "hdr.udp", "hdr.bth"),
    tables=(Table("edges", ENDPOINTS, "(context, rank, role) to the addresses and QPs of the two endpoints"),),
    drops=(Drop("unknown_edge", "a copy was made for a rank that has no addresses"),),
)

SET_ICRC = Module(
    name="SetIcrc",
    gress="egress",
    paper="RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="gives what leaves a right invariant CRC",
    needs=_ICRC_NEEDS,
    changes=("hdr.icrc",),
    wanted=lambda spec: spec.icrc.right,
    uses=(Feature.PACKET_CRC,),
)

ALL = (
    LOOKUP_TABLE,
    VALIDATE_PACKET,
    CHECK_ICRC,
    FIND_CONTEXT,
    TRACK_CALL,
    TRACK_ARRIVAL,
    RECEIVE_ACK,
    ISSUE_WAVE,
    CHECK_DUPLICATE,
    RELEASE_RESULT,
    AGGREGATE_DATA,
    RETRANSMISSION,
    SIGNAL_COMPLETION,
    WATCH_PROGRESS,
    ANSWER_NAK,
    START_CURSOR,
    REPLICATE_DATA,
    ANSWER_ARP,
    FORWARD,
    ADVANCE_CURSOR,
    PRUNE_PORT,
    STORE_ADDRESSES,
    MAKE_ACK,
    MAKE_READ,
    MAKE_WRITE,
    MAKE_FLAG,
    TRANSLATE_HEADER,
    SET_ICRC,
)
