"""How an architecture's externs appear in P4Info: the facet ``InfoRules``, which the architecture supplies."""

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
    """How the externs of an architecture appear in P4Info. The defaults are for an architecture without externs."""

    module: ClassVar[str] = "p4info"

    kinds: Mapping[str, int] = field(default_factory=dict)
    """The prefix of the ids of each extern that P4Info lists (``p4gen.p4.info.ids``)."""
    profile: Callable[[Any, ir.ExternInstance, ir.Program], None] = lambda *_: None
    """Fills in the message of an action profile. The profile's name is already in the message."""
    digests: Digests = lambda *_: []
    """The names and types of digests. The arguments are a program, the live code of its blocks, its live actions and
    its live externs."""
    listed: Callable[[ir.ExternInstance], bool] = lambda _: True
    """Whether P4Info lists an instance of one of these externs."""
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
