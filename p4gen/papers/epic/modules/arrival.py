"""What a packet is: its group and edge, whether it is sound, its collective, and what the collective does with it."""

from __future__ import annotations

from dataclasses import replace

from p4gen.arch import Feature
from p4gen.papers.epic import words
from p4gen.papers.epic.modules.common import (
    CONTEXTS,
    COVERED,
    EDGES,
    ENDPOINTS,
    ENTRANCES,
    augmented,
    dynamic,
    passes_on,
    stores,
    translated,
)
from p4gen.papers.epic.spec import EpicSpec, Variant
from p4gen.program import common
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table


def _keeps_edges(spec: EpicSpec) -> bool:
    return augmented(spec) or spec.loss_recovery.in_order


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
        Metadata("port", "bit<9>", "that edge's port", wanted=augmented),
        Metadata("first_hop", "bit<1>", "1: a rank is at the other end of it", wanted=augmented),
        Metadata("first_received", "psn_t", "the first PSN that came over it", wanted=stores),
        Metadata("first_sent", "psn_t", "the first PSN that it was sent", wanted=stores),
        Metadata("emits", "bit<1>", "1: a cursor that sends what is new", wanted=stores),
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
        Table("endpoints", ENDPOINTS, "endpoint (IP, QP) to context and edge"),
        Table("entrances", ENTRANCES, "the ports by which an endpoint's packets come in"),
    ),
    drops=(
        Drop("unknown_qp", "no endpoint of this switch has that QP"),
        Drop("unknown_source", "the packet does not come from the endpoint's peer"),
        Drop("wrong_port", "the packet has not come in by a port of the endpoint: somebody else has sent it"),
    ),
    uses=_looked_up,
)

VALIDATE_PACKET = replace(
    common.VALIDATE_PACKET,
    paper="beside EPIC: InfiniBand 1.2.1, 9.6 (header validation)",
    purpose="a packet that a NIC would refuse must not reach any state",
    drops=(
        *common.VALIDATE_PACKET.drops,
        Drop("bad_opcode", "neither RC SEND nor an answer to one"),
        Drop("bad_length", "not the length that this program was generated for, or padded"),
    ),
)

CHECK_ICRC = replace(
    common.covering(common.CHECK_ICRC, *COVERED),
    paper="beside EPIC: RoCEv2 (InfiniBand Annex A17.3.3)",
    purpose="a wrong invariant CRC must not be replaced by a right one",
)

LEARN_TAG = Module(
    name="LearnTag",
    folder="epic",
    gress="ingress",
    paper="beside EPIC: IEEE 802.1Q",
    purpose="the VLAN tag of an edge, for what ticks have sent again",
    needs=("hdr.vlan", "kind", "edge_index"),
    changes=("hdr.ethernet", "hdr.vlan"),
    keeps=(Register("tags", words.TAG, EDGES, "the VLAN tag of each edge"),),
)

FIND_POSITION = Module(
    name="FindPosition",
    folder="epic",
    gress="ingress",
    paper="section 4.2: the switch terminates each connection",
    purpose="PSNs of unrelated connections become numbers that all edges share",
    needs=("hdr.bth", "kind", "first_received", "first_sent"),
    changes=("hdr.bth",),
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
        Metadata("first_psn", "psn_t", "the PSN that all its flows begin with", wanted=augmented),
        Metadata("announced", "bit<32>", "what a control message announces; in Modes I and III 0 for data"),
        Metadata("code", "bit<8>", "collective and root"),
        Metadata("numbers", "numbers_t", "op and dtype", wanted=dynamic),
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
        Metadata("start", "psn_t", "the PSN of its control message; one after its own if unknown", wanted=passes_on),
        Metadata("end", "psn_t", "the last PSN of its announcement; its own if unknown", wanted=passes_on),
        Metadata("last_announced", "psn_t", "the last PSN of all announcements", wanted=translated),
        Metadata("begins", "bit<1>", "1: a control message that announces something new", wanted=translated),
    ),
    keeps=(
        Register("newest.announcement", words.ANNOUNCEMENT, CONTEXTS, "each context's last announcement"),
        Register("previous.announcement", words.ANNOUNCEMENT, CONTEXTS, "the one before"),
        Register("oldest.announcement", words.ANNOUNCEMENT, CONTEXTS, "the one before that"),
    ),
    drops=(
        Drop("not_announced", "no announcement covers its PSN", wanted=translated),
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
    may_need=("pipeline", "emits"),
    provides=(
        Metadata("pattern", "bit<8>", "collective and root, as the control plane numbers them"),
        Metadata("traffic", "traffic_t", "the paper's class"),
        Metadata("task", "task_t", "what becomes of it", wanted=translated),
        Metadata("slot", "slot_t", "index of the slot that its PSN maps to"),
        Metadata("slot_mask", "slot_t", "N - 1", wanted=augmented),
        Metadata("source_mask", "bitmap_t", "edges whose contributions make a result"),
        Metadata("out_mask", "bitmap_t", "edges that answers are awaited from"),
        Metadata("out_group", "bit<16>", "multicast group of the edges that it, or the result, goes to"),
        Metadata("result_group", "bit<16>", "multicast group of the edges that the result goes to", wanted=stores),
        Metadata("alone", "bit<1>", "1: a repetition is answered to its sender alone", wanted=translated),
        Metadata("takes_slot", "bit<1>", "1: passed on, and takes its slot all the same", wanted=translated),
        Metadata("pipe", "bit<1>", "EPIC's pipe: 0 aggregation, 1 broadcast", wanted=augmented),
        Metadata("sync", "bit<1>", "1: nothing flows the other way (Reduce, Broadcast)", wanted=passes_on),
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
