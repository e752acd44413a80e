"""The manifest: the contents of a generated program, for tools and for people (``manifest.json``)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from p4gen.layout import Word
from p4gen.p4.resources import Report
from p4gen.program.compose import Composition
from p4gen.program.text import Rendered
from p4gen.version import __version__

Manifest = dict[str, Any]
"""JSON object: p4gen, spec, headers (outermost first), modules (in order, with state in bits), drops, ticks,
state_bits, line_directives, and digest; where there is an estimate of a chip's resources also target and resources."""


def manifest(composition: Composition, rendered: Rendered, reports: Sequence[Report] = ()) -> Manifest:
    """What the program of ``composition`` is made of; ``digest`` is the SHA-256 of its text, ``#line`` directives
    included if it has them. ``reports`` estimate what each pipe takes of the chip."""
    spec = composition.spec
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
        "modules": [
            {
                "name": module.name,
                "gress": module.gress,
                "paper": module.paper,
                "purpose": module.purpose,
                "template": composition.form(module.template),
                "needs": [*module.needs, *(name for name in module.may_need if name in composition.fields)],
                "changes": [name for name in module.changes if name.startswith("hdr.") or name in composition.fields],
                "provides": [field.name for field in module.provides],
                "registers": [
                    {
                        "name": register.name,
                        "purpose": register.purpose,
                        "instances": register.instances.of(spec),
                        "entries": register.entries.of(spec),
                        "width": register.width_of(spec),
                        "fields": _fields(register.word_of(spec)),
                        "formula": f"{register.instances} x ({register.entries}) x {register.width_of(spec)} bit",
                        "bits": register.bits(spec),
                    }
                    for register in module.keeps
                ],
                "tables": [
                    {
                        "name": table.name,
                        "purpose": table.purpose,
                        "entries": table.entries.of(spec),
                        "formula": str(table.entries),
                    }
                    for table in module.tables
                ],
                "state_bits": module.state_bits(spec),
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
