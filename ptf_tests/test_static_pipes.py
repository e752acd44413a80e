"""Ports of several pipes: bits 8 and 7 of a port are its pipe, and every pipe has registers of its own.

A group's edges are in one pipe. Groups in different pipes may have the same slots, which two installations show
here: one for each pipe, as a placement knows one memory only.
"""

from __future__ import annotations

from dataclasses import replace

from inc import psns
from mode_ii import StaticTest
from test_forwarding import Routing, hop_to

from p4gen.errors import InputError
from p4gen.groups import NextHop, Route
from p4gen.groups.config import configure
from p4gen.groups.group import GroupContext
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import ipv4


class Pipes(StaticTest):
    """A program with ports in several pipes."""

    def unfit(self) -> str | None:
        if self.spec.groups < 2:
            return "the program serves one group"
        return None if len(self.by_pipe()) > 1 else "all ports of the program are in one pipe"

    def by_pipe(self) -> list[list[int]]:
        """The ports for hosts of each pipe that has at least four."""
        pipes: dict[int, list[int]] = {}
        for port in self.front:
            pipes.setdefault(self.spec.architecture.pipe_of(port), []).append(port)
        return [ports for ports in pipes.values() if len(ports) >= 4]

    def group_in(self, number: int, ranks: int = 3, **fields: object) -> GroupContext:
        """Context ``number``, on random ports of that pipe."""
        ports = self.random.sample(self.by_pipe()[number], ranks)
        group = self.make_group(ranks, context=number)
        edges = (replace(edge, port=port) for edge, port in zip(group.edges, ports, strict=True))
        return replace(group, edges=tuple(edges), **fields)  # type: ignore[arg-type]

    def rounds(self, *groups: GroupContext) -> int:
        """Under the same PSNs, interleaved: every group gets its own results. Returns the last PSN."""
        numbers = psns(self.random_psn(), 4)
        values = [[self.random_values(len(group.edges)) for _ in numbers] for group in groups]
        turns = [(g, rank) for g, group in enumerate(groups) for rank in range(len(group.edges))]
        for index, psn in enumerate(numbers):
            for g, rank in self.random.sample(turns, len(turns)):
                self.contribute(groups[g], [rank], psn, values[g][index])
        for group, results, some in zip(groups, self.received_by(*groups), values, strict=True):
            self.check_results(group, results, [(p, self.reduced(v)) for p, v in zip(numbers, some, strict=True)])
        return numbers[-1]


class GroupsOfSeveralPipes(Pipes):
    """A group in each pipe: results leave by the ports of the pipe that they were reduced in."""

    def runTest(self) -> None:
        groups = [self.group_in(number) for number in range(min(len(self.by_pipe()), self.spec.groups))]
        self.serve(*groups)
        self.rounds(*groups)
        self.equal("drops that lose something", self.losses(), {})


class PipesHaveMemoriesOfTheirOwn(Pipes):
    """Two groups have the same slots in different pipes, and the same PSNs: neither sees the other's contributions."""

    def runTest(self) -> None:
        first, second = self.group_in(0), self.group_in(1)
        second = replace(second, base=first.base)
        self.serve(first)
        self.serve(second)
        psn, values = serial.add(self.rounds(first, second), 1), self.random_values(3)
        for group in (first, second):
            self.contribute(group, [0, 0], psn, values)
        self.expect_nothing()
        for group in (first, second):
            self.contribute(group, [1, 2], psn, values)
            self.expect_results(group, [(psn, self.reduced(values))])


