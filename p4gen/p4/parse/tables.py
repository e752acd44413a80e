"""Tables and their properties (P4_16 specification 14.2)."""

from __future__ import annotations

from p4gen.p4.parse import ast, ast_table
from p4gen.p4.parse.statements import StmtParser
from p4gen.p4.types import Annotation


class TableParser(StmtParser):
    """Adds tables: keys, actions, entries and other properties."""

    def table(self, annotations: tuple[Annotation, ...]) -> ast_table.TableDecl:
        """Parse a whole table. A property given twice is an error."""
        self.expect("table")
        at = self.at
        name = self.name("the name of the table")
        self.expect("{")
        keys: tuple[ast_table.TableKey, ...] | None = None
        actions: tuple[ast_table.TableAction, ...] | None = None
        entries: tuple[ast_table.TableEntry, ...] | None = None
        const_entries = False
        properties: list[ast_table.Property] = []
        order: list[tuple[str, int]] = []
        while not self.accept("}"):
            own = self.annotations()
            where = self.at
            const = self.accept("const")
            kind = self.kind
            order.append((self.texts[self.i], where))
            if kind in ("key", "actions", "entries") and self.kinds[self.i + 1] == "=":
                self.i += 2
                if {"key": keys, "actions": actions, "entries": entries}[kind] is not None:
                    self.reporter.error(where, f"table '{name}' has a second '{kind}' property")
                if const and kind != "entries":
                    self.reporter.error(where, f"the '{kind}' property cannot be const")
                if kind == "key":
                    keys = self.keys()
                elif kind == "actions":
                    actions = self.actions()
                else:
                    entries, const_entries = self.entries(), const
                continue
            prop = self.name("the name of a table property")
            self.expect("=")
            value = self.expression()
            self.expect(";")
            if any(p.name == prop for p in properties):
                self.reporter.error(where, f"table '{name}' has a second '{prop}' property")
            properties.append(ast_table.Property(where, prop, own, const, value))
        self.declare(name, False)
        return ast_table.TableDecl(
            at, name, annotations, keys, actions, entries, const_entries, tuple(properties), tuple(order)
        )

    def keys(self) -> tuple[ast_table.TableKey, ...]:
        """Parse ``key``: the elements between its braces."""
        self.expect("{")
        found: list[ast_table.TableKey] = []
        while not self.accept("}"):
            at = self.at
            expr = self.expression()
            self.expect(":", " and a match kind after the key")
            kind = self.name("a match kind")
            annotations = self.annotations()
            self.expect(";")
            found.append(ast_table.TableKey(at, expr, kind, annotations))
        return tuple(found)

    def actions(self) -> tuple[ast_table.TableAction, ...]:
        """Parse ``actions``: the elements between its braces."""
        self.expect("{")
        found: list[ast_table.TableAction] = []
        while not self.accept("}"):
            found.append(self.action_ref(self.annotations()))
            self.expect(";")
        return tuple(found)

    def action_ref(self, annotations: tuple[Annotation, ...]) -> ast_table.TableAction:
        """An action's name, with arguments or without."""
        at, rooted = self.at, self.accept(".")
        name = self.name("the name of an action")
        args = self.arguments() if self.kind == "(" else None
        return ast_table.TableAction(at, name, rooted, args, annotations)

    def entries(self) -> tuple[ast_table.TableEntry, ...]:
        """Parse ``entries``: the elements between its braces."""
        self.expect("{")
        found: list[ast_table.TableEntry] = []
        while not self.accept("}"):
            const = self.accept("const")
            priority: ast.Expr | None = None
            if self.kind == "priority" and self.kinds[self.i + 1] == "=":
                self.i += 2
                priority = self.primary()
                self.expect(":")
            at = self.at
            keys = self.keyset()
            self.expect(":")
            action = self.action_ref(())
            annotations = self.annotations()
            self.expect(";")
            found.append(ast_table.TableEntry(at, keys, action, const, priority, annotations))
        return tuple(found)
