"""A fabric whose switches are there only on paper: they hold whatever they are told. For plans of what a manager would
do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from typing_extensions import override

from p4gen.groups.connections import Tally
from p4gen.groups.group import PlacedEdge, SwitchConfig
from p4gen.manager.api import Agent, Changes, SwitchInfo
from p4gen.manager.manager import IncManager
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec


class _OnPaper(Agent):
    def __init__(self, info: SwitchInfo) -> None:
        self.name = info.name
        self._held = SwitchConfig((), (), ())

    @override
    def apply(self, wanted: SwitchConfig, *, resync: bool = False) -> Changes:
        self._held = wanted
        return Changes()

    @override
    def read(self) -> SwitchConfig:
        return self._held

    @override
    def drops(self) -> Mapping[str, int]:
        return {}

    @override
    def tallies(self, tallies: Sequence[Tally]) -> Sequence[int]:
        return [0] * len(tallies)

    @override
    def given_up(self) -> Mapping[int, int]:
        return {}

    @override
    def set_ticks(self, edges: Sequence[PlacedEdge]) -> None:
        pass

    @override
    def restart(self) -> None:
        pass

    @override
    def close(self) -> None:
        pass


@contextmanager
def on_paper(topology: TopologySpec, spec: ProgramSpec, policy: str) -> Iterator[IncManager]:
    """The manager of an empty fabric all of whose switches run a program of ``spec``. Raises ``P4genError`` if they
    cannot."""
    with IncManager(_OnPaper, topology=topology, policy=policy, seed=0) as manager:
        for name in topology.switches:
            manager.register_switch(SwitchInfo(name, f"unix:/{name}", spec, "", b""))
        yield manager
