"""The lexer (P4_16 specification 6.3): one regular expression over the preprocessed text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from p4gen.p4.parse.source import Source

KEYWORDS = frozenset(
    [
        "abstract",
        "action",
        "actions",
        "apply",
        "bool",
        "bit",
        "break",
        "const",
        "continue",
        "control",
        "default",
        "else",
        "entries",
        "enum",
        "error",
        "exit",
        "extern",
        "false",
        "for",
        "header",
        "header_union",
        "if",
        "in",
        "inout",
        "int",
        "key",
        "list",
        "match_kind",
        "out",
        "package",
        "parser",
        "priority",
        "return",
        "select",
        "state",
        "string",
        "struct",
        "switch",
        "table",
        "this",
        "transition",
        "true",
        "tuple",
        "type",
        "typedef",
        "value_set",
        "varbit",
        "void",
    ]
)

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\n\f\v]+)
  | (?P<id>[A-Za-z_]\w*)
  | (?P<num>(?:[0-9]+[ws])?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0[dD][0-9_]+|[0-9][0-9_]*))
  | (?P<str>"(?:\\.|[^"\\])*")
  | (?P<pragma>@pragma\b(?:"(?:\\.|[^"\\])*"|[^\n"])*)
  | (?P<invalid>\{\#\})
  | (?P<op>\|\+\|=?|\|-\|=?|<<=|&&&|\.\.\.|\.\.|<<|&&|\|\||==|!=|<=|>=|\+\+|\+:|[-+*/%&|^]=
      |[-+*/%&|^~!<>=()\[\]{}:;,.?@])
    """,
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True)
class Tokens:
    """Parallel sequences, ended by kind ``end``. A keyword's or operator's kind is its text; the
    others are ``id``, ``num``, ``str``, ``pragma``, and ``bad`` for a character that starts no token."""

    kinds: list[str]
    texts: list[str]
    offsets: list[int]


def lex(source: Source, text: str | None = None, base: int = 0) -> Tokens:
    """Split ``source`` into tokens; with ``text``, that piece of it at offset ``base``."""
    kinds: list[str] = []
    texts: list[str] = []
    offsets: list[int] = []
    text = source.text if text is None else text
    at = 0
    keywords = KEYWORDS
    while True:
        # One pass per stretch of well-formed text: finditer stops being contiguous only at errors.
        for match in _TOKEN.finditer(text, at):
            start = match.start()
            if start != at:
                break
            at = match.end()
            group = match.lastgroup
            if group == "space":
                continue
            value = match.group()
            if group == "id":
                kinds.append(value if value in keywords or value == "_" else "id")
            elif group in {"op", "invalid"}:
                value = "{#}" if group == "invalid" else value
                kinds.append(value)
            else:
                kinds.append(group or "")
            texts.append(value)
            offsets.append(base + start)
        if at >= len(text):
            break
        # What starts no token may stand in an annotation; anywhere else the parser refuses it.
        kinds.append("bad")
        texts.append(text[at])
        offsets.append(base + at)
        at += 1
    # More than one, for the parser's look ahead.
    for _ in range(4):
        kinds.append("end")
        texts.append("the end of the program")
        offsets.append(base + max(len(text.rstrip()) - 1, 0))
    return Tokens(kinds, texts, offsets)
