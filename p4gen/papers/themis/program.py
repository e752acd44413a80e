"""Themis's programs: their modules, and the names that their templates use."""

from __future__ import annotations

from typing import Any, Final

from p4gen.layout import Header
from p4gen.papers.themis import narrow, narrow_queue, words
from p4gen.papers.themis.memory import figures, report
from p4gen.papers.themis.spec import Cm, Mode, Spread, ThemisSpec, Variant
from p4gen.program.common import Ipv4Checksum
from p4gen.program.compose import Composition, ProgramParts
from p4gen.rocev2 import layouts as roce

_HEADERS: Final = (
    roce.ETHERNET,
    roce.VLAN,
    roce.ARP,
    roce.IPV4,
    roce.UDP,
    roce.BTH,
    roce.AETH,
    roce.ICRC,
)


def headers(spec: ThemisSpec) -> tuple[Header, ...]:
    """Headers that the parser knows, outermost first."""
    if spec.narrow and spec.filters:
        walk, *sent = narrow_queue.headers(spec) if spec.walks else (None,)
        return (narrow.MADE, *(() if walk is None else (walk,)), *sent, *_HEADERS)
    return (*_HEADERS, roce.DETH, roce.MAD) if spec.cm is Cm.COPY else _HEADERS


FILTERING = Ipv4Checksum(
    verified="hdr.bth.isValid()",
    acting="CheckAnswer and CheckRequest",
    renewed="meta.nack.made == 1",
    packets="NACKs that this switch makes",
)
SPREADING = Ipv4Checksum(verified=None, acting="", renewed=None)

_TITLES = {
    Mode.SOURCE: "Themis-S, requests sprayed by PSN",
    Mode.DESTINATION: "Themis-D, NACKs filtered by what the PSN queue tells",
    Mode.BOTH: "Themis, requests sprayed by PSN and NACKs filtered",
}
_BY_CLASS = ", by what has passed of each path"
_SPREADS = {
    Spread.ECMP: "each flow has one path, by a hash",
    Spread.RANDOM: "requests sprayed at random",
    Spread.FLOWLET: "flowlets spread at random",
    Spread.ADAPTIVE: "requests to the shortest queue",
    Spread.PSN: "requests sprayed by PSN, without a filter of NACKs",
}


def nack_session(spec: ThemisSpec) -> int:
    """The clone session of the requests that show a loss."""
    return 1 if spec.narrow else spec.architecture.other_session  # no other copies are made there


def cm_session(spec: ThemisSpec) -> int:
    """The clone session of messages that set up connections; it leads to the CPU port."""
    return nack_session(spec) + 1


def _spec(composition: Composition) -> ThemisSpec:
    assert isinstance(composition.spec, ThemisSpec)
    return composition.spec


def _title(spec: ThemisSpec) -> str:
    if spec.by_class:
        return _TITLES[spec.mode].removesuffix(" by what the PSN queue tells") + _BY_CLASS
    return _SPREADS.get(spec.spread) or _TITLES[spec.mode]


def _spreads(spec: ThemisSpec) -> bool:
    """Whether SprayPath chooses among next hops."""
    return spec.spread is not Spread.ECMP and (spec.sprays or not spec.by_psn) and spec.tiers == 2


def _templates(composition: Composition) -> tuple[str, ...]:
    return (
        "themis/preamble.p4.j2",
        "shared/headers.p4.j2",
        "shared/metadata.p4.j2",
        "themis/parser.p4.j2",
        composition.arch.template("checksum"),
    )


def _unparsed(spec: ThemisSpec) -> str:
    """The condition under which a datagram ends with an ICRC that is not parsed, and covers it as it is."""
    unmarked = " && hdr.bth.reserved1[0:0] == 0" if spec.tiers > 2 else ""
    return f"hdr.bth.isValid() && !hdr.icrc.isValid(){unmarked}"


def _names(composition: Composition) -> dict[str, Any]:
    spec = _spec(composition)
    return {
        "arrival": "Themis" if spec.by_psn else "A leaf switch",
        "title": _title(spec),
        "cited": {"Forward": "section 3.2: ECMP, which gives P_base"},
        "spreads": _spreads(spec),
        "walks": spec.walks,
        "routed_if": "meta.connection.again == 0" if spec.walks else "",
        "copies_cm": spec.cm is Cm.COPY,
        "narrow": spec.narrow,
        "received": ("made", "walk") if spec.narrow and spec.filters else (),
        "flat": narrow.flat(spec),
        "row_bits": spec.queue_rows.bit_length() - 1,
        "row_entries": narrow_queue.row_entries(spec.queue_banks) if spec.narrow and spec.walks else (),
        "mirrored": narrow.MIRRORED if spec.narrow and spec.filters else None,
        "ipv4_checksum": FILTERING if spec.filters else SPREADING,
        "nack_session": nack_session(spec),
        "cm_session": cm_session(spec),
        "banks": range(spec.queue_banks),
        "bank_bits": spec.queue_banks.bit_length() - 1,
        "place_bits": spec.queue.bit_length() - 1,
        "count_bits": spec.queue.bit_length(),
        "hops": range(spec.paths),
        "tie_step": 256 // spec.paths,
        **({"sliced_hash": True} if spec.tiers > 2 else {}),
        **({"unparsed_icrc": _unparsed(spec)} if spec.filters and spec.icrc.checked and not spec.narrow else {}),
        "destructive": spec.variant is Variant.DESTRUCTIVE_QUEUE,
        "late_compensation": spec.variant is Variant.LATE_COMPENSATION,
    }


def _figures(composition: Composition) -> dict[str, Any]:
    """What the manifest has beside what all programs have; a NACK takes ``most_passes`` passes at most."""
    return {"memory": figures(composition), "most_passes": _spec(composition).most_passes}


def _report(composition: Composition) -> str | None:
    if not composition.has("BlockedNack"):
        return None
    return "\n".join(filter(None, (narrow.experiment(_spec(composition)), report(composition))))


def _entries(composition: Composition) -> dict[str, Any]:
    """The manifest's entries of this family."""
    spec = _spec(composition)
    lacks = {each.name: each.reason for each in narrow.capabilities(spec)}
    doubt = narrow.experiment(spec)
    return (
        ({"themis": _figures(composition)} if composition.has("BlockedNack") else {})
        | ({"capabilities": lacks} if lacks else {})
        | ({"experiment": doubt} if doubt else {})
    )


def _flows(spec: ThemisSpec) -> tuple[str, str]:
    narrow.check(spec)
    return "themis/ingress.p4.j2", "themis/egress.p4.j2"


FACET: ProgramParts[ThemisSpec] = ProgramParts(
    headers=headers,
    flows=_flows,
    templates=_templates,
    names=_names,
    words=words.layouts,
    figures=_entries,
    report=_report,
)
