"""The manifest: the contents of a generated program, for tools and for people (``manifest.json``)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from p4gen.layout import Word
from p4gen.p4 import ir
from p4gen.p4.resources import Report
from p4gen.program.compose import Composition
from p4gen.program.dataflow import DROP, Accesses, accesses
from p4gen.program.module import Module
from p4gen.program.text import Rendered
from p4gen.version import __version__

Manifest = dict[str, Any]
"""JSON object: p4gen, spec, headers (outermost first), datagrams, modules (in order, with state in bits), drops, ticks,
state_bits, line_directives, and digest; where there is an estimate of a chip's resources also target and resources."""


def manifest(
    composition: Composition, rendered: Rendered, program: ir.Program, reports: Sequence[Report] = ()
) -> Manifest:
    """What the program of ``composition`` is made of. ``program`` is its IR, ``reports`` estimate what it takes of each
    pipe. ``digest`` is the SHA-256 of its text, ``#line`` directives included if it has them."""
    spec, done = composition.spec, accesses(program)
    return {
        "p4gen": __version__,
        "program": spec.program,
        "spec": spec.resolved(),
        "headers": [
            {
                "name": header.name,
                "meaning": header.meaning,
                "bits": header.bits,
                "elements": header.count or 1,
                "fields": _fields(header.word),
            }
            for header in composition.headers.values()
        ],
        "datagrams": [
            {
                "name": datagram.name,
                "meaning": datagram.meaning,
                "opcodes": {opcode.name: int(opcode) for opcode in datagram.opcodes},
                "headers": [header.name for header in datagram.body],
                "udp_length": datagram.length,
                "internal": datagram.inner,
            }
            for datagram in composition.parts.datagrams(spec)
        ],
        "modules": [
            {
                "name": module.name,
                "gress": module.gress,
                "paper": module.paper,
                "purpose": module.purpose,
                "template": module.template,
                **_accesses(module, done),
                "provides": [field.name for field in module.tells],
                "registers": [
                    {
                        "name": register.name,
                        "purpose": register.purpose,
                        "instances": int(register.instances),
                        "entries": int(register.entries),
                        "width": register.width,
                        "fields": _fields(register.word),
                        "formula": f"{register.instances} x ({register.entries}) x {register.width} bit",
                        "bits": register.bits,
                    }
                    for register in module.keeps
                ],
                "tables": [
                    {
                        "name": table.name,
                        "purpose": table.purpose,
                        "entries": int(table.entries),
                        "formula": str(table.entries),
                    }
                    for table in module.tables
                ],
                "state_bits": module.state_bits,
            }
            for module in composition.modules
        ],
        "drops": [
            {
                "index": drop.index,
                "counter": f"Inc{drop.module.gress.capitalize()}.drops",
                "module": drop.module.name,
                "reason": drop.drop.reason,
                "loss": drop.drop.loss,
                "meaning": drop.drop.meaning,
            }
            for drop in composition.drops
        ],
        "ticks": composition.parts.ticks(spec),
        "state_bits": composition.state_bits,
        **({"target": reports[0].target, "resources": [report.plain for report in reports]} if reports else {}),
        **composition.figures,
        "line_directives": rendered.line_directives,
        "digest": hashlib.sha256(rendered.text.encode()).hexdigest(),
    }


def _accesses(module: Module, done: Mapping[str, Accesses]) -> dict[str, list[str]]:
    """What a module reads, ``needs``, and what of others it writes, ``changes``: headers and fields of metadata."""
    own = {f"{field.part}.{field.name}" for field in module.tells} | {DROP}
    found = done[module.snake]
    return {"needs": sorted(found.reads - own), "changes": sorted(found.writes - own)}


def _fields(word: Word | None) -> list[dict[str, Any]]:
    """What a word consists of, the most significant field first; nothing for a plain number."""
    fields = word.fields if word is not None else ()
    return [
        {"name": field.name, "bits": field.bits, "meaning": field.about}
        | ({"fields": _fields(field.parts)} if field.parts is not None else {})
        for field in fields
    ]


def to_json(content: Manifest) -> str:
    """The manifest's text; the same bytes for the same content."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
