"""The ports by which the packets of an endpoint come in: the table ``entrances`` of ``shared/entrances``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from p4gen.groups.addresses import at
from p4gen.groups.group import Endpoint
from p4gen.model.entries import Action, Entry, Exact
from p4gen.vocabulary import ProgramSpec


def entrances(spec: ProgramSpec, local: Endpoint, ports: Iterable[int]) -> Iterator[Entry]:
    """The entries that let packets of a connection in at its ports; none if any port will do."""
    for port in ports:
        key = {**at(spec, local.ip), "hdr.bth.dest_qp": Exact(local.qp), "port": Exact(port)}
        yield Entry("entrances", key, Action("NoAction"))


def port_problems(spec: ProgramSpec, ports: tuple[int, ...]) -> Iterator[str]:
    """What is wrong with the ports of an edge, a sentence each."""
    front = spec.architecture.front_ports(spec.ports)
    for port, times in Counter(ports).items():
        if times > 1:
            yield f"port {port} is given {times} times"
        if not 0 <= port <= front[-1]:
            yield f"there is no port {port}; the switch has {spec.ports} ports"
        elif port not in front:
            yield f"port {port} of {spec.arch} is no port of hosts"
