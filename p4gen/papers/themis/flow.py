"""The flow of Themis's programs: Themis-D for packets to and from a switch's own hosts, Themis-S for the rest."""

from __future__ import annotations

from p4gen.arch import Architecture, Feature, Stage
from p4gen.papers.themis.spec import Cm, ThemisSpec
from p4gen.program.flow import Apply, Do, Flow, Ordinary, Step, when

_UNLESS_BLOCKED = when("meta.drop == drop_t.NONE", Ordinary())


def ingress(spec: ThemisSpec) -> Flow:
    """The handling of a packet on arrival."""
    steps = Flow(arriving(spec)).settled(lambda _: (routed(spec.architecture),)).steps
    return Flow((Do("meta.drop = drop_t.NONE;"), *steps, dropped(spec.architecture, "ingress")))


def egress(spec: ThemisSpec) -> Flow:
    """A copy of what shows a loss becomes a NACK, and is routed on its next way through ingress."""
    return Flow((*leaving(spec), dropped(spec.architecture, "egress")))


def arriving(spec: ThemisSpec) -> tuple[Step, ...]:
    """What is done before a packet is routed, and the place where it is."""
    steps = _filtered(spec) if spec.filters else (*_sprayed(spec), Ordinary())
    return (*_copied(spec), *steps)


def leaving(spec: ThemisSpec) -> tuple[Step, ...]:
    """What is done to copies that show a loss, to NACKs, and to what replaces them."""
    if not spec.filters:
        return ()
    arch = spec.architecture
    recirculate = Do(arch.recirculate(), uses=(Feature.RECIRCULATION,))
    sealed = (Apply("SetIcrc", "hdr"),) if spec.icrc.right else ()
    leaves = when("meta.nack.changed == 1", *sealed, _truncated(arch))
    around = when("meta.nack.goes_round == 1", recirculate, otherwise=(leaves,)) if spec.walks else leaves
    nack: tuple[Step, ...] = (Apply("MakeNack", "hdr, meta"), recirculate)
    if spec.cm is Cm.COPY:
        nack = (when("meta.cm.copied == 0", *nack, note="a copy for the manager leaves as it is"),)
    return (when(arch.cloned_on_arrival, *nack, otherwise=(around,)),)


def _copied(spec: ThemisSpec) -> tuple[Step, ...]:
    """Messages that set up connections go to the manager, too."""
    if spec.cm is not Cm.COPY:
        return ()
    arch = spec.architecture
    clone = Do(arch.clone("CM_SESSION"), uses=(Feature.CLONE,))
    copy = Apply("CopyCm", f"hdr, meta, {arch.arguments('in')}", "beside Themis: InfiniBand 12.6")
    return (copy, when("meta.cm.copied == 1", clone))


def _sprayed(spec: ThemisSpec) -> tuple[Step, ...]:
    if not spec.sprays:
        return ()
    find_path = Apply("FindPath", "hdr.bth, meta", "Eq. 1")
    return (Apply("FindFlow", "hdr, meta"), when("meta.flow.kind != kind_t.ORDINARY", find_path, *_mapped(spec)))


def _filtered(spec: ThemisSpec) -> tuple[Step, ...]:
    """Requests for this switch's hosts are recorded, and NACKs from them are judged."""
    arch = spec.architecture
    check = Apply("CheckAnswer", f"hdr, meta, {arch.arguments('in')}")
    check_request = Apply("CheckRequest", f"hdr, meta, {arch.arguments('in')}")
    record = Apply("RecordPsn" if spec.walks else "RecordClass", "hdr.bth, meta", "section 3.3")
    judge = Apply("JudgeNack", "meta", "Eq. 3")
    blocked = Apply("BlockedNack", "hdr, meta", "section 3.4")
    check_answers = when("meta.flow.kind == kind_t.ACK || meta.flow.kind == kind_t.NACK", check)
    return (
        *((Do("meta.nack.goes_round = 0;"),) if spec.walks else ()),
        when(arch.recirculated(is_not=True), Do("meta.nack.made = 0;")),
        Do("meta.nack.changed = meta.nack.made;", "1: a NACK that this switch has made comes round"),
        Apply("FindFlow", f"hdr, meta, {arch.arguments('in')}" if spec.walks else "hdr, meta"),
        when("meta.nack.changed == 1", Do("meta.flow.kind = kind_t.ORDINARY;"), note="it is not judged"),
        when("meta.flow.again == 0", check_answers) if spec.walks else check_answers,
        *(() if spec.narrow else (when("meta.flow.kind == kind_t.DELIVERED", check_request),)),
        when("meta.flow.kind != kind_t.ORDINARY", Apply("FindPath", "hdr.bth, meta", "Eq. 1"), *_mapped(spec)),
        when("meta.flow.kind == kind_t.DELIVERED || meta.flow.kind == kind_t.NACK", record),
        when("meta.flow.kind == kind_t.NACK", judge),
        when("meta.flow.kind != kind_t.ORDINARY && meta.flow.kind != kind_t.SPRAYED", blocked),
        when("meta.nack.made == 1", when("meta.nack.changed == 0", _clone(arch)), note="one is to be made"),
        when("meta.nack.goes_round == 1", Do(arch.send("ANY_PORT")), otherwise=(_UNLESS_BLOCKED,))
        if spec.walks
        else _UNLESS_BLOCKED,
    )


def _mapped(spec: ThemisSpec) -> tuple[Step, ...]:
    """With three tiers, what leaves for another rack has its UDP source port changed, and what has come has it back."""
    if spec.tiers == 2:
        return ()
    restored = when("meta.flow.kind == kind_t.DELIVERED", Apply("RestorePort", "hdr, meta"))
    mapped = (Apply("MapPath", "hdr, meta", "Figure 3"),) if spec.sprays else ()
    return (*mapped, *((restored,) if spec.filters else ()))


def routed(arch: Architecture) -> Step:
    """Requests for MAC addresses are answered, all else is routed."""
    arguments = f"hdr, meta, {arch.arguments('inout')}"
    return when("hdr.arp.isValid()", Apply("AnswerArp", arguments), otherwise=(Apply("Forward", arguments),))


def _clone(arch: Architecture) -> Do:
    return Do(arch.clone("NACK_SESSION"), uses=(Feature.CLONE,))


def _truncated(arch: Architecture) -> Step:
    """The NACK is without the payload of what it is made of."""
    size, tagged = (Do(arch.truncate(text), uses=(Feature.TRUNCATION,)) for text in ("ACK_FRAME", "ACK_FRAME + 4"))
    return when("hdr.vlan.isValid()", tagged, otherwise=(size,))


def dropped(arch: Architecture, stage: Stage) -> Step:
    """What a module has given a reason to drop is counted, and leaves by no port."""
    count = Do(
        arch.count(
            "drops", "(bit<32>)(bit<8>)meta.drop" if Feature.WIDE_STATE in arch.features else "(bit<8>)meta.drop"
        )
    )
    return when("meta.drop != drop_t.NONE", count, Do(arch.drop(stage)))
