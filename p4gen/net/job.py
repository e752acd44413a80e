"""A job: configured switches on a virtual network, and tasks of its hosts, until all tasks have ended.

Whatever runs in virtual time is a job: collectives on IncTrees, traffic between hosts, and runs that papers add. A job
says when its tasks begin and how their result is formed. This module decides when a run is over or given up, and
counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from typing_extensions import override

from p4gen.errors import InputError
from p4gen.groups.group import PlacedEdge
from p4gen.host.transport.clock import duration_text
from p4gen.host.transport.rc import QueuePair
from p4gen.net.result import RunResult, link_uses
from p4gen.net.world.freezing import Frozen, freeze, restore
from p4gen.net.world.network import Network
from p4gen.net.world.patience import Patience
from p4gen.net.world.ticks import Ticker
from p4gen.switch.drops import losses
from p4gen.vocabulary import ProgramSpec

Progress = Callable[[int, int], None]
"""Called with how much is done, and how much there is to do."""


class Task(Protocol):
    """The part of a job that one host carries out: a rank of a group, a flow, or an end of a connection."""

    @property
    def name(self) -> str:
        """The name; the names of its parts begin with it."""
        ...

    @property
    def done(self) -> bool:
        """Whether it has ended, well or with a problem."""
        ...

    @property
    def problem(self) -> str:
        """The error; "" if there is none."""
        ...

    def start(self) -> None:
        """Begin; called once, when the job reaches the task."""
        ...

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        ...


@dataclass(frozen=True)
class Stuck:
    """Why a run does not go on."""

    reasons: tuple[str, ...]
    deadlocked: bool = False
    """Whether no packet is in flight and no timer runs."""
    circle: tuple[str, ...] = ()
    """The reason among ``reasons`` that ports pause each other, if they do."""


TaskT_co = TypeVar("TaskT_co", bound=Task, covariant=True)
ResultT_co = TypeVar("ResultT_co", bound=RunResult, covariant=True)


class Job(ABC, Generic[TaskT_co, ResultT_co]):
    """A job on ``network``, whose switches have the programs of ``specs``.

    ``timeout`` is the NICs' retransmission timer, ps.
    """

    STATE: ClassVar[tuple[str, ...]] = ()
    STEP: ClassVar = 20_000
    """Number of events between two checks of the tasks. The checks are at the same events wherever a run goes on
    from."""

    def __init__(self, network: Network, specs: Mapping[str, ProgramSpec], timeout: int) -> None:
        self.network = network
        self.specs = specs
        self.tasks: Sequence[TaskT_co] = ()
        self.ticker: Ticker | None = None
        self.own: Sequence[QueuePair] | None = None
        """The job's queue pairs, if it is beside others in its network."""
        self._patience = Patience(network.loop, timeout, self.arrived, self.longest_wait)

    # --- what a job says ---

    @property
    @abstractmethod
    def title(self) -> str:
        """A description of the run, such as "dispatch of 64 tokens by each of 8 ranks on leaf-spine"."""

    @abstractmethod
    def result(self, stuck: Stuck | None) -> ResultT_co:
        """The result of the run. ``stuck`` says why it did not end; None if all tasks are done."""

    def advance(self) -> bool:
        """Begin the tasks that are due. Returns whether all tasks are done."""
        return self.done

    def failures(self) -> Sequence[str]:
        """Problems that end the run before its tasks are done."""
        return ()

    def longest_wait(self) -> int:
        """The longest wait of a timer of the switches that runs, ps; 0 if none does."""
        return 0

    def progress(self) -> tuple[int, int]:
        """How much is done, and how much there is to do."""
        return sum(task.done for task in self.tasks), len(self.tasks)

    @property
    def until(self) -> int | None:
        """The time, in ps, of the next check of the tasks, if it must not be missed; otherwise None."""
        return None

    # --- running ---

    @property
    def done(self) -> bool:
        """Whether all tasks have ended."""
        return all(task.done for task in self.tasks)

    def run(self, progress: Progress | None = None) -> ResultT_co:
        """Run until all tasks are done or nothing more can be expected."""
        return self.result(self.finish(progress))

    def finish(self, progress: Progress | None = None) -> Stuck | None:
        """Run until all tasks are done, or return why they will not be."""
        loop = self.network.loop
        ended = self.advance()
        while not ended:
            loop.run(self.until, self.STEP - loop.handled % self.STEP)
            ended = self.advance()
            if not ended and (stuck := self._stuck()) is not None:
                return stuck
            if progress is not None:
                progress(*self.progress())
        return None

    def start_ticks(
        self, edges: Iterable[PlacedEdge], port: int, used: Callable[[str, int], bool] = lambda _switch, _context: True
    ) -> None:
        """Send ticks for the edges' timers. ``used`` says whether a switch's context has been used at all; ``port`` is
        where ticks arrive."""
        network = self.network
        latency = network.topology.switch_latency
        self.ticker = Ticker(
            network.nodes, edges, network.loop, used, self.longest_wait, network.packets_sent, latency, port
        )

    def wake(self) -> None:
        """Restart patience and ticks: tasks that start now have losses of their own."""
        self._patience.begin()
        if self.ticker is not None:
            self.ticker.wake()

    def arrived(self) -> int:
        """The number of packets that have been acknowledged or have arrived in order; it grows as long as there is
        progress."""
        return sum(pair.requester.una + pair.responder.expected for pair in self.pairs)

    def _stuck(self) -> Stuck | None:
        network, failures = self.network, self.failures()
        if failures:
            return Stuck(tuple(failures))
        idle = network.loop.idle
        if not idle and not self._patience.over():
            return None
        now, since = duration_text(network.loop.now), duration_text(self._patience.since)
        reason = f"deadlock: no packet is in flight and no timer runs, at {now}"
        circle = () if network.flow_control is None else network.flow_control.circle()
        return Stuck((*circle, reason if idle else f"no packet has arrived since {since}"), idle, circle)

    # --- counting ---

    @property
    def pairs(self) -> Iterator[QueuePair]:
        """The queue pairs of all hosts, or ``own``."""
        if self.own is not None:
            return iter(self.own)
        return (pair for nic in self.network.nics.values() for pair in nic.pairs.values())

    def drops(self) -> Counter[str]:
        """Packets lost so far: on links, in switches by module and reason, at NICs."""
        return self.network.lost({name: self.switch_drops(name) for name in self.network.switches})

    def switch_drops(self, name: str) -> Counter[str]:
        """Packets that a switch's program has dropped, by module and reason."""
        return losses(self.specs[name], self.network.switches[name].counters)

    def counted(self, duration: int) -> dict[str, Any]:
        """The fields of ``RunResult`` that links and hosts' connections have counted in ``duration`` ps."""
        senders = [pair.requester.stats for pair in self.pairs]
        totals = {
            name: sum(getattr(stats, name) for stats in senders)
            for name in ("sent", "resent", "timeouts", "naks", "cnps")
        }
        return {
            **totals,
            "duration": duration,
            "drops": self.drops(),
            "links": link_uses(self.network.directions.values(), duration, self.network.loop.now),
            "overruns": self.network.overruns(),
            "packet_hops": self.network.packets_sent(),
            "events": self.network.loop.handled,
            "silent": self.network.silent_scripts(),
        }

    # --- freezing ---

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        found: dict[str, object] = {"job": self, "patience": self._patience, **self.network.parts()}
        if self.ticker is not None:
            found["ticker"] = self.ticker
        return found | parts_of(self.tasks)

    def freeze(self) -> Frozen:
        """The present state: time, events, links, hosts, switches, random generators. It does not change when the run
        goes on."""
        return freeze(self.parts())

    def restore(self, frozen: Frozen) -> None:
        """Return to a state of this job, or of another one with the same configuration. Not allowed during ``run``.
        Invocations are made anew. Raises ``ValueError`` for a state with other parts."""
        restore(self.parts(), frozen)
        self.network.restored()


class DrivenJob(Job[TaskT_co, RunResult]):
    """A job whose caller waits for its end, and evaluates it."""

    STEP: ClassVar = 64

    @property
    @override
    def title(self) -> str:
        topology, programs = self.network.topology, sorted({spec.program for spec in self.specs.values()})
        return f"{len(topology.rank_hosts)} ranks on {topology.name}, {', '.join(programs)}"

    @override
    def result(self, stuck: Stuck | None) -> RunResult:
        return RunResult(errors=(), stuck=() if stuck is None else stuck.reasons, **self.counted(self.network.loop.now))

    def finished(self) -> int:
        """Run to the end. Returns the time, ps. Raises ``InputError``, with the reason, for a run that does not end."""
        stuck = self.finish()
        if stuck is not None:
            raise InputError(*stuck.reasons)
        return self.network.loop.now


def parts_of(tasks: Iterable[Task]) -> dict[str, object]:
    """The parts of tasks that have state, by name."""
    return {f"{task.name} {name}": part for task in tasks for name, part in task.parts().items()}
