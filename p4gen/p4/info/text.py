"""P4Info in protobuf's text format, and where two P4Infos differ."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format

from p4gen.protos import p4info

_HEADING = "# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n"


def to_text(info: p4info.P4Info) -> str:
    """P4Info in protobuf's text format, as p4c writes it."""
    return _HEADING + str(text_format.MessageToString(info))


def parse_text(text: str) -> p4info.P4Info:
    """P4Info from text format; raises ``google.protobuf.text_format.ParseError``."""
    info = p4info.P4Info()
    text_format.Parse(text, info)
    return info


def differences(ours: p4info.P4Info, theirs: p4info.P4Info) -> list[str]:
    """What differs between two P4Infos, a line each; the order of objects does not matter."""
    found: list[str] = []
    for field in p4info.P4Info.DESCRIPTOR.fields:
        one, two = getattr(ours, field.name), getattr(theirs, field.name)
        if hasattr(one, "DESCRIPTOR"):  # a message, not several
            if one != two:
                found.append(f"{field.name}: {_short(one)} instead of {_short(two)}")
            continue
        left = {m.preamble.name if hasattr(m, "preamble") else str(m): m for m in one}
        right = {m.preamble.name if hasattr(m, "preamble") else str(m): m for m in two}
        found.extend(f"{field.name}: {name} is missing" for name in right.keys() - left.keys())
        found.extend(f"{field.name}: {name} is unexpected" for name in left.keys() - right.keys())
        found.extend(
            f"{field.name}: {name}: {_short(left[name])} instead of {_short(right[name])}"
            for name in left.keys() & right.keys()
            if left[name] != right[name]
        )
    return sorted(found)


def _short(message: Any) -> str:
    return str(text_format.MessageToString(message, as_one_line=True))
