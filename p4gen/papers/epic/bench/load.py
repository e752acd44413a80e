"""EPIC's load: one AllReduce whose ranks contribute packet after packet, none lost."""

from __future__ import annotations

from typing import Final

import numpy as np

from p4gen.bench.workload import Bursts, dropped
from p4gen.errors import InputError
from p4gen.groups.group import Edge
from p4gen.host.collectives.control import Control
from p4gen.papers.epic.codes import SYNDROMES
from p4gen.papers.epic.spec import EpicSpec
from p4gen.plan.placement.network import place
from p4gen.plan.placement.placed import GroupRequest
from p4gen.program import compose, render
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, ImmDt, ip_header
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.rocev2.places import places_for
from p4gen.rocev2.psn import add
from p4gen.vocabulary.message import MAX_PACKETS, Collective
from p4gen.vocabulary.topology import TopologySpec

RANKS: Final = 4
_MOST_HOSTS: Final = 128
_ACK: Final = AETH(SYNDROMES["ack"], 0)


def workload(spec: EpicSpec, packets: int, seed: int) -> Bursts:
    """About ``packets`` packets of random lanes: each PSN from every rank in turn.

    Each packet that completes a slot makes the switch send the result to every rank. In Modes I and III every so
    many packets ask for an acknowledgement, and every rank acknowledges results, or the pipe's range would be
    exhausted. The opening announces the AllReduce.

    Raises ``InputError`` for a program that has no room for ranks.
    """
    hosts = [f"h{port}" for port in range(min(spec.ports, _MOST_HOSTS))]
    ranks = min(RANKS, spec.fan_in, len(hosts))
    if ranks < 2:
        raise InputError("a benchmark needs a program with at least two edges and two ports")
    rounds = max(packets // ranks, 1)
    if rounds > MAX_PACKETS:
        raise InputError(f"{packets} packets; one AllReduce of {ranks} ranks has {ranks * MAX_PACKETS} at most")
    links = [[host, "s"] for host in hosts]
    topology = TopologySpec.model_validate({"name": "star", "switches": ["s"], "hosts": hosts, "links": links})
    chosen = [hosts[rank * len(hosts) // ranks] for rank in range(ranks)]
    request = GroupRequest(tuple(chosen), collectives=frozenset({Collective.ALLREDUCE}))
    placement = place(topology, spec, [request])
    contexts = placement.groups[0].channels[0].contexts.values()
    by_address = {edge.remote.ip: edge for context in contexts for edge in context.edges}
    edges = tuple(by_address[placement.ip[host]] for host in chosen)
    numbers = spec.choices[0]
    announced = ImmDt(Control(Collective.ALLREDUCE, rounds, 0, numbers.op, numbers.dtype).encode())
    rng = np.random.default_rng(seed)
    frames: list[tuple[int, bytes]] = []
    acknowledged = spec.mode.augmented
    for psn in range(1, rounds + 1):
        ends = acknowledged and psn % spec.message == 0
        for edge in edges:
            bth = BTH(Opcode.SEND_ONLY, edge.local.qp, add(psn, edge.first_received), ack_request=ends)
            frames.append((edge.port, _frame(edge, bth, payload=rng.bytes(spec.payload_bytes))))
        if ends:
            frames += [
                (edge.port, _frame(edge, BTH(Opcode.ACKNOWLEDGE, edge.local.qp, add(psn, edge.first_sent)), aeth=_ACK))
                for edge in edges
            ]
    opening = [
        (edge.port, _frame(edge, BTH(Opcode.SEND_ONLY_IMM, edge.local.qp, edge.first_received), immdt=announced))
        for edge in edges
    ]
    text = render(compose(spec)).text
    burst, answers = ranks * spec.message, ranks if acknowledged else 0
    return Bursts(
        spec=spec,
        load=f"{spec.lanes} lanes",
        text=text,
        config=placement.switches["s"],
        opening=tuple(opening),
        packets=tuple(frames),
        counter=dropped(spec, "StartCursor_waits" if spec.mode.stores else "ReplicateData_absorbed"),
        edges=edges,
        burst=burst,
        answers=answers,
    )


def _frame(
    edge: Edge, bth: BTH, *, aeth: AETH | None = None, immdt: ImmDt | None = None, payload: bytes = b""
) -> bytes:
    """Packets of the rank at the far end of an edge."""
    ethernet = Ethernet(edge.local.mac, edge.remote.mac, places_for(edge.local.ip).ether_type)
    ip = ip_header(edge.remote.ip, edge.local.ip)
    return RocePacket(ethernet, ip, UDP(), bth, aeth=aeth, immdt=immdt, payload=payload).sealed().to_bytes()
