"""The system that is explored: switches, hosts and links, each an automaton whose states are numbers.

A state of the system is a row: the switches' states, the hosts' states, the contents of the links, and the rest of the
budget of faults. Frames, contents of links and states of parts are interned, so equal rows are equal states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

from p4gen.rocev2.layouts import ROCE, ROCE_ANSWER
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.places import as_over_ipv4
from p4gen.verification.family import verification_of
from p4gen.verification.parts.contracts import Receiver, Resends
from p4gen.verification.parts.filtering import Filtered
from p4gen.verification.parts.forging import forged
from p4gen.verification.parts.hosts import HostPart, HostStep
from p4gen.verification.parts.monitors import Gaps, Monitor, NoRepeats, OneNak, OneRepeat, RepeatsRequested, Sent, Watch
from p4gen.verification.parts.switches import SwitchPart
from p4gen.verification.search.events import HELD
from p4gen.verification.search.interning import Interned
from p4gen.verification.world import Rules, Scope
from p4gen.vocabulary import ticks

_OPCODE_AT: Final = ROCE.at("bth.opcode")
_SYNDROME_AT: Final = ROCE_ANSWER.at("aeth.syndrome")
_ANSWER_PSN: Final = ROCE.bytes("bth.psn")
_MOST_STEPS: Final = 20_000
"""The most steps of a run without faults."""


@dataclass(frozen=True)
class Link:
    """One direction of a link, and where its frames arrive: at a port of a switch, or at a host."""

    src: str
    dst: str
    to_host: bool
    part: int
    """The number of the switch or the host."""
    port: int = 0

    @property
    def name(self) -> str:
        """The name, as in simulations: ``src>dst``."""
        return f"{self.src}>{self.dst}"


class Content(NamedTuple):
    """The frames on a link, by number: those in order, the oldest first, and those that have been delayed, which may
    arrive at any time."""

    in_order: tuple[int, ...] = ()
    held: tuple[int, ...] = ()


@dataclass(frozen=True)
class Tick:
    """A tick of an edge of a switch."""

    switch: int
    link: int
    """The link that leaves there."""
    frame: bytes
    name: str


@dataclass(frozen=True)
class Effect:
    """The effect of an event on the part where it happens."""

    state: int
    sent: tuple[tuple[int, tuple[int, ...]], ...]
    """By link: the numbers of the frames."""
    lost: tuple[str, ...] = ()
    """Losses and retransmissions, which are violations unless there was a fault."""
    problem: str = ""
    violated: str = ""
    """The property that the problem violates, if there is one."""


class System:
    """The parts of a scope in their first states. Raises ``InputError`` for a scope that cannot be searched."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        world = scope.world()
        topology, network, rules = scope.topology, world.network, world.rules
        self.rules, self.kinds = rules, network.kinds
        hosts, switches = [host for host in topology.hosts if host in world.tasks], list(topology.switches)
        self.links: list[Link] = []
        for direction in network.directions.values():
            src, dst = direction.src, direction.dst
            if dst in hosts:
                self.links.append(Link(src, dst, True, hosts.index(dst)))
            elif dst in switches and (src in hosts or src in switches):
                (port,) = [at for at, out in network.nodes[dst].outputs.items() if out.dst == src]
                self.links.append(Link(src, dst, False, switches.index(dst), port))
        number = {(link.src, link.dst): i for i, link in enumerate(self.links)}
        self.ports = [
            {
                port: number[name, out.dst]
                for port, out in network.nodes[name].outputs.items()
                if (name, out.dst) in number
            }
            for name in switches
        ]
        """By switch: its outgoing links, by port."""
        self._abouts = [verification_of(world.specs[name]) for name in switches]
        self._cpu_ports = [world.specs[name].architecture.cpu_port for name in switches]
        self.switches = [
            SwitchPart(name, world.specs[name], network.switches[name], ports, about.clocks, about.locks)
            for name, ports, about in zip(switches, self.ports, self._abouts, strict=True)
        ]
        self.uplinks = [number[host, topology.ports[host][0].other(host)] for host in hosts]
        """Each host's outgoing link."""
        self.hosts = [
            HostPart(host, world.mac[host], world.ip[host], world.tasks[host], network.nics[host].checks_icrc)
            for host in hosts
        ]
        self.ticks = [
            Tick(switches.index(switch), number[switch, network.nodes[switch].outputs[port].dst], frame, name)
            for switch, port, frame, name in world.ticks
        ]
        self.unlike = world.unlike
        self.names = (*switches, *hosts)
        self.switch_watches = [
            Watch([*_of_switch(rules, name, partial(world.first_psn_of, name), ports), *world.watches.get(name, ())])
            for name, ports in zip(switches, self.ports, strict=True)
        ]
        self.host_watches = [Watch(_of_host(rules, partial(world.first_psn_of, host))) for host in hosts]
        self._first: tuple[list[int], list[int], list[int]] | None = None
        self.frames: Interned[bytes] = Interned()
        self.contents: Interned[Content] = Interned(Content())
        """Contents of links. Number 0 is an empty link."""
        self.forging = self.uplinks[-1]
        """The link of the host that may send forged packets."""
        self.forged: tuple[int, ...] = ()
        """The numbers of the frames that it may send there."""
        if scope.budget.forgeries:
            self.forged = tuple(map(self.frames.number, self._forged(world.first_psn)))

    # --- events ---

    def begin(self) -> tuple[list[int], list[int], list[int]]:
        """The first states of switches, of hosts, and the first contents of links."""
        if self._first is None:
            self._first = self._begin()
        switches, hosts, contents = self._first
        return list(switches), list(hosts), list(contents)

    def _begin(self) -> tuple[list[int], list[int], list[int]]:
        contents = [0] * len(self.links)
        states = []
        for host, watch, uplink in zip(self.hosts, self.host_watches, self.uplinks, strict=True):
            step = host.begin()
            states.append(watch.step(watch.begin(step.state), step.state, 0, (), [(uplink, step.sent)]).state)
            contents[uplink] = self.append(0, tuple(map(self.frames.number, step.sent)))
        first = [watch.begin(switch.first) for switch, watch in zip(self.switches, self.switch_watches, strict=True)]
        return first, states, contents

    def _forged(self, first_psn: int) -> tuple[bytes, ...]:
        """The forged packets, made of those that others send to the forger's switch."""
        switch = self.links[self.forging].part
        about = self._abouts[switch]
        come = [
            self.frames[frame]
            for link, frame in self._passed()
            if not self.links[link].to_host and self.links[link].part == switch and link != self.forging
        ]
        if about.forged is not None:
            return about.forged(come)
        back = (self.links[self.forging].dst, self.links[self.forging].src)
        others = [
            tick.frame
            for tick in self.ticks
            if tick.switch == switch and (self.links[tick.link].src, self.links[tick.link].dst) != back
        ]
        return forged(come, others[:1], about.cursor, first_psn)

    def _passed(self) -> Iterator[tuple[int, int]]:
        """The packets of a run without faults, each as its link and its frame. Timers expire when no other event is
        left."""
        switches, hosts, contents = self.begin()
        turn = 0
        for _ in range(_MOST_STEPS):
            link = next((i for i, content in enumerate(contents) if self.contents[content].in_order), None)
            if link is not None:
                frame, contents[link] = self.take(contents[link], 0)
                to = self.links[link]
                states, part = hosts if to.to_host else switches, to.part
                effect = self.arrive(link, states[part], frame)
                yield link, frame
            else:
                watched = zip(self.hosts, self.host_watches, hosts, strict=True)
                inner = [(host, watch.inner(state)) for host, watch, state in watched]
                if all(host.done(state) for host, state in inner):
                    return
                running = [number for number, (host, state) in enumerate(inner) if host.timers(state)]
                count = len(running) + len(self.ticks)
                if not count:
                    return
                turn = (turn + 1) % count
                if turn < len(running):
                    states, part = hosts, running[turn]
                    effect = self.expire(part, states[part], 0)
                else:
                    states, part = switches, self.ticks[turn - len(running)].switch
                    effect = self.tick(turn - len(running), states[part])
            states[part] = effect.state
            for out, frames in effect.sent:
                contents[out] = self.append(contents[out], frames)

    def frames_of(self, link: int, frame: int, *, corrupt: bool = False) -> tuple[bytes, ...]:
        """The frames that arrive at a switch with one frame. A forged tick counts as many as ``tick`` brings."""
        content = self.frames[frame]
        if corrupt:
            return (corrupted(content),)
        alike = self._abouts[self.links[link].part].ticks if _opcode(content) == ticks.OPCODE else 1
        return (content,) * alike

    def arrive(self, link: int, state: int, frame: int, *, corrupt: bool = False) -> Effect:
        """Let a frame arrive at the end of a link, where the part is in ``state``."""
        to, content = self.links[link], self.frames[frame]
        if link == self.forging and frame in self.forged:
            effect = self._at_switch(to.part, state, to.port, self.frames_of(link, frame), known=False)
            if effect.problem or (effect.state == state and not effect.sent):
                return effect
            return replace(effect, problem="what somebody sends in another's name has an effect", violated="forgeries")
        if corrupt:
            content = corrupted(content)
        if to.to_host:
            step = self.hosts[to.part].deliver(self.host_watches[to.part].inner(state), content)
            return self._at_host(to.part, state, step, [] if corrupt else [content])
        effect = self._at_switch(to.part, state, to.port, (content,), known=not corrupt)
        checked = corrupt and _opcode(content) == Opcode.ACKNOWLEDGE and to.dst == self.rules.checks
        if checked and not effect.problem:
            left = [self.frames[number] for _, numbers in effect.sent for number in numbers]
            if [_syndrome_and_psn(each) for each in left] != [_syndrome_and_psn(content)]:
                return replace(
                    effect, problem="an answer with a wrong ICRC does not leave as it came", violated="switches"
                )
        return effect

    def expire(self, host: int, state: int, timer: int) -> Effect:
        """Let a timer of a host expire."""
        return self._at_host(host, state, self.hosts[host].expire(self.host_watches[host].inner(state), timer), [])

    def tick(self, number: int, state: int) -> Effect:
        """Let a timer of a switch's edge expire: as many ticks arrive as that takes."""
        port, frames = self.tick_frames(number)
        return self._at_switch(self.ticks[number].switch, state, port, frames, known=False)

    def tick_frames(self, number: int) -> tuple[int, tuple[bytes, ...]]:
        """The port and the frames of a tick: as many as make a timer expire."""
        tick = self.ticks[number]
        return self._cpu_ports[tick.switch], (tick.frame,) * self._abouts[tick.switch].ticks

    def _at_host(self, host: int, state: int, step: HostStep, arrived: list[bytes]) -> Effect:
        sent = ((self.uplinks[host], step.sent),) if step.sent else ()
        found = self.host_watches[host].step(state, step.state, 0, arrived, sent)
        violated = "results" if step.problem else found.violated or "repeats"
        repeats = (found.excused,) if found.excused else ()
        return self._effect(found.state, sent, repeats, step.problem or found.problem, violated)

    def _at_switch(self, switch: int, state: int, port: int, frames: tuple[bytes, ...], *, known: bool) -> Effect:
        watch = self.switch_watches[switch]
        step = self.switches[switch].process(watch.inner(state), port, frames)
        found = watch.step(state, step.state, port, frames if known else (), step.sent)
        violated = "switches" if step.problem else found.violated or "drops"
        return self._effect(found.state, step.sent, step.lost, step.problem or found.problem, violated)

    def _effect(self, state: int, sent: Sent, lost: tuple[str, ...], problem: str, violated: str) -> Effect:
        numbered = tuple((link, tuple(map(self.frames.number, frames))) for link, frames in sent)
        return Effect(state, numbered, lost, problem, violated)

    # --- contents of links ---

    def append(self, content: int, frames: tuple[int, ...]) -> int:
        """The content of a link to which frames have been added."""
        found = self.contents[content]
        return self.contents.number(Content((*found.in_order, *frames), found.held))

    def put_by(self, content: int, frame: int) -> int:
        """The content of a link to which a delayed frame has been added."""
        found = self.contents[content]
        return self.contents.number(
            Content(found.in_order, tuple(sorted((*found.held, frame), key=self.frames.__getitem__)))
        )

    def take(self, content: int, position: int) -> tuple[int, int]:
        """The oldest frame of a link at position 0, or a delayed one at ``HELD`` and after; the content without it."""
        found = self.contents[content]
        if position == 0:
            return found.in_order[0], self.contents.number(Content(found.in_order[1:], found.held))
        at = position - HELD
        return found.held[at], self.contents.number(Content(found.in_order, found.held[:at] + found.held[at + 1 :]))


