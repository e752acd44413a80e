"""Ranks of programs that add vectors of int32, which they send in datagrams that are no queue pair's."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from p4gen.errors import InputError
from p4gen.families import OwnSpec
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import SYMMETRIC, Connection, GroupConfig, PsnSync
from p4gen.host.collectives.summed import Adder, SummedCollectives
from p4gen.host.raw import kernel_sink
from p4gen.host.transport.nic import Nic, VerbsNic
from p4gen.host.transport.verbs import QpConfig
from p4gen.manager.api import RankConfig
from p4gen.manager.ranks.own import OwnCollectives
from p4gen.vocabulary import Overflow


def adding(
    adder: Callable[[OwnSpec, Nic, RankConfig, int], Adder], udp_port: Callable[[OwnSpec], int], overflow: Overflow
) -> OwnCollectives[OwnSpec]:
    """The facet of a family whose ranks are such workers: ``adder`` makes one on a NIC, with a timer of as many ps. Its
    datagrams come to the program's ``udp_port``, where the kernel gets them, too."""

    def program(_: OwnSpec, config: RankConfig) -> GroupConfig:
        (channel,) = config.channels
        connection = Connection(channel.qp, channel.peer, QpConfig(mtu=config.spec.payload_bytes))
        return GroupConfig(
            config.rank,
            config.size,
            {SYMMETRIC: connection},
            window=config.slots,
            message=1,
            overflow=overflow,
            sync=PsnSync.REFINED,
        )

    def make(
        spec: OwnSpec, nic: VerbsNic, config: RankConfig, timeout: int, on_end: Callable[[Invocation], None]
    ) -> Collectives:
        if not nic.compiled:
            raise InputError(f"{spec.program}: its workers send what there are no verbs for: take p4gen's own NIC")
        own = cast("Nic", nic)
        calls, worker = program(spec, config), adder(spec, own, config, timeout)
        return SummedCollectives(calls, own.clock, worker, on_end, kernel_sink(udp_port(spec)).close)

    return OwnCollectives(program, make)
