"""Programs of one spec for two architectures, under the same groups and traffic: both must send the same packets.

The *reference* has everything; the *tested* program may lack capabilities, which its manifest lists. Each packet goes
to the reference first. The packets that the reference then sends, or the reason for which it drops the packet, decide
what the tested program must send (``Expected``): the same, or what follows from a missing capability, or anything. Any
other difference is a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from p4gen.difftest.compare import Difference, first_difference
from p4gen.difftest.events import Event, Packet, Replication, Request
from p4gen.groups.group import SwitchConfig
from p4gen.model import EngineName, Model
from p4gen.model.entries import Entry, MulticastGroup
from p4gen.model.errors import ControlError
from p4gen.p4 import ir
from p4gen.switch.drops import dropped
from p4gen.vocabulary import ProgramSpec

Sent = Sequence[tuple[int, bytes]]
"""What a switch sends for a packet: ports and frames, in order."""


@dataclass(frozen=True)
class Change:
    """A new configuration of both switches: what they hold from now on."""

    reference: SwitchConfig = field(repr=False)
    tested: SwitchConfig = field(repr=False)
    why: str

    def __str__(self) -> str:
        return self.why


Step = Packet | Change


@dataclass(frozen=True)
class Expected:
    """What the tested program must send for a packet; None: the packet is not given to it. ``capability`` names the
    missing capability if ``sent`` is not the reference's output. A packet that the tested program drops must be dropped
    for one of ``reasons``."""

    sent: Sent | None
    capability: str = ""
    reasons: frozenset[str] = frozenset()


class Across(Protocol):
    """Random traffic for both programs, all derived from one seed."""

    @property
    def capabilities(self) -> Mapping[str, str]:
        """What the tested program lacks, each with the reason."""

    def setup(self) -> Change:
        """The initial configuration."""

    def steps(self) -> Iterator[Step]:
        """An endless sequence of packets, with changes of the configuration among them."""

    def expect(self, packet: Packet, sent: Sent, reason: str, reference: Model) -> Expected:
        """Decide what the tested program must send, after the reference has ``sent`` this, or has dropped the packet
        for this ``module.reason``."""


@dataclass(frozen=True)
class Found:
    """A difference that appears after ``steps``, not counting the initial configuration."""

    difference: Difference
    steps: tuple[Step, ...]


@dataclass
class Tally:
    """The number of things compared so far."""

    packets: int = 0
    outputs: int = 0
    changes: int = 0
    dropped: int = 0
    """Packets for which both sent nothing."""
    exceptions: Counter[str] = field(default_factory=Counter)
    """Packets for which the programs may differ, by the missing capability."""


class Pair:
    """The two programs on switches of their own. ``replay`` starts afresh."""

    def __init__(
        self,
        reference: tuple[ProgramSpec, ir.Program],
        tested: tuple[ProgramSpec, ir.Program],
        traffic: Across,
        engine: EngineName = "interp",
    ) -> None:
        self._specs = reference[0], tested[0]
        self._names = reference[0].arch, tested[0].arch
        self._models = tuple(Model(program, engine=engine) for _, program in (reference, tested))
        self._traffic = traffic
        self._setup = traffic.setup()
        self._held: list[SwitchConfig] = []
        self._counted: list[Counter[str]] = []
        self.tally = Tally()

    def run(self, steps: Iterable[Step], packets: int, progress: Callable[[Tally], None] | None = None) -> Found | None:
        """Compare until ``packets`` packets have been handled. Returns the first difference, or None."""
        self._restart()
        done: list[Step] = []
        for step in steps:
            done.append(step)
            difference = self._take(step)
            if difference is not None:
                return Found(difference, tuple(done))
            if progress is not None:
                progress(self.tally)
            if self.tally.packets >= packets:
                return None
        return None

    def replay(self, steps: Iterable[Step]) -> Difference | None:
        """Run ``steps`` afresh. Returns the first difference, or None."""
        self._restart()
        return next((found for step in steps if (found := self._take(step)) is not None), None)

    def story(self, steps: Iterable[Step]) -> Iterator[tuple[Event, Sent | None]]:
        """The events of a run for the tested switch, the initial configuration first; for packets also what it must
        send."""
        self._restart()
        yield from ((event, None) for event in updates(SwitchConfig((), ()), self._setup.tested))
        for step in steps:
            if isinstance(step, Change):
                yield from ((event, None) for event in updates(self._held[1], step.tested))
                self._configure(step)
            else:
                expected = self._ask(step)
                if expected.sent is not None:
                    self._models[1].process(step.port, step.frame)
                    yield step, expected.sent

    def _restart(self) -> None:
        for model in self._models:
            model.reset()
        self._held = [SwitchConfig((), ()), SwitchConfig((), ())]
        self._counted = [Counter(), Counter()]
        difference = self._configure(self._setup)
        assert difference is None, difference

    def _take(self, step: Step) -> Difference | None:
        if isinstance(step, Change):
            self.tally.changes += 1
            return self._configure(step)
        expected = self._ask(step)
        self.tally.packets += 1
        if expected.capability:
            self.tally.exceptions[expected.capability] += 1
        if expected.sent is None:
            return None
        found = self._models[1].process(step.port, step.frame)
        self.tally.outputs += len(found)
        self.tally.dropped += not found
        reference, tested = self._names
        name = f"{reference} without {expected.capability}" if expected.capability else reference
        if not found and not expected.sent and (reason := self._reason(1)) not in expected.reasons:
            wanted = " or ".join(sorted(expected.reasons))
            return Difference(
                f"{tested} drops a packet for {reason or 'no reason'}, {reference} for {wanted or 'none'}"
            )
        return first_difference(name, _by_port(expected.sent), tested, _by_port(found))

    def _reason(self, number: int) -> str:
        """Why a switch has dropped the packet that it was just given, "" if it gave no reason."""
        before = self._counted[number]
        self._counted[number] = dropped(self._specs[number], self._models[number].counters)
        return next(iter(self._counted[number] - before), "")

    def _ask(self, packet: Packet) -> Expected:
        model = self._models[0]
        sent = model.process(packet.port, packet.frame)
        if sent:
            return self._traffic.expect(packet, sent, "", model)
        return self._traffic.expect(packet, sent, self._reason(0), model)

    def _configure(self, change: Change) -> Difference | None:
        """Configure both switches anew. A request that one of them refuses is a difference."""
        for number, config in enumerate((change.reference, change.tested)):
            for event in updates(self._held[number], config):
                try:
                    _apply(self._models[number], event)
                except ControlError as error:
                    return Difference(f"{self._names[number]} refuses {event}: {error}")
            self._held[number] = config
        return None


def updates(before: SwitchConfig, after: SwitchConfig) -> Iterator[Request | Replication]:
    """The requests that turn one configuration into another. Entries are deleted first, so that there is room."""
    old, new = ({_key(entry): entry for entry in config.entries} for config in (before, after))
    for key in old.keys() - new.keys():
        yield Request("delete", old[key])
    for key, entry in new.items():
        if key not in old:
            yield Request("insert", entry)
        elif old[key] != entry:
            yield Request("modify", entry)
    groups = {group.group_id: group for group in before.multicast_groups}
    for group in after.multicast_groups:
        if groups.pop(group.group_id, None) != group:
            yield Replication(group)
    yield from (Replication(MulticastGroup(number, ())) for number in groups)


def _key(entry: Entry) -> tuple[object, ...]:
    return entry.table, entry.priority, tuple(sorted((name, repr(match)) for name, match in entry.match.items()))


def _apply(model: Model, event: Request | Replication) -> None:
    match event:
        case Replication(group=group):
            model.set_multicast_group(group)
        case Request(verb="insert", entry=entry):
            model.insert(entry)
        case Request(verb="modify", entry=entry):
            model.modify(entry)
        case Request(entry=entry):
            model.delete(entry)


def _by_port(sent: Sent) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for port, frame in sent:
        found.setdefault(port, []).append(frame)
    return found
