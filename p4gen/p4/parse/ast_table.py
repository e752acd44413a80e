"""The abstract syntax of tables (P4_16 specification 14.2)."""

from __future__ import annotations

from p4gen.p4.node import node
from p4gen.p4.parse.ast import Argument, Decl, Expr, Node
from p4gen.p4.types import Annotation


@node
class TableKey(Node):
    """An element of ``key``: the expression and its match kind."""

    expr: Expr
    match_kind: str
    annotations: tuple[Annotation, ...]


@node
class TableAction(Node):
    """An element of ``actions``; ``args`` None where it is only a name."""

    name: str
    rooted: bool
    args: tuple[Argument, ...] | None
    annotations: tuple[Annotation, ...]


@node
class TableEntry(Node):
    """An element of ``entries``; ``keys`` is a keyset."""

    keys: Expr
    action: TableAction
    const: bool
    priority: Expr | None
    annotations: tuple[Annotation, ...]


@node
class Property(Node):
    """A property other than ``key``, ``actions`` and ``entries``."""

    name: str
    annotations: tuple[Annotation, ...]
    const: bool
    value: Expr


@node
class TableDecl(Decl):
    """A table; None for a property it does not have."""

    keys: tuple[TableKey, ...] | None
    actions: tuple[TableAction, ...] | None
    entries: tuple[TableEntry, ...] | None
    const_entries: bool
    properties: tuple[Property, ...]
    order: tuple[tuple[str, int], ...]
    """The names of the properties as they come, and where."""
