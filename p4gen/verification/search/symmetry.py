"""Symmetries: which parts of a system can be exchanged, and how their states are mapped.

A *turn* is a permutation of the nodes that keeps the links: an automorphism of the topology. Its images of states of
parts, of frames and of contents of links are not declared anywhere but learned. Each step is repeated with the parts
and frames that take the places of the step's own, and the results define the images of the new states and frames. If a
state or frame would need two different images, or if only one of two steps violates a property, or only one of two
parts has ended, then the parts cannot be exchanged, and the search ends with an error. So turns map reachable states to
reachable states, transitions to transitions, and violations to violations.

Turns map states onto each other. Of such states, a search with symmetry keeps the one with the least weight. The weight
is a sum over the places of a row, of hashes of the parts' states, so it does not depend on the order in which they were
met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Final

import numpy as np

from p4gen.errors import InputError
from p4gen.verification.findings.story import Story, events_of
from p4gen.verification.search.events import EXPIRE, LATE, TICK, TURN_AT
from p4gen.verification.search.kernel import ARRIVE, ARRIVE_CORRUPT, EXPIRES, TICKS
from p4gen.verification.search.questions import Question
from p4gen.verification.search.turning import Turns
from p4gen.verification.system import Content, Effect, System

MOST_TURNS: Final = 32
"""An event has five bits for the turn that follows it."""
_TRIED: Final = 1000
"""Number of automorphisms that are tried."""


@dataclass(frozen=True)
class Turn:
    """A permutation: the images of switches, hosts, links and ticks, by number."""

    switches: tuple[int, ...]
    hosts: tuple[int, ...]
    links: tuple[int, ...]
    ticks: tuple[int, ...]

    def after(self, other: Turn) -> Turn:
        """The turn that consists of ``other`` and then this turn."""
        return Turn(*(tuple(mine[i] for i in others) for mine, others in zip(self._all(), other._all(), strict=True)))

    def back(self) -> Turn:
        """The turn that undoes this one."""
        return Turn(*(tuple(sorted(range(len(mine)), key=mine.__getitem__)) for mine in self._all()))

    def _all(self) -> tuple[tuple[int, ...], ...]:
        return self.switches, self.hosts, self.links, self.ticks


@dataclass(frozen=True)
class Way:
    """The events from the beginning, the effect of the last event, and for each part the part whose place it takes in
    the stored state."""

    events: tuple[int, ...]
    effect: Effect | None
    parts: tuple[int, ...]


class Symmetry:
    """The turns of a system, and their images of everything met so far. Raises ``InputError`` for parts that cannot be
    exchanged."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.turns = turns_of(system)
        """The identity first."""
        number = {turn: i for i, turn in enumerate(self.turns)}
        self._after = [[number[late.after(early)] for early in self.turns] for late in self.turns]
        self._back = [number[turn.back()] for turn in self.turns]
        switches, links = len(system.switches), len(system.links)
        self._parts = switches + len(system.hosts)
        each = range(len(self.turns))
        self._states: list[list[dict[int, int]]] = [[{} for _ in range(self._parts)] for _ in each]
        self._frames: list[dict[int, int]] = [{} for _ in each]
        self._contents = 0
        place = [
            [*turn.switches, *(switches + i for i in turn.hosts), *(self._parts + i for i in turn.links)]
            for turn in self.turns
        ]
        self._place = place
        factors = [_hash("place", i) | 1 for i in range(self._parts + links)]
        self.arrays = Turns(
            np.array(place, np.int32),
            np.zeros((len(self.turns), self._parts, 256), np.int32),
            np.zeros((len(self.turns), self._parts, 256), np.uint64),
            np.zeros((len(self.turns), 256), np.int32),
            np.zeros((len(self.turns), 256), np.uint64),
            np.array(factors, np.uint64),
        )
        self._begin()

    def _begin(self) -> None:
        first_switches, first_hosts, contents = self._system.begin()
        first = [*first_switches, *first_hosts]
        for turn, here in enumerate(self.turns):
            for part, state in enumerate(first):
                self._pair_states(turn, part, state, first[self._place[turn][part]])
            for link, content in enumerate(contents):
                self._pair_frames(turn, self._in_order(content), self._in_order(contents[here.links[link]]))
        self.settle()

    def _in_order(self, content: int) -> tuple[int, ...]:
        return self._system.contents[content].in_order

    # --- what turns make of what happens ---

    def images(self, asked: Question) -> Iterator[Question]:
        """The images of a question about a step under all turns, in their order."""
        kind, who, place, state, frame = asked
        part = self._part(asked)
        for turn, here in enumerate(self.turns):
            to = here.hosts[who] if kind == EXPIRES else here.ticks[who] if kind == TICKS else here.links[who]
            arrived = self._frames[turn][frame] if kind in (ARRIVE, ARRIVE_CORRUPT) else frame
            yield Question(kind, to, place, self._states[turn][part][state], arrived)

    def note(self, asked: Question, effects: Sequence[Effect]) -> None:
        """Learn from the effects of a question's images, in the order of turns."""
        part = self._part(asked)
        for early, effect in enumerate(effects):
            for late in range(len(self.turns)):
                self._pair_effects(late, self._place[early][part], effect, effects[self._after[late][early]])

    def _part(self, asked: Question) -> int:
        switches = len(self._system.switches)
        if asked.kind == EXPIRES:
            return switches + asked.who
        if asked.kind == TICKS:
            return self._system.ticks[asked.who].switch
        link = self._system.links[asked.who]
        return link.part + (switches if link.to_host else 0)

    def _pair_effects(self, turn: int, part: int, effect: Effect, image: Effect) -> None:
        self._pair_states(turn, part, effect.state, image.state)
        links = self.turns[turn].links
        sent, others = {links[link]: frames for link, frames in effect.sent}, dict(image.sent)
        wrong = bool(effect.problem), bool(effect.lost)
        if wrong != (bool(image.problem), bool(image.lost)) or sent.keys() != others.keys():
            raise self._differ(part, self._place[turn][part])
        for link, frames in sent.items():
            self._pair_frames(turn, frames, others[link])

    def _pair_frames(self, turn: int, frames: Sequence[int], images: Sequence[int]) -> None:
        known = self._frames[turn]
        pairs = list(zip(frames, images, strict=False))
        if len(frames) != len(images) or any(known.setdefault(frame, image) != image for frame, image in pairs):
            raise InputError("--reduction symmetry: what is sent depends on more than who sends it")

    def _pair_states(self, turn: int, part: int, state: int, image: int) -> None:
        known, to = self._states[turn][part], self._place[turn][part]
        if state in known:
            if known[state] != image:
                raise self._differ(part, to)
            return
        if self._flags(part, state) != self._flags(to, image):
            raise self._differ(part, to)
        known[state] = image
        self._room(("image", "weight"), state + 1)
        arrays = self.arrays
        arrays.image[turn, part, state] = image
        weight = _hash("state", self._value(to, image)) * int(arrays.factor[to])
        arrays.weight[turn, part, state] = weight & 0xFFFFFFFFFFFFFFFF

    def _flags(self, part: int, state: int) -> tuple[object, ...]:
        system, switches = self._system, len(self._system.switches)
        if part < switches:
            watch = system.switch_watches[part]
            return watch.waits(state), system.switches[part].holds(watch.inner(state))
        host, watch = system.hosts[part - switches], system.host_watches[part - switches]
        inner = watch.inner(state)
        return watch.waits(state), host.done(inner), len(host.timers(inner))

    def _value(self, part: int, state: int) -> object:
        system, switches = self._system, len(self._system.switches)
        if part < switches:
            watch = system.switch_watches[part]
            return watch.records(state), system.switches[part].words(watch.inner(state))
        watch = system.host_watches[part - switches]
        return watch.records(state), system.hosts[part - switches].frozen(watch.inner(state))

    def _differ(self, part: int, other: int) -> InputError:
        names = self._system.names
        return InputError(f"--reduction symmetry: {names[part]} and {names[other]} cannot be exchanged")

    def settle(self) -> None:
        """Find the images of new contents of links, which may be new too."""
        contents, frames = self._system.contents, self._system.frames
        while self._contents < len(contents):
            content = contents[self._contents]
            for turn, known in enumerate(self._frames):
                in_order, held = (tuple(known[frame] for frame in part) for part in content)
                image = Content(in_order, tuple(sorted(held, key=frames.__getitem__)))
                self._room(("content", "content_weight"), self._contents + 1)
                self.arrays.content[turn, self._contents] = contents.number(image)
                weight = _hash("content", [[frames[frame] for frame in part] for part in image])
                self.arrays.content_weight[turn, self._contents] = weight
            self._contents += 1

    def _room(self, names: Sequence[str], size: int) -> None:
        for name in names:
            array = getattr(self.arrays, name)
            if array.shape[-1] < size:
                wider = np.zeros((*array.shape[:-1], 2 * size), array.dtype)
                wider[..., : array.shape[-1]] = array
                self.arrays = self.arrays._replace(**{name: wider})

    # --- back to what happened ---

    def undone(self, words: Sequence[int]) -> Way:
        """The events that lead from the first state to one whose kept image has been found. ``words`` are events with
        the turns that followed them."""
        story = Story(self._system)
        events: list[int] = []
        effect: Effect | None = None
        turned = 0
        for word in words:
            events.append(self._before(word & (1 << TURN_AT) - 1, turned, story.contents))
            effect = story.play(events_of(self._system, events[-1:])[0]).effect
            turned = self._after[word >> TURN_AT][turned]
        return Way(tuple(events), effect, tuple(self._place[self._back[turned]]))

    def _before(self, event: int, turned: int, contents: Sequence[int]) -> int:
        """The event whose image under a turn is this one. ``contents`` are those of the links before either."""
        back = self._back[turned]
        turn, kind, who, position = self.turns[back], event >> 24, event >> 8 & 0xFFFF, event & 0xFF
        if kind in (EXPIRE, TICK):
            return kind << 24 | (turn.hosts if kind == EXPIRE else turn.ticks)[who] << 8 | position
        link = turn.links[who]
        if kind == LATE:
            held = self._system.contents[contents[link]].held
            kept = self._system.contents[int(self.arrays.content[turned, contents[link]])].held
            position = held.index(self._frames[back][kept[position]])
        return kind << 24 | link << 8 | position


