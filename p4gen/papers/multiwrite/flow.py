"""The flow of MultiWrite's programs where the source repairs losses."""

from __future__ import annotations

from p4gen.arch import Architecture, Stage
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.program.flow import Apply, Do, Flow, Ordinary, Step, when

OURS = "meta.drop == drop_t.NONE"
DROPPED = "meta.drop != drop_t.NONE"
DATA = "meta.lookup.kind == kind_t.DATA"
ANSWER = "meta.lookup.kind == kind_t.ANSWER"
_NOTHING_YET = (
    "copies.out_mask",
    "copies.answers",
    "progress.lowest",
    "progress.lowest_syndrome",
    "progress.naks",
    "answer.turns",
)


def ingress(spec: MultiwriteSpec) -> Flow:
    """The handling of a packet on arrival."""
    arch = spec.architecture
    inout = arch.arguments("inout")
    count, away = drop(arch, "ingress")
    return Flow(
        (
            Do("meta.drop = drop_t.NONE;"),
            *(Do(f"meta.{name} = 0;") for name in _NOTHING_YET),
            Apply("LookupTable", f"hdr, meta, {arch.arguments('in')}", "section 4.1"),
            when(
                "meta.lookup.kind == kind_t.ORDINARY",
                Ordinary((routed(inout),)),
                otherwise=(
                    Apply("ValidatePacket", f"hdr, meta, {arch.arguments('in')}"),
                    *_checked(spec),
                    when(OURS, Apply("FindContext", "hdr, meta")),
                    when(OURS, _by_kind(spec, inout)),
                    when("meta.copies.answers == 1", Apply("SendAck", f"meta, {inout}")),
                ),
            ),
            when(DROPPED, count, when("meta.answer.turns == 0", away)),
        )
    )


def _checked(spec: MultiwriteSpec) -> tuple[Step, ...]:
    """Corrupt packets end here; where ICRCs are patched, writes go on, and stay corrupt."""
    if spec.icrc.patched:
        return (when(f"!({DATA})", Apply("CheckIcrc", "hdr, meta")),)
    return (Apply("CheckIcrc", "hdr, meta"),) if spec.icrc.checked else ()


def _by_kind(spec: MultiwriteSpec, inout: str) -> Step:
    range_, order = Apply("CheckRange", "hdr.bth, meta"), Apply("CheckOrder", "hdr.bth, meta")
    numbers, acks = Apply("AssignPsn", "hdr, meta"), Apply("CombineAcks", "hdr, meta")
    return when(
        DATA,
        Apply("ReachPorts", "hdr, meta", "the union of ports"),
        range_,
        when(OURS, order),
        when(OURS, numbers, acks),
        when(
            OURS,
            *((Apply("KeepHeaderCrc", "hdr, meta"),) if spec.icrc.patched else ()),
            Apply("ReplicateData", f"meta, {inout}", "one copy a port"),
        ),
        otherwise=(
            when(
                ANSWER,
                order,
                numbers,
                acks,
                range_,
                otherwise=(Apply("RelayNotification", f"meta, {inout}"),),
            ),
        ),
    )


def egress(spec: MultiwriteSpec) -> Flow:
    """The handling of each copy in egress; ordinary traffic passes unchanged."""
    arch = spec.architecture
    rid = arch.replication_id
    copy = (
        Apply("NumberCopy", "hdr.bth, meta"),
        Apply("RewriteBitmap", "hdr, meta"),
        Apply("PlaceWrite", "hdr, meta"),
    )
    pruned = (Apply("PrunePort", "meta"), when(OURS, *copy)) if spec.prunes else copy
    addressed = Apply("TranslateHeader", "hdr, meta")
    return Flow(
        (
            Do("meta.drop = drop_t.NONE;"),
            when(
                "meta.lookup.kind != kind_t.ORDINARY",
                when(f"{rid} != 0", Do(f"meta.lookup.edge = {rid};"), note="a copy leaves by the edge it is for"),
                when(
                    "meta.answer.turns == 1",
                    Apply("MakeAck", "hdr, meta"),
                    otherwise=(when(DATA, *pruned),),
                ),
                *((when(OURS, addressed, *_sealed(spec)),) if spec.prunes else (addressed, *_sealed(spec))),
                when(DROPPED, *drop(arch, "egress")),
                otherwise=(Ordinary(),),
            ),
        )
    )


def _sealed(spec: MultiwriteSpec) -> tuple[Step, ...]:
    """What leaves has a right ICRC; where ICRCs are patched, a write's is as right as it came."""
    if spec.icrc.patched:
        return (
            when(
                "hdr.payload.isValid()",
                Apply("PatchIcrc", "hdr, meta"),
                otherwise=(Apply("SetIcrc", "hdr"),),
            ),
        )
    return (Apply("SetIcrc", "hdr"),) if spec.icrc.right else ()


def routed(inout: str) -> Step:
    """What is not the program's own is routed."""
    return when(
        "hdr.arp.isValid()",
        Apply("AnswerArp", f"hdr, meta, {inout}"),
        otherwise=(Apply("Forward", f"hdr, meta, {inout}"),),
    )


def drop(arch: Architecture, stage: Stage) -> tuple[Do, Do]:
    """A dropped packet is counted by reason, and leaves by no port."""
    return Do(arch.count("drops", "(bit<32>)(bit<8>)meta.drop")), Do(arch.drop(stage))
