"""A dissector for Wireshark, in Lua: what a program takes datagrams for."""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.layout import Header
from p4gen.program.compose import Composition
from p4gen.rocev2 import codes, layouts


@dataclass(frozen=True)
class _Shown:
    """A header as the dissector shows it."""

    name: str
    meaning: str
    size: int
    places: tuple[tuple[str, int, int], ...]
    """Fields: name, first bit from the beginning, bits. None of an array, whose elements are not told apart."""


def dissector(composition: Composition) -> str | None:
    """The text of ``<program>.lua``; None for a program whose family declares no datagrams."""
    datagrams = composition.parts.datagrams(composition.spec)
    if not datagrams:
        return None
    headers = {header.name: header for datagram in datagrams for header in datagram.body}
    names = {
        "program": composition.spec.program,
        "datagrams": datagrams,
        "headers": [_shown(header) for header in headers.values()],
        "port": codes.ROCE_UDP_PORT,
        "bth": layouts.BTH.size,
        "icrc": layouts.ICRC.size,
    }
    return "\n".join(text for text, _ in composition.templates.render("shared/dissector.lua.j2", names)) + "\n"


def _shown(header: Header) -> _Shown:
    places, at = [], 0
    for field in header.fields if header.count is None else ():
        places.append((field.name, at, field.bits))
        at += field.bits
    return _Shown(header.name, header.meaning, header.size, tuple(places))
