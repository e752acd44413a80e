"""Why a run does not end: which rank waits for which PSN, the switches' state for that PSN, and which packets were
lost.

The switches' state is read from the registers of the generated program (``state``), if the program's family says how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from p4gen.host.collectives.commlib import Communicator
from p4gen.host.collectives.plan import ChannelKey
from p4gen.host.transport.clock import duration_text
from p4gen.host.transport.rc import QueuePair
from p4gen.net.collectives.running import Running, RunningGroup
from p4gen.net.collectives.state import ChannelState, EdgeState, SlotState, group_reader
from p4gen.plan.placement.placed import Channel
from p4gen.rocev2 import psn as serial

_MOST = 4
"""Number of PSNs that are examined."""


@dataclass(frozen=True)
class RankState:
    """The progress of a rank on a channel. PSNs have 24 bits."""

    name: str
    """The group's name, "" when there is only one group."""
    rank: int
    host: str
    channel: ChannelKey
    done: bool
    unacknowledged: int | None
    """The oldest PSN that it has sent and that has not been acknowledged; None when there is none."""
    expects: int | None
    """The PSN of the result that it waits for; None when it does not wait."""

    def __str__(self) -> str:
        who = f"{self.name}rank {self.rank} ({self.host})"
        if self.done:
            return f"{who} is done"
        waits = []
        if self.unacknowledged is not None:
            waits.append(f"for the ACK of PSN {self.unacknowledged:#08x}")
        if self.expects is not None:
            waits.append(f"for the result of PSN {self.expects:#08x}")
        collective, root = self.channel
        on = "" if collective == "allreduce" else f", on the channel of {collective} {root}"
        return f"{who} waits {' and '.join(waits)}{on}" if waits else f"{who} waits for others{on}"


@dataclass(frozen=True)
class Diagnosis:
    """The findings, the most useful first."""

    deadlocked: bool
    """Whether no event is left. Otherwise packets are still sent, but without progress."""
    time: int
    ranks: tuple[RankState, ...]
    slots: tuple[SlotState, ...]
    edges: tuple[EdgeState, ...]
    causes: tuple[str, ...]

    def lines(self) -> list[str]:
        """The findings as text, one per line."""
        what = "deadlock: no packet is in flight and no timer runs" if self.deadlocked else "no more progress"
        channels = Counter((state.name, state.rank) for state in self.ranks)
        first = {(state.name, state.rank): state for state in reversed(self.ranks)}
        return [
            f"{what}, at {duration_text(self.time)}",
            *map(str, self.slots),
            *map(str, self.edges),
            *(f"cause: {cause}" for cause in self.causes),
            *(
                f"{first[who]}{f'; and on {channels[who] - 1} more' if channels[who] > 1 else ''}"
                for who in sorted(first)
            ),
        ]


def diagnose(simulation: Running, *, deadlocked: bool) -> Diagnosis:
    """The reasons why ``simulation`` does not end."""
    ranks: list[RankState] = []
    slots: list[SlotState] = []
    edges: list[EdgeState] = []
    waited: set[int] = set()
    for group in simulation.groups:
        for channel in group.placed.channels:
            mine = list(_rank_states(group, channel))
            ranks += mine
            waited |= {psn for s in mine for psn in (s.expects, s.unacknowledged) if psn is not None}
            expected = _numbers(group, channel, mine, sent=False)
            numbers = sorted(set(expected.values()))
            numbers += sorted(set(_numbers(group, channel, mine, sent=True).values()) - set(numbers))
            for number in numbers[: max(0, _MOST - len(slots))]:
                waiting = [rank for rank, awaited in expected.items() if awaited == number]
                found = list(_slots(simulation, group, channel, number, waiting))
                slots += found
                edges += [state for slot in found for state in _edges(simulation, group, channel, slot)]
    idle = [s for s in ranks if s.unacknowledged is None and s.expects is None and not s.done]
    ranks = [s for s in ranks if s.unacknowledged is not None or s.expects is not None]
    known = {(s.name, s.rank) for s in ranks}
    ranks += list({(s.name, s.rank): s for s in idle if (s.name, s.rank) not in known}.values())
    causes = [*_lost(simulation, waited), *_refused(simulation)]
    if not simulation.config.timeout:
        causes.append("the retransmission timer is off: what is lost stays lost unless a NAK asks for it")
    return Diagnosis(
        deadlocked, simulation.network.loop.now, tuple(ranks), tuple(slots), tuple(dict.fromkeys(edges)), tuple(causes)
    )


