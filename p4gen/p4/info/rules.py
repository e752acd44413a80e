"""What P4Info has of an architecture's externs: the facet by which the architecture says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from p4gen.arch import ArchitectureFacet, of_package
from p4gen.p4 import ir
from p4gen.p4.live import Live
from p4gen.p4.types import Type
from p4gen.plugins import answers

OF_PROFILES: Final = frozenset({"max_group_size", "selector_size_semantics", "max_member_weight"})
"""Annotations that are fields of an action profile's message, and so not among its annotations."""

Digests = Callable[
    [ir.Program, Sequence[Live], Sequence[ir.Function], Sequence[ir.ExternInstance]], list[tuple[str, Type]]
]


@dataclass(frozen=True)
class InfoRules(ArchitectureFacet):
    """The externs of an architecture in P4Info. The defaults are those of an architecture without any."""

    module: ClassVar[str] = "p4info"

    kinds: Mapping[str, int] = field(default_factory=dict)
    """The prefix of the ids of each extern that P4Info lists (``p4gen.p4.info.ids``)."""
    profile: Callable[[Any, ir.ExternInstance, ir.Program], None] = lambda *_: None
    """Fill in the message of an action profile; its name is there already."""
    digests: Digests = lambda *_: []
    """Names and types of digests, of a program, the live code of its blocks, live actions and live externs."""
    listed: Callable[[ir.ExternInstance], bool] = lambda _: True
    """Whether an instance of these externs is listed."""
    profile_of: Callable[[ir.ExternInstance], ir.ExternInstance | None] = lambda implementation: implementation
    """The action profile of a table's implementation, None if it has none."""
    symbol: Callable[[ir.Program, int, str], str] = lambda _program, _kind, name: name
    """The name from which the id of an object is computed."""
    architecture: str = ""


def rules_of(program: ir.Program) -> InfoRules:
    """The rules of a program's architecture."""
    arch = of_package(program.package, program.arch, program.blocks)
    if arch is None or not answers(arch, InfoRules):
        return InfoRules(architecture=arch.name if arch else "")
    return replace(arch.facet(InfoRules), architecture=arch.name)
