"""Annotations (P4_16 specification 20)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from p4gen.p4.parse.base import Cursor
from p4gen.p4.parse.lexer import KEYWORDS, lex
from p4gen.p4.types import Annotation

_TEXTS = ("name", "deprecated", "noWarn")
"""Annotations that hold one string."""


class AnnotationParser(Cursor, ABC):
    """Adds annotations; what structured ones hold is left to where expressions are parsed."""

    def annotations(self) -> tuple[Annotation, ...]:
        """The annotations here, if any."""
        found: list[Annotation] = []
        seen: dict[str, int] = {}
        while self.kinds[self.i] in ("@", "pragma"):
            at = self.at
            new = self.annotation() if self.kinds[self.i] == "@" else self.pragma()
            self.check_annotation(at, new, seen)
            found.append(new)
            seen.setdefault(new.name, at)
        return tuple(found)

    def check_annotation(self, at: int, new: Annotation, seen: dict[str, int]) -> None:
        """Structured annotations are unique; ``@name`` holds a string (spec 20). ``seen`` says where
        those before are."""
        if new.structured and new.name in seen:
            self.reporter.error(at, f"a second annotation @{new.name}", (seen[new.name], "the first is here"))
        if new.name in _TEXTS and not (len(new.args) == 1 and isinstance(new.args[0], str)):
            self.reporter.error(at, f"@{new.name} needs one string")
        if new.name == "pkginfo" and not new.pairs:
            self.reporter.error(at, "@pkginfo needs what it says of the package: @pkginfo[name = value, …]")

    def annotation(self) -> Annotation:
        """``@name``, with whatever body it has."""
        self.expect("@")
        if self.kinds[self.i] not in KEYWORDS and self.kinds[self.i] not in ("id", "_"):
            self.fail(f"expected an annotation's name, found {self.found()}")
        name = self.texts[self.i]
        self.i += 1
        if self.kinds[self.i] == "(":
            return self.unstructured(name)
        if self.kinds[self.i] == "[":
            return self.structured(name)
        return Annotation(name)

    def unstructured(self, name: str) -> Annotation:
        """The body of ``@name(…)``: tokens with balanced parentheses."""
        self.expect("(")
        start, depth = self.i, 1
        while depth:
            kind = self.kinds[self.i]
            if kind == "end":
                self.fail(f"the body of @{name} is never closed")
            depth += (kind == "(") - (kind == ")")
            self.i += 1
        return self.body_of(name, start, self.i - 1)

    @abstractmethod
    def structured(self, name: str) -> Annotation:
        """``@name[e, …]`` or ``@name[k = e, …]``, of expressions."""

    def pragma(self) -> Annotation:
        """``@pragma name tokens`` up to the end of the line, as p4c takes it."""
        offset, text = self.offsets[self.i], self.texts[self.i]
        self.i += 1
        head = len("@pragma")
        inner = lex(self.source, text[head:], offset + head)
        if inner.kinds[0] not in KEYWORDS and inner.kinds[0] != "id":
            self.reporter.fail(offset, "@pragma needs a name")
        sub = Cursor(inner, self.source, self.reporter)
        return sub.body_of(inner.texts[0], 1, inner.kinds.index("end"))