def turns_of(system: System) -> list[Turn]:
    """A group of permutations that keep the links and the nodes with roles of their own; the identity first."""
    found: list[Turn] = []
    for turn in islice(_automorphisms(system), _TRIED):
        if turn not in found:
            group = _closed([*found, turn])
            found = group if len(group) <= MOST_TURNS else found
    return found


def _closed(turns: list[Turn]) -> list[Turn]:
    """All products of permutations, unless they are too many."""
    group = list(turns)
    for one in group:
        for other in tuple(group):
            for product in (one.after(other), other.after(one)):
                if product not in group:
                    group.append(product)
        if len(group) > MOST_TURNS:
            break
    return group


def _automorphisms(system: System) -> Iterator[Turn]:
    switches, links = len(system.switches), {(link.src, link.dst): i for i, link in enumerate(system.links)}
    number, ticks = {name: i for i, name in enumerate(system.names)}, {key: i for i, key in enumerate(_ticks(system))}
    for image in _images(system, links):
        to = [links[image[src], image[dst]] for src, dst in links]
        kept = [ticks.get((number[image[system.names[switch]]], to[link], n)) for switch, link, n in ticks]
        places = [number[image[name]] for name in system.names]
        own = tuple(tick for tick in kept if tick is not None)
        if len(own) == len(ticks):
            yield Turn(tuple(places[:switches]), tuple(i - switches for i in places[switches:]), tuple(to), own)


