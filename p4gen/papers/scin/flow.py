"""The flow of SCIN's programs."""

from __future__ import annotations

from p4gen.arch import Architecture, Stage
from p4gen.papers.scin.spec import ScinSpec
from p4gen.program.flow import Apply, Do, Flow, Ordinary, Step, When, when

OURS = "meta.drop == drop_t.NONE"
DROPPED = "meta.drop != drop_t.NONE"
_CURSOR = "hdr.cursor.what == cursor_kind_t."
_NOTHING_YET = (
    ("emission.leaves", "out_t.NOTHING"),
    ("emission.receivers", "0"),
    ("emission.again", "0"),
    ("round.what", "cursor_kind_t.NONE"),
    ("round.round_psn", "0"),
    ("round.reason", "0"),
    ("round.about", "0"),
    ("round.asked", "0"),
    ("round.announced", "0"),
    ("buffer.bitmap", "0"),
    ("buffer.complete", "0"),
    ("progress.acked", "0"),
    ("progress.naks", "0"),
    ("progress.lacks", "0"),
    ("progress.moves", "0"),
)


def _nothing_yet(spec: ScinSpec) -> tuple[tuple[str, str], ...]:
    return (
        *_NOTHING_YET,
        *((("progress.finishes", "0"),) if not spec.ordered else ()),
        *((("release.start", "0"),) if spec.releases_early else ()),
    )


def ingress(spec: ScinSpec) -> Flow:
    """The handling of a packet on arrival."""
    arch = spec.architecture
    inout = arch.arguments("inout")
    routed = when("hdr.arp.isValid()", Apply("AnswerArp", f"hdr, meta, {inout}"),
                  otherwise=(Apply("Forward", f"hdr, meta, {inout}"),))  # fmt: skip
    count, away = _drop(arch, "ingress")
    return Flow(
        (
            Do("meta.drop = drop_t.NONE;"),
            *(Do(f"meta.{name} = {value};") for name, value in _nothing_yet(spec)),
            Apply("LookupTable", f"hdr, meta, {arch.arguments('in')}"),
            when(
                "meta.lookup.kind == kind_t.ORDINARY",
                Ordinary((routed,)),
                otherwise=(
                    when(
                        "meta.lookup.kind != kind_t.CURSOR",
                        Apply("ValidatePacket", f"hdr, meta, {arch.arguments('in')}", "cursors are this program's own"),
                        *((Apply("CheckIcrc", "hdr, meta"),) if spec.icrc.checked else ()),
                    ),
                    when(OURS, Apply("FindContext", "meta")),
                    when(OURS, Apply("TrackCall", "hdr, meta", "section 3.4.2")),
                    when(OURS, *_by_kind(spec)),
                    when("meta.round.what != cursor_kind_t.NONE", Apply("StartCursor", f"meta, {inout}")),
                    Apply("ReplicateData", f"meta, {inout}"),
                ),
            ),
            when(DROPPED, count, when("meta.emission.leaves == out_t.NOTHING", away)),
        )
    )


def _kind(name: str) -> str:
    return f"meta.lookup.kind == kind_t.{name}"


