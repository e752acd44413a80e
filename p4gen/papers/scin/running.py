"""Runs of SCIN for ``p4gen sim run``: collectives that a star's switch starts, every byte beside NumPy's."""

from __future__ import annotations

import random
from typing import Final

import numpy as np
from typing_extensions import override

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.host.collectives.arrays import check_root
from p4gen.host.transport.clock import SECOND, US
from p4gen.host.transport.verbs import QpConfig, Recovery
from p4gen.net.job import Progress, Stuck
from p4gen.net.order import RunOrder
from p4gen.net.result import MEMORY_RIGHT, RunResult, ending
from p4gen.net.world.faults import Faults
from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.ranks.calls import Drawn, PullCall, draw, form, sized
from p4gen.papers.scin.ranks.collectives import Communicator, Operand
from p4gen.papers.scin.ranks.memory import Layout
from p4gen.papers.scin.ranks.options import CALL, MOST_RANKS, QUANTISE
from p4gen.papers.scin.simulation import PullConfig, PullSimulation
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec

_SIZE: Final = 1 << 20
_MOST_CONTEXTS: Final = 256


def fitted(spec: ScinSpec, topology: TopologySpec, contexts: int) -> ScinSpec:
    """The program with as many contexts, edges and ports as the run takes, unless the spec says how many."""
    ranks = len(topology.rank_hosts)
    if ranks > MOST_RANKS:
        raise InputError(f"{topology.name} has {ranks} ranks; a group has {MOST_RANKS} at most")
    if contexts > _MOST_CONTEXTS:
        raise InputError(f"the run takes {contexts} contexts; a switch has {_MOST_CONTEXTS} at most")
    degree = max(len(topology.ports[switch]) for switch in topology.switches)
    wanted: dict[str, object] = {
        "contexts": max(contexts, spec.contexts),
        "edges": max(ranks, spec.edges),
        "ports": max(degree, spec.ports),
    }
    return ScinSpec.model_validate(wanted | spec.model_dump(mode="json", exclude_unset=True))


def check_waves(spec: ScinSpec) -> None:
    """Raises ``InputError`` if NICs do not answer as many READs again as are outstanding, so that a loss stays one."""
    remembered = QpConfig.max_dest_rd_atomic
    if spec.waves > remembered:
        why = f"NICs answer their {remembered} newest READs again: with losses {remembered} at most"
        raise InputError(Diagnostic(Option("waves"), why))


def _round_trip(topology: TopologySpec) -> int:
    """The longest one between a switch and its ranks, without queues, ps."""
    delay: int = max(topology.setting(topology.ports[host][0], "delay") for host in topology.rank_hosts)
    return 2 * (delay + topology.switch_latency)


