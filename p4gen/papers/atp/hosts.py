"""Workers and servers on the NICs of their hosts."""

from __future__ import annotations

from typing_extensions import override

from p4gen.host.transport.nic import Nic
from p4gen.host.transport.verbs import Peer
from p4gen.papers.atp.frames import JobKey, Packet
from p4gen.papers.atp.member import AtpWorker
from p4gen.papers.atp.server import AtpServer
from p4gen.papers.atp.spec import AtpSpec
from p4gen.rocev2.codes import ECN_ECT0
from p4gen.rocev2.headers import Ethernet, IPv4


class AtpMember(AtpWorker):
    """Rank ``number``, from 0, of a job of ``size`` ranks: a worker, and the server if it is the last one. ``peer`` is
    the server's host, for the last rank that of another one. ``timeout`` is in ps, ``floats`` as for ``AtpServer``."""

    def __init__(
        self, spec: AtpSpec, job: JobKey, number: int, size: int, peer: Peer, nic: Nic, timeout: int, window: int, *,
        floats: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(job, number, spec.lanes, nic.clock, self._to_server, timeout, window)
        through = size if spec.server == "worker" else size - 1
        self._nic, self._peer, self._ethernet = nic, peer.ip, Ethernet(peer.mac, nic.mac)
        self._beside = number >= through
        """Whether no switch is between this worker and the server."""
        self.server: AtpServer | None = None
        if number == size - 1:
            self.server = AtpServer(job, size, through, spec.lanes, self._to_all, window, floats=floats)
        self._server_ip = nic.ip if self.server else peer.ip
        nic.datagrams.append(self._receive)

    @override
    def close(self) -> None:
        """Take no frames, too."""
        super().close()
        self._nic.datagrams.remove(self._receive)

    def _receive(self, frame: bytes) -> bool:
        source, packet = Packet.parse(frame, self._nic.ip) or (0, None)
        return packet is not None and (
            (source == self._server_ip and self.take(packet)) or (self.server is not None and self.server.take(packet))
        )

    def _to_server(self, packet: Packet) -> None:
        if self._beside:
            self._clock.at(self._clock.now, self._give, packet)
        else:
            self._put(packet, self._server_ip)

    def _to_all(self, packet: Packet) -> None:
        self._put(packet, self._peer)  # switches copy it
        if self._beside:
            self._clock.at(self._clock.now, self._give, packet)

    def _put(self, packet: Packet, to: int) -> None:
        self._nic.send(packet.frame(self._ethernet, IPv4(self._nic.ip, to, tos=ECN_ECT0)))

    def _give(self, packet: Packet) -> None:
        """Hand over a packet on the same host."""
        if not self.take(packet):
            assert self.server is not None
            self.server.take(packet)
