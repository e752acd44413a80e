"""The facet with which a family describes its programs to a search of their states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic

from p4gen.errors import InputError
from p4gen.families import Facet, OwnSpec, family_of
from p4gen.host.transport.verbs import Recovery
from p4gen.ptf.mutations import Mutation
from p4gen.verification.parts.forging import Cursor, cursor
from p4gen.verification.world import Budget, Scope
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec


@dataclass(frozen=True)
class ScopeOrder:
    """A user's order for the search of a program that serves neither groups nor connections."""

    topology: TopologySpec
    packets: int
    budget: Budget
    recovery: Recovery | None
    """The NICs' loss recovery; None: the one that suits the program."""
    first_psn: int
    fault: Mutation | None
    """A fault to be seeded into the program."""
    stale: bool = False
    """Whether registers have what an earlier generation has left."""


@dataclass(frozen=True)
class OwnScopes(Generic[OwnSpec]):
    """How scopes are made of a family's programs that serve neither groups nor connections."""

    topology: str
    """The topology if none is named."""
    make: Callable[[OwnSpec, ScopeOrder], Scope]
    """The scope of a spec's program. Raises ``InputError``."""
    read: Callable[[Mapping[str, Any]], Scope]
    """Undo ``Scope.as_data``, whose ``kind`` is the name of the family."""
    ladder: Callable[[OwnSpec], Iterator[tuple[str, Scope]]]
    """Small scopes of a spec's program, with their names, in which listed faults are searched for: cheap ones first."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Options of a search that mean nothing to these programs, each with the reason."""


@dataclass(frozen=True)
class Verification(Facet, Generic[OwnSpec]):
    """A family's programs, as a search needs to know them."""

    module: ClassVar[str] = "verification"

    clocks: tuple[str, ...] = ()
    """Registers that only measure time. They are as in a new switch before each event: how long something took is not
    part of a state."""
    locks: tuple[str, ...] = ()
    """Registers that are 0 when all calls have ended: what a call has locked it must give back."""
    ticks: int = 1
    """Number of ticks after which a timer expires, if its register is as in a new switch."""
    unfit: Callable[[OwnSpec], str] = lambda _: ""
    """Why programs of a spec cannot be searched; "" if they can."""
    small: Callable[[OwnSpec], Mapping[str, object]] = lambda _: {}
    """Fields of the smallest program like that of a spec that has all of its behaviour on a small network."""
    searched: Callable[[OwnSpec], Sequence[Mapping[str, object]]] = lambda _: ()
    """Fields of programs that a listed fault is searched in, in place of the spec's own program: the first that the
    fault fits."""
    cursor: Cursor = cursor
    """Makes the packet that goes round in a switch, as an outsider would forge it from a tick."""
    forged: Callable[[Iterable[bytes]], tuple[bytes, ...]] | None = None
    """Makes the packets that a host may send in another's name of those that others send to its switch; None: those of
    RoCEv2 (``forging.forged``)."""
    slots: tuple[str, ...] = ()
    """The beginnings of the names of registers whose words may idle while others are used: those of slots, and of
    connections that only some collectives use."""
    idles: Callable[[OwnSpec], bool] = lambda _: True
    """Whether a slot may idle while other collectives of its context run, which depends on a spec."""
    filters: Callable[[OwnSpec], bool] = lambda _: False
    """Whether switches filter the NAKs of their hosts, and ignore those whose ICRC is wrong."""
    exact: Callable[[OwnSpec], bool] = lambda _: False
    """Whether switches that filter NAKs remember every packet that has passed, so that they know each loss, and no
    other."""
    scopes: OwnScopes[OwnSpec] | None = None
    """The scopes of its programs if these serve neither groups nor connections."""
    sound: Callable[[OwnSpec], OwnSpec] = lambda spec: spec
    """The sound program with which a program with a known design error is compared. Takes the family's own spec."""


def search_facet(spec: ProgramSpec) -> Verification[Any]:
    """The facet of a spec's family; the defaults if it has none."""
    family = family_of(spec)
    return family.facet(Verification) if family.answers(Verification) else Verification()


def verification_of(spec: ProgramSpec) -> Verification[Any]:
    """The facet of a spec's family. Raises ``InputError`` for a program that cannot be searched."""
    found = search_facet(spec)
    if why := found.unfit(spec):
        raise InputError(why)
    return found
