"""EPIC Algorithms 2 and 3: the flow of Mode III, and of Mode I, which has the same transport below other storage."""

from __future__ import annotations

from p4gen.arch import Architecture, Feature
from p4gen.papers.epic.flow_ii import DROPPED, IN_ITS_BANK, OURS, drop, ordinary, recirculate
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.words import names_holes
from p4gen.program.flow import Apply, Do, Flow, Ordinary, Step, when

ANSWER = "meta.lookup.kind == kind_t.ANSWER"
CURSOR = "meta.lookup.kind == kind_t.CURSOR"


def ingress(spec: EpicSpec, first_slot: str) -> Flow:
    """The handling of a packet on arrival. ``first_slot`` is the P4 expression of slot 0 of its pipeline's bank."""
    arch = spec.architecture
    count, away = drop(arch, "ingress")
    nothing_yet = ("order.accepted", "order.answers", "buffer.complete", "answer.turns", "path.goes_round",
                   "flow.out_mask", *(() if spec.mode.stores else ("flow.sync",)),
                   *(("order.notifies",) if spec.notifies else ()))  # fmt: skip
    return Flow(
        (
            Do("meta.drop = drop_t.NONE;"),
            *(Do(f"meta.{name} = 0;") for name in nothing_yet),
            Do("bit<1> cursor = 0;"),
            Do("bit<1> reports = 0;", "an answer, or a tick"),
            Do("bit<1> timed = 0;"),
            *((Do("bit<1> may_notify = 0;"),) if spec.notifies else ()),
            Apply("LookupTable", f"hdr, meta, {arch.arguments('in')}", "line 21"),
            *((Do(f"meta.flow.slot = {first_slot};", IN_ITS_BANK),) if spec.pipelines > 1 else ()),
            when(
                "meta.lookup.kind == kind_t.ORDINARY",
                ordinary(arch),
                otherwise=(
                    *_accepted(spec),
                    *_by_kind(spec),
                    *(_stored(spec) if spec.mode.stores else _in_its_slot(spec)),
                    *_answered(spec),
                ),
            ),
            when(DROPPED, count, when("meta.answer.turns == 0", away)),
        )
    )


def _accepted(spec: EpicSpec) -> tuple[Step, ...]:
    """Validates the packet, and finds its group and collective."""
    return (
        Apply("ValidatePacket", f"hdr, meta, {spec.architecture.arguments('in')}"),
        *((Apply("CheckIcrc", "hdr, meta"),) if spec.icrc.checked else ()),
        *((when(OURS, Apply("FindPosition", "hdr.bth, meta")),) if spec.mode.stores else ()),
        when(OURS, Apply("LearnTag", "hdr, meta")),
        when(OURS, Apply("FindContext", "hdr, meta")),
        when(OURS, when("meta.lookup.kind != kind_t.CONTROL", Apply("TrackInvocation", "hdr, meta"))),
        when(
            OURS,
            when("meta.lookup.kind != kind_t.TICK", Apply("ClassifyTraffic", "hdr.bth, meta", "line 21")),
            _outstanding(spec),
        ),
        when(OURS, when(ANSWER, Apply("EmitMessage" if spec.mode.stores else "TrackSent", _sent(spec)))),
    )


def _outstanding(spec: EpicSpec) -> Step:
    return when(
        CURSOR,
        *(() if spec.mode.stores else (when(OURS, Apply("TrackSent", "hdr.bth, meta")),)),
        when(DROPPED, Do("meta.drop = drop_t.Retransmission_done;")),
        note="of a tick: nothing need be outstanding",
    )


def _sent(spec: EpicSpec) -> str:
    return "hdr, meta" if spec.mode.stores else "hdr.bth, meta"