def _rank_states(group: RunningGroup, channel: Channel) -> Iterator[RankState]:
    for rank, communicator in enumerate(group.communicators):
        if not isinstance(communicator, Communicator):
            continue  # a ring has no switch state
        mine = communicator.channels[channel.key]
        pair = _pair(communicator, channel)
        requester, responder = pair.requester, pair.responder
        done = group.ranks[rank].done
        yield RankState(
            group.name,
            rank,
            group.placed.request.ranks[rank],
            channel.key,
            done,
            requester.psn(requester.una) if requester.una < requester.high else None,
            responder.psn(responder.expected) if mine.awaits and not done else None,
        )


def _numbers(group: RunningGroup, channel: Channel, states: Sequence[RankState], *, sent: bool) -> dict[int, int]:
    """For each rank, the number by which switches know a packet: the packet that the rank waits for or, with ``sent``,
    its oldest packet that is not acknowledged. Where connections have PSNs of their own, the number is not the PSN."""
    first = next(iter(channel.contexts.values())).first_psn
    found = {}
    for state in states:
        communicator = group.communicators[state.rank]
        if (state.unacknowledged if sent else state.expects) is None or not isinstance(communicator, Communicator):
            continue
        pair = _pair(communicator, channel)
        found[state.rank] = serial.add(first, pair.requester.una if sent else pair.responder.expected)
    return found


def _pair(communicator: Communicator, channel: Channel) -> QueuePair:
    """The queue pair of a rank's channel: in simulations the NICs are ours."""
    return cast("QueuePair", communicator.channels[channel.key].pair)


def _slots(
    simulation: Running, group: RunningGroup, channel: Channel, psn: int, waiting: Sequence[int]
) -> Iterator[SlotState]:
    """The slots at which a PSN is stuck: a packet is missing there, and at no other switch.

    If all slots are complete, those nearest to the ``waiting`` ranks.
    """
    reader = group_reader(simulation.spec)
    if reader is None:
        return
    state = ChannelState(reader, simulation, group, channel)
    slots = list(state.slots(psn))
    stuck = [slot for slot in slots if slot.missing and not state.is_explained(slot, slots)]
    if stuck:
        yield from stuck
    else:
        near = {group.placed.tree.first_hop(rank)[0].key for rank in waiting}
        complete = [slot for slot in slots if slot.complete]
        yield from [slot for slot in complete if slot.node in near] or complete[:1]


def _edges(simulation: Running, group: RunningGroup, channel: Channel, slot: SlotState) -> Iterator[EdgeState]:
    """The progress of the edges of the node at which a PSN is stuck."""
    reader = group_reader(simulation.spec)
    if reader is None:
        return
    state = ChannelState(reader, simulation, group, channel)
    for edge in state.edges(slot.node):
        if edge.name in slot.missing or not slot.missing:
            yield edge


def _lost(simulation: Running, psns: set[int]) -> list[str]:
    """The losses on links of packets with the given PSNs, one line each."""
    found: Counter[tuple[str, int | None, int, str, str]] = Counter()
    for passage in simulation.network.recent_drops:
        label = simulation.network.kinds.of(passage.frame)
        if label is not None and label.psn in psns:
            found[label.kind, label.rank, label.psn, f"{passage.src}>{passage.dst}", passage.reason] += 1
    return [
        f"{kind}{f' of rank {rank}' if rank is not None else ''}, PSN {psn:#08x}, was lost on {place} "
        f"{count} time{'s' if count > 1 else ''} ({reason})"
        for (kind, rank, psn, place, reason), count in found.most_common(8)
    ]


def _refused(simulation: Running) -> list[str]:
    """Packets that programs drop again and again, for a reason that a retransmission does not remove."""
    telling = (
        *("mixed", "not_served", "unsupported", "no_pattern", "not_announced", "stale"),
        *("unknown", "bad_length", "bad_opcode"),
    )
    return [
        f"{switch} dropped {count} packets as {reason}"
        for switch in simulation.network.switches
        for reason, count in simulation.switch_drops(switch).most_common()
        if any(word in reason for word in telling)
    ]
