"""Themis for architectures whose registers have few actions (``Feature.WIDE_STATE`` is not theirs).

The parser tells requests from answers. A number that another one depends on stands in a register of its own, and each
register is accessed once in a pass. ``capabilities`` says what such programs lack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from p4gen.errors import InputError
from p4gen.layout import Header, HeaderField
from p4gen.papers.themis import modules as m
from p4gen.papers.themis import narrow_queue, words
from p4gen.papers.themis.flow import dropped, routed
from p4gen.papers.themis.spec import Blocked, Cm, Spread, ThemisSpec
from p4gen.program.flow import Apply, Do, Flow, Step, when
from p4gen.program.module import Metadata, Module, Register, Size
from p4gen.rocev2.codes import MAD_BYTES

LEAST_STAGES: Final = 13
"""Stages in which p4c's back end (9.13.4) has placed Themis-D with evidence by class for Tofino, at best."""
INDICES: Final = 1 << 16
"""Words that a register has at most: more do not fit into the memory of a stage."""


@dataclass(frozen=True)
class Capability:
    """What a program lacks, and why."""

    name: str
    reason: str


HOPS: Final = Capability(
    "any_number_of_next_hops", "a hash is cut to bits, so that a route has 2^n next hops; path sets have any number"
)
CLOSED: Final = Capability(
    "closed_gaps",
    "an access compares a word with numbers of the packet, not its start with its end: when a gap takes the place of "
    "one that has closed, late packets before that one count as missing, so their NACKs pass",
)


def capabilities(spec: ThemisSpec) -> tuple[Capability, ...]:
    """What a program lacks."""
    if not spec.narrow:
        return ()
    return (HOPS, *((CLOSED,) if spec.filters and spec.by_class else ()))


def experiment(spec: ThemisSpec) -> str | None:
    """That p4c does not accept a program, as a sentence; None if it does, or has not been asked."""
    stages = spec.architecture.stages
    if not (spec.narrow and spec.filters and spec.by_class and 0 < stages < LEAST_STAGES):
        return None
    return (
        f"Themis-D by class on a chip of {stages} stages is an experiment: p4gen's model runs it, p4c's back end has "
        f"placed it in {LEAST_STAGES} stages at best"
    )


def problems(spec: ThemisSpec) -> Iterator[str]:
    """Why the program of a spec cannot be of this form, a sentence each."""
    arch = spec.arch
    if spec.spread in (Spread.RANDOM, Spread.FLOWLET, Spread.ADAPTIVE):
        yield f"{arch}: there is no spread {spec.spread}: use ecmp, psn or themis"
    if spec.tiers > 2:
        yield f"{arch}: tiers {spec.tiers} shifts a hash by a number of an entry; shifts are by constants: use tiers 2"
    if spec.cm is Cm.COPY:
        yield f"{arch}: cm copy needs a management datagram of {8 * MAD_BYTES} bits parsed: use cm ignore"
    if spec.pipelines > 1:
        yield f"{arch}: each pipe has the same program, so pipelines is 1"
    if spec.filters:
        yield from _unfiltered(spec)


def _unfiltered(spec: ThemisSpec) -> Iterator[str]:
    arch = spec.arch
    if spec.walks:
        yield from narrow_queue.problems(spec, INDICES)
    if spec.blocked is Blocked.ACK:
        yield f"{arch}: blocked ack changes answers in ingress, where no ICRC is computed: use blocked drop"
    pipes = {spec.architecture.pipe_of(port) for port in spec.architecture.front_ports(spec.ports)}
    if len(pipes) > 1:
        yield (
            f"{arch}: {spec.ports} ports are of {len(pipes)} pipes, each with registers of its own; "
            f"a connection's requests and answers have to pass one: use fewer ports"
        )
    classes = spec.connections << spec.path_bits
    if spec.by_class and classes > INDICES:
        yield (
            f"{arch}: {spec.connections} connections of {1 << spec.path_bits} paths have {classes} classes; "
            f"a register has at most {INDICES} words"
        )


