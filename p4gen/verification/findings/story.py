"""A sequence of events, played again: each event in words, as packets on links, and as states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p4gen.host.transport.clock import US
from p4gen.net.world.watching import Passage
from p4gen.verification.search.events import CORRUPT, DELAY, DELIVER, DUPLICATE, EXPIRE, FORGED, HELD, LATE, LOSE, TICK
from p4gen.verification.system import Effect, System


@dataclass(frozen=True)
class Event:
    """An event of a run. ``where`` is the name of a link, a host or an edge; ``position`` is the number of a delayed
    packet of a link, of a forged one, or of a timer."""

    what: str
    where: str
    position: int = 0


KINDS = {
    DELIVER: "deliver",
    LOSE: "lose",
    DUPLICATE: "duplicate",
    DELAY: "delay",
    LATE: "late",
    CORRUPT: "corrupt",
    EXPIRE: "timeout",
    TICK: "tick",
}
"""Kinds of events, by their numbers in the kernel."""


def events_of(system: System, numbers: Sequence[int]) -> tuple[Event, ...]:
    """Events as the kernel numbers them."""
    found = []
    for number in numbers:
        kind, who, position = number >> 24, number >> 8 & 0xFFFF, number & 0xFF
        parts = system.hosts if kind == EXPIRE else system.ticks if kind == TICK else system.links
        name = [part.name for part in parts][who]
        if kind == LATE and position >= FORGED:
            found.append(Event("forge", name, position - FORGED))
        else:
            found.append(Event(KINDS[kind], name, position))
    return tuple(found)


@dataclass(frozen=True)
class Moment:
    """An event with its effect. ``part`` is the node where it happened; ``before`` and ``after`` are its states."""

    event: Event
    text: str
    part: str
    frame: bytes | None
    effect: Effect | None
    before: int
    after: int


class Story:
    """Plays events. Raises ``ValueError`` for an event that is not possible in the state that has been reached."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.switches, self.hosts, self.contents = system.begin()
        self.moments: list[Moment] = []
        self.passages: list[Passage] = []
        self._sent_at: list[list[int]] = [[0] * len(system.contents[content].in_order) for content in self.contents]
        self._held_since: list[dict[int, int]] = [{} for _ in self.contents]
        self._links = {link.name: i for i, link in enumerate(system.links)}
        self._hosts = {host.name: i for i, host in enumerate(system.hosts)}
        self._ticks = {tick.name: i for i, tick in enumerate(system.ticks)}

    @property
    def now(self) -> int:
        """The time, in ps: a microsecond for each event."""
        return (len(self.moments) + 1) * US

    @property
    def ended(self) -> bool:
        """Whether all calls have ended."""
        watches = zip(self.system.hosts, self.system.host_watches, self.hosts, strict=True)
        return all(host.done(watch.inner(state)) for host, watch, state in watches)

    def play(self, event: Event) -> Moment:
        """Play an event, and append its effect to ``moments``. Raises ``ValueError`` for an event that cannot
        happen."""
        try:
            moment = self._play(event)
        except (KeyError, IndexError) as error:
            raise ValueError(
                f"event {len(self.moments) + 1}, {event.what} {event.where}: that cannot happen here"
            ) from error
        self.moments.append(moment)
        return moment

    def _play(self, event: Event) -> Moment:
        system = self.system
        if event.what == "timeout":
            host = self._hosts[event.where]
            before = self.hosts[host]
            timer = system.hosts[host].timers(system.host_watches[host].inner(before))[event.position]
            effect = system.expire(host, before, event.position)
            self.hosts[host] = effect.state
            return self._record(
                event, f"{event.where}: the timer of {timer} expires", event.where, None, effect, before
            )
        if event.what == "tick":
            number = self._ticks[event.where]
            switch = system.ticks[number].switch
            before = self.switches[switch]
            effect = system.tick(number, before)
            self.switches[switch] = effect.state
            name = system.switches[switch].name
            return self._record(event, f"{event.where}: its timer expires", name, None, effect, before)
        link = self._links[event.where]
        to = system.links[link]
        if event.what == "forge":
            return self._forge(event, link)
        late = event.what == "late"
        number, rest = system.take(self.contents[link], HELD + event.position if late else 0)
        frame = system.frames[number]
        packet = self._packet(frame)
        sent = self._held_since[link][number] if late else self._sent_at[link].pop(0)
        if event.what in ("delay", "duplicate"):
            rest = system.put_by(rest, number)
            self._held_since[link][number] = sent
        self.contents[link] = rest
        if event.what == "delay":
            return Moment(event, f"{to.name}: {packet} is delayed", to.name, frame, None, 0, 0)
        if event.what == "lose":
            self.passages.append(Passage(to.src, to.dst, sent, None, frame, "lost"))
            return Moment(event, f"{to.name}: {packet} is lost", to.name, frame, None, 0, 0)
        states = self.hosts if to.to_host else self.switches
        before = states[to.part]
        effect = system.arrive(link, before, number, corrupt=event.what == "corrupt")
        states[to.part] = effect.state
        self.passages.append(Passage(to.src, to.dst, sent, self.now, frame))
        how = {
            "deliver": "arrives",
            "duplicate": "arrives, and may arrive again",
            "late": "arrives late",
            "corrupt": "arrives with a wrong bit",
        }[event.what]
        return self._record(event, f"{to.name}: {packet} {how}", to.dst, frame, effect, before)

    def _forge(self, event: Event, link: int) -> Moment:
        """A host sends a forged packet, which arrives at once."""
        system, to = self.system, self.system.links[link]
        number = system.forged[event.position]
        frame, before = system.frames[number], self.switches[to.part]
        effect = system.arrive(link, before, number)
        self.switches[to.part] = effect.state
        self.passages.append(Passage(to.src, to.dst, self.now, self.now, frame))
        text = f"{to.name}: {self._packet(frame)} in another's name arrives"
        return self._record(event, text, to.dst, frame, effect, before)

    def _record(self, event: Event, text: str, part: str, frame: bytes | None, effect: Effect, before: int) -> Moment:
        system = self.system
        for link, frames in effect.sent:
            self.contents[link] = system.append(self.contents[link], frames)
            self._sent_at[link] += [self.now] * len(frames)
        names = [
            f"{system.links[link].name} {self._packet(system.frames[number])}"
            for link, frames in effect.sent
            for number in frames
        ]
        text += f"; sends {', '.join(names)}" if names else "; sends nothing" if event.what != "timeout" else ""
        if effect.lost:
            text += f"; {'' if effect.violated == 'repeats' else 'drops '}{', '.join(effect.lost)}"
        if effect.problem:
            text += f"; {effect.problem}"
        return Moment(event, text, part, frame, effect, before, effect.state)

    def violations(self) -> set[str]:
        """The properties that single events of the run so far have violated."""
        # A loss is wrong only where the scope allows none, and only before the first fault. A forged packet is to be
        # dropped.
        clean = self.system.rules.no_drops and all(
            moment.event.what in ("deliver", "timeout", "tick", "forge") for moment in self.moments
        )
        return {
            moment.effect.violated
            for moment in self.moments
            if moment.effect is not None
            and (moment.effect.problem or (clean and moment.effect.lost and moment.event.what != "forge"))
        }

    def _packet(self, frame: bytes) -> str:
        found = self.system.kinds.describe(frame)
        return found[1] if found is not None else f"a frame of {len(frame)} bytes"

    def text(self) -> str:
        """The run so far: an event a line."""
        return "".join(f"{number:4}  {moment.text}\n" for number, moment in enumerate(self.moments, 1))
