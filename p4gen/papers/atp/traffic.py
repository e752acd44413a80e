"""Random traffic for ATP's programs, which differential tests send through two switches.

Everything derives from one seed. A few jobs send packets with few sequence numbers, so that aggregators are found,
taken, met by others and freed all the time; hosts repeat themselves, come late, and speak for others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from typing_extensions import override

from p4gen.difftest import noise
from p4gen.difftest.events import Packet
from p4gen.difftest.family import Traffic
from p4gen.difftest.jobs import JOBS, JobTraffic, next_epoch
from p4gen.groups.config import routing
from p4gen.groups.group import Route
from p4gen.model.entries import Exact
from p4gen.papers.atp import frames
from p4gen.papers.atp.control import AtpJob, Copy, Entrance, Site, configuration
from p4gen.papers.atp.headers import Message
from p4gen.papers.atp.spec import AtpSpec
from p4gen.rocev2.headers import Ethernet, IPv4, ipv4, ipv4_text

_SEQUENCES: Final = 6
OWN: Final = ipv4("10.254.0.1")
"""The switch's own address."""
_FIRST: Final = (0, (1 << 32) - 3, (1 << 31) - 3)
_LIMITS: Final = ((1 << 31) - 1, 1 << 31)


class RandomTraffic(JobTraffic):
    """The source for a program of ``spec``."""

    def __init__(self, spec: AtpSpec, seed: int) -> None:
        self._spec = spec
        self._sites = [self._site(number) for number in range(min(JOBS, spec.groups))]
        routes = [Route(f"{ipv4_text(site.job.server)}/32", number % 2) for number, site in enumerate(self._sites)]
        super().__init__(spec, seed, configuration(spec, self._sites, {OWN: 0x02FF}), routing(routes, ()))

    def _site(self, number: int) -> Site:
        """A job with three workers, of which two are in another rack."""
        ports = self._spec.ports
        job = AtpJob(
            number, tuple(0x0A000100 + 32 * number + i for i in range(min(3, self._spec.fan_in))), 0x0AFE0101 + number
        )
        ends = [
            (ip, i % ports, 1 << i if i == 0 else frames.bits(range(1, len(job.workers))))
            for i, ip in enumerate(job.workers)
        ]
        entrances = [*(Entrance(*end) for end in ends), Entrance(job.server, 3 % ports, server=True)]
        copies = [Copy(port, 0x02FF, 0x0200 + port, ip) for ip, port, _ in ends[:2]]
        return Site(job, frames.bits(range(len(job.workers))), tuple(entrances), tuple(copies))

    @override
    def renewed(self, match: dict[str, Exact]) -> int:
        number = next(n for n, site in enumerate(self._sites) if match == {"job": Exact(site.job.number)})
        site = self._sites[number]
        epoch = next_epoch(site.job.epoch)
        self._sites[number] = replace(site, job=replace(site.job, epoch=epoch))
        return epoch

    @override
    def packet(self, chance: float) -> Packet:
        rng = self.random
        if chance < 0.15:
            return noise.foreign(rng, self._spec.ports, OWN)
        site = rng.choice(self._sites)
        job, sender = site.job, rng.choice(site.entrances)
        if sender.server:
            message = rng.choice((Message.RESULT, Message.RESULT, Message.FLOAT_RESULT, Message.ASK))
        else:
            message = rng.choice((*[Message.GRADIENT] * 9, Message.RESEND, Message.FLOATS))
        sequence = (_FIRST[job.number % 3] + rng.randrange(_SEQUENCES)) % (1 << 32)
        workers = sender.workers & rng.choice((~0, ~0, 1 << rng.randrange(3))) or sender.workers
        packet = frames.Packet(
            job.number, job.epoch, message, sequence, workers, self._elements(),
            congested=int(rng.random() < 0.1), collision=int(rng.random() < 0.1),
        )  # fmt: skip
        to = job.workers[0] if sender.server else job.server
        ip = IPv4(
            sender.ip,
            to,
            tos=rng.getrandbits(8),
            ttl=rng.choice((1, 2, 64, 64, 64)),
            identification=sequence % (1 << 16),
        )
        port = sender.port
        if chance > 0.9:
            wrong = (
                replace(packet, sequence=rng.getrandbits(32)),
                replace(packet, epoch=rng.getrandbits(8)),
                replace(packet, job=rng.getrandbits(8)),
                replace(packet, workers=rng.getrandbits(32)),
                replace(packet, message=rng.getrandbits(8)),
                replace(packet, message=rng.choice(list(Message))),
                replace(packet, data=packet.data[: 4 * rng.randrange(len(packet.data) // 4)]),
            )
            packet = rng.choice(wrong)
            ip = rng.choice((ip, ip, replace(ip, src=ip.src + 1)))
            port = rng.choice((port, port, rng.randrange(self._spec.ports)))
        frame = packet.frame(Ethernet(0x02FF, 0x0200 + port), ip)
        if chance > 0.97:
            frame = noise.spoilt(rng, frame)
        return Packet(port, frame, "gradient")

    def _elements(self) -> bytes:
        """Random elements, with limits among them."""
        rng = self.random
        drawn = bytearray(rng.randbytes(self._spec.payload_bytes))
        for _ in range(rng.randrange(3)):
            at = 4 * rng.randrange(self._spec.lanes)
            drawn[at : at + 4] = rng.choice(_LIMITS).to_bytes(4)
        return bytes(drawn)


FACET: Traffic[AtpSpec] = Traffic(source=RandomTraffic)