FIND_FLOW = replace(
    m.FIND_FLOW,
    provides=(
        Metadata("transport", "transport_t", "what the parser tells of the opcode, and of an answer's syndrome"),
        Metadata("kind", "kind_t", "what kind of packet this is"),
        Metadata("path_set", "path_set_t", "the paths that its connection is sprayed over"),
        Metadata("connection", "index_t", "index of the connection's words of state", wanted=m.filters),
        Metadata("owner", "bit<32>", "the connection's epoch; older state counts as empty", wanted=m.filters),
        Metadata("port", "bit<9>", "the port on which the connection's answers arrive", wanted=m.filters),
        Metadata("requester", "qp_t", "the destination QP of the connection's answers", wanted=m.filters),
        Metadata("answer_port", "bit<16>", "UDP source port of the connection's answers", wanted=m.filters),
        Metadata("answer_tos", "bit<8>", "their DSCP and ECN", wanted=m.filters),
        Metadata("of_class", "bit<32>", "the class of its PSN: epoch, path set, path", wanted=m.filters),
        Metadata("writes_only", "bit<1>", "1: only the connection's WRITEs are sprayed", wanted=m.filters),
        Metadata("peer", "ipv4_addr_t", "the only address that may send to the QP", wanted=m.filters),
        Metadata("stranger", "bit<1>", "1: it comes from another address than the connection's peer", wanted=m.filters),
        Metadata("bad_checksum", "bit<1>", "1: the parser found the IPv4 checksum wrong", wanted=m.filters),
    ),
    uses=(),
)
CHECK_ANSWER = replace(
    m.CHECK_ANSWER,
    part="flow",
    needs=("port",),
    may_need=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth", "hdr.icrc"),
    changes=(),
    provides=(
        Metadata("bad_port", "bit<1>", "1: it comes by another port than the host's"),
        Metadata("bad_icrc", "bit<1>", "1: its ICRC is wrong", wanted=lambda spec: spec.icrc.checked),
    ),
)
FIND_PATH = replace(
    m.FIND_PATH,
    provides=(
        Metadata("path", "path_t", "path of this PSN"),
        Metadata("known", "bit<1>", "1: it is known", wanted=m.filters),
        Metadata("stride", "int<32>", "PSNs since the last one of this path", wanted=m.filters),
        Metadata("serial", "int<32>", "the PSN as a serial number", wanted=m.filters),
        Metadata("previous", "int<32>", "the PSN before it on its path; of a NACK itself", wanted=m.filters),
        Metadata("late_mark", "int<32>", "what the newest late PSN is raised to, or compared with", wanted=m.filters),
        Metadata("doubt_mark", "int<32>", "the same for the newest unsure PSN", wanted=m.filters),
    ),
)
FIND_PATH_OF_ALL = replace(
    FIND_PATH,
    needs=(*m.FIND_PATH.needs, "transport", "writes_only", "stranger", "bad_checksum", "bad_port"),
    may_need=("bad_icrc",),
    changes=("kind", "of_class"),
    wanted=m.filters,
)
_CLASSES: Final = Size("connections", "classes")
RECORD_CLASS = replace(
    m.RECORD_CLASS,
    purpose="keeps the newest PSN and the newest gap of each path; a NACK is compared with them",
    needs=("kind", "connection", "owner", "of_class", "path", "serial", "previous", "late_mark", "doubt_mark"),
    changes=("late_mark", "doubt_mark"),
    provides=(
        Metadata("step", "step_t", "what becomes of the gap"),
        Metadata("start", "int<32>", "the newest PSN before the gap"),
        Metadata("end", "int<32>", "the newest PSN in it"),
        Metadata("newest", "int<32>", "the newest PSN of the class; 0: nothing is known of it"),
        Metadata("ahead", "bit<32>", "negative: PSNs of the class are missing before this one"),
        Metadata("larger", "int<32>", "a larger PSN that has passed; 0: none"),
        Metadata("gap", "int<32>", "the end of the gap; 0: the PSN is not after its start"),
        Metadata("in_gap", "int<32>", "negative: the PSN is after the end of the gap"),
        Metadata("late", "int<32>", "a PSN from this one on that came late; 0: none"),
        Metadata("unsure", "int<32>", "a PSN from this one on that was in a forgotten gap; 0: none"),
    ),
    keeps=(
        Register("newest", words.NARROW_CLASS, _CLASSES, "how far each class has come"),
        Register("gaps", words.NARROW_GAP, _CLASSES, "its newest gap"),
        Register("order.largest", words.NARROW_MARK, Size("connections"), "how far each connection has come"),
        Register("late.largest", words.NARROW_MARK, Size("connections"), "its newest PSN that came late"),
        Register("unsure.largest", words.NARROW_MARK, Size("connections"), "its newest PSN in a forgotten gap"),
    ),
    wanted=m.by_class,
)
JUDGE_NACK = replace(m.JUDGE_BY_CLASS, needs=("larger", "newest", "ahead", "gap", "in_gap", "unsure", "late"))
BLOCKED_NACK = replace(
    m.BLOCKED_NACK,
    needs=("hdr.aeth", "kind", "connection", "owner", "of_class", "serial", "verdict"),
    may_need=(),
    changes=("verdict",),
    provides=(
        Metadata("session", "MirrorId_t", "where a copy of a packet that shows a loss goes"),
        Metadata("blocked", "int<32>", "the ePSN of the NACK that is to be made, as a serial number; 0: none"),
        Metadata("msn", "bit<32>", "its MSN"),
    ),
    keeps=(
        Register("blocked", words.NARROW_CLASS, Size("connections"), "the NACK that is blocked"),
        Register("msns", 32, Size("connections"), "its MSN"),
    ),
)
MAKE_NACK = replace(
    m.MAKE_NACK,
    needs=("hdr.made", "hdr.ipv4", "hdr.udp", "hdr.bth"),
    changes=("hdr.ipv4", "hdr.udp", "hdr.bth", "hdr.aeth"),
)

