"""``Program``: all blocks, tables, actions and extern instances of a compiled P4 program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeVar

from p4gen.p4.ir.code import Control, ExternInstance, Function, Parser, Table
from p4gen.p4.ir.matches import ValueSet
from p4gen.p4.node import node
from p4gen.p4.types import Annotation, Type


@node
class Program:
    """A whole, compiled program.

    ``blocks`` maps the package's parameter names (v1model: p, vr, ig, eg, ck, dep) to instances; those of packages in
    packages have dots (TNA: ``pipe0.ingress_parser``, with several parsers ``pipe0.ig_prsr.prsr0``).
    A block's parameters are those of the architecture by position; optional ones at the end may be missing.
    Lists are in the order of declaration, depth first, as p4c numbers them.
    """

    source: str
    package: str
    type_args: tuple[Type, ...]
    blocks: dict[str, Parser | Control]
    errors: tuple[str, ...]
    tables: tuple[Table, ...]
    actions: tuple[Function, ...]
    externs: tuple[ExternInstance, ...]
    value_sets: tuple[ValueSet, ...]
    headers: tuple[Type, ...]
    annotations: tuple[Annotation, ...] = ()
    arch: str = ""
    """The architecture that the package names by ``@pkginfo``, in lower case."""
    pipes: Mapping[str, str] = field(default_factory=dict)
    """The names of the packages in the package, by parameter (TNA: pipe0 to pipe3)."""
    options: tuple[str, ...] = ()
    """Options of p4c that the program itself asks for, by ``@command_line``."""

    def table(self, name: str) -> Table:
        """The table of that full or unique suffix name; KeyError otherwise."""
        return _by_suffix(self.tables, name, "table")

    def extern(self, name: str) -> ExternInstance:
        """The extern instance of that full or unique suffix name; KeyError otherwise."""
        return _by_suffix(self.externs, name, "extern instance")


_Named = TypeVar("_Named", Table, ExternInstance)


def _by_suffix(items: tuple[_Named, ...], name: str, kind: str) -> _Named:
    found = [i for i in items if i.name == name] or [i for i in items if i.name.endswith("." + name)]
    if len(found) != 1:
        raise KeyError(f"{'no' if not found else 'more than one'} {kind} named {name}")
    return found[0]