def _by_kind(spec: EpicSpec) -> tuple[Step, ...]:
    """Updates of ranges, orders and progress by each kind of packet."""
    may_notify = Do("may_notify = 1;")
    room = "CheckMessages" if spec.mode.stores else "CheckRange"
    from_now_on = Do("may_notify = 1;", "from now on")
    kinds = (
        when(
            ANSWER,
            Do("reports = 1;"),
            Do("timed = 1;"),
            note="line 23",
            otherwise=(
                when(
                    "meta.lookup.kind == kind_t.TICK",
                    Do("reports = 1;"),
                    Do("timed = 1;"),
                    *((from_now_on,) if spec.notifies else ()),
                ),
            ),
        ),
        when(
            "reports == 1",
            Apply("ReceiveAck", "hdr, meta", "line 24"),
            when(
                ANSWER,
                Apply(room, "hdr.bth, meta", "lines 27 and 28"),
                *(() if spec.mode.stores else (Apply("CheckOrder", "hdr, meta", "moves a reverse flow along"),)),
            ),
            otherwise=(
                when(
                    "meta.lookup.kind == kind_t.NOTIFICATION",
                    Apply("RelayNotification", f"meta, {spec.architecture.arguments('inout')}"),
                    otherwise=(
                        when(
                            CURSOR,
                            Do("cursor = 1;"),
                            Do("timed = 1;"),
                            otherwise=(
                                Apply(room, "hdr.bth, meta", "line 31"),
                                Apply("CheckOrder", "hdr, meta", "lines 33-35"),
                                Apply("CountMessages", "hdr.bth, meta"),
                                *((may_notify,) if spec.notifies else ()),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )
    notify = when("may_notify == 1", Apply("NotifyCongestion", "hdr.ipv4, meta"))
    return (when(OURS, *kinds), *((notify,) if spec.notifies else ()))


def _buffer(spec: EpicSpec) -> str:
    """What keeps contributions, or their sum."""
    return "StoreData" if spec.folds else "AggregateData"


def _in_its_slot(spec: EpicSpec) -> tuple[Step, ...]:
    """An accepted packet joins its slot; a cursor reads it."""
    inout = spec.architecture.arguments("inout")
    return (
        Do("bit<1> uses_slot = meta.order.accepted | cursor;"),
        when("uses_slot == 1", Apply("CheckDuplicate", "hdr.bth, hdr.ipv4.ecn, meta")),
        when("timed == 1", Apply("ResendTimer", "hdr, meta"), note="Algorithm 3, line 3"),
        *((when("reports == 1", when(ANSWER, Apply("RepairHoles", "hdr, meta"))),) if names_holes(spec) else ()),
        when("reports == 1", Apply("StartCursor", f"hdr, meta, {inout}")),
        when(
            "uses_slot == 1",
            when("cursor == 1", Apply("Retransmission", f"hdr, meta, {inout}")),
            when(
                OURS,
                when("meta.lookup.kind == kind_t.CONTROL", Apply("TrackInvocation", "hdr, meta")),
                note="refused announcements are not stored",
            ),
            when(
                OURS,
                Apply(_buffer(spec), "hdr.payload, meta", "lines 37 and 39"),
                when("cursor == 0", Apply("ReplicateData", f"meta, {inout}", "lines 38 and 40")),
            ),
            when(
                OURS,
                when(
                    "meta.lookup.kind != kind_t.ANSWER",
                    when("meta.lookup.kind != kind_t.CURSOR", Apply("TrackSent", "hdr.bth, meta")),
                    note="line 15: a new result goes out",
                ),
            ),
        ),
    )


def _stored(spec: EpicSpec) -> tuple[Step, ...]:
    """Mode I: an accepted packet is stored; a cursor sends what is stored."""
    inout = spec.architecture.arguments("inout")
    return (
        Do("bit<1> uses_slot = meta.order.accepted | cursor;"),
        when(
            "uses_slot == 1",
            Apply("CheckDuplicate", "hdr.bth, hdr.ipv4.ecn, meta"),
            when(
                OURS,
                when("meta.lookup.kind == kind_t.CONTROL", Apply("TrackInvocation", "hdr, meta")),
                note="refused announcements are not stored",
            ),
            when(OURS, when("meta.lookup.kind != kind_t.ANSWER", Apply("EmitMessage", "hdr, meta"))),
        ),
        when("timed == 1", Apply("ResendTimer", "hdr, meta"), note="Algorithm 3, line 3"),
        when("reports == 1", Apply("StartCursor", f"hdr, meta, {inout}")),
        when(
            "uses_slot == 1",
            when("cursor == 1", Apply("Retransmission", f"hdr, meta, {inout}")),
            when(
                OURS,
                Apply(_buffer(spec), "hdr.payload, meta"),
                when("cursor == 0", Apply("StartCursor", f"hdr, meta, {inout}")),
            ),
        ),
    )


def _answered(spec: EpicSpec) -> tuple[Step, ...]:
    send = Apply("SendAck", f"meta, {spec.architecture.arguments('inout')}")
    if not spec.notifies:
        return (when("meta.order.answers == 1", send, note="line 35"),)
    speaks = Do("bit<1> speaks = meta.order.answers | meta.order.notifies;")
    return (speaks, when("speaks == 1", send, note="line 35"))


def egress(spec: EpicSpec) -> Flow:
    """The handling of each copy of a packet in egress; ordinary traffic passes unchanged."""
    arch = spec.architecture
    return Flow(
        (
            Do("meta.drop = drop_t.NONE;"),
            when(
                "meta.lookup.kind != kind_t.ORDINARY",
                Do("bit<1> cloned = 0;"),
                when(arch.cloned_on_arrival, Do("cloned = 1;")),
                *(_notifying(arch) if spec.notifies else ()),
                when("cloned == 1", Do("meta.path.goes_round = 0;"), note="clones do not keep it"),
                when(
                    "hdr.bth.opcode == opcode_t.CURSOR",
                    Apply("AdvanceCursor", "hdr, meta"),
                    otherwise=(
                        Do("bit<1> answer = cloned | meta.answer.turns;"),
                        _make_ack(spec),
                        Apply("TranslateHeader", f"hdr, meta, {arch.arguments('in', 'egress')}", "line 41"),
                        *((recirculate(arch),) if spec.pipelines > 1 else ()),
                    ),
                ),
                *((Apply("SetIcrc", "hdr"),) if spec.icrc.right else ()),
                when(DROPPED, *drop(arch, "egress")),
                otherwise=(Ordinary(),),
            ),
        )
    )


def _notifying(arch: Architecture) -> tuple[Step, ...]:
    return (
        Do("bit<1> notifies = ~meta.order.answers;", "alone, or there would be nothing to send"),
        when(arch.cloned_on_departure, Do("cloned = 1;"), Do("notifies = 1;")),
    )


def _make_ack(spec: EpicSpec) -> Step:
    if not spec.notifies:
        return when("answer == 1", Apply("MakeAck", "hdr, meta"))
    arch = spec.architecture
    clone = Do(arch.clone_again(arch.session_of(arch.egress_port)), uses=(Feature.EGRESS_CLONE,))
    return when(
        "answer == 1",
        Do("bit<1> both = meta.order.notifies & ~notifies;"),
        when("both == 1", clone),
        Apply("MakeAck", "hdr, meta, notifies"),
    )