MADE: Final = Header(
    "made",
    "What ingress tells egress of a NACK that is to be made, in front of the copy that it is made of",
    (
        HeaderField("requester", 24, "its destination QP", type="qp_t"),
        HeaderField("port", 16, "its UDP source port"),
        HeaderField("tos", 8, "its DSCP and ECN"),
        HeaderField("serial", 32, "its PSN, in the upper bits", type="int<32>"),
        HeaderField("msn", 32, "its MSN"),
    ),
    noted=True,
)
MIRRORED: Final = {
    "when": "MADE",
    "header": "made_t",
    "session": "meta.nack.session",
    "fields": (
        "meta.flow.requester",
        "meta.flow.answer_port",
        "meta.flow.answer_tos",
        "meta.nack.blocked",
        "meta.nack.msn",
    ),
}
"""What the template ``arch/tna/deparser`` asks for."""
_FORMS: Final = {
    "FindFlow": FIND_FLOW,
    "CheckAnswer": CHECK_ANSWER,
    "FindPath": FIND_PATH,
    "RecordClass": RECORD_CLASS,
    "BlockedNack": BLOCKED_NACK,
    "MakeNack": MAKE_NACK,
    "SetIcrc": replace(m.SET_ICRC, uses=()),
}


def flat(spec: ThemisSpec) -> bool:
    """Whether each table of Forward has a condition of its own, so that others do not wait for all of them."""
    return spec.narrow and spec.filters and not spec.architecture.long_branches


def modules(spec: ThemisSpec) -> tuple[Module, ...]:
    """The modules; ``InputError`` for a spec that has no program of its architecture's form."""
    if not spec.narrow:
        return m.MODULES
    found = [f"{spec.program}: {problem}" for problem in problems(spec)]
    if found:
        raise InputError(*found)
    forms = _FORMS | ({"FindPath": FIND_PATH_OF_ALL} if spec.filters else {})
    forms |= (_walking() if spec.walks else {}) | (_flat(spec) if flat(spec) else {})
    return tuple(JUDGE_NACK if module is m.JUDGE_BY_CLASS else forms.get(module.name, module) for module in m.MODULES)


