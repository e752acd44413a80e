"""A test of a lab: all collectives, loss, a link that fails and recovers, ordinary traffic."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rich.console import Console

from p4gen.errors import FailedError, P4genError
from p4gen.labs.prompt.commands import PING
from p4gen.labs.runs.calls import GroupRun, RunOutcome
from p4gen.labs.runs.memberruns import MemberCalls
from p4gen.labs.runs.peersuite import PeerSuite
from p4gen.labs.session import Lab
from p4gen.manager.api import GroupState, GroupStatus
from p4gen.net.collectives.config import Call
from p4gen.rocev2.headers import ipv4_text
from p4gen.switch import targets
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import Link, TopologySpec

_SIZE: Final = {targets.EMBEDDED: 32 << 10, targets.BMV2: 8 << 10}
"""Bytes of each rank's data; BMv2 handles some thousand packets per second."""
_LONG: Final = {targets.EMBEDDED: 4 << 20, targets.BMV2: 128 << 10}
"""Bytes of each rank's data in calls during which a link is cut, multiplied by the numbers of switches and of hosts."""
_LONG_CALLS: Final = 5
_CUT_AFTER_S: Final = 0.03
_SHARES: Final = {"loss": "1%", "duplicate": "0.5%", "reorder": "0.5%", "corrupt": "0.5%"}
"""Of packets that have each kind of fault."""
_WORDS: Final = {"duplicate": "duplication", "reorder": "reordering", "corrupt": "corruption"}
_STEP_S: Final = 600.0


@dataclass(frozen=True)
class Step:
    """The result of a step."""

    name: str
    seconds: float
    problem: str = ""
    note: str = ""


class Run(Protocol):
    """A run that is under way."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def result(self) -> RunOutcome:
        """Wait for its end."""
        ...


class Calls(Protocol):
    """What ranks of a group can call."""

    def all(self, group: GroupStatus, size: int) -> list[Any]:
        """All kinds of calls, of about this many bytes."""
        ...

    def packets(self, ranks: int, size: int) -> int:
        """What the memory that ranks offer must have room for."""
        ...

    def begin(self, group: GroupStatus, calls: list[Any], seed: int) -> Run:
        """Make calls one after the other."""
        ...


class Collectives:
    """The collectives that switches take part in (``Calls``). Those with a root have the first and the last rank as
    root."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def all(self, group: GroupStatus, size: int) -> list[Any]:
        """See ``Calls``."""
        last = len(group.spec.ranks) - 1
        found = [
            Call(Collective.ALLREDUCE, size),
            Call(Collective.REDUCE, size, 0),
            Call(Collective.REDUCE, size, last),
            Call(Collective.BROADCAST, size, 0),
            Call(Collective.BROADCAST, size, last),
            Call(Collective.BARRIER, 0),
            Call(Collective.REDUCE_SCATTER, size),
            Call(Collective.ALLGATHER, size),
        ]
        return [call for call in found if call.collective in group.spec.collectives]

    def packets(self, ranks: int, size: int) -> int:
        """See ``Calls``."""
        return 0

    def begin(self, group: GroupStatus, calls: list[Any], seed: int) -> Run:
        """See ``Calls``."""
        return GroupRun(self._lab, group, calls, seed=seed, deadline=_STEP_S)


