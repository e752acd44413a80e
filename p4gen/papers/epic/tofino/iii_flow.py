"""EPIC Algorithms 2 and 3 in programs of static groups: the flow of ``static_iii``'s modules."""

from __future__ import annotations

from p4gen.arch import Feature
from p4gen.papers.epic.flow_ii import DROPPED, OURS, ordinary
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino import ORDINARY
from p4gen.papers.epic.tofino.flow import drop
from p4gen.program.flow import Apply, Do, Flow, Step, when


def ingress(spec: EpicSpec) -> Flow:
    """The handling of a packet on arrival: one way for all kinds, as a register has one place in the pipeline."""
    arch = spec.architecture
    inout = arch.arguments("inout")
    contribution = "meta.flow.task == task_t.AGGREGATE"
    about_sent = "meta.flow.task == task_t.ACKNOWLEDGE"
    own = (
        Apply("CheckRange", "hdr.aeth, meta", "lines 27, 28 and 31"),
        when(
            contribution,
            Apply("CheckOrder", "hdr.bth, meta", "lines 33-35"),
            Apply("CountMessages", "hdr.bth, meta"),
            otherwise=(Apply("ReceiveAck", "hdr, meta", "line 24"),),
        ),
        when(
            "meta.order.accepted == 1 || meta.lookup.kind == kind_t.CURSOR",
            Apply("CheckDuplicate", "hdr.bth, meta"),
            when("meta.lookup.kind == kind_t.CURSOR", Do("hdr.payload.setValid();", "AggregateData fills it")),
            Apply("AggregateData", "hdr.payload, meta", "lines 37 and 39"),
            Apply("Retransmission", f"hdr, meta, {inout}", "Algorithm 3, lines 9-14"),
        ),
        Apply("TrackSent", "meta", "line 15"),
        when("meta.lookup.kind == kind_t.TICK", Apply("ResendTimer", "meta", "Algorithm 3, line 3")),
        when(
            about_sent,
            when(
                "meta.lookup.kind != kind_t.CURSOR",
                when(OURS, Apply("StartCursor", f"hdr, meta, {inout}")),
            ),
        ),
        when("meta.order.accepted == 1", Apply("ReplicateData", f"meta, {inout}", "lines 38 and 40")),
        Apply("SendAck", f"meta, {inout}", "line 35"),
    )
    passed_on = when(
        "meta.flow.task == task_t.REFLECT",
        Apply("ReflectAck", inout),
        otherwise=(
            when(
                "meta.flow.task == task_t.REPLICATE",
                Do(arch.multicast("meta.flow.out_group"), "", (Feature.MULTICAST,)),
                otherwise=(
                    when(
                        "meta.lookup.kind == kind_t.TICK",
                        Do("meta.drop = drop_t.StartCursor_not_needed;", "nothing is sent by this edge"),
                        otherwise=(Do("meta.drop = drop_t.ClassifyTraffic_no_flow;"),),
                    ),
                ),
            ),
        ),
    )
    collective = (
        Apply("ClassifyTraffic", "hdr, meta", "line 21"),
        when(OURS, when(f"{contribution} || {about_sent}", *own, otherwise=(passed_on,))),
    )
    count, away = drop(arch, "ingress")
    return Flow(
        (
            Apply("ValidatePacket", f"hdr, meta, {arch.arguments('in')}"),
            Apply("LookupTable", f"hdr, meta, {arch.arguments('in')}", "line 21"),
            when(
                ORDINARY,
                Do("meta.drop = drop_t.NONE;", "whatever ValidatePacket found"),
                ordinary(arch),
                otherwise=collective,
            ),
            when(DROPPED, count, away),
        )
    )


def egress(spec: EpicSpec) -> Flow:
    """The handling of each copy of a packet in egress, which ordinary and recirculated packets bypass."""
    arch = spec.architecture
    leaves: tuple[Step, ...] = (
        when("meta.path.form == form_t.ANSWER", Apply("MakeAck", "hdr, meta")),
        Apply("TranslateHeader", f"hdr, meta, {arch.arguments('in', 'egress')}", "line 41"),
    )
    return Flow(
        (
            when("meta.path.form == form_t.CURSOR", Apply("AdvanceCursor", "hdr, meta"), otherwise=leaves),
            when(DROPPED, *drop(arch, "egress")),
        )
    )