def _walking() -> dict[str, Module]:
    return {
        "FindFlow": narrow_queue.find_flow(FIND_FLOW),
        "FindPath": narrow_queue.find_path(FIND_PATH_OF_ALL),
        "RecordPsn": narrow_queue.RECORD_PSN,
        "JudgeNack": narrow_queue.JUDGE_NACK,
        "BlockedNack": narrow_queue.blocked_nack(BLOCKED_NACK),
    }


def _flat(spec: ThemisSpec) -> dict[str, Module]:
    reads = ("hdr.arp", "again") if spec.walks else ("hdr.arp",)
    minus_one = Metadata(
        "minus_one", "bit<16>", "-1, by the parser: an instruction has an entry's number or a constant"
    )
    return {"Forward": replace(m.FORWARD, part="forward", needs=(*m.FORWARD.needs, *reads), provides=(minus_one,))}


def ingress(spec: ThemisSpec) -> Flow:
    """The handling of a packet on arrival; what is said of it before the first step, the parser has said. A packet is
    routed before it is known whether it is blocked, as that takes most stages; what goes round keeps its port."""
    arch = spec.architecture
    arguments = f"hdr, meta, {arch.arguments('inout')}"
    forward: tuple[Step, ...] = (routed(arch),)
    if flat(spec):
        forward = (when("hdr.arp.isValid()", Apply(m.ANSWER_ARP, arguments)), Apply(m.FORWARD, arguments))
    filtered = _filtered(spec) if spec.filters else ()
    if spec.walks:
        judge, known = Apply(narrow_queue.JUDGE_NACK, "hdr, meta", "Eq. 3"), Do(arch.send("(PortId_t)hdr.walk.port"))
        if flat(spec):
            forward = (judge, *forward, when("meta.flow.again == 1", known))
        else:
            forward = (judge, when("meta.flow.again == 1", known, otherwise=forward))
        port = Do("hdr.next.port = (bit<16>)ig_tm_md.ucast_egress_port;")
        filtered += (when("meta.nack.goes_round == 1", port, Do(arch.send("RECIRCULATION"))),)
    return Flow((*_found(spec), *forward, *filtered, dropped(arch, "ingress")))


def _found(spec: ThemisSpec) -> Iterator[Step]:
    if not spec.by_psn:
        return
    yield Apply(FIND_FLOW, "hdr, meta")
    if spec.filters:
        check = Apply(CHECK_ANSWER, f"hdr, meta, {spec.architecture.arguments('in')}")
        yield check
        yield Apply(FIND_PATH_OF_ALL, "hdr.bth, meta", "Eq. 1")
        return
    yield when("meta.flow.kind != kind_t.ORDINARY", Apply(FIND_PATH, "hdr.bth, meta", "Eq. 1"))


def _filtered(spec: ThemisSpec) -> tuple[Step, ...]:
    """Requests for this switch's hosts are recorded, and NACKs from them are judged."""
    judged = when("meta.flow.kind == kind_t.NACK", Apply(JUDGE_NACK, "meta", "Eq. 3"))
    evidence: tuple[Step, ...] = (Apply(RECORD_CLASS, "meta", "section 3.3"), judged)
    if spec.walks:
        evidence = (Apply(narrow_queue.RECORD_PSN, "hdr, meta", "section 3.3"),)
    return (
        when(
            "meta.flow.kind != kind_t.ORDINARY && meta.flow.kind != kind_t.SPRAYED",
            *evidence,
            Apply(BLOCKED_NACK, f"hdr, meta, {spec.architecture.arguments('inout')}", "section 3.4"),
        ),
    )


def egress(spec: ThemisSpec) -> Flow:
    """Only copies of what shows a loss come here, on their way to the port of what recirculates."""
    if not spec.filters:
        return Flow(())
    return Flow((Apply(MAKE_NACK, "hdr, meta"), *((Apply(m.SET_ICRC, "hdr"),) if spec.icrc.right else ())))
