"""The steps of a test of a lab whose hosts run collectives over connections that leaves spray."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from p4gen.errors import FailedError, InputError
from p4gen.labs.connections import PeerGroup
from p4gen.labs.runs.calls import RunOutcome
from p4gen.labs.runs.peercalls import ALLTOALL, PeerCall
from p4gen.labs.runs.peerruns import PeerRun, run
from p4gen.labs.session import Lab
from p4gen.manager.api import ConnectionState, ConnectionStatus
from p4gen.switch import targets
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import Link

_SIZE: Final = {targets.EMBEDDED: 32 << 10, targets.BMV2: 8 << 10}
"""Bytes of each rank's data."""
_LONG: Final = {targets.EMBEDDED: 256 << 10, targets.BMV2: 16 << 10}
"""The same in calls during which a link is cut."""
_LONG_CALLS: Final = 8
_DELAY: Final = "1ms"
_LOSS, _DUPLICATE, _REORDER, _CORRUPT = "1%", "0.5%", "0.5%", "0.5%"
_STEP_S: Final = 600.0
_POLL_S: Final = 0.02


class PeerSuite:
    """The steps in order. Each restores the lab's state."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self._lab, self._seed = lab, seed
        self._entries = self._held()
        """Entries that switches have without connections."""

    @property
    def steps(self) -> list[tuple[str, Callable[[], str]]]:
        """The steps with their names. A step returns a note, or raises ``P4genError``."""
        return [
            ("connections of a ring and of an alltoall", self.open),
            ("an alltoall, and six collectives on the ring, sprayed", self.sprayed),
            ("the same on the paths that ECMP gives", self.by_ecmp),
            ("the same, sprayed, with a delay on one path", self.delayed),
            ("the same under loss, duplication, reordering and corruption", self.under_loss),
            ("a link between switches cut under alltoalls, and restored", self.cut),
            ("the connections released", self.release),
        ]

    def open(self) -> str:
        """Create the connections of all hosts."""
        groups = self._groups()
        refused = [reason for group in groups for reason in group.refused]
        if refused:
            raise FailedError(*refused)
        return ", ".join(f"{group.name}: {len(group.numbers)} connections" for group in groups)

    def sprayed(self) -> str:
        """Run everything, sprayed."""
        self._spray(on=True)
        before = self._count("sprayed")
        outcomes = self._run()
        sprayed = self._count("sprayed") - before
        if self._lab.manager.connections() and not sprayed:
            raise FailedError("no packet was sprayed")
        return f"all right, {outcomes[0].calls[0].throughput / 1e6:.1f} Mb/s; {sprayed:,} packets sprayed"

    def by_ecmp(self) -> str:
        """Run everything with spraying off, then have connections sprayed again."""
        self._spray(on=False)
        before = self._count("sprayed")
        outcomes = self._run()
        sprayed = self._count("sprayed") - before
        self._spray(on=True)
        if sprayed:
            raise FailedError(f"{sprayed} packets were sprayed although spraying was off")
        return f"all right, {outcomes[0].calls[0].throughput / 1e6:.1f} Mb/s"

    def delayed(self) -> str:
        """Run everything while the links of one of the switches between leaves are slow, so that packets overtake each
        other."""
        link = self._link()
        if link is None:
            return "there is no link between switches"
        slow = next(end for end in reversed(link.ends) if not self._hosts_at(end))
        lab = self._lab
        before = self._counts()
        try:
            lab.impairments.suffer(slow, "delay", _DELAY)
            self._run()
        finally:
            lab.impairments.heal()
        grown = {name: count - before.get(name, 0) for name, count in self._counts().items()}
        return f"{_DELAY} at {slow}: " + ", ".join(f"{name} {count:,}" for name, count in grown.items() if count)

    def under_loss(self) -> str:
        """Run everything while packets are lost, duplicated, reordered and corrupted on every host's link."""
        lab = self._lab
        faults = {"loss": _LOSS, "duplicate": _DUPLICATE, "reorder": _REORDER, "corrupt": _CORRUPT}
        try:
            for kind, share in faults.items():
                lab.impairments.suffer("all", kind, share)
            outcomes = self._run()
        finally:
            lab.impairments.heal()
        taken = sum(sum(rank["faults"].values()) for outcome in outcomes for rank in outcome.ranks)
        resent = sum(rank["resent"] for outcome in outcomes for rank in outcome.ranks)
        if not taken:
            raise FailedError("no packet was lost: the faults had no effect")
        return f"{taken} packets lost, {resent} sent again"

    def cut(self) -> str:
        """Cut a link between switches during AlltoAlls: connections that have other paths go over to them. Restore it,
        also under load."""
        lab, link = self._lab, self._link()
        if link is None:
            return "there is no link between switches"
        count = len(lab.topology.rank_hosts)
        alltoall, _ = self._groups()
        calls = [PeerCall(ALLTOALL, _rounded(_LONG[lab.job.target], count))] * _LONG_CALLS
        running = PeerRun(lambda: run(lab, alltoall, calls, seed=self._seed, deadline=_STEP_S))
        before = {status.number: status for status in lab.manager.connections()}
        touched = [n for n, status in before.items() if self._uses(status, link)]
        lab.network.set_link(*link.ends, up=False)
        try:
            self._wait(touched, lambda now: not self._uses(now, link) and now.state is not ConnectionState.CHANGING)
            if running.done:
                raise FailedError("the alltoalls ended before paths had changed, so nothing was tested")
            shrunk = [status for status in lab.manager.connections() if status.number in touched]
        finally:
            lab.network.set_link(*link.ends, up=True)
        self._wait(touched, lambda now: now.paths == before[now.number].paths and now.state is ConnectionState.SPRAYED)
        outcome = running.result()
        if outcome.problems:
            raise FailedError(*outcome.problems)
        least = min((len(s.paths) for s in shrunk if s.state is ConnectionState.SPRAYED), default=0)
        return (
            f"{link.name} cut: {len(touched)} connections went over to {least} path{'s' * (least != 1)}, and back; "
            f"{len(outcome.calls)} alltoalls right"
        )

    def release(self) -> str:
        """Release all connections, and check that switches hold nothing of them."""
        lab = self._lab
        lab.connections.close_all()
        connections = lab.manager.connections()
        if connections:
            raise FailedError(f"{len(connections)} connections still exist")
        left = {name: count - self._entries[name] for name, count in self._held().items()}
        wrong = [f"{name}: {count} entries too many" for name, count in left.items() if count]
        if wrong:
            raise FailedError(*wrong)
        return f"{sum(self._entries.values())} entries left, as many as before"

    def _held(self) -> dict[str, int]:
        return {switch.name: switch.entries for switch in self._lab.manager.status().switches}

    def _groups(self) -> list[PeerGroup]:
        ranks = self._lab.topology.rank_hosts
        return [self._lab.connections.group(ranks, ring=ring) for ring in (False, True)]

    def _run(self) -> list[RunOutcome]:
        ranks = len(self._lab.topology.rank_hosts)
        size, last = _rounded(_SIZE[self._lab.job.target], ranks), ranks - 1
        ring = [PeerCall(Collective.ALLREDUCE, size)]
        ring += [PeerCall(each, size, root) for each in (Collective.REDUCE, Collective.BROADCAST) for root in (0, last)]
        ring += [PeerCall(Collective.BARRIER, 0)]
        ring += [PeerCall(each, size) for each in (Collective.REDUCE_SCATTER, Collective.ALLGATHER)]
        found = []
        for group, calls in zip(self._groups(), ([PeerCall(ALLTOALL, size)], ring), strict=True):
            outcome = run(self._lab, group, calls, seed=self._seed, deadline=_STEP_S)
            if outcome.problems:
                raise FailedError(*outcome.problems)
            found.append(outcome)
        return found

    def _spray(self, *, on: bool) -> None:
        wanted = ConnectionState.SPRAYED if on else ConnectionState.ECMP
        for status in self._lab.connections.spray(spray=on):
            if status.state is not wanted:
                raise FailedError(f"connection {status.number} is {status.state}: {status.reason}")

    def _counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for status in self._lab.manager.status().connections:
            for count in status.counts:
                found[count.name] = found.get(count.name, 0) + count.packets
        return found

    def _count(self, name: str) -> int:
        return self._counts().get(name, 0)

    def _link(self) -> Link | None:
        """A link between a leaf and a switch above it."""
        switches = set(self._lab.topology.switches)
        between = [link for link in self._lab.topology.links if set(link.ends) <= switches]
        return next((link for link in between if sum(map(self._hosts_at, link.ends)) == 1), None)

    def _hosts_at(self, switch: str) -> bool:
        return any(link.other(switch) in self._lab.topology.hosts for link in self._lab.topology.ports[switch])

    def _uses(self, status: ConnectionStatus, link: Link) -> bool:
        """Whether packets of a connection may cross a link that starts at its source's or its destination's switch."""
        leaf, above = sorted(link.ends, key=lambda end: not self._hosts_at(end))
        return leaf in (status.source_switch, status.destination_switch) and above in status.paths

    def _wait(self, numbers: Sequence[int], satisfied: Callable[[ConnectionStatus], bool]) -> None:
        until = time.monotonic() + _STEP_S
        while True:
            waiting = [s for s in self._lab.manager.connections() if s.number in numbers and not satisfied(s)]
            if not waiting:
                return
            if time.monotonic() > until:
                one = waiting[0]
                raise FailedError(f"connection {one.number} is {one.state} over {' '.join(one.paths)}: {one.reason}")
            time.sleep(_POLL_S)


def _rounded(size: int, ranks: int) -> int:
    """The largest size up to ``size`` that divides among ranks, at least one element for each."""
    if ranks < 2:
        raise InputError("the suite needs two hosts at least")
    unit = 4 * ranks
    return max(size // unit, 1) * unit
