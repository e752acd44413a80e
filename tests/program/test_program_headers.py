"""Headers of programs come from their layouts: P4, manifest, and the tables of docs/wire-format.md.

``python tests/program/test_program_headers.py`` writes the tables of that document.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4gen import generate
from p4gen.layout import Header, HeaderField, Word
from p4gen.papers.epic import headers as epic_headers
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.papers.scin.spec import ScinSpec
from p4gen.program import compose, render
from p4gen.rocev2 import layouts
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, RnrNak
from p4gen.vocabulary import DType
from p4gen.vocabulary.message import MESSAGE, Collective
from p4gen.vocabulary.reductions import single_ops

DOCUMENT = Path(__file__).parents[2] / "docs" / "wire-format.md"
each_mode = pytest.mark.parametrize("mode", Mode)


def text_of(spec: EpicSpec) -> str:
    return render(compose(spec), line_directives=False).text


@each_mode
def test_the_manifest_has_the_headers(mode: Mode) -> None:
    composition = compose(EpicSpec(mode=mode, lanes=16))
    content = {header["name"]: header for header in generate(composition.spec).manifest["headers"]}
    assert list(content)[:6] == ["ethernet", "vlan", "arp", "ipv4", "udp", "bth"]
    assert (content["bth"]["bits"], content["payload"]["bits"], content["payload"]["elements"]) == (96, 512, 16)
    (syndrome,) = (field for field in content["aeth"]["fields"] if field["name"] == "syndrome")
    assert [(part["name"], part["bits"]) for part in syndrome["fields"]] == [("upper", 3), ("value", 5)]


@each_mode
def test_programs_declare_headers_as_their_layouts_say(mode: Mode) -> None:
    composition = compose(EpicSpec(mode=mode, lanes=8))
    text = text_of(EpicSpec(mode=mode, lanes=8))
    typed = {name: int(bits) for bits, name in re.findall(r"(?:typedef|enum) bit<(\d+)> +(\w+)", text)}
    for header in composition.headers.values():
        body = re.search(rf"^header {header.type} \{{\n(.*?)\n\}}", text, re.MULTILINE | re.DOTALL)
        assert body is not None
        declared = re.findall(r"(\w+|bit<\d+>) +(\w+);", body[1])
        bits = [int(type_[4:-1]) if type_.startswith("bit<") else typed[type_] for type_, _ in declared]
        wanted = header.fields * (header.count or 1)
        assert bits == [field.bits for field in wanted], header.name
        if header.count is None:
            assert [name for _, name in declared] == [field.name for field in wanted]


def test_slices_of_fields_follow_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the control message's fields the other way round, programs look for them there."""
    spec = EpicSpec(mode=Mode.II)
    plain = text_of(spec)
    turned = Word(*reversed(MESSAGE.fields))
    value = HeaderField("value", turned.bits, "what is announced", turned)
    header = dataclasses.replace(epic_headers.immediate(spec), fields=(value,))
    monkeypatch.setattr(epic_headers, "immediate", lambda _: header)
    assert f"announced[{MESSAGE['numbers']}] != NUMBERS" in plain
    assert f"announced[{turned['numbers']}] != NUMBERS" in text_of(spec)
    assert MESSAGE["numbers"] != turned["numbers"]


def test_a_family_chooses_headers_and_changes_what_is_its_own() -> None:
    """Another layout of a shared header is the program's own; the shared one stays what it is."""
    longer = dataclasses.replace(
        layouts.ETHERNET, fields=(*layouts.ETHERNET.fields, HeaderField("more", 16, "more", noted=True))
    )
    assert longer.size == layouts.ETHERNET.size + 2 == 16
    assert longer.declared[-1].startswith("bit<16>    more;")


def tables() -> dict[str, str]:
    """The generated parts of docs/wire-format.md, by the word in the comment before each."""
    said = {
        "collective": ", ".join(
            f"{c.code} {c}" for c in Collective if c not in (Collective.REDUCE_SCATTER, Collective.ALLGATHER)
        ),
        "op": ", ".join(f"{op.reduction.code} {op}" for op in single_ops()),
        "dtype": ", ".join(f"{dtype.number_format.code} {dtype}" for dtype in DType),
        "root": "rank, 0 to 31; 0 for allreduce and barrier; barrier 1 acquires, 2 releases",
        "packets": "data packets that follow",
    }
    rows = []
    for field, _ in MESSAGE.places:
        if field.parts is None:
            high, low = MESSAGE.ends(field.name)
            rows.append(f"| {high}–{low} | {field.name} | {said[field.name]} |")  # noqa: RUF001 - a range in prose
    message = "\n".join(["| bits | field | values |", "| --- | --- | --- |", *rows]) + "\n"
    payload = epic_headers.payload(EpicSpec(lanes=8))
    behind = layouts.HEADERS[layouts.HEADERS.index(layouts.BTH) :]
    found = [header for header in behind if header is not layouts.IMMEDIATE]
    shown = [*found, epic_headers.immediate(EpicSpec()), payload]
    return {"message": message, "headers": "\n".join(map(_section, shown)), "datagrams": "\n".join(_datagrams())}


def _datagrams() -> Iterator[str]:
    """A table for each family that declares datagrams, of a program that has all of them."""
    for title, spec in (
        ("EPIC, Mode III, 64 lanes", EpicSpec(mode=Mode.III)),
        ("SCIN, ordered completion, blocks with scales", ScinSpec(dtype="mxint8", completion="ordered", lanes=256)),
        ("MultiWrite, 64 receivers", MultiwriteSpec(receivers=64, edges=16)),
    ):
        yield f"**{title}**\n\n| datagram | BTH opcode | behind the BTH | UDP length |\n| --- | --- | --- | --- |"
        for each in compose(spec).datagrams.all:
            opcodes = ", ".join(f"{opcode.name} ({opcode:#04x})" for opcode in each.opcodes)
            yield f"| {each.meaning}{' (made only)' if each.made else ''} | {opcodes} | {each.counts} | {each.length} |"
        yield ""


def _section(header: Header) -> str:
    size = f"{header.size} bytes" + (" each" if header.count is not None else "")
    return f"### `{header.name}`\n\n{header.meaning}. {size}.\n\n{header.table}"


def _between(text: str, name: str) -> tuple[str, str, str]:
    before, _, rest = text.partition(f"<!-- {name} -->\n")
    inside, _, after = rest.partition(f"<!-- end of {name} -->\n")
    return before, inside, after


@pytest.mark.parametrize("name", ["message", "headers", "datagrams"])
def test_docs_wire_format_md_is_up_to_date(name: str) -> None:
    _, inside, _ = _between(DOCUMENT.read_text(), name)
    assert inside.strip() == tables()[name].strip(), (
        "docs/wire-format.md: a table is out of date; python tests/program/test_program_headers.py writes it"
    )


def test_docs_wire_format_md_has_the_syndromes() -> None:
    text = DOCUMENT.read_text()
    for syndrome in (Ack().syndrome, Nak().syndrome, Nak(NakCode.SELECTIVE).syndrome):
        assert f"| 0x{syndrome:02X} |" in text
    assert f"| 0x{RnrNak(0).syndrome:02X} + code |" in text


if __name__ == "__main__":
    text = DOCUMENT.read_text()
    for name, table in tables().items():
        before, _, after = _between(text, name)
        text = f"{before}<!-- {name} -->\n\n{table}\n<!-- end of {name} -->\n{after}"
    DOCUMENT.write_text(text)
