"""Keysets: what table entries and cases of ``select`` match (P4_16 specification 12.11)."""

from __future__ import annotations

from p4gen.p4.parse import ast
from p4gen.p4.parse.expressions import ExprParser
from p4gen.p4.parse.source import Quiet, Reported


class KeysetParser(ExprParser):
    """Adds keysets to expressions."""

    def keyset(self, bare: bool = True) -> ast.Expr:
        """A keyset expression (spec 12.11.1); a parenthesised list of them becomes a ``ListOf``."""
        if bare and self.kind == "(":
            found = self.tuple_keyset()
            if found is not None:
                return found
        at = self.at
        if self.kind in ("default", "_"):
            self.i += 1
            return ast.DontCare(at)
        first = self.expression()
        if self.accept("&&&"):
            return ast.MaskOf(at, first, self.expression())
        if self.accept(".."):
            return ast.RangeOf(at, first, self.expression())
        return first

    def tuple_keyset(self) -> ast.Expr | None:
        """``(k, k, …)``; None, and no step, where the parenthesis belongs to an expression."""
        start = self.i
        if not self.cast_ahead():
            at = self.expect("(")
            first = self.keyset(bare=False)
            items = [first]
            while self.accept(","):
                items.append(self.keyset(bare=False))
            self.expect(")")
            if len(items) > 1 or isinstance(first, ast.MaskOf | ast.RangeOf | ast.DontCare):
                return ast.ListOf(at, tuple(items))
        self.i = start
        return None

    def cast_ahead(self) -> bool:
        """Whether a cast is next; no step is taken."""
        start = self.i
        try:
            quiet, self.reporter = self.reporter, Quiet(self.source)
            try:
                return self.cast() is not None
            except Reported:
                return False
        finally:
            self.reporter = quiet
            self.i = start
