"""Tokens of one line of an STF file, with their positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import NoReturn

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.stf.statements import Value


class StfError(InputError):
    """An error in an STF file, or a request for something that the program does not have."""


_SEGMENT = r"[A-Za-z_$][\w$]*(?:\[\d+\])?"
_TOKENS = re.compile(
    rf"""
    (?P<mac>[0-9a-fA-F]{{2}}(?::[0-9a-fA-F]{{2}}){{5}}(?![\w:]))
  | (?P<ipv4>\d+\.\d+\.\d+\.\d+(?![\w.]))
  | (?P<number>0[xX][0-9a-fA-F_*]+ | 0[bB][01_*]+ | 0[oO][0-7_*]+)
  | (?P<float>\d+\.\d+(?![\w.]))
  | (?P<decimal>-?\d+)
  | (?P<name>{_SEGMENT}(?:\.{_SEGMENT})*)
  | "(?P<quoted>[^"]+)"
  | (?P<sign>&&&|\.\.|->|=>|==|!=|<=|>=|[<>:,()/=])
  | (?P<space>\s+)
    """,
    re.VERBOSE,
)
_BITS = {"x": 4, "b": 1, "o": 3}


@dataclass(frozen=True)
class Token:
    """``kind`` is name, number, float, or the sign itself; ``end`` at the end of the line."""

    kind: str
    text: str
    pos: Pos


def tokens(text: str, file: str, line: int, column: int) -> list[Token]:
    """The tokens of ``text``, which begins at ``column`` of the line (counted from 1). Raises ``StfError``."""
    result, at = [], 0
    while at < len(text):
        pos = Pos(file, line, column + at)
        found = _TOKENS.match(text, at)
        if found is None:
            raise StfError(Diagnostic(pos, f"unexpected character {text[at]!r}"))
        kind = str(found.lastgroup)
        piece = found[kind]
        at = found.end()
        if kind == "space":
            continue
        names = {"quoted": "name", "mac": "number", "ipv4": "number", "decimal": "number", "sign": piece}
        result.append(Token(names.get(kind, kind), piece, pos))
    result.append(Token("end", "", Pos(file, line, column + len(text))))
    return result


_LONGEST_NUMBER = 4096
"""Digits: bit<N> of any width that programs have; Python refuses decimal numbers that are somewhat longer."""


def number(token: Token) -> Value:
    """The value of a number token: hexadecimal, binary and octal with ``*`` digits, decimal, MAC, IPv4."""
    text = token.text.replace("_", "")
    if len(text) > _LONGEST_NUMBER:
        raise StfError(Diagnostic(token.pos, f"a number has {_LONGEST_NUMBER} digits at most"))
    if ":" in text:
        return Value(int(text.replace(":", ""), 16), None, 48, text, token.pos)
    if "." in text:
        try:
            return Value(int(IPv4Address(text)), None, 32, text, token.pos)
        except AddressValueError:
            raise StfError(Diagnostic(token.pos, f"{text} is no IPv4 address")) from None
    each = _BITS.get(text[1:2].lower(), 0)
    if not each:
        return Value(int(text), None, 0, text, token.pos)
    base, digits = 1 << each, text[2:]
    ones = f"{base - 1:x}"
    value = int(digits.replace("*", "0"), base)
    mask = int("".join("0" if d == "*" else ones for d in digits), base)
    covered = digits.find("*") if "*" in digits else len(digits)
    return Value(value, mask, covered * each, text, token.pos)


class Cursor:
    """Reads the tokens of a line one after the other."""

    def __init__(self, line: list[Token]) -> None:
        self._line = line
        self._at = 0

    @property
    def here(self) -> Token:
        """The token to be read next."""
        return self._line[self._at]

    def next(self) -> Token:
        """Read the next token. The end of the line is returned again and again."""
        token = self.here
        if token.kind != "end":
            self._at += 1
        return token

    def take(self, *kinds: str) -> Token | None:
        """Read a token if it is of one of these kinds."""
        return self.next() if self.here.kind in kinds else None

    def need(self, kind: str, what: str) -> Token:
        """Read a token of this kind. Raises ``StfError``, which says that ``what`` is expected."""
        if self.here.kind != kind:
            self.refuse(what)
        return self.next()

    def refuse(self, wanted: str) -> NoReturn:
        """Raise ``StfError``: ``wanted`` was expected here."""
        found = repr(self.here.text) if self.here.kind != "end" else "the end of the line"
        raise StfError(Diagnostic(self.here.pos, f"expected {wanted}, found {found}"))

    def follows(self, kind: str) -> bool:
        """Whether the token after the next one is of this kind."""
        return self._line[min(self._at + 1, len(self._line) - 1)].kind == kind
