"""The steps of a suite whose hosts run collectives over connections that leaves spray."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from p4gen.errors import FailedError
from p4gen.labs.calls import Step
from p4gen.labs.runs.suite import STEP_S, Suite, rate_text
from p4gen.manager.api import ConnectionState, ConnectionStatus
from p4gen.switch import targets
from p4gen.vocabulary.topology import Link, TopologySpec

_LONG: Final = {targets.EMBEDDED: 256 << 10, targets.BMV2: 16 << 10}
"""Bytes of each rank's data in calls during which a link is cut."""
_LONG_CALLS: Final = 8
_DELAY: Final = "1ms"
_POLL_S: Final = 0.02


def _open(suite: Suite) -> str:
    """Create the connections of all hosts."""
    parties = {party.name: party for party in (suite.lab.parties.of(suite.ranks, call) for call in suite.samples(1))}
    refused = [reason for party in parties.values() for reason in party.refused]
    if refused:
        raise FailedError(*refused)
    return ", ".join(f"{party.name}: {len(party.numbers)} connections" for party in parties.values())


def _sprayed(suite: Suite) -> str:
    _spray(suite, on=True)
    rate, sprayed = _rate_and_sprayed(suite)
    if suite.lab.manager.connections() and not sprayed:
        raise FailedError("no packet was sprayed")
    return f"all right, {rate}; {sprayed:,} packets sprayed"


def _by_ecmp(suite: Suite) -> str:
    """Run everything with spraying off, then have connections sprayed again."""
    _spray(suite, on=False)
    rate, sprayed = _rate_and_sprayed(suite)
    _spray(suite, on=True)
    if sprayed:
        raise FailedError(f"{sprayed} packets were sprayed although spraying was off")
    return f"all right, {rate}"


def _delayed(suite: Suite) -> str:
    """Run everything while the links of one of the switches between leaves are slow, so that packets overtake each
    other."""
    lab, link = suite.lab, _link(suite.lab.topology)
    if link is None:
        return "there is no link between switches"
    slow = next(end for end in reversed(link.ends) if not _has_hosts(lab.topology, end))
    before = _counts(suite)
    try:
        lab.impairments.suffer(slow, "delay", _DELAY)
        suite.run_all()
    finally:
        lab.impairments.heal()
    grown = {name: count - before.get(name, 0) for name, count in _counts(suite).items()}
    return f"{_DELAY} at {slow}: " + ", ".join(f"{name} {count:,}" for name, count in grown.items() if count)


def _cut(suite: Suite) -> str:
    """Cut a link between switches during AlltoAlls: connections that have other paths go over to them. Restore it, also
    under load."""
    lab, link = suite.lab, _link(suite.lab.topology)
    if link is None:
        return "there is no link between switches"
    call = suite.samples(_LONG[lab.job.pace])[0]
    running = suite.run(lab.parties.of(suite.ranks, call), [call] * _LONG_CALLS)
    before = {status.number: status for status in lab.manager.connections()}
    touched = [n for n, status in before.items() if _uses(lab.topology, status, link)]
    lab.network.set_link(*link.ends, up=False)

    def gone_over(now: ConnectionStatus) -> bool:
        return not _uses(lab.topology, now, link) and now.state is not ConnectionState.CHANGING

    def back(now: ConnectionStatus) -> bool:
        return now.paths == before[now.number].paths and now.state is ConnectionState.SPRAYED

    try:
        _wait(suite, touched, gone_over)
        if running.done:
            raise FailedError("the alltoalls ended before paths had changed, so nothing was tested")
        shrunk = [status for status in lab.manager.connections() if status.number in touched]
    finally:
        lab.network.set_link(*link.ends, up=True)
    _wait(suite, touched, back)
    outcome = running.result()
    if outcome.problems:
        raise FailedError(*outcome.problems)
    least = min((len(s.paths) for s in shrunk if s.state is ConnectionState.SPRAYED), default=0)
    return (
        f"{link.name} cut: {len(touched)} connections went over to {least} path{'s' * (least != 1)}, and back; "
        f"{len(outcome.calls)} alltoalls right"
    )


def _release(suite: Suite) -> str:
    """Release all connections, and check that switches hold nothing of them."""
    lab = suite.lab
    lab.connections.close_all()
    connections = lab.manager.connections()
    if connections:
        raise FailedError(f"{len(connections)} connections still exist")
    left = {switch.name: switch.entries - suite.entries[switch.name] for switch in lab.manager.status().switches}
    wrong = [f"{name}: {count} entries too many" for name, count in left.items() if count]
    if wrong:
        raise FailedError(*wrong)
    return f"{sum(suite.entries.values())} entries left, as many as before"


CONNECTION_STEPS: Final[tuple[Step, ...]] = (
    ("ping between all hosts", Suite.ping),
    ("connections of a ring and of an alltoall", _open),
    ("an alltoall, and six collectives on the ring, sprayed", _sprayed),
    ("the same on the paths that ECMP gives", _by_ecmp),
    ("the same, sprayed, with a delay on one path", _delayed),
    ("the same under {faults}", Suite.under_faults),
    ("a link between switches cut under alltoalls, and restored", _cut),
    ("the connections released", _release),
)


def _spray(suite: Suite, *, on: bool) -> None:
    wanted = ConnectionState.SPRAYED if on else ConnectionState.ECMP
    for status in suite.lab.connections.spray(spray=on):
        if status.state is not wanted:
            raise FailedError(f"connection {status.number} is {status.state}: {status.reason}")


def _rate_and_sprayed(suite: Suite) -> tuple[str, int]:
    """What comes of running everything, and how many packets are sprayed meanwhile."""
    before = _counts(suite).get("sprayed", 0)
    outcomes = suite.run_all()
    return rate_text(outcomes[0]), _counts(suite).get("sprayed", 0) - before


def _counts(suite: Suite) -> dict[str, int]:
    found: dict[str, int] = {}
    for status in suite.lab.manager.status().connections:
        for count in status.counts:
            found[count.name] = found.get(count.name, 0) + count.packets
    return found


def _link(topology: TopologySpec) -> Link | None:
    """A link between a leaf and a switch above it."""
    switches = set(topology.switches)
    between = [link for link in topology.links if set(link.ends) <= switches]
    return next((link for link in between if sum(_has_hosts(topology, end) for end in link.ends) == 1), None)


def _has_hosts(topology: TopologySpec, switch: str) -> bool:
    return any(link.other(switch) in topology.hosts for link in topology.ports[switch])


def _uses(topology: TopologySpec, status: ConnectionStatus, link: Link) -> bool:
    """Whether packets of a connection may cross a link that starts at its source's or its destination's switch."""
    leaf, above = sorted(link.ends, key=lambda end: not _has_hosts(topology, end))
    return leaf in (status.source_switch, status.destination_switch) and above in status.paths


def _wait(suite: Suite, numbers: Sequence[int], satisfied: Callable[[ConnectionStatus], bool]) -> None:
    until = time.monotonic() + STEP_S
    while True:
        waiting = [s for s in suite.lab.manager.connections() if s.number in numbers and not satisfied(s)]
        if not waiting:
            return
        if time.monotonic() > until:
            one = waiting[0]
            raise FailedError(f"connection {one.number} is {one.state} over {' '.join(one.paths)}: {one.reason}")
        time.sleep(_POLL_S)
