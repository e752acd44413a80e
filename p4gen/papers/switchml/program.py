"""SwitchML's programs: their words of state, and the names that their templates use."""

from __future__ import annotations

from typing import Any, Final

from p4gen.layout import Field, Word
from p4gen.papers.switchml.headers import PORT, headers
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
CHECKSUM: Final = Ipv4Checksum(
    verified="hdr.switchml.isValid()",
    acting="ValidatePacket",
    renewed="meta.lookup.kind != kind_t.ORDINARY",
    packets="Results",
)


def _templates(composition: Composition) -> tuple[str, ...]:
    return (
        "switchml/preamble.p4.j2",
        "shared/headers.p4.j2",
        "shared/metadata.p4.j2",
        "switchml/parser.p4.j2",
        composition.arch.template("checksum"),
    )


def _names(composition: Composition) -> dict[str, Any]:
    spec = composition.spec
    assert isinstance(spec, SwitchmlSpec)
    return {
        "arrival": "SwitchML, Algorithm 3",
        "cited": {},
        "ipv4_checksum": CHECKSUM,
        "lanes": range(spec.lanes),
        "own_port": "SWITCHML_PORT: parse_switchml",
        "port": PORT,
    }


FACET: ProgramParts[SwitchmlSpec] = ProgramParts(
    headers=headers,
    flows=lambda _: ("switchml/ingress.p4.j2", "switchml/egress.p4.j2"),
    templates=_templates,
    names=_names,
    words=lambda spec: {"seen": SEEN_WITH_OFFSETS if spec.checks_offsets else SEEN, "count": COUNT},
)