def _by_kind(spec: ScinSpec) -> tuple[Step, ...]:
    acked, issue = Apply("ReceiveAck", "hdr, meta"), Apply("IssueWave", "hdr, meta", "section 3.4.1")
    slot, release = Apply("CheckDuplicate", "hdr, meta"), Apply("ReleaseResult", "hdr, meta")
    flags = Apply("SignalCompletion", "hdr, meta", "section 3.3")
    again, note = Apply("Retransmission", "hdr, meta"), Apply("NoteProgress", "meta")
    sends = "meta.emission.leaves == out_t.WRITE"
    lanes: tuple[Step, ...] = (Apply("AggregateData", "hdr, meta"),)
    asked: tuple[Step, ...] = (issue,)  # what has been asked for
    loads: tuple[Step, ...] = ()  # what is known before a slot's lanes are
    answer = Apply("AnswerNak", "hdr, meta")
    kinds: list[tuple[str, tuple[Step, ...]]] = []
    cursors: list[tuple[str, tuple[Step, ...]]] = []
    rounds: tuple[Step, ...] = ()
    if spec.scaled:
        tracked = Apply("TrackScales", "hdr, meta", "section 3.4.4")
        lanes = (Apply("AggregateBlocks", "hdr, meta"),)
        rounds = (Apply("Requantise", "hdr, meta"),)
        asked, loads = (tracked,), (tracked,)
        kinds = [(_kind("SCALES"), (issue, tracked, when(OURS, note))), (_kind("SCALES_NAK"), (tracked, answer))]
        cursors = [
            (f"{_CURSOR}WAVE", (tracked,)),
            (f"{_CURSOR}SCALES", (issue, tracked, Apply("RereadScales", "hdr, meta"))),
        ]
    gap = Apply("NoticeGap", "hdr, meta")
    data: tuple[Step, ...] = (*asked, when(OURS, gap, slot, note), when(OURS, release, *lanes))
    if rounds:
        data = (*data, when(sends, *rounds))
    written = when(sends, *lanes, *rounds)
    cursor = _one_of(
        (f"{_CURSOR}ISSUE", (release if spec.releases_early else acked, issue)),
        (f"{_CURSOR}RELEASE", (*loads, slot, release, written)),
        (f"{_CURSOR}READ", (*asked, slot, release, again)),
        (f"{_CURSOR}WRITE", (*loads, acked, slot, release, again, written)),
        *cursors,
    )
    return (
        _one_of(
            (_kind("ARRIVAL"), (Apply("TrackArrival", "hdr, meta", "section 3.3"),)),
            (_kind("DATA"), data),
            (_kind("WRITE_ACK"), (release, acked, issue, when(OURS, note))),
            (_kind("TICK"), (acked, issue, *loads, release, flags, note, Apply("WatchProgress", "meta"))),
            (_kind("CURSOR"), (cursor,)),
            (_kind("READ_NAK"), (release, answer)),
            (_kind("FLAG_ACK"), (flags,)),
            *kinds,
        ),
    )


def _one_of(*cases: tuple[str, tuple[Step, ...]]) -> When:
    """The steps of the first condition that holds."""
    (condition, steps), *rest = cases
    return when(condition, *steps, otherwise=(_one_of(*rest),) if rest else ())


def egress(spec: ScinSpec) -> Flow:
    """The handling of each copy in egress; ordinary traffic passes unchanged."""
    arch = spec.architecture
    rid = arch.replication_id
    leaves = "meta.emission.leaves == out_t."
    made = when(
        f"{leaves}ACK",
        Apply("MakeAck", "hdr, meta"),
        otherwise=(
            when(
                f"{leaves}READ || {leaves}SCALES" if spec.scaled else f"{leaves}READ",
                Apply("MakeRead", "hdr, meta"),
                otherwise=(
                    when(
                        f"{leaves}WRITE",
                        Apply("MakeWrite", "hdr, meta"),
                        otherwise=(Apply("MakeFlag", "hdr, meta"),),
                    ),
                ),
            ),
        ),
    )
    return Flow(
        (
            Do("meta.drop = drop_t.NONE;"),
            when(
                "meta.lookup.kind != kind_t.ORDINARY",
                when(
                    arch.cloned_on_arrival,
                    Apply("AdvanceCursor", "hdr, meta"),
                    otherwise=(
                        when(
                            f"{rid} != 0",
                            Do(f"meta.lookup.edge = {rid};", "a copy is for the rank it is numbered after"),
                            Apply("PrunePort", "meta"),
                        ),
                        when(
                            OURS,
                            Apply("StoreAddresses", "hdr, meta"),
                            made,
                            Apply("TranslateHeader", "hdr, meta"),
                            *((Apply("SetIcrc", "hdr"),) if spec.icrc.right else ()),
                        ),
                    ),
                ),
                when(DROPPED, *_drop(arch, "egress")),
                otherwise=(Ordinary(),),
            ),
        )
    )


def _drop(arch: Architecture, stage: Stage) -> tuple[Do, Do]:
    """A dropped packet is counted by reason, and leaves by no port."""
    return Do(arch.count("drops", "(bit<32>)(bit<8>)meta.drop")), Do(arch.drop(stage))