class Suite:
    """The steps in order. Each restores the lab's state."""

    def __init__(self, lab: Lab, seed: int, calls: Calls) -> None:
        self._lab, self._seed, self._calls = lab, seed, calls
        self._group: GroupStatus | None = None

    @property
    def steps(self) -> list[tuple[str, Callable[[], str]]]:
        """The steps with their names. A step returns a note, or raises ``P4genError``."""
        return [
            ("ping between all hosts", self.ping),
            ("a group of all ranks", self.init),
            ("all collectives", self.collectives),
            (f"all collectives under {_listed(self._faults)}", self.under_loss),
            ("a link cut under a collective, and restored", self.cut),
            ("all collectives after the restoration", self.collectives),
            ("the group destroyed", self.destroy),
        ]

    @property
    def group(self) -> GroupStatus:
        """The group of all ranks."""
        assert self._group is not None
        return self._group

    def ping(self) -> str:
        """Check that ordinary traffic passes: ping between all hosts."""
        names = list(self._lab.hosts)
        pings = []
        for host, target in zip(names, [*names[1:], names[0]], strict=True):
            address = ipv4_text(self._lab.hosts[target].hello.result()["ip"])
            command = [*self._lab.network.inside(host), *PING, "-c", "2", "-i", "0.05", address]
            popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            pings.append((f"ping from {host} to {target}", popen))
        failed = []
        for what, popen in pings:
            said = popen.communicate(timeout=_STEP_S)[0]
            if popen.returncode:
                failed.append(f"{what}: {said.strip().splitlines()[-1] if said.strip() else 'no answer'}")
        if failed:
            raise FailedError(*failed)
        return f"{len(pings)} pairs"

    def init(self) -> str:
        """Create the group of all ranks."""
        hosts = self._lab.topology.rank_hosts
        packets = self._calls.packets(len(hosts), self._long)
        self._group = self._lab.groups.init("suite", hosts, packets=packets)
        return "tree " + ", ".join(f"{s} under {up}" if up else f"{s} at the root" for s, up in self.group.tree.items())

    def collectives(self) -> str:
        """Run all collectives that the group serves."""
        return _rate(self._run(self._all()))

    def under_loss(self) -> str:
        """Run the same while every host's link has all faults that the program withstands."""
        lab = self._lab
        try:
            for kind in self._faults:
                lab.impairments.suffer("all", kind, _SHARES[kind])
            outcome = self._run(self._all())
        finally:
            lab.impairments.heal()
        taken = sum(sum(rank["faults"].values()) for rank in outcome.ranks)
        resent = sum(rank["resent"] for rank in outcome.ranks)
        if not taken:
            raise FailedError("no packet was lost: the faults had no effect")
        return f"{taken} packets lost, {resent} sent again"

    def cut(self) -> str:
        """Cut a link of the tree during calls of the first kind. If another tree exists the group moves to it;
        otherwise it is broken, or on its ring, until the link is restored. All results must be right in the end."""
        lab = self._lab
        link = tree_link(lab.topology, self.group)
        elsewhere = connected_without(lab.topology, link)
        calls = self._calls.all(self.group, self._long)[:1] * _LONG_CALLS
        running = self._calls.begin(self.group, calls, self._seed)
        time.sleep(_CUT_AFTER_S)
        status = lab.manager.group("suite")  # calls with leases have changed it
        ring = status.ring  # then it needs no other generation
        before = status.generation - 1 if ring else status.generation
        lab.network.set_link(*link.ends, up=False)
        try:
            if elsewhere:
                status = lab.groups.wait_for("suite", GroupState.ACTIVE, before)
            else:
                status = lab.groups.wait_until("suite", lambda now: _without_tree(now, before), "broken, or on a ring")
                time.sleep(_CUT_AFTER_S if ring else 0.0)
                if running.done:
                    raise FailedError("the collectives ended before the link was cut, so nothing was tested")
                if not status.reason:
                    raise FailedError(f"the group is {_broken(status)}, and no reason is given")
        finally:
            if not elsewhere:
                lab.network.set_link(*link.ends, up=True)
        self._group = lab.groups.wait_for("suite", GroupState.ACTIVE, before)
        outcome = running.result()
        if outcome.problems:
            raise FailedError(*outcome.problems)
        if elsewhere:
            lab.network.set_link(*link.ends, up=True)
            used = tree_edges(lab.topology, self.group)
            if frozenset(link.ends) in used:
                raise FailedError(f"the group still uses {link.name}, which was down")
            return f"{link.name} cut; now {', '.join(self.group.switches)}, generation {self.group.generation}"
        return f"{link.name} cut: {_broken(status)} ({status.reason}); restored: generation {self.group.generation}"

    def destroy(self) -> str:
        """Destroy the group, and check that the manager has no resources in use."""
        lab = self._lab
        lab.manager.destroy_group("suite")
        status = lab.manager.status()
        if status.groups:
            raise FailedError(f"group {status.groups[0].spec.name} still exists")
        left = [f"{s.name}: {s.contexts} contexts, {s.slots} slots" for s in status.switches if s.contexts or s.slots]
        if left:
            raise FailedError(*left)
        return f"{sum(s.entries for s in status.switches)} entries left, all routes"

    @property
    def _faults(self) -> list[str]:
        """Without the ICRC nobody notices corrupt data."""
        spec = self._lab.job.spec
        lacking = {"reorder"} if self._lab.job.needs_order else set()
        return [kind for kind in _SHARES if kind not in lacking | (set() if spec.icrc.checked else {"corrupt"})]

    @property
    def _long(self) -> int:
        """Bytes of the calls during which a link is cut."""
        lab = self._lab
        share = _LONG[lab.job.target] // (len(lab.switches) * len(lab.hosts))
        return 1 << max(12, share.bit_length() - 1)

    def _all(self) -> list[Any]:
        return self._calls.all(self.group, _SIZE[self._lab.job.target])

    def _run(self, calls: list[Any]) -> RunOutcome:
        outcome = self._calls.begin(self.group, calls, self._seed).result()
        if outcome.problems:
            raise FailedError(*outcome.problems)
        return outcome


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Run the suite. It ends at the first step that fails."""
    done: list[Step] = []
    seed = lab.job.wanted.seed
    console.print(f"seed {seed}")
    of_groups = Suite(lab, seed, MemberCalls(lab) if lab.job.uses_memory else Collectives(lab))
    steps = of_groups.steps if lab.job.grouped else [of_groups.steps[0], *PeerSuite(lab, seed).steps]
    for name, step in steps:
        began = time.monotonic()
        problem = note = ""
        try:
            note = step()
        except P4genError as error:
            problem = "; ".join(diagnostic.message for diagnostic in error.diagnostics)
        seconds = time.monotonic() - began
        done.append(Step(name, seconds, problem, note))
        style, word = ("red", "FAILED") if problem else ("green", "ok")
        console.print(f"[{style}]{word:6}[/{style}] {seconds:5.2f} s  {name}: ", end="")
        console.print(problem or note, markup=False)
        if problem:
            break
    passed = not done[-1].problem
    told = [{"name": s.name, "seconds": s.seconds, "problem": s.problem, "note": s.note} for s in done]
    return 0 if passed else 1, {"passed": passed, "seed": seed, "steps": told}


def _without_tree(status: GroupStatus, before: int) -> bool:
    """Whether a group is broken, or calls on its ring in a generation after ``before``."""
    return status.state is GroupState.BROKEN or (status.ring and status.generation > before)


def _broken(status: GroupStatus) -> str:
    return "on its ring" if status.ring else "broken"


def tree_edges(topology: TopologySpec, group: GroupStatus) -> set[frozenset[str]]:
    """The links between neighbouring switches of a group's trees, and those of its hosts."""
    trees = (group.tree, *(each.tree for each in group.trees))
    edges = {frozenset((switch, up)) for tree in trees for switch, up in tree.items() if up is not None}
    edges |= {frozenset(topology.ports[host][0].ends) for host in group.spec.ranks}
    return edges


def tree_link(topology: TopologySpec, group: GroupStatus) -> Link:
    """A link of the tree: one between switches if there is one, otherwise a host's."""
    edges = tree_edges(topology, group)
    used = [link for link in topology.links if frozenset(link.ends) in edges]
    between = [link for link in used if set(link.ends) <= set(topology.switches)]
    return (between or used)[0]


def connected_without(topology: TopologySpec, cut: Link) -> bool:
    """Whether all ranks still reach each other when a link is down."""
    ranks = topology.rank_hosts
    return set(ranks) <= topology.distances(ranks[0], {cut.name}).keys()


def _listed(kinds: list[str]) -> str:
    words = [_WORDS.get(kind, kind) for kind in kinds]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _rate(outcome: RunOutcome) -> str:
    first = outcome.calls[0]
    return f"all right, {first.call.collective} at {first.throughput / 1e6:.1f} Mb/s"
