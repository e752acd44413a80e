"""ATP's aggregators: sums, collisions, what is sent again, and what frees them."""

from __future__ import annotations

from dataclasses import replace

from gradients import UPLINKS, GradientTest

from p4gen.papers.atp.control import Site
from p4gen.papers.atp.headers import Message


class SumsGoToTheServer(GradientTest):
    """Whatever the order, the last worker's packet goes on with the sum of all; its result goes to all."""

    def runTest(self) -> None:
        for workers in sorted({1, 2, 3, min(self.spec.fan_in, 5)}):
            self.begin()
            site = self.served(workers)
            for sequence in (0, 1, (1 << 32) - 1):
                total = self.complete(site, self.vectors(workers), sequence)
                self.answer(site, replace(total, message=Message.RESULT))


class AllWorkersHaveABit(GradientTest):
    """As many workers as the program has: each counts."""

    def runTest(self) -> None:
        workers = self.spec.fan_in
        job = self.job(workers)
        site = self.serve(self.rack(job, range(4)))  # the others come as one rack
        vectors = self.vectors(workers)
        for worker in range(4):
            missing = worker < 3 or workers > 4
            packet = self.packet(site, [worker], vectors[worker])
            if missing:
                self.stays(site, worker, packet)
        for worker in range(4, workers):
            packet = self.packet(site, [worker], vectors[worker])
            if worker < workers - 1:
                self.stays(site, worker, packet, port=UPLINKS[0])
        last = workers - 1
        total = self.packet(site, range(workers), self.sum(vectors))
        port = last if last < 4 else UPLINKS[1]
        self.goes_on(site, last, self.packet(site, [last], vectors[last]), total, port=port)


class AggregatorsAreUsedAgain(GradientTest):
    """The result frees an aggregator, and its next user overwrites what it holds; another result does not."""

    def runTest(self) -> None:
        site = self.served()
        job = site.job
        rival = self.rivals(job, job)
        total = self.complete(site, self.vectors())
        self.answer(site, self.packet(site, [0], self.vectors()[0], rival, message=Message.RESULT))
        alone = self.packet(site, [1], self.vectors()[1], rival)
        self.goes_on(site, 1, alone, replace(alone, collision=1))
        self.answer(site, replace(total, message=Message.RESULT))
        total = self.complete(site, self.vectors(), rival)
        self.answer(site, replace(total, message=Message.RESULT))
        self.stays(site, 0, self.packet(site, [0], self.vectors()[0]))
        self.answer(site, self.packet(site, [1], self.vectors()[0], message=Message.RESULT))  # not its sum
        self.complete(site, self.vectors())


class PacketsAreIndependent(GradientTest):
    """Packets of two jobs are completed in any order, each with its own sum."""

    def runTest(self) -> None:
        first, second = self.served(3), self.served(2, number=9)
        places: list[tuple[Site, int]] = []
        taken: set[int] = set()
        for sequence in range(8):
            for site in (first, second):
                if (place := self.place(site.job, sequence)) not in taken:
                    taken.add(place)
                    places.append((site, sequence))
        vectors = {(site.job.number, sequence): self.vectors(len(site.job.workers)) for site, sequence in places}
        steps = [(site, sequence, worker) for site, sequence in places for worker in range(len(site.job.workers))]
        missing = {(site.job.number, sequence): len(site.job.workers) for site, sequence in places}
        self.random.shuffle(steps)
        for site, sequence, worker in steps:
            key = site.job.number, sequence
            missing[key] -= 1
            packet = self.packet(site, [worker], vectors[key][worker], sequence)
            if missing[key]:
                self.stays(site, worker, packet)
            else:
                total = self.packet(site, range(len(vectors[key])), self.sum(vectors[key]), sequence)
                self.goes_on(site, worker, packet, total)
                self.answer(site, replace(total, message=Message.RESULT))


class CollisionsGoOn(GradientTest):
    """A packet whose place is taken, by its own job or by another one, goes on alone and changes nothing."""

    def runTest(self) -> None:
        first, vectors = self.served(3), self.vectors()
        second = self.served(2, number=self.rival(first.job))
        self.stays(first, 0, self.packet(first, [0], vectors[0]))
        for site in (first, second):
            packet = self.packet(site, [1], self.vectors()[1], self.rivals(first.job, site.job))
            self.goes_on(site, 1, packet, replace(packet, collision=1))
        self.stays(first, 1, self.packet(first, [1], vectors[1]))
        total = self.packet(first, range(3), self.sum(vectors))
        self.goes_on(first, 2, self.packet(first, [2], vectors[2]), total)


class JobsAreToldApart(GradientTest):
    """Packets of two jobs with the same number and the same place are no parts of one sum."""

    def runTest(self) -> None:
        first = self.served()
        place = self.place(first.job, 0)
        others = [n for n in range(256) if n != 7 and self.place(self.job(number=n), 0) == place]
        if not others:
            self.skipTest("no two jobs' packets with the same number have the same place")
        number = self.random.choice(others)
        second, vectors = self.served(number=number), self.vectors()
        for worker in (0, 1):
            self.stays(first, worker, self.packet(first, [worker], vectors[worker]))
        packet = self.packet(second, [2], vectors[2])
        self.goes_on(second, 2, packet, replace(packet, collision=1))


