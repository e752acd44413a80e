"""MultiWrite in labs: a rank on a host's NIC in real time, and the calls that users ask for at the prompt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from typing_extensions import override

from p4gen.groups.group import Memory
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.labs.calls import Asked, LabMembers
from p4gen.labs.hosts.ranks import CheckedRank, MemoryRanks
from p4gen.labs.steps import group_steps
from p4gen.manager.api import RankConfig
from p4gen.papers.multiwrite.placing import End
from p4gen.papers.multiwrite.ranks.calls import SharedCall, Window, window_problem
from p4gen.papers.multiwrite.ranks.combining import ExpertMember
from p4gen.papers.multiwrite.ranks.hosts import Member
from p4gen.papers.multiwrite.ranks.layout import Layout
from p4gen.papers.multiwrite.ranks.options import ALLGATHER, DISPATCH, MOE, OPTIONS, Choice
from p4gen.papers.multiwrite.ranks.planning import fitted, plan
from p4gen.papers.multiwrite.spec import MultiwriteSpec


class Rank(CheckedRank):
    """A rank of a group of the manager."""

    def __init__(
        self, spec: MultiwriteSpec, rank: int, size: int, packets: int, nic: VerbsNic, changed: Callable[[], None]
    ) -> None:
        kind = ExpertMember if spec.combine else Member
        self._member = kind(nic, rank, Layout(spec, size, packets), changed)
        self._made = 0
        """Calls of this generation that are checked."""
        self._window: Window | None = None
        """What the memory must hold."""

    @property
    @override
    def memory(self) -> Memory:
        region = self._member.region
        return Memory(region.address, region.rkey, self._member.layout.memory)

    @property
    @override
    def pairs(self) -> list[VerbsPair]:
        return self._member.pairs

    @property
    @override
    def problems(self) -> list[str]:
        return self._member.problems

    @property
    @override
    def done(self) -> bool:
        return self._member.done

    @override
    def progress(self) -> float:
        return self._member.progress

    @property
    @override
    def place(self) -> tuple[int, int, MultiwriteSpec]:
        layout = self._member.layout
        return self._member.rank, layout.ranks, layout.spec

    @override
    def connect(self, config: RankConfig, timeout_ps: int) -> None:
        member, layout = self._member, self._member.layout
        ends = {channel.key[1]: End(channel.qp, channel.peer) for channel in config.channels}
        first_psns = [config.first_psn] * config.size
        member.connect(
            ends.pop(config.rank),
            ends,
            dict(enumerate(first_psns)),
            timeout_ps=timeout_ps,
            adaptive=True,
            retry_count=None,
            rnr_retry=None,
        )
        self._window, self._made = Window(layout, config.rank, first_psns), 0

    @override
    def disconnect(self) -> None:
        self._member.disconnect()
        self._window = None

    @override
    def close(self) -> None:
        self._member.close()

    @override
    def make(self, drawn: SharedCall) -> None:
        drawn.start(self._member)

    @override
    def problem(self, drawn: SharedCall) -> str:
        # Others must not have begun another call: they would write to the memory.
        assert self._window is not None
        self._made += 1
        drawn.fill(self._window, self._made)
        return drawn.problem(self._member) or window_problem(self._member, self._window)


def _samples(spec: MultiwriteSpec, ranks: int, size: int) -> list[Asked]:
    unit = ranks * spec.payload
    given = {"tokens": "8", "hidden": "1500", "experts": str(4 * ranks), "top": "4"}
    dispatches: list[Asked] = [(DISPATCH, None, given | {"choice": str(choice)}) for choice in Choice]
    layers: list[Asked] = [(MOE, None, {**given, "hidden": "1000"})] if spec.combine else []
    return [(ALLGATHER, max(size // unit, 1) * unit, {}), *dispatches, *layers]


FACET: LabMembers[MultiwriteSpec] = LabMembers(
    collectives={ALLGATHER: {}, DISPATCH: OPTIONS, MOE: OPTIONS},
    sized=frozenset({ALLGATHER}),
    example="run allgather 64K; run dispatch tokens 32",
    fitted=fitted,
    plan=plan,
    samples=_samples,
    ranks=partial(MemoryRanks, Rank),
    steps=group_steps,
)