def _ticks(system: System) -> Iterator[tuple[int, int, int]]:
    """For each tick: the switch, the link that leaves there, and the number of the group."""
    count: Counter[tuple[int, int]] = Counter()
    for tick in system.ticks:
        yield tick.switch, tick.link, count[tick.switch, tick.link]
        count[tick.switch, tick.link] += 1


def _images(system: System, links: Container[tuple[str, str]]) -> Iterator[dict[str, str]]:
    """Permutations of nodes that keep the links, by name."""
    names, hosts = system.names, {host.name for host in system.hosts}

    def fits(name: str, to: str, image: dict[str, str]) -> bool:
        if to in image.values() or (name in hosts) != (to in hosts):
            return False
        pairs = [((name, other), (to, there)) for other, there in image.items()]
        pairs += [(old[::-1], new[::-1]) for old, new in pairs]
        return all((old in links) == (new in links) for old, new in pairs)

    def extend(image: dict[str, str]) -> Iterator[dict[str, str]]:
        if len(image) == len(names):
            yield image
            return
        name = names[len(image)]
        for to in names:
            if (to == name or not {name, to} & set(system.unlike)) and fits(name, to, image):
                yield from extend({**image, name: to})

    return extend({})


def _hash(*value: object) -> int:
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=8).digest())
