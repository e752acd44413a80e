"""ATP's programs: their words of state, and the names that their templates use."""

from __future__ import annotations

from typing import Any, Final

from p4gen.layout import Field, Word
from p4gen.papers.atp.headers import MESSAGES, PORT, headers
from p4gen.papers.atp.spec import MOST_WORKERS, WINDOW, AtpSpec
from p4gen.program.common import Ipv4Checksum
from p4gen.program.compose import Composition, ProgramParts

OWNER: Final = Word(
    Field("epoch", 8, "epoch (0: free)"),
    Field("job", 8, "job"),
    Field("sequence", 32, "sequence number"),
    Field("refused", 8, "packets of others since its last one"),
)
"""FindAggregator: whose an aggregator is."""
PARTS: Final = Word(Field("congested", 1, "a part met a long queue"), Field("workers", MOST_WORKERS, "who is in it"))
"""CheckWorkers: what an aggregator's sum is made of."""
CHECKSUM: Final = Ipv4Checksum(
    verified="hdr.atp.isValid()",
    acting="ValidatePacket",
    renewed="meta.lookup.kind == kind_t.RESULT",
    packets="Results",
)


def _templates(composition: Composition) -> tuple[str, ...]:
    return (
        "atp/preamble.p4.j2",
        "shared/headers.p4.j2",
        "shared/metadata.p4.j2",
        "atp/parser.p4.j2",
        composition.arch.template("checksum"),
    )


def _names(composition: Composition) -> dict[str, Any]:
    spec = composition.spec
    assert isinstance(spec, AtpSpec)
    return {
        "arrival": "ATP, section 4",
        "cited": {},
        "ipv4_checksum": CHECKSUM,
        "lanes": range(spec.lanes),
        "messages": MESSAGES,
        "own_port": "ATP_PORT: parse_atp",
        "port": PORT,
        "window": WINDOW,
    }


FACET: ProgramParts[AtpSpec] = ProgramParts(
    headers=headers,
    flows=lambda _: ("atp/ingress.p4.j2", "atp/egress.p4.j2"),
    templates=_templates,
    names=_names,
    words=lambda _: {"owners": OWNER, "parts": PARTS},
)