class WhatIsSentAgainTakesTheSumAlong(GradientTest):
    """A packet that is sent again goes on with all there is, whether it is in the sum or not, and frees the
    aggregator. It never takes one."""

    def runTest(self) -> None:
        site = self.served()
        for again in (0, 1):
            vectors = self.vectors()
            self.stays(site, 0, self.packet(site, [0], vectors[0]))
            resend = self.packet(site, [again], vectors[again], message=Message.RESEND)
            held = sorted({0, again})
            partial = self.packet(site, held, self.sum(vectors[w] for w in held), message=Message.RESEND)
            self.goes_on(site, again, resend, partial)
            for _ in range(2):
                self.goes_on(site, again, resend)
            rival = self.rivals(site.job, site.job)
            self.answer(site, replace(self.complete(site, self.vectors(), rival), message=Message.RESULT))


class SentAgainBesideOthers(GradientTest):
    """A packet that is sent again leaves an aggregator with other packets as it is, even one that is to be given up."""

    def runTest(self) -> None:
        site = self.served()
        rival, vectors = self.rivals(site.job, site.job), self.vectors()
        self.stays(site, 0, self.packet(site, [0], vectors[0]))
        for _ in range(self.spec.patience + 2):
            self.goes_on(site, 1, self.packet(site, [1], vectors[1], rival, message=Message.RESEND))
        self.stays(site, 1, self.packet(site, [1], vectors[1]))
        self.goes_on(site, 2, self.packet(site, [2], vectors[2]), self.packet(site, range(3), self.sum(vectors)))


class RepetitionsCountOnce(GradientTest):
    """A packet that comes twice changes nothing; if the sum is complete, it goes on once more."""

    def runTest(self) -> None:
        site, vectors = self.served(), self.vectors()
        for worker in (0, 1):
            for _ in range(2):
                self.stays(site, worker, self.packet(site, [worker], vectors[worker]))
        total = self.packet(site, range(3), self.sum(vectors))
        for worker in (2, 2, 0):
            self.goes_on(site, worker, self.packet(site, [worker], vectors[worker]), total)


class AbandonedAggregatorsAreGivenAway(GradientTest):
    """A late packet takes an aggregator that no result will free. It turns away as many packets as it has patience;
    the next one takes it, and nothing of the old sum is left."""

    def runTest(self) -> None:
        site, vectors = self.served(), self.vectors()
        total = self.complete(site, vectors)
        self.answer(site, replace(total, message=Message.RESULT))
        self.stays(site, 0, self.packet(site, [0], vectors[0]))  # late
        rival, later = self.rivals(site.job, site.job), self.vectors()
        first = self.packet(site, [0], later[0], rival)
        for _ in range(self.spec.patience - 1):
            self.goes_on(site, 0, first, replace(first, collision=1))
        self.stays(site, 1, self.packet(site, [1], vectors[1]))  # its own packet: patience begins anew
        for _ in range(self.spec.patience):
            self.goes_on(site, 0, first, replace(first, collision=1))
        self.stays(site, 0, first)
        old = self.packet(site, [2], vectors[2])
        self.goes_on(site, 2, old, replace(old, collision=1))
        self.complete(site, later, rival, order=(1, 2))


class RacksAreAddedAsSets(GradientTest):
    """At the server's switch a packet can be of several workers. It counts if none of them is in the sum, or all: if
    some are, it goes on alone."""

    def runTest(self) -> None:
        site = self.serve(self.rack(self.job(4), (2, 3)))
        vectors = self.vectors(4)
        both = self.packet(site, (0, 1), self.sum(vectors[:2]))
        for port in UPLINKS:
            self.stays(site, port - UPLINKS[0], both, port=port)
        self.stays(site, 1, self.packet(site, [1], vectors[1]), port=UPLINKS[0])  # in it already
        self.stays(site, 2, self.packet(site, [2], vectors[2]))
        total = self.packet(site, range(4), self.sum(vectors))
        self.goes_on(site, 3, self.packet(site, [3], vectors[3]), total)
        self.goes_on(site, 0, both, total, port=UPLINKS[1])
        self.answer(site, replace(total, message=Message.RESULT))
        self.stays(site, 1, self.packet(site, [1], vectors[1]), port=UPLINKS[0])
        self.goes_on(site, 0, both, port=UPLINKS[0])
        self.stays(site, 0, self.packet(site, [0], vectors[0]), port=UPLINKS[0])
        self.stays(site, 2, self.packet(site, [2], vectors[2]))
        self.goes_on(site, 3, self.packet(site, [3], vectors[3]), total)
        self.answer(site, replace(total, message=Message.RESULT))
        for worker, port in ((1, UPLINKS[0]), (2, 2)):
            self.stays(site, worker, self.packet(site, [worker], vectors[worker]), port=port)
        self.goes_on(site, 1, replace(both, message=Message.RESEND), port=UPLINKS[0])
        self.stays(site, 3, self.packet(site, [3], vectors[3]))  # freed: it is the first one
        self.stays(site, 1, both, port=UPLINKS[0])
        self.goes_on(site, 2, self.packet(site, [2], vectors[2]), total)


