"""Two families in one program: the second one gets the packets that the first one only routes.

The first family's flow says where it handles such packets (``Ordinary``). There, the steps of the family beside it are
put, which in turn contain the place of the first family's own. So the first family claims its packets before the second
one sees any, in ingress and in egress, and each time that a packet recirculates.

A family that can be beside another one has a facet ``Beside``. The first family needs none: its preamble declares the
types of ``p4gen.program.common``, and its parser extracts the headers that the second one needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic

from p4gen.errors import InputError
from p4gen.families import Facet, OwnSpec
from p4gen.layout import Header
from p4gen.program.flow import Apply, Do, Flow, Ordinary, Step, When
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class Beside(Facet, Generic[OwnSpec]):
    """What a family adds to the programs of another one."""

    module: ClassVar[str] = "beside"

    ingress: Callable[[OwnSpec], tuple[Step, ...]]
    """Steps for a packet that the other family only routes, with an ``Ordinary`` where it is routed."""
    egress: Callable[[OwnSpec], tuple[Step, ...]]
    """Steps for copies of such packets in egress."""
    preamble: tuple[str, ...]
    """Templates with the family's types and constants; they know ``beside``, and leave out what
    ``p4gen.program.common`` lists."""
    problems: Callable[[OwnSpec], Iterable[str]] = lambda _: ()
    """Why a program cannot be beside that of another family, a sentence each."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Parts of ``metadata_t`` that have other names beside another family, which may have parts of these names."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The same for types and constants."""

    def renamed(self, text: str) -> str:
        """P4 text of the family with these names."""
        for old, new in self.parts.items():
            text = re.sub(rf"\bmeta\.{old}\b", f"meta.{new}", text)
        for old, new in self.names.items():
            text = re.sub(rf"(?<![\w.]){old}\b", new, text)
        return text

    def steps(self, steps: Iterable[Step], routed: tuple[Step, ...]) -> tuple[Step, ...]:
        """The family's steps with these names; ``routed`` are the other family's steps for ordinary packets."""
        return tuple(one for step in steps for one in self._step(step, routed))

    def _step(self, step: Step, routed: tuple[Step, ...]) -> tuple[Step, ...]:
        match step:
            case Ordinary():
                return routed
            case Apply():
                return (replace(step, arguments=self.renamed(step.arguments), guest=True),)
            case Do():
                return (replace(step, text=self.renamed(step.text)),)
            case When():
                then, otherwise = self.steps(step.then, routed), self.steps(step.otherwise, routed)
                return (replace(step, condition=self.renamed(step.condition), then=then, otherwise=otherwise),)


def put_beside(facet: Beside[Any], spec: ProgramSpec, ingress: Flow, egress: Flow) -> tuple[Flow, Flow]:
    """The flows of a program of two families. ``spec`` is the program's.

    Raises ``InputError`` if the first family has no place for the packets that it only routes.
    """
    guest = spec.beside
    if not ingress.ordinary() or not egress.ordinary():
        raise InputError(f"{spec.program}: programs of the family {spec.family} leave no packets to a family beside it")
    arriving, leaving = facet.ingress(guest), facet.egress(guest)
    return (
        ingress.settled(lambda place: facet.steps(arriving, place.steps)),
        egress.settled(lambda place: facet.steps(leaving, place.steps)),
    )


def check_headers(spec: ProgramSpec, own: Iterable[Header], others: Iterable[Header]) -> None:
    """Raises ``InputError`` unless the program's parser knows all headers of the second family."""
    there = {header.name: header for header in own}
    for header in others:
        if header.name not in there:
            raise InputError(f"{spec.program}: programs of the family {spec.family} parse no {header.name}")
        if there[header.name] != header:
            raise InputError(f"{spec.program}: two families in one program have different headers {header.name}")
