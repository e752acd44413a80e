"""Payloads whose parts are in several pipes: a packet visits each, and a result comes back through them.

A contribution whose frame ends in a part that a later pipe parses is taken by the pipes before and by no other, as one
that is lost on its way between two pipes.
"""

from __future__ import annotations

from elements import Values
from inc import psns
from mode_ii import StaticTest, allreduce

from p4gen.groups.group import GroupContext
from p4gen.rocev2.packet import parse

ICRC = 4


class Folded(StaticTest):
    """A star whose program folds payloads."""

    ranks = 3

    def unfit(self) -> str | None:
        return None if self.spec.payload_pipes > 1 else "the program does not fold payloads"

    def setUp(self) -> None:
        super().setUp()
        self.group: GroupContext = self.make_group(self.ranks)
        self.serve(self.group)

    def cuts(self) -> list[int]:
        """How many bytes of a frame's end lack: from a byte of the last part's ICRC to all parts but the first."""
        part = self.spec.payload_bytes // self.spec.payload_pipes
        parts = [part * count for count in range(self.spec.payload_pipes)]
        return [1, ICRC, *(ICRC + size + 1 for size in parts[:-1]), ICRC + parts[-1]]

    def cut(self, rank: int, psn: int, values: Values, by: int) -> bytes:
        """The contribution of ``rank``, without that many bytes of its end."""
        return self.contribution(self.group, rank, psn, values).to_bytes()[:-by]


class PartsOfManyPacketsNeverMix(Folded):
    """Several PSNs are under way at a time; the parts of each result are those of its own contributions."""

    def runTest(self) -> None:
        numbers = psns(self.random_psn(), 6)
        values = [self.random_values(self.ranks) for _ in numbers]
        turns = [(index, rank) for index in range(len(numbers)) for rank in range(self.ranks)]
        order = self.random.sample(turns, len(turns))
        for index, rank in order:
            self.contribute(self.group, [rank], numbers[index], values[index])
        done = list(dict.fromkeys(index for index, _ in reversed(order)))[::-1]
        self.expect_results(self.group, [(numbers[i], self.reduced(values[i])) for i in done])
        # A repetition, too, has all parts of its own result.
        for index in self.random.sample(range(len(numbers)), len(numbers)):
            self.contribute(self.group, [1], numbers[index], values[index])
            self.expect_at(self.group, [1], [(numbers[index], self.reduced(values[index]))])


class RepetitionMakesUpForWhatWasLostBetweenPipes(Folded):
    """Some pipes have a contribution, and others lack it: there is no result until it is repeated, which all get."""

    def runTest(self) -> None:
        for by, psn in zip(self.cuts(), psns(self.random_psn(), len(self.cuts())), strict=True):
            values = self.random_values(self.ranks)
            result = (psn, self.reduced(values))
            lost = self.random.randrange(self.ranks)
            others = [rank for rank in range(self.ranks) if rank != lost]
            self.send_from(self.group, lost, self.cut(lost, psn, values[lost], by))
            self.contribute(self.group, others, psn, values)
            self.contribute(self.group, others, psn, values)
            self.expect_nothing()
            self.contribute(self.group, [lost], psn, values)
            self.expect_results(self.group, [result])
            for rank in range(self.ranks):
                self.contribute(self.group, [rank], psn, values)
                self.expect_at(self.group, [rank], [result])


class CutContributionsAreCounted(Folded):
    """A pipe that lacks the part of a frame drops it, for the reason of any frame that is too short."""

    def runTest(self) -> None:
        psn, values = self.random_psn(), self.random_values(self.ranks)
        for by in self.cuts():
            before = self.all_drops()
            self.send_from(self.group, 0, self.cut(0, psn, values[0], by))
            self.equal(f"drops of a frame cut by {by}", self.all_drops() - before, {"ValidatePacket.truncated": 1})
        self.expect_nothing()
        self.contribute(self.group, range(self.ranks), psn, values)
        self.expect_results(self.group, [(psn, self.reduced(values))])


class ContributionsAreCountedOnce(Folded):
    """However many pipes a packet visits, it is absorbed once, or dropped once as a duplicate."""

    def runTest(self) -> None:
        psn, values = self.random_psn(), self.random_values(self.ranks)
        self.contribute(self.group, [0, 0, 1], psn, values)
        self.expect_nothing()
        self.equal("drops", self.drops(), {"ReplicateData.absorbed": 2, "CheckDuplicate.duplicate": 1})
        self.contribute(self.group, [2], psn, values)
        self.expect_results(self.group, [(psn, self.reduced(values))])
        self.equal("drops", self.drops(), {"ReplicateData.absorbed": 2, "CheckDuplicate.duplicate": 1})


class ControlMessagesStayInTheirPipe(Folded):
    """They have no payload; nor are results of a node above, which go on as they are, looked into."""

    def runTest(self) -> None:
        self.open(self.group)
        self.complete(self.group, self.random_psn())


class TagsSurviveEveryPass(Folded):
    """What is sent with a VLAN tag comes out with it, contributions and repetitions alike."""

    vlan = 5 << 13 | 100

    def runTest(self) -> None:
        psn, values = self.random_psn(), self.random_values(self.ranks)
        self.contribute(self.group, range(self.ranks), psn, values)
        self.expect_results(self.group, [(psn, self.reduced(values))])
        self.contribute(self.group, [2], psn, values)
        self.expect_at(self.group, [2], [(psn, self.reduced(values))])


class WrongIcrcsOfWhatGoesOnStayWrong(StaticTest):
    """The ICRC of a result of a node above changes by what its headers change: no switch vouches for a payload that it
    has not summed."""

    def unfit(self) -> str | None:
        folds = self.spec.payload_pipes > 1 and self.spec.icrc.right
        return None if folds else "the program does not fold payloads, or leaves ICRCs as they are"

    def runTest(self) -> None:
        parent = 2
        group = self.node_of(parent + 1, allreduce(parent))
        (result,) = self.random_values(1)
        sound = self.contribution(group, parent, self.random_psn(), result)
        for wrong in (0, self.random.randrange(1, 1 << 32)):
            said = int.from_bytes(sound.sealed().icrc) ^ wrong
            self.send_from(group, parent, sound.sealed(icrc=said.to_bytes(ICRC)))
            copies = [parse(output.frame) for output in self.outputs()]
            found = [int.from_bytes(copy.icrc) ^ int.from_bytes(copy.sealed().icrc) for copy in copies]
            self.equal("what is wrong in the ICRCs", found, [wrong] * parent)
