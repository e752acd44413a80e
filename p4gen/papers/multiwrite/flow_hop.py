"""The flow of MultiWrite's programs where each hop repairs what it loses."""

from __future__ import annotations

from p4gen.arch import Feature
from p4gen.papers.multiwrite.flow import ANSWER, DATA, DROPPED, OURS, drop, routed
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.program.flow import Apply, Do, Flow, Ordinary, Step, when

CURSOR = "meta.lookup.kind == kind_t.CURSOR"
TICK = "meta.lookup.kind == kind_t.TICK"
_NOTHING_YET = (
    "copies.out_mask",
    "copies.answers",
    "order.fresh",
    "progress.lowest",
    "order.notifies",
    "held.complete",
    "answer.turns",
    "path.goes_round",
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
            Do("bit<1> uses_slot = 0;"),
            Do("bit<1> reports = 0;", "an answer, or a tick"),
            Do("bit<1> timed = 0;"),
            Apply("LookupTable", f"hdr, meta, {arch.arguments('in')}", "section 4.1"),
            when(
                "meta.lookup.kind == kind_t.ORDINARY",
                Ordinary((routed(inout),)),
                otherwise=(
                    Apply("ValidatePacket", f"hdr, meta, {arch.arguments('in')}"),
                    *((Apply("CheckIcrc", "hdr, meta"),) if spec.icrc.checked else ()),
                    when(OURS, Apply("FindContext", "hdr, meta")),
                    when(
                        OURS,
                        when(
                            "meta.lookup.kind == kind_t.NOTIFICATION",
                            Apply("RelayNotification", f"meta, {inout}"),
                            otherwise=_by_kind(),
                        ),
                    ),
                    *_repaired(inout),
                    when("meta.copies.answers == 1", Apply("SendAck", f"meta, {inout}")),
                ),
            ),
            when(DROPPED, count, when("meta.answer.turns == 0", away)),
        )
    )


def _by_kind() -> tuple[Step, ...]:
    """Updates of orders and progress by each kind of packet."""
    range_ = Apply("CheckRange", "hdr.bth, meta")
    return (
        when(DATA, Apply("ReachPorts", "hdr, meta", "the union of ports"), range_),
        Apply("CheckOrder", "hdr.bth, meta"),
        when(OURS, Apply("AssignPsn", "hdr, meta"), Apply("CombineAcks", "hdr, meta")),
        when(
            OURS,
            when(
                ANSWER,
                range_,
                Do("reports = 1;"),
                Do("timed = 1;"),
                otherwise=(
                    when(
                        TICK,
                        Do("reports = 1;"),
                        Do("timed = 1;"),
                        otherwise=(Do("uses_slot = 1;"), when(CURSOR, Do("timed = 1;"))),
                    ),
                ),
            ),
        ),
    )


def _repaired(inout: str) -> tuple[Step, ...]:
    """A write goes to its slot and out; a cursor sends what is in one again."""
    return (
        when("uses_slot == 1", Apply("HoldPacket", "hdr, meta")),
        when("timed == 1", Apply("ResendTimer", "hdr, meta"), note="EPIC Algorithm 3, line 3"),
        when("reports == 1", Apply("StartCursor", f"hdr, meta, {inout}")),
        when(
            "uses_slot == 1",
            when(
                CURSOR,
                Apply("Retransmission", f"hdr, meta, {inout}"),
                otherwise=(Apply("ReplicateData", f"meta, {inout}", "one copy a port"),),
            ),
        ),
    )


def egress(spec: MultiwriteSpec) -> Flow:
    """The handling of each copy in egress; ordinary traffic passes unchanged."""
    arch = spec.architecture
    rid = arch.replication_id
    placed = (Apply("RewriteBitmap", "hdr, meta"), Apply("PlaceWrite", "hdr, meta"))
    numbered = Apply("NumberCopy", "hdr.bth, meta")
    copied = (Apply("PrunePort", "meta"), when(OURS, numbered)) if spec.prunes else (numbered,)
    again = Do(arch.clone_again(arch.session_of(arch.egress_port)), uses=(Feature.EGRESS_CLONE,))
    written: tuple[Step, ...] = (
        when(DATA, *copied),
        when(OURS, when("meta.lookup.kind != kind_t.NOTIFICATION", *placed)),
    )
    return Flow(
        (
            Do("meta.drop = drop_t.NONE;"),
            when(
                "meta.lookup.kind != kind_t.ORDINARY",
                Do("bit<1> cloned = 0;"),
                Do("bit<1> notifies = 0;"),
                when(arch.cloned_on_arrival, Do("cloned = 1;")),
                when(arch.cloned_on_departure, Do("cloned = 1;"), Do("notifies = 1;")),
                when("cloned == 1", Do("meta.path.goes_round = 0;"), note="clones do not keep it"),
                when(f"{rid} != 0", Do(f"meta.lookup.edge = {rid};"), note="a copy leaves by the edge it is for"),
                when(
                    "hdr.bth.opcode == opcode_t.CURSOR",
                    Apply("AdvanceCursor", "hdr, meta"),
                    otherwise=(
                        Do("bit<1> answer = cloned | meta.answer.turns;"),
                        when(
                            "answer == 1",
                            Do("bit<1> both = meta.order.notifies & ~notifies;"),
                            when("both == 1", again, note="an answer, and a notification"),
                            Apply("MakeAck", "hdr, meta, notifies"),
                            otherwise=written,
                        ),
                        when(OURS, Apply("TranslateHeader", "hdr, meta")),
                    ),
                ),
                *((when(OURS, Apply("SetIcrc", "hdr")),) if spec.icrc.right else ()),
                when(DROPPED, *drop(arch, "egress")),
                otherwise=(Ordinary(),),
            ),
        )
    )