class RacksSendTheirSum(GradientTest):
    """At a rack of workers the sum goes on with the rack's; the server's result comes by any uplink, for the rack's."""

    def runTest(self) -> None:
        site = self.serve(self.rack(self.job(4), (0, 1), server=False))
        vectors = self.vectors(4)
        self.stays(site, 1, self.packet(site, [1], vectors[1]))
        both = self.packet(site, (0, 1), self.sum(vectors[:2]))
        self.goes_on(site, 0, self.packet(site, [0], vectors[0]), both)
        total = self.packet(site, range(4), self.sum(vectors), message=Message.RESULT)
        for port in UPLINKS:
            self.answer(site, total, port)
        self.stays(site, 0, self.packet(site, [0], vectors[0]))  # freed


class CongestionStaysWithTheSum(GradientTest):
    """A mark on any part, in IPv4's header or in ATP's, is one on the sum, and none on the next one."""

    def runTest(self) -> None:
        site = self.served()
        for mark in range(6):
            vectors = self.vectors()
            for worker in range(3):
                tos = 0x23 if mark == worker else 0x20 | self.random.randrange(2)
                marked = int(mark == 3 + worker)
                packet = self.packet(site, [worker], vectors[worker], mark, congested=marked)
                if worker < 2:
                    self.stays(site, worker, packet, tos=tos)
                else:
                    total = self.packet(site, range(3), self.sum(vectors), mark, congested=1)
                    self.goes_on(site, 2, packet, total, tos=tos)
            self.answer(site, replace(total, message=Message.RESULT), tos=3)
            for worker in (0, 1):  # all could have been marked, and none is
                self.stays(site, worker, self.packet(site, [worker], vectors[worker], mark), tos=2)
            total = self.packet(site, range(3), self.sum(vectors), mark)
            self.goes_on(site, 2, self.packet(site, [2], vectors[2], mark), total, tos=2)
            self.answer(site, replace(total, message=Message.RESULT, congested=1))


class SaturatedSumsStay(GradientTest):
    """An element that has reached a limit, on the way or from the start, stays there whatever is added."""

    def runTest(self) -> None:
        most, least = (1 << 31) - 1, -(1 << 31)
        rows = (
            (most - 5, 6, -9, most),
            (most - 5, 5, -9, most),
            (most - 5, 4, 0, most - 1),
            (least + 5, -6, 9, least),
            (least + 5, -5, 9, least),
            (least + 5, -4, 0, least + 1),
            (most, -1, -1, most),
            (least, 1, 1, least),
            (-7, most, -1, most),
            (7, least, 1, least),
            (3, 4, most, most),
            (-3, -4, least, least),
            (most, least, 0, least),
            (most, -4, least, least),
            (least, 4, most, most),
            (-1, 1, 0, 0),
        )
        site = self.served()
        columns = list(zip(*rows * (self.spec.lanes // len(rows)), strict=True))
        *vectors, total = (self.numbers(column) for column in columns)
        for worker in (0, 1):
            self.stays(site, worker, self.packet(site, [worker], vectors[worker]))
        self.goes_on(site, 2, self.packet(site, [2], vectors[2]), self.packet(site, range(3), total))


class FloatsGoOn(GradientTest):
    """Floats are not added. That the server asks for them frees the aggregator, and goes to all; so does their sum."""

    def runTest(self) -> None:
        site, vectors = self.served(), self.vectors()
        for answer in (Message.ASK, Message.FLOAT_RESULT):
            self.stays(site, 0, self.packet(site, [0], vectors[0]))
            floats = self.packet(site, [1], vectors[1], message=Message.FLOATS)
            self.goes_on(site, 1, floats)
            self.stays(site, 0, self.packet(site, [0], vectors[0]))
            self.answer(site, self.packet(site, range(3), vectors[2], message=answer))
            self.answer(site, replace(self.complete(site, self.vectors()), message=Message.RESULT))


class GenerationsBeginAnew(GradientTest):
    """Packets of another generation of a job are refused, and its aggregators are others' to a new one."""

    def runTest(self) -> None:
        old, vectors = self.served(), self.vectors()
        self.stays(old, 0, self.packet(old, [0], vectors[0]))
        self.control.delete(*self.configured("jobs"))
        new = replace(old, job=replace(old.job, epoch=2))
        self.sites = [new]
        self.control.insert(*self.configured("jobs"))
        stale = self.packet(old, [1], vectors[1])
        self.refused("FindJob.wrong_epoch", 1, stale.frame(*self.headers(old, 1)))
        packet = self.packet(new, [0], vectors[0])
        for _ in range(self.spec.patience):
            self.goes_on(new, 0, packet, replace(packet, collision=1))
        self.complete(new, vectors)
