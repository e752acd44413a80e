"""Remarks about packets at switches, for ladders: a family describes what the output alone does not show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from p4gen.families import Facet, OwnSpec, family_of
from p4gen.net.world.network import Network
from p4gen.net.world.watching import Observer
from p4gen.switch.drops import dropped
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class PacketNotes(Facet, Generic[OwnSpec]):
    """A family's remarks about packets at its switches."""

    module: ClassVar[str] = "notes"

    notes: Callable[[OwnSpec, bytes, Sequence[bytes], Collection[str]], tuple[str, ...]]
    """Takes the family's own spec, a packet, what the switch sent for it, and why it dropped a packet meanwhile, by
    ``module.reason``."""


def observe(
    network: Network,
    specs: Mapping[str, ProgramSpec],
    tell: Callable[[str, int, str], None],
    wanted: Callable[[], bool],
) -> None:
    """Call ``tell`` with switch, time in ps and text, for every remark of the families, as long as ``wanted`` is true.
    Until then these switches process packets one by one."""
    for name, spec in specs.items():
        family = family_of(spec)
        if family.answers(PacketNotes):
            network.nodes[name].observer = _observer(network, name, spec, family.facet(PacketNotes), tell, wanted)


def _observer(
    network: Network,
    name: str,
    spec: ProgramSpec,
    facet: PacketNotes[Any],
    tell: Callable[[str, int, str], None],
    wanted: Callable[[], bool],
) -> Observer:
    node = network.nodes[name]
    before: Counter[str] = Counter()

    def observer(arrival: int, frame: bytes, outputs: Sequence[bytes]) -> None:
        nonlocal before
        if not wanted():
            node.observer = None
            return
        now = dropped(spec, node.switch.counters)
        for text in facet.notes(spec, frame, outputs, now - before):
            tell(name, arrival, text)
        before = now

    return observer