class AGroupIsInOnePipe(Pipes):
    """Edges in two pipes: contributions would meet in no register, so that such a group is not served."""

    def runTest(self) -> None:
        group = self.group_in(0)
        first, *rest = group.edges
        elsewhere = replace(group, edges=(replace(first, port=self.by_pipe()[1][0]), *rest))
        try:
            configure(self.spec, [elsewhere])
        except InputError as error:
            self.equal("the cause names both pipes", "in the pipes 0 and 1" in str(error), True)
        else:
            raise AssertionError("a group with edges in two pipes is configured")
        # What comes to an endpoint over a port of another pipe joins no round of its group.
        self.serve(group)
        psn, values = self.random_psn(), self.random_values(3)
        self.contribute(group, [1, 2], psn, values)
        self.send(self.by_pipe()[1][0], self.contribution(group, 0, psn, values[0]).to_bytes())
        self.expect_nothing()
        self.contribute(group, [0], psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])


class AnswersInTheirPipe(Pipes):
    """ACKs are reflected, and repetitions answered, over ports of any pipe."""

    def runTest(self) -> None:
        for number in (0, 1):
            group = self.group_in(number)
            self.serve(group)
            psn, values = self.random_psn(), self.random_values(3)
            self.contribute(group, range(3), psn, values)
            self.expect_results(group, [(psn, self.reduced(values))])
            for rank in range(3):
                self.send_from(group, rank, self.acknowledgement(group, rank, psn))
                self.equal(
                    "packets", [len(p) for p in self.received(group).of_rank], [int(r == rank) for r in range(3)]
                )
                self.contribute(group, [rank], psn, values)
                self.expect_at(group, [rank], [(psn, self.reduced(values))])


class DropsOfAllPipesAreCounted(Pipes):
    """A counter is the sum over the pipes."""

    def runTest(self) -> None:
        groups = [self.group_in(0), self.group_in(1)]
        self.serve(*groups)
        for group in groups:
            late = self.contribution(group, 1, serial.add(self.first_psn, 1), self.random_values(1)[0])
            self.send_from(group, 1, replace(late, bth=replace(late.bth, version=1)).sealed())
        self.expect_nothing()
        self.equal("drops", self.drops(), {"ValidatePacket.bad_version": 2})


class TrafficBetweenPipes(StaticTest, Routing):
    """Ordinary traffic goes from any pipe to any other."""

    by_pipe = Pipes.by_pipe

    def unfit(self) -> str | None:
        return None if len(self.by_pipe()) > 1 else "all ports of the program are in one pipe"

    def runTest(self) -> None:
        ports = [port for pipe in self.by_pipe() for port in (pipe[0], pipe[-1])]
        hops = [hop_to(port, hop_id=50 + number) for number, port in enumerate(ports)]
        self.add_routes([Route(f"172.16.{hop.hop_id}.0/24", hop.hop_id) for hop in hops], hops)
        for hop in hops:
            for port in ports:
                frame = self.ip_frame(ipv4(f"172.16.{hop.hop_id}.7"), self.udp(b"across"))
                self.expect_routed(frame, hop, in_port=port)


class ReservedPortsAreNoHosts(StaticTest):
    """Ports for recirculation and for the CPU are given neither to edges nor to next hops."""

    def runTest(self) -> None:
        arch = self.spec.architecture
        ports = [port for port in range(max(self.front)) if port not in self.front]
        if not ports:
            self.skipTest("all port numbers up to the last are for hosts")
        group = self.make_group(2)
        for port in ports:
            first, *rest = group.edges
            wrong = replace(group, edges=(replace(first, port=port), *rest))
            self._refused(lambda wrong=wrong: configure(self.spec, [wrong]), f"port {port} of {arch.name}")
        for port in sorted(arch.reserved_ports):
            hop = NextHop(1, port, 1, 2)
            self._refused(lambda hop=hop: configure(self.spec, [], [], [hop]), f"port {port} of {arch.name}")
        self.serve(group)
        self.open(group)
        self.complete(group, self.random_psn())

    def _refused(self, attempt: object, cause: str) -> None:
        try:
            attempt()  # type: ignore[operator]
        except InputError as error:
            self.equal(f"{cause} is the cause", cause in str(error), True)
        else:
            raise AssertionError(f"{cause} is configured")