def _opcode(frame: bytes) -> int:
    return as_over_ipv4(frame)[_OPCODE_AT]


def _syndrome_and_psn(answer: bytes) -> tuple[int, bytes]:
    answer = as_over_ipv4(answer)
    return answer[_SYNDROME_AT], answer[_ANSWER_PSN]


def _of_host(rules: Rules, first_psn: Callable[[int], int]) -> list[Monitor]:
    found: list[Monitor] = [Gaps(first_psn)] if rules.in_order else []
    found += [NoRepeats()] if rules.no_repeats else []
    found += [OneRepeat()] if rules.one_repeat else []
    return found


def _of_switch(rules: Rules, name: str, first_psn: Callable[[int], int], ports: dict[int, int]) -> list[Monitor]:
    found: list[Monitor] = []
    if rules.repeats_requested is not None and rules.repeats_requested[0] == name:
        found.append(RepeatsRequested(rules.repeats_requested[1], last_hop=rules.repeats_requested[2]))
    if rules.filters is not None and rules.filters[0] == name:
        found.append(Filtered(rules.filters[1], exact=rules.filters[2]))
    if rules.recovery is None:
        return found
    found += [OneNak(ports), Resends(rules.recovery)]
    if rules.in_order:
        found.append(Gaps(first_psn))
    if rules.no_drops:
        found.append(Receiver(first_psn, ports, rules.recovery, rules.announces))
    return found


def corrupted(frame: bytes) -> bytes:
    """A frame with a wrong bit: the last bit of an answer's PSN, or of the payload, before the ICRC."""
    behind_psn = len(as_over_ipv4(frame)) - _ANSWER_PSN.stop
    at = len(frame) - (behind_psn + 1 if _opcode(frame) == Opcode.ACKNOWLEDGE else 5)
    return frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :]
