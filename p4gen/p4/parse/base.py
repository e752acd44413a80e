"""The base of all parts of the parser: the token cursor, kinds of names, values of literals."""

from __future__ import annotations

from contextlib import suppress
from typing import NoReturn

from p4gen.p4.parse.lexer import KEYWORDS, Tokens
from p4gen.p4.parse.source import Reporter, Source
from p4gen.p4.types import Annotation

# Keywords that are names wherever no production claims them (spec appendix H, nonTypeName).
SOFT = frozenset({"actions", "apply", "entries", "key", "priority", "state", "type", "list"})
_NAME_KINDS = SOFT | {"id"}


class Cursor:
    """The tokens and the current position, and which names are types in the enclosing scopes.

    P4's grammar depends on the latter: ``a < b > (c)`` is a call if ``b`` names a type.
    """

    def __init__(self, tokens: Tokens, source: Source, reporter: Reporter) -> None:
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.offsets = tokens.offsets
        self.i = 0
        self.source = source
        self.reporter = reporter
        self.scopes: list[dict[str, bool]] = [{}]

    # --- tokens ---

    @property
    def kind(self) -> str:
        """The kind of the token here."""
        return self.kinds[self.i]

    @property
    def at(self) -> int:
        """The offset of the token here."""
        return self.offsets[self.i]

    def accept(self, kind: str) -> bool:
        """Step over a token of that kind, if one is here."""
        if self.kinds[self.i] == kind:
            self.i += 1
            return True
        return False

    def expect(self, kind: str, context: str = "") -> int:
        """Step over a token of that kind; its offset."""
        if self.kinds[self.i] != kind:
            self.fail(f"expected '{kind}'{context}, found {self.found()}")
        self.i += 1
        return self.offsets[self.i - 1]

    def found(self) -> str:
        """The next token as a message names it."""
        kind, text = self.kinds[self.i], self.texts[self.i]
        if kind == "end":
            return text
        if kind == "bad":
            return "a string that is never closed" if text == '"' else f"the unexpected character {text!r}"
        return f"the keyword '{text}'" if kind in KEYWORDS else f"'{text.splitlines()[0]}'"

    def fail(self, message: str) -> NoReturn:
        """Report a syntax error here and leave the construct."""
        self.reporter.fail(self.at, message)

    # --- names ---

    def declare(self, name: str, is_type: bool) -> None:
        """Note in the innermost scope whether ``name`` is a type."""
        self.scopes[-1][name] = is_type

    def is_type(self, name: str) -> bool:
        """Whether ``name`` is a type here."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return False

    def at_type_name(self) -> bool:
        """Whether the name of a type is next."""
        i = self.i
        if self.kinds[i] == "id":
            return self.is_type(self.texts[i])
        return self.kinds[i] == "." and self.kinds[i + 1] == "id" and self.scopes[0].get(self.texts[i + 1], False)

    def name(self, what: str = "a name") -> str:
        """Step over a name (an identifier, or a keyword that may be one)."""
        if self.kinds[self.i] not in _NAME_KINDS:
            self.fail(f"expected {what}, found {self.found()}")
        self.i += 1
        return self.texts[self.i - 1]

    def at_name(self) -> bool:
        """Whether the next token is a name: an identifier, or a keyword that may be one."""
        return self.kinds[self.i] in _NAME_KINDS

    def body_of(self, name: str, start: int, end: int) -> Annotation:
        """An annotation from the tokens of its body, literals in it evaluated."""
        values: list[int | str | bool] = []
        pairs: list[tuple[str, int | str | bool]] = []
        literal = True
        i = start
        while i < end and literal:
            key = None
            if self.kinds[i] == "id" and i + 2 < end and self.kinds[i + 1] == "=":
                key, i = self.texts[i], i + 2
            negative = self.kinds[i] == "-"
            i += negative
            value = literal_value(self.kinds[i], self.texts[i]) if i < end else None
            if value is None or (negative and not isinstance(value, int)):
                literal = False
                break
            value = -value if negative and isinstance(value, int) else value
            while isinstance(value, str) and i + 2 < end and self.kinds[i + 1] == "++" and self.kinds[i + 2] == "str":
                value += str(literal_value("str", self.texts[i + 2]))
                i += 2
            if key is None:
                values.append(value)
            else:
                pairs.append((key, value))
            i += 1
            if i < end:
                literal = self.kinds[i] == ","
                i += 1
        body = " ".join(self.texts[start:end])
        return Annotation(name, tuple(values) if literal else (), body, tuple(pairs) if literal else ())

    # --- recovery ---

    def recover(self, start: int) -> None:
        """After an error in the declaration that starts at token ``start``, step over the rest of it."""
        depth = 0
        stop = self.i
        self.i = start
        while self.kinds[self.i] != "end":
            kind = self.kinds[self.i]
            self.i += 1
            if kind == "{":
                depth += 1
            elif kind == "}":
                depth = max(depth - 1, 0)
            if self.i > stop and depth == 0 and kind in ("}", ";"):
                return


def literal_value(kind: str, text: str) -> int | str | bool | None:
    """The value of a literal token, None for other tokens."""
    if kind == "str":
        return string_value(text)
    if kind in ("true", "false"):
        return kind == "true"
    if kind == "num":
        with suppress(ValueError):
            return number_value(text)[0]
    return None


def string_value(text: str) -> str:
    """The characters that a string token stands for: only the quote and the backslash can be
    escaped with a meaning (spec 6.3.3.3)."""
    return text[1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


_BASES = {"x": 16, "X": 16, "b": 2, "B": 2, "o": 8, "O": 8, "d": 10, "D": 10}


def number_value(text: str) -> tuple[int, int | None, bool, int]:
    """Value, width (None without one), signedness and base of an integer token (spec 6.3.3.2).

    Raises ``ValueError`` where there are no digits.
    """
    width, signed = None, False
    for mark in "ws":
        head, found, tail = text.partition(mark)
        if found:
            width, signed, text = int(head), mark == "s", tail
            break
    base = 10
    if len(text) > 1 and text[0] == "0" and text[1] in _BASES:
        base, text = _BASES[text[1]], text[2:]
    return int(text.replace("_", ""), base), width, signed, base