class PullRun(PullSimulation):
    """The run that an order asks for. Raises ``InputError`` if the program cannot serve it."""

    def __init__(self, order: RunOrder[ScinSpec]) -> None:
        self.order, topology = order, order.topology
        if order.dcqcn is not None:
            raise InputError(Diagnostic(Option("dcqcn"), "ranks send nothing on their own; waves pace the switch"))
        recovery = order.recovery or Recovery.GO_BACK_N
        if recovery not in (Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT):
            raise InputError(Diagnostic(Option("recovery"), f"{recovery} is not for connections to SCIN's switches"))
        self.collective = self._call(form(order.program, order.options[QUANTISE]))
        contexts = len(self.collective.patterns)
        spec = fitted(order.program, topology, contexts * order.concurrent)
        if order.faults != Faults():
            check_waves(spec)
        super().__init__(
            PullConfig(
                topology,
                spec,
                self.collective.patterns * order.concurrent,
                order.faults,
                recovery,
                order.options["resumption"],
                tick=max(PullConfig.tick, _round_trip(topology)),
                timeout=100 * US if order.timeout is None else order.timeout,
                retry_count=order.retry_count,
                seed=order.seed,
                engine=order.engine,
            )
        )
        self.problems: list[str] = []
        """What is wrong with memories, and calls that were aborted."""
        self.groups = [
            Group(self, self.communicators(range(first, first + contexts)), first)
            for first in range(0, contexts * order.concurrent, contexts)
        ]
        self.tasks = self.callers = [caller for group in self.groups for caller in group.callers]

    def call_of(self, number: int) -> tuple[PullCall, ScinSpec]:
        """What ranks call as their call ``number``, from 0, and the program as it has it."""
        spec = form(self.config.spec, self.order.options[QUANTISE], number)
        return self._call(spec), spec

    def _call(self, spec: ScinSpec) -> PullCall:
        """What ranks call. Raises ``InputError``."""
        o, ranks = self.order, len(self.order.topology.rank_hosts)
        check_root(o.root, ranks)
        masks = []
        for name in ("sources", "destinations"):
            given: int | None = o.options[name]
            mask = (1 << ranks) - 1 if given is None else given
            if given is not None and o.collective != CALL:
                raise InputError(Diagnostic(Option(name), f"is for {CALL}, not for {o.collective}"))
            if mask >> ranks:
                raise InputError(Diagnostic(Option(name), f"there are the ranks 0 to {ranks - 1}"))
            masks.append(mask)
        size = _SIZE if o.size is None and o.collective != Collective.BARRIER else o.size or 0
        asked = PullCall(o.collective, ranks, 0, o.root, Pattern(*masks), o.options["in_place"])
        return sized(asked, size, spec, o.concurrent)

    @property
    @override
    def title(self) -> str:
        o, call, config = self.order, self.collective, self.config
        what = f"{call.name} of {self._size:,} bytes" if call.elements else call.name
        groups = f"{o.concurrent} groups of " if o.concurrent > 1 else ""
        return f"{what}, {groups}{call.ranks} ranks on {o.topology.name}, {config.spec.program}, {config.recovery}"

    @property
    def _size(self) -> int:
        """Bytes of a call at each rank."""
        return form(self.order.program, self.order.options[QUANTISE]).unit_bytes * self.collective.elements

    @override
    def finish(self, progress: Progress | None = None) -> Stuck | None:
        for caller in self.callers:
            caller.start()
        return super().finish(progress)

    @override
    def advance(self) -> bool:
        return self.done

    def progress(self) -> tuple[int, int]:
        """Calls that have ended, and all of them."""
        return sum(caller.ended for caller in self.callers), len(self.callers) * self.order.repeat

    @override
    def result(self, stuck: Stuck | None) -> RunResult:
        o, call, spec = self.order, self.collective, self.config.spec
        directions, hosts = self.network.directions.values(), o.topology.hosts
        told = sum(direction.packets for direction in directions if direction.dst in hosts)
        flagged = [member.flagged for caller in self.callers for member in caller.rank.members]
        duration = self.network.loop.now if stuck else max(flagged)
        values: dict[str, float | int | str] = {"program": spec.program, "to_ranks": told}
        lines = [*ending(duration, o.repeat, stuck)]
        if not stuck and not self.problems:
            calls = [self.call_of(number) for number in range(o.repeat)]
            again = told - len(self.groups) * sum(made.planned(made.packets(as_), as_) for made, as_ in calls)
            lines.append(f"{told:,} packets sent by the switch to ranks, {again:,} of them again")
            rate = 8 * self._size * o.repeat * SECOND / max(duration, 1)
            if call.elements:
                lines.append(f"algorithm throughput {rate / 1e9:.2f} Gb/s{' of each group' * (len(self.groups) > 1)}")
            values |= {"again": again, "gbps": round(rate / 1e9, 3)}
        counted = self.counted(duration)
        # Ranks send answers to READs and WRITEs for the most part, which no requester counts.
        counted["sent"] = sum(direction.packets for direction in directions if direction.src in hosts)
        counted["naks"] += sum(pair.responder.stats.naks for pair in self.pairs)
        return RunResult(
            errors=tuple(self.problems),
            stuck=() if stuck is None else stuck.reasons,
            lines=tuple(lines),
            verdict=MEMORY_RIGHT,
            values=values,
            **counted,
        )


