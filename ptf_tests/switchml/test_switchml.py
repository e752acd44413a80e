"""SwitchML's Algorithm 3: sums, versions, and what becomes of losses and repetitions."""

from __future__ import annotations

from dataclasses import replace

from updates import UpdateTest, Vectors

from p4gen.papers.switchml.control import MlJob, configuration
from p4gen.papers.switchml.frames import Update
from p4gen.papers.switchml.program import lacks


class SumsGoToAll(UpdateTest):
    """Whatever the order, the last vector gives the sum to all workers, in every slot; sums wrap."""

    def runTest(self) -> None:
        for workers in sorted({1, 2, 3, self.spec.fan_in}):
            job = self.anew(workers, base=0)
            for slot in range(3):
                self.complete(job, self.vectors(workers), slot=slot)


class SlotsAreUsedAgain(UpdateTest):
    """Versions alternate; the first vector of a version overwrites what its buffer has held."""

    def runTest(self) -> None:
        job = self.served(base=0)
        for use in range(6):
            self.complete(job, self.vectors(), use)


class SlotsAreIndependent(UpdateTest):
    """Slots of a job, and of two jobs, are completed in any order, each with its own sum."""

    def runTest(self) -> None:
        jobs = [self.served(3, base=0), self.served(2, number=9, base=3, slots=3)]
        places = [(job, slot) for job in jobs for slot in range(job.slots)]
        for round_ in range(3):
            vectors = {(job.number, slot): self.vectors(len(job.workers)) for job, slot in places}
            steps = [(job, slot, worker) for job, slot in places for worker in range(len(job.workers))]
            missing = {(job.number, slot): len(job.workers) for job, slot in places}
            self.random.shuffle(steps)
            for job, slot, worker in steps:
                own, use = vectors[job.number, slot], round_ + slot  # versions of neighbours differ
                self.contribute(job, worker, self.update(job, own[worker], use, slot))
                missing[job.number, slot] -= 1
                total = self.total(job, own, use, slot)
                done = missing[job.number, slot] == 0
                self.expect([self.result(job, each, total) for each in range(len(job.workers))] if done else [])


class VersionsAreOfWorkers(UpdateTest):
    """Another worker's part in the other version says nothing about one that has no part in it."""

    def unfit(self) -> str | None:
        return lacks(self.spec).get("offsets") or super().unfit()

    def runTest(self) -> None:
        job = self.served()
        self.ignored(job, 0, self.update(job, self.vectors()[0], 1), "ReplicateData.absorbed")
        self.ignored(job, 1, self.update(job, self.vectors()[1], 0), "ReplicateData.absorbed")


class ResultsAreKept(UpdateTest):
    """A worker that has lost the result asks again, and gets it alone, even if all others have gone on."""

    def runTest(self) -> None:
        job = self.served()
        for use in range(4):  # the first one that the switch sees
            vectors, later = self.vectors(), self.vectors()
            total = self.complete(job, vectors, use)
            lost = self.random.randrange(3)
            for worker in range(3):
                self.answered(job, worker, self.update(job, vectors[worker], use), total)
            for worker in {0, 1, 2} - {lost}:  # they go on
                self.contribute(job, worker, self.update(job, later[worker], use + 1))
                self.expect_nothing()
            for _ in range(2):
                self.answered(job, lost, self.update(job, vectors[lost], use), total)
            job = self.anew()


class RepeatedVectorsCountOnce(UpdateTest):
    """A vector that is sent again before the sum is complete changes nothing, in the first use of a slot and later."""

    def runTest(self) -> None:
        job = self.served()
        for use in range(3):
            vectors = self.vectors()
            for worker in (0, 1):
                update = self.update(job, vectors[worker], use)
                self.contribute(job, worker, update)
                self.expect_nothing()
                for again in range(worker + 1):
                    self.ignored(job, again, self.update(job, vectors[again], use), "CountWorkers.repeated")
            self.contribute(job, 2, self.update(job, vectors[2], use))
            self.expect([self.result(job, worker, self.total(job, vectors, use)) for worker in range(3)])


class WorkersWaitForTheSlowest(UpdateTest):
    """A worker that has not contributed to a version keeps all others from completing it."""

    def runTest(self) -> None:
        job = self.served()
        first, second = self.vectors(), self.vectors()
        self.complete(job, first)
        for worker in (2, 0):
            self.contribute(job, worker, self.update(job, second[worker], 1))
            self.expect_nothing()
        # The slowest one has lost the result of the first use: only then it goes on.
        self.answered(job, 1, self.update(job, first[1]), self.total(job, first))
        self.contribute(job, 1, self.update(job, second[1], 1))
        self.expect([self.result(job, worker, self.total(job, second, 1)) for worker in range(3)])
        self.complete(job, self.vectors(), 2)


class GenerationsBeginAnew(UpdateTest):
    """A new generation of a job finds its slots empty, whatever their offsets; vectors of the old one are refused."""

    def runTest(self) -> None:
        old, vectors = self.served(), self.vectors()
        self.contribute(old, 0, self.update(old, vectors[0]))
        self.complete(old, self.vectors(), use=2, slot=1)
        self.control.delete(*configuration(self.spec, self.jobs).entries)
        self.jobs.clear()
        new = self.served(epoch=2)
        self.ignored(new, 1, self.update(old, vectors[1]), "FindJob.wrong_epoch")
        for slot in (0, 1):
            self.complete(new, self.vectors(), slot=slot, order=(0, 1, 2))


