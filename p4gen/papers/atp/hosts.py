"""Workers and servers on the NICs of their hosts."""

from __future__ import annotations

from p4gen.host.transport.nic import Nic
from p4gen.papers.atp.frames import Packet
from p4gen.papers.atp.member import AtpWorker
from p4gen.papers.atp.placing import PlacedJob
from p4gen.papers.atp.server import AtpServer
from p4gen.plan.placement.plain import PlainPlacement
from p4gen.rocev2.codes import ECN_ECT0
from p4gen.rocev2.headers import Ethernet, IPv4


def members(
    placed: PlacedJob, number: int, plain: PlainPlacement, nic: Nic, lanes: int, timeout: int, window: int
) -> tuple[AtpWorker, AtpServer | None]:
    """Worker ``number``, from 0, of a job, and the server if it is on the same host. ``timeout`` is in ps."""
    job, clock, workers = placed.job, nic.clock, {plain.ip[host] for host in placed.hosts}
    has_server = placed.hosts[number] == placed.server
    beside = has_server and number >= len(job.workers)  # no switch is between the worker and the server
    ethernet = Ethernet(plain.gateway[placed.hosts[number]], nic.mac)

    def send(packet: Packet, to: int) -> None:
        nic.send(packet.frame(ethernet, IPv4(nic.ip, to, tos=ECN_ECT0)))

    def give(packet: Packet) -> None:
        """Hand over a packet on the same host."""
        if not worker.take(packet):
            server.take(packet)

    def to_server(packet: Packet) -> None:
        if beside:
            clock.at(clock.now, give, packet)
        else:
            send(packet, job.server)

    def to_all(packet: Packet) -> None:
        send(packet, job.workers[0])  # switches copy it
        if beside:
            clock.at(clock.now, give, packet)

    worker = AtpWorker(job, number, lanes, clock, to_server, timeout, window)
    server = AtpServer(job, len(placed.hosts), lanes, to_all, window)

    def receive(frame: bytes) -> bool:
        source, packet = Packet.parse(frame, nic.ip) or (0, None)
        if packet is None:
            return False
        return (source == job.server and worker.take(packet)) or (
            has_server and source in workers and server.take(packet)
        )

    nic.datagrams.append(receive)
    return worker, server if has_server else None