class Group:
    """Ranks that make the same calls, and the data of those that not all have ended."""

    def __init__(self, run: PullRun, ranks: list[Communicator], number: int) -> None:
        self.run = run
        self.number = number
        self._calls: dict[int, tuple[Drawn, set[int]]] = {}
        self.callers = [Caller(self, ranks[rank]) for rank in run.collective.participants]

    def drawn(self, number: int) -> Drawn:
        """The data of a call, which is drawn when it is asked for first."""
        if number not in self._calls:
            chance = np.random.default_rng([self.run.order.seed, self.number, number])
            self._calls[number] = (
                draw(*self.run.call_of(number), chance),
                set(self.run.collective.participants),
            )
        return self._calls[number][0]

    def ended(self, number: int, rank: int) -> None:
        """A rank does not need a call's data any more."""
        left = self._calls[number][1]
        left.discard(rank)
        if not left:
            del self._calls[number]


class Caller:
    """A rank that makes its calls one after the other, each with other data in the same memory
    (``p4gen.net.job.Task``)."""

    def __init__(self, group: Group, rank: Communicator) -> None:
        self._group, self.rank = group, rank
        self.held: dict[str, tuple[Operand, Operand | None]] = {}
        """Its operand, and its result if that is apart, by the type of their elements."""
        self.ended = 0
        """Calls that it has ended."""
        self.problem = ""
        """Why the last call was aborted; "" if none was."""
        self.name = f"group {group.number} rank {rank.rank}"
        self._chance = random.Random(f"{group.run.order.seed} {self.name}")  # noqa: S311 - a simulation, to be repeatable
        for member in rank.members:
            member.on_flag = self._flag_arrived

    @property
    def done(self) -> bool:
        """Whether it makes no more calls."""
        return bool(self.problem) or self.ended == self._group.run.order.repeat

    def parts(self) -> dict[str, object]:
        """Nothing: a run is not frozen."""
        return {}

    def start(self) -> None:
        """Make the next call, soon."""
        late, loop = self._group.run.order.options["late"], self._group.run.network.loop
        if late:
            loop.at(loop.now + self._chance.randrange(late), self._begin)
        else:
            self._begin(None)

    def _begin(self, _: object) -> None:
        drawn = self._group.drawn(self.ended)
        operand, result = self._memory(drawn)
        operand.put(drawn.values[self.rank.rank])
        if result is not None:
            result.put(np.zeros(drawn.call.result_elements, result.layout.type))
        self._group.run.wake()
        drawn.call.start(self.rank, operand, result)

    def _memory(self, drawn: Drawn) -> tuple[Operand, Operand | None]:
        """Where a call's operand is, and its result if that is apart."""
        call, kind = drawn.call, Layout(drawn.spec).type
        if drawn.spec.dtype not in self.held:
            operand = self.rank.register(np.zeros(call.operand_elements, kind), call.operand_parts)
            result = None
            if not call.in_place:
                result = self.rank.register(np.zeros(call.result_elements, kind), call.result_parts)
            self.held[drawn.spec.dtype] = operand, result
        return self.held[drawn.spec.dtype]

    def _flag_arrived(self) -> None:
        """Once the rank has all flags of its call, check the result, and make the next call."""
        if not self.rank.done:
            return
        run, number, status = self._group.run, self.ended, self.rank.status
        if status is Status.SUCCESS:
            drawn = self._group.drawn(number)
            problem = drawn.problem(self.rank.rank, *self._memory(drawn))
        else:
            problem = self.problem = f"has ended with the status {status}, {status.name.lower()}"
        if problem:
            run.problems.append(f"rank {self.rank.rank}, call {number + 1}: {problem}")
        self._group.ended(number, self.rank.rank)
        self.ended += 1
        if not self.done:
            self.start()