class SlotsEndWithTheirPool(UpdateTest):
    """A job has no slots but its own."""

    def runTest(self) -> None:
        job = self.served(base=1, slots=3)
        self.served(2, number=9, base=4, slots=2)
        self.complete(job, self.vectors(), slot=2)
        for slot in (3, 4, (1 << 15) - 1):
            self.ignored(job, 0, self.update(job, self.vectors()[0], slot=slot), "FindJob.no_slot")


class AllWorkersHaveABit(UpdateTest):
    """As many workers as the program has: each counts, and repeats itself without being counted."""

    def runTest(self) -> None:
        job = self.served(self.spec.fan_in)
        for use in range(3):
            vectors = self.vectors(self.spec.fan_in)
            for worker in range(self.spec.fan_in - 1):
                self.contribute(job, worker, self.update(job, vectors[worker], use))
                self.ignored(job, worker, self.update(job, vectors[worker], use), "CountWorkers.repeated")
            self.contribute(job, self.spec.fan_in - 1, self.update(job, vectors[-1], use))
            total = self.total(job, vectors, use)
            self.expect([self.result(job, worker, total) for worker in range(self.spec.fan_in)])
            self.answered(job, 0, self.update(job, vectors[0], use), total)


class LateVectors(UpdateTest):
    """A vector that its worker's next one has overtaken. The paper's program adds it to the version that the worker has
    left, and forgets the worker's part in the present one; if offsets are checked it changes nothing."""

    def runTest(self) -> None:
        for use in range(3):
            job = self.anew()
            vectors, later = self.vectors(), self.vectors()
            total = self.complete(job, vectors, use)
            self.contribute(job, 0, self.update(job, later[0], use + 1))
            self.expect_nothing()
            late = self.update(job, vectors[0], use)
            if self.spec.checks_offsets:
                self.refuse(job, late, later, use)
                self.answered(job, 1, self.update(job, vectors[1], use), total)
                for worker in (1, 2):
                    self.contribute(job, worker, self.update(job, later[worker], use + 1))
                self.expect([self.result(job, worker, self.total(job, later, use + 1)) for worker in range(3)])
                self.complete(job, self.vectors(), use + 2)
            else:
                self.end_wrong(job, late, later, use)

    def refuse(self, job: MlJob, late: Update, later: Vectors, use: int) -> None:
        """The late vector is refused; so is one of a use before that, and one with the present offset."""
        self.ignored(job, 0, late, "CheckVersion.late")
        others = () if self.spec.tofino else (self.first + use + 1,)
        for offset in (*others, self.first + use + 1 - (1 << 31) + 1, self.first + use - 5):
            self.ignored(job, 0, replace(late, offset=offset % (1 << 32)), "CheckVersion.late")
        if not self.spec.tofino:
            again = self.update(job, later[0], use + 1)
            self.ignored(job, 0, replace(again, offset=late.offset), "CheckVersion.late")
        self.ignored(job, 0, self.update(job, later[0], use + 1), "CountWorkers.repeated")

    def end_wrong(self, job: MlJob, late: Update, later: Vectors, use: int) -> None:
        """The late vector begins the version anew, and the worker's next repetition is added a second time."""
        self.contribute(job, 0, late)
        self.expect_nothing()
        for worker in (0, 1):
            self.contribute(job, worker, self.update(job, later[worker], use + 1))
        total = self.total(job, [later[0], later[0], later[1]], use + 1)
        self.expect([self.result(job, worker, total) for worker in range(3)])


class LateVectorsForTheNext(UpdateTest):
    """The shortest run in which a search finds a wrong sum of the paper's program (p4gen verify --offsets carried
    --duplicate 1): a copy that is late begins the next use of its version, in place of its worker's next vector."""

    def runTest(self) -> None:
        job = self.served(2)
        first, second, third = (self.vectors(2) for _ in range(3))
        self.complete(job, first)
        self.contribute(job, 1, self.update(job, second[1], 1))
        self.expect_nothing()
        late = self.update(job, first[1])
        if self.spec.checks_offsets:
            self.ignored(job, 1, late, "CheckVersion.late")
        else:
            self.ignored(job, 1, late, "ReplicateData.absorbed")
        self.contribute(job, 0, self.update(job, second[0], 1))
        self.expect([self.result(job, worker, self.total(job, second, 1)) for worker in range(2)])
        self.contribute(job, 0, self.update(job, third[0], 2))
        if self.spec.checks_offsets:
            self.expect_nothing()
            self.contribute(job, 1, self.update(job, third[1], 2))
        else:
            third = [third[0], first[1]]
        self.expect([self.result(job, worker, self.total(job, third, 2)) for worker in range(2)])


class OffsetsAreTheWorkers(UpdateTest):
    """Half of all offsets are ahead of one; the switch hands them back."""

    def runTest(self) -> None:
        job = self.served()
        offset = self.first
        for use in range(4):
            offset = (offset + (1, (1 << 31) - 1, 12345, 1 << 30)[use]) % (1 << 32)
            vectors = self.vectors()
            for worker in range(3):
                self.contribute(job, worker, self.update(job, vectors[worker], use, offset=offset))
            total = replace(self.total(job, vectors, use), offset=offset)
            self.expect([self.result(job, worker, total) for worker in range(3)])
