"""Random traffic for SwitchML's programs, which differential tests send through two switches.

Everything derives from one seed. Workers mostly contribute to the use of a slot that is next for them; they repeat
themselves, come late, name wrong slots, and speak for others. What a worker has got is only guessed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from typing_extensions import override

from p4gen.difftest import noise
from p4gen.difftest.events import Packet
from p4gen.difftest.family import Traffic
from p4gen.difftest.jobs import JOBS, JobTraffic, next_epoch
from p4gen.model.entries import Exact
from p4gen.papers.switchml.control import MlJob, Worker, configuration
from p4gen.papers.switchml.frames import Update, first_qp
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.rocev2.headers import Ethernet, IPv4

_SLOTS: Final = 3
_FIRST: Final = (0, (1 << 32) - 3, (1 << 31) - 3)


class RandomTraffic(JobTraffic):
    """The source for a program of ``spec``."""

    def __init__(self, spec: SwitchmlSpec, seed: int) -> None:
        self._spec = spec
        slots = min(_SLOTS, spec.slots)
        count = min(JOBS, spec.groups, spec.slots // slots)
        self._jobs = [self._job(number, slots, 1) for number in range(count)]
        self._uses: Counter[tuple[int, int, int]] = Counter()
        """How often a worker has contributed to a slot of its job."""
        super().__init__(spec, seed, configuration(spec, self._jobs))

    def _job(self, number: int, slots: int, epoch: int) -> MlJob:
        workers = tuple(
            Worker(i, 0x0200 + 16 * number + i, 0x0A000100 + 32 * number + i, 0x300 * i, 0x1000 + i)
            for i in range(min(self._spec.fan_in, 2 + number))
        )
        return MlJob(number, workers, number * slots, slots, 0x02FF + number, 0x0AFE0001 + number, epoch)

    @override
    def renewed(self, match: dict[str, Exact]) -> int:
        number = next(number for number, job in enumerate(self._jobs) if match == {"job": Exact(job.number)})
        epoch = next_epoch(self._jobs[number].epoch)
        self._jobs[number] = replace(self._jobs[number], epoch=epoch)
        return epoch

    @override
    def packet(self, chance: float) -> Packet:
        rng = self.random
        if chance < 0.15:
            return noise.foreign(rng, self._spec.ports, self._jobs[0].ip)
        job = rng.choice(self._jobs)
        number, slot = rng.randrange(len(job.workers)), rng.randrange(job.slots)
        worker, place = job.workers[number], (job.number, slot, number)
        if chance < 0.75 and self._uses[place] == min(
            self._uses[job.number, slot, each] for each in range(len(job.workers))
        ):
            self._uses[place] += 1
        use = self._uses[place]
        update = Update(
            job.number,
            job.epoch,
            use % 2,
            slot,
            (_FIRST[slot % 3] + use) % (1 << 32),
            rng.randbytes(self._spec.payload_bytes),
        )
        ip = IPv4(worker.ip, job.ip, tos=rng.getrandbits(8), ttl=rng.choice((1, 64)), identification=use % (1 << 16))
        port = worker.port
        if chance > 0.9:
            wrong: tuple[Update, ...] = (
                replace(update, slot=rng.getrandbits(15)),
                replace(update, epoch=rng.getrandbits(8)),
                replace(update, job=rng.getrandbits(8)),
                replace(update, offset=rng.getrandbits(32)),
                replace(update, version=1 - update.version),
                replace(update, data=update.data[: 4 * rng.randrange(len(update.data) // 4)]),
            )
            update = rng.choice(wrong)
            ip = rng.choice((ip, ip, replace(ip, src=ip.src + 1), replace(ip, src=job.ip, dst=ip.src)))
            port = rng.choice((port, port, rng.randrange(self._spec.ports)))
        frame = self._frame(update, Ethernet(job.mac, worker.mac), ip, number if chance < 0.98 else number + 1)
        if chance > 0.97:
            frame = noise.spoilt(rng, frame)
        return Packet(port, frame, "update")

    def _frame(self, update: Update, ethernet: Ethernet, ip: IPv4, number: int) -> bytes:
        rng = self.random
        if not self._spec.roce:
            return update.frame(ethernet, ip)
        packet = update.write(ethernet, ip, first_qp(1 + number), rng.getrandbits(24))
        if rng.random() < 0.02:
            packet = replace(packet, bth=replace(packet.bth, opcode=rng.choice(noise.OPCODES))).sealed()
        return (noise.vary(rng, packet)[0] if rng.random() < 0.1 else packet).to_bytes()


FACET: Traffic[SwitchmlSpec] = Traffic(source=RandomTraffic)
