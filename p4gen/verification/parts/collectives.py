"""Ranks of groups as tasks of hosts: CommLib, and a comparison of what arrives with NumPy's result."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from p4gen.host.collectives.arrays import Array, wrong_elements
from p4gen.host.collectives.commlib import Communicator, GroupConfig, Invocation
from p4gen.host.collectives.leased import REFUSED, LeasedCommunicator, LeasedInvocation
from p4gen.host.transport.nic import Nic
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.running import RankTask


@dataclass(frozen=True)
class Rank:
    """A rank of a group: its CommLib's configuration, its calls with their input, and NumPy's results."""

    group: int
    config: GroupConfig
    calls: tuple[Call, ...]
    values: tuple[Array, ...]
    results: tuple[Array | None, ...]
    """None for a call that gives this rank no result."""
    arriving: tuple[bytes, ...]
    """The data that the network brings to this rank for each call, as in memory; empty where it is not one stream."""
    shares: bool = False
    """Whether the group shares slots, so that calls may be refused."""


class CheckedRank(RankTask):
    """A rank of a group on a host's NIC (``p4gen.verification.parts.hosts.SearchedTask``)."""

    def __init__(self, nic: Nic, rank: Rank) -> None:
        member = LeasedCommunicator(nic, rank.config) if rank.shares else Communicator(nic, rank.config)
        super().__init__(f"group {rank.group}", member, rank.calls, rank.values)
        self._rank, self._member = rank, member

    def forget_times(self) -> None:
        """Set the times of all calls to 0."""
        for call in [*self.made, *self._member.under_way()]:
            call.started, call.finished = _at_zero(call.started), _at_zero(call.finished)
            call.last_result = _at_zero(call.last_result)
            if isinstance(call, LeasedInvocation):
                call.answered = _at_zero(call.answered)

    @property
    @override
    def problem(self) -> str:
        first = {id(call): room for call, rooms in self._member.arriving() for room in rooms[:1]}
        for number, call in enumerate(self.made):
            room = first.get(id(call))
            if problem := self._problem(number, call, memoryview(b"") if room is None else room):
                return problem
        return ""

    def _problem(self, number: int, call: Invocation, room: memoryview) -> str:
        rank = self._rank
        which = f"rank {rank.config.rank}, call {number + 1} ({call.collective})"
        whole = max(0, call.messages_received - 1) * rank.config.packet * rank.config.message
        for i, (byte, right) in enumerate(zip(room[:whole], rank.arriving[number], strict=False)):
            if byte != right:
                packet = i // rank.config.packet
                return f"{which}: what packet {packet + 1} brings is wrong: byte {i} is {byte}, NumPy's is {right}"
        if call.error is not None:
            if call.error == REFUSED:
                return ""
            return f"{which}: {call.error}"
        wanted = rank.results[number]
        if not call.done or wanted is None:
            return ""
        got = call.result()
        if got is None:
            return f"{which}: no result"
        wrong = wrong_elements(got, wanted)
        if not wrong.size:
            return ""
        at = int(wrong[0])
        return f"{which}: element {at} is {got.flat[at]}, NumPy's is {wanted.flat[at]}"


def _at_zero(time: int | None) -> int | None:
    return None if time is None else 0
