"""Two families in one program: the second one gets the packets that the first one only routes.

The first family's flow says where it handles such packets (``ordinary``). There, the flow of the family beside it is
put, which in turn contains the place of the first family's own. So the first family claims its packets before the
second one sees any, in ingress and in egress, and each time that a packet recirculates.

A family that can be beside another one has a facet ``Beside``. The first family needs none: its preamble declares the
types of ``p4gen.program.common``, and its parser extracts the headers that the second one needs. Names of the second
family's parts of metadata, types and constants are its own: a name that both have is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic

from p4gen.errors import InputError
from p4gen.families import Facet, OwnSpec
from p4gen.layout import Header
from p4gen.program.module import Gress
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class Beside(Facet, Generic[OwnSpec]):
    """What a family adds to the programs of another one."""

    module: ClassVar[str] = "beside"

    flows: Mapping[Gress, str]
    """The templates of the flows of packets that the other family only routes: that in ingress has ``ordinary`` where
    they are routed (``p4gen.program.flow``)."""
    preamble: tuple[str, ...]
    """Templates with the family's types and constants; they know ``beside``, and leave out what
    ``p4gen.program.common`` lists."""
    problems: Callable[[OwnSpec], Iterable[str]] = lambda _: ()
    """Why a program cannot be beside that of another family, a sentence each."""


def check_headers(spec: ProgramSpec, own: Iterable[Header], others: Iterable[Header]) -> None:
    """Raises ``InputError`` unless the program's parser knows all headers of the second family."""
    there = {header.name: header for header in own}
    for header in others:
        if header.name not in there:
            raise InputError(f"{spec.program}: programs of the family {spec.family} parse no {header.name}")
        if there[header.name] != header:
            raise InputError(f"{spec.program}: two families in one program have different headers {header.name}")
