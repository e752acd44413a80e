"""SwitchML's programs: their words of state, and the names that their templates use."""

from __future__ import annotations

from typing import Any, Final

from p4gen.layout import Field, Word
from p4gen.papers.switchml.headers import KEY, PORT, SWITCHML, datagrams, headers
from p4gen.papers.switchml.spec import MOST_WORKERS, SwitchmlSpec
from p4gen.program.common import Ipv4Checksum
from p4gen.program.compose import Composition, ProgramParts

_EPOCH: Final = Field("epoch", 8, "epoch")
SEEN: Final = Word(
    _EPOCH,
    Field("even", MOST_WORKERS, "workers whose vectors version 0 has"),
    Field("odd", MOST_WORKERS, "those of version 1"),
)
"""CheckVersion: who has contributed to a slot."""
SEEN_WITH_OFFSETS: Final = Word(
    *SEEN.fields, Field("even_offset", 32, "offset of version 0"), Field("odd_offset", 32, "that of version 1")
)
"""The same of programs that compare offsets."""
COUNT: Final = Word(_EPOCH, Field("vectors", 8, "vectors that the buffer has; 0: none, or all"))
"""CountWorkers: how far a buffer is."""
_TOFINO: Final = {
    "count": Word(_EPOCH, Field("vectors", 8, "vectors that the buffer has")),
    "offsets": Word(Field("epoch", 32, "epoch"), Field("offset", 32, "offset")),
}
"""The words of Tofino's programs that are more than a number."""


def _templates(composition: Composition) -> tuple[str, ...]:
    return (
        "switchml/preamble.p4.j2",
        "shared/headers.p4.j2",
        "shared/metadata.p4.j2",
        "shared/parser.p4.j2" if composition.parts.datagrams(composition.spec) else "switchml/parser.p4.j2",
        composition.arch.template("checksum"),
    )


def _names(composition: Composition) -> dict[str, Any]:
    spec = composition.spec
    assert isinstance(spec, SwitchmlSpec)
    named = {field.name: f"hdr.switchml.{field.name}" for field in SWITCHML.fields}
    own: dict[str, Any] = {"own_port": "SWITCHML_PORT: parse_switchml", "port": PORT}
    if spec.roce:
        named = {field.name: f"hdr.reth.rkey[{KEY.slice(field.name)}]" for field in KEY.fields}
        named["offset"] = "hdr.immediate.value"
        own = {"known_opcodes": [opcode.name for each in datagrams(spec) for opcode in each.opcodes]}
    return own | {
        "arrival": "SwitchML, Algorithm 3",
        "cited": {},
        "ipv4_checksum": Ipv4Checksum(
            verified=f"hdr.{'bth' if spec.roce else 'switchml'}.isValid()",
            acting="ValidatePacket",
            renewed="meta.lookup.kind != kind_t.ORDINARY",
            packets="Results",
        ),
        "lanes": range(spec.lanes),
        "packet": named,
        "roce": spec.roce,
        "ordinary": "meta.lookup.kind == kind_t.ORDINARY",
        "tofino": spec.tofino,
    }


def lacks(spec: SwitchmlSpec) -> dict[str, str]:
    """What a program lacks, by name, and why."""
    if not spec.tofino:
        return {}
    padding = "ingress does not know a frame's length, so bytes behind a datagram are not noticed"
    offsets = "a pass has one access to a slot's largest offset, and learns of its workers later: so an update of a"
    offsets += " smaller one is late if its worker has no part in its version, and versions are not compared with it"
    return {"padding": padding, **({"offsets": offsets} if spec.checks_offsets else {})}


def _figures(composition: Composition) -> dict[str, Any]:
    assert isinstance(composition.spec, SwitchmlSpec)
    found = lacks(composition.spec)
    return {"capabilities": found} if found else {}


def _words(spec: SwitchmlSpec) -> dict[str, Word]:
    return _TOFINO if spec.tofino else {"seen": SEEN_WITH_OFFSETS if spec.checks_offsets else SEEN, "count": COUNT}


FACET: ProgramParts[SwitchmlSpec] = ProgramParts(
    headers=headers,
    datagrams=datagrams,
    flows=lambda _: ("switchml/ingress.p4.j2", "switchml/egress.p4.j2"),
    templates=_templates,
    names=_names,
    folders=lambda spec: ("shared",) if spec.roce else (),  # its ValidatePacket is RoCEv2's
    words=_words,
    figures=_figures,
)
