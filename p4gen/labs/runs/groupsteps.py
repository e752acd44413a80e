"""The steps of a suite whose hosts are in groups of the manager."""

from __future__ import annotations

import time
from typing import Final

from p4gen.errors import FailedError
from p4gen.labs.calls import Step
from p4gen.labs.groups import party
from p4gen.labs.runs.suite import Suite, rate_text
from p4gen.manager.api import GroupState, GroupStatus
from p4gen.switch import targets
from p4gen.vocabulary.topology import Link, TopologySpec

_NAME: Final = "suite"
_LONG: Final = {targets.EMBEDDED: 4 << 20, targets.BMV2: 128 << 10}
"""Bytes of each rank's data in calls during which a link is cut, multiplied by the numbers of switches and of hosts."""
_LONG_CALLS: Final = 5
_CUT_AFTER_S: Final = 0.03


def _init(suite: Suite) -> str:
    """Create the group of all ranks."""
    lab, ranks = suite.lab, suite.ranks
    packets = max(call.plan(lab.job.spec, len(ranks)).packets for call in suite.samples(_long(suite)))
    group = lab.groups.init(_NAME, ranks, packets=packets)
    return "tree " + ", ".join(f"{s} under {up}" if up else f"{s} at the root" for s, up in group.tree.items())


def _collectives(suite: Suite) -> str:
    (outcome,) = suite.run_all()
    return f"all right, {outcome.calls[0].call.collective} at {rate_text(outcome)}"


def _cut(suite: Suite) -> str:
    """Cut a link of the tree during calls of the first kind. If another tree exists the group moves to it; otherwise it
    is broken, or on its ring, until the link is restored. All results must be right in the end."""
    lab = suite.lab
    group = lab.manager.group(_NAME)
    link = tree_link(lab.topology, group)
    elsewhere = connected_without(lab.topology, link)
    running = suite.run(party(group), suite.samples(_long(suite))[:1] * _LONG_CALLS)
    time.sleep(_CUT_AFTER_S)
    status = lab.manager.group(_NAME)  # calls with leases have changed it
    ring = status.ring  # then it needs no other generation
    before = status.generation - 1 if ring else status.generation
    lab.network.set_link(*link.ends, up=False)
    try:
        if elsewhere:
            status = lab.groups.wait_for(_NAME, GroupState.ACTIVE, before)
        else:
            status = lab.groups.wait_until(_NAME, lambda now: _without_tree(now, before), "broken, or on a ring")
            time.sleep(_CUT_AFTER_S if ring else 0.0)
            if running.done:
                raise FailedError("the collectives ended before the link was cut, so nothing was tested")
            if not status.reason:
                raise FailedError(f"the group is {_broken(status)}, and no reason is given")
    finally:
        if not elsewhere:
            lab.network.set_link(*link.ends, up=True)
    group = lab.groups.wait_for(_NAME, GroupState.ACTIVE, before)
    outcome = running.result()
    if outcome.problems:
        raise FailedError(*outcome.problems)
    if elsewhere:
        lab.network.set_link(*link.ends, up=True)
        if frozenset(link.ends) in tree_edges(lab.topology, group):
            raise FailedError(f"the group still uses {link.name}, which was down")
        return f"{link.name} cut; now {', '.join(group.switches)}, generation {group.generation}"
    return f"{link.name} cut: {_broken(status)} ({status.reason}); restored: generation {group.generation}"


def _destroy(suite: Suite) -> str:
    """Destroy the group, and check that the manager has no resources in use."""
    manager = suite.lab.manager
    manager.destroy_group(_NAME)
    status = manager.status()
    if status.groups:
        raise FailedError(f"group {status.groups[0].spec.name} still exists")
    left = [f"{s.name}: {s.contexts} contexts, {s.slots} slots" for s in status.switches if s.contexts or s.slots]
    if left:
        raise FailedError(*left)
    return f"{sum(s.entries for s in status.switches)} entries left, all routes"


GROUP_STEPS: Final[tuple[Step, ...]] = (
    ("ping between all hosts", Suite.ping),
    ("a group of all ranks", _init),
    ("all collectives", _collectives),
    ("all collectives under {faults}", Suite.under_faults),
    ("a link cut under a collective, and restored", _cut),
    ("all collectives after the restoration", _collectives),
    ("the group destroyed", _destroy),
)


def _long(suite: Suite) -> int:
    """Bytes of the calls during which a link is cut."""
    lab = suite.lab
    share = _LONG[lab.job.pace] // (len(lab.switches) * len(lab.hosts))
    return 1 << max(12, share.bit_length() - 1)


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
