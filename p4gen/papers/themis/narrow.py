"""Themis for architectures whose registers have few actions (``Feature.WIDE_STATE`` is not theirs).

The parser tells requests from answers. A number that another one depends on stands in a register of its own, and each
register is accessed once in a pass. ``capabilities`` says what such programs lack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from p4gen.errors import InputError
from p4gen.layout import Header, HeaderField
from p4gen.papers.themis import narrow_queue
from p4gen.papers.themis.spec import Blocked, Cm, Spread, ThemisSpec
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
    """What a program of this form lacks; empty if it is not of this form."""
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
        "meta.connection.requester",
        "meta.connection.answer_port",
        "meta.connection.answer_tos",
        "meta.nack.blocked",
        "meta.nack.msn",
    ),
}
"""What the template ``arch/tna/deparser`` asks for."""


def flat(spec: ThemisSpec) -> bool:
    """Whether each table of Forward has a condition of its own, so that others do not wait for all of them."""
    return spec.narrow and spec.filters and not spec.architecture.long_branches


def check(spec: ThemisSpec) -> None:
    """Raises ``InputError`` for a spec that has no program of its architecture's form."""
    found = [f"{spec.program}: {problem}" for problem in problems(spec)] if spec.narrow else []
    if found:
        raise InputError(*found)
