"""EPIC Algorithm 1: the flow of Mode II."""

from __future__ import annotations

from p4gen.families.epic import modules as m
from p4gen.families.epic.spec import EpicSpec
from p4gen.program.flow import Apply, Do, Flow, Step, when

OURS = "meta.drop == drop_t.NONE"
DROPPED = "meta.drop != drop_t.NONE"
IN_ITS_BANK = "always in the bank of its pipeline"

ORDINARY = when(
    "hdr.arp.isValid()",
    Apply(m.ANSWER_ARP, "hdr, meta, std_meta"),
    otherwise=(Apply(m.FORWARD, "hdr, meta, std_meta"),),
)
"""The handling of packets that no endpoint claims, in both modes."""
DROP = (Do("drops.count((bit<32>)(bit<8>)meta.drop);"), Do("mark_to_drop(std_meta);"))
RECIRCULATE = when("meta.path.goes_round == 1", Do("recirculate_preserving_field_list(KEPT);"))


def ingress(spec: EpicSpec, first_slot: str) -> Flow:
    """The handling of a packet on arrival. ``first_slot`` is the P4 expression of slot 0 of its pipeline's bank."""
    several, filters = spec.pipelines > 1, spec.loss_recovery.in_order
    return Flow(
        (
            Do("meta.drop = drop_t.NONE;"),
            Do("meta.flow.takes_slot = 0;"),
            *((Do("meta.path.goes_round = 0;"),) if several else ()),
            Apply(m.LOOKUP_TABLE, "hdr, meta, std_meta" if several else "hdr, meta", "line 16"),
            *((Do(f"meta.flow.slot = {first_slot};", IN_ITS_BANK),) if several else ()),
            when("meta.lookup.kind == kind_t.ORDINARY", ORDINARY, otherwise=_collective(spec, filters=filters)),
            when(DROPPED, *DROP),
        )
    )


def _collective(spec: EpicSpec, *, filters: bool) -> tuple[Step, ...]:
    track = Apply(m.TRACK_INVOCATION, "hdr, meta")
    check = Apply(m.CHECK_DUPLICATE, "hdr.bth, hdr.ipv4.ecn, meta", "line 20; recycles lazily, line 24")
    return (
        Apply(m.VALIDATE_PACKET, "hdr, meta, std_meta"),
        *((Apply(m.CHECK_ICRC, "hdr, meta"),) if spec.icrc.checked else ()),
        when(OURS, Apply(m.FIND_CONTEXT, "hdr, meta")),
        when(OURS, when("meta.lookup.kind != kind_t.CONTROL", track)),
        when(OURS, Apply(m.CLASSIFY_TRAFFIC, "hdr.bth, meta", "line 16")),
        when(OURS, when("meta.lookup.kind == kind_t.CONTROL", track), note="refused announcements are not stored"),
        when(
            OURS,
            when(
                "meta.flow.task == task_t.AGGREGATE",
                *((Apply(m.FILTER_ORDER, "hdr.bth, meta"), when(OURS, check)) if filters else (check,)),
                when(
                    OURS,
                    Apply(m.AGGREGATE_DATA, "hdr.payload, meta", "lines 21 and 23"),
                    Apply(m.REPLICATE_DATA, "meta, std_meta", "lines 22 and 25"),
                ),
                note="line 19",
                otherwise=(
                    when(
                        "meta.flow.task == task_t.REFLECT",
                        Apply(m.REFLECT_ACK, "std_meta"),
                        otherwise=_passed_on(),
                    ),
                ),
            ),
        ),
    )


def _passed_on() -> tuple[Step, ...]:
    return (
        when("meta.flow.takes_slot == 1", Apply(m.CHECK_DUPLICATE, "hdr.bth, hdr.ipv4.ecn, meta")),
        Do("bit<1> combines = meta.invocation.begins;", "a control message: the ACKs start afresh"),
        when(
            "meta.flow.task == task_t.COMBINE",
            when("meta.lookup.kind == kind_t.ANSWER", Do("combines = 1;")),
        ),
        when("combines == 1", Apply(m.COMBINE_ACKS, "hdr, meta")),
        when(OURS, Do("std_meta.mcast_grp = meta.flow.out_group;", "line 25")),
    )


def egress(spec: EpicSpec) -> Flow:
    """The handling of each copy of a packet in egress; ordinary traffic passes unchanged."""
    return Flow(
        (
            when(
                "meta.lookup.kind != kind_t.ORDINARY",
                Apply(m.TRANSLATE_HEADER, "hdr, meta, std_meta", "line 26"),
                *((Apply(m.SET_ICRC, "hdr"),) if spec.icrc.checked else ()),
                *((RECIRCULATE,) if spec.pipelines > 1 else ()),
                when(DROPPED, *DROP),
            ),
        )
    )
