"""The buffer: whose packets a slot has, their partial result, and the result's copies."""

from __future__ import annotations

from p4gen.arch import Feature
from p4gen.papers.epic import words
from p4gen.papers.epic.modules.common import (
    CONTEXTS,
    SLOTS,
    augmented,
    ordered,
    translated,
)
from p4gen.papers.epic.spec import Variant
from p4gen.program.module import Drop, Metadata, Module, Register, Size

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
    keeps=(Register("slots", words.slot, SLOTS, "what each slot serves, and whose contributions it has"),),
    drops=(
        Drop(
            "stale",
            "its slot already serves a newer PSN",
            wanted=lambda spec: translated(spec) or spec.variant is Variant.PSN_RECYCLING,
        ),
        Drop(
            "early",
            "ahead by more than N packets: its slot serves an incomplete PSN",
            wanted=translated,
        ),
        Drop("mixed_opcode", "the edges do not agree where messages begin and end"),
        Drop("mixed_control", "its slot holds another announcement, or data", wanted=augmented),
        Drop("duplicate", "already in the slot, which waits for others", wanted=translated),
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
    may_need=("turn", "result_group"),
    changes=("hdr.ipv4", "hdr.udp", "hdr.aeth", "hdr.immediate", "hdr.payload"),
    drops=(Drop("done", "not a loss: a cursor that has reached the last packet to send", loss=False),),
    uses=lambda spec: (Feature.CLONE, Feature.MULTICAST) if spec.mode.stores else (Feature.CLONE,),
)

STORE_DATA = Module(
    name="StoreData",
    folder="epic",
    gress="ingress",
    paper="section 4.2; footnote 4",
    purpose="stores contributions, each edge's apart, and hands results back",
    needs=("hdr.payload", "kind", "edge_bit", "slot", "source_mask"),
    may_need=("context", "turn", "complete"),
    changes=("hdr.payload",),
    keeps=(
        Register(
            "lane_*.edge_*",
            lambda spec: spec.lane_bits,
            SLOTS,
            "one lane of what one edge has sent",
            Size("lanes", "fan_in"),
        ),
    ),
    wanted=ordered,
)

FOLD_DATA = Module(
    name="FoldData",
    folder="epic",
    gress="ingress",
    paper="section F.3: Mode I forces reproducibility, Mode III has it as an option",
    purpose="reduces stored contributions in the order of ranks",
    within="StoreData",
    needs=(),
    wanted=ordered,
)

EMIT_MESSAGE = Module(
    name="EmitMessage",
    folder="epic",
    gress="ingress",
    paper='section 4.2: results go out "via the transport layer again"',
    purpose="results leave as messages of the switch's own, in order, once they are whole",
    part="emission",
    needs=("hdr.bth", "hdr.aeth", "kind", "emits", "context_index", "epoch", "first_psn", "pipe"),
    changes=("hdr.bth", "hdr.aeth", "complete"),
    may_need=("complete",),
    provides=(
        Metadata("next", "psn_t", "the number of the packet that its pipe sends next"),
        Metadata("turn", "bit<1>", "1: a cursor that is there, and sends it"),
    ),
    keeps=(
        Register("aggregation.emission", words.EMISSION, CONTEXTS, "what each context's aggregation pipe has sent"),
        Register("broadcast.emission", words.EMISSION, CONTEXTS, "the same of its broadcast pipe"),
    ),
    drops=(Drop("never_sent", "answers a PSN that was never sent, or sent too long ago to matter"),),
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
    keeps=(
        Register("lane_*.partial", lambda spec: spec.lane_bits, SLOTS, "partial result of one lane", Size("lanes")),
    ),
    wanted=lambda spec: not ordered(spec),
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
