"""A dissector for Wireshark, in Lua: what a program takes datagrams for."""

from __future__ import annotations

from p4gen.layout import Header
from p4gen.program.compose import Composition
from p4gen.rocev2 import codes, layouts


def dissector(composition: Composition) -> str | None:
    """The text of ``<program>.lua``; None for a program whose family declares no datagrams."""
    datagrams = composition.parts.datagrams(composition.spec)
    if not datagrams:
        return None
    headers = {header.name: header for datagram in datagrams for header in datagram.body}
    names = {
        "program": composition.spec.program,
        "datagrams": datagrams,
        "headers": headers.values(),
        "places": {name: _places(header) for name, header in headers.items()},
        "port": codes.ROCE_UDP_PORT,
        "bth": layouts.BTH.size,
        "icrc": layouts.ICRC.size,
    }
    return "\n".join(text for text, _ in composition.templates.render("shared/dissector.lua.j2", names)) + "\n"


def _places(header: Header) -> list[tuple[str, int, int]]:
    """Fields: name, first bit from the beginning, bits. None of an array, whose elements are not told apart."""
    word = header.word
    fields = header.fields if header.count is None else ()
    return [(field.name, word.bits - 1 - word.ends(field.name)[0], field.bits) for field in fields]
