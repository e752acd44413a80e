"""IncManager's data between the dataclasses of ``p4gen.manager.api`` and the messages of ``incmanager.proto``.

Two functions for each kind: ``to_…`` gives the message, ``from_…`` what it was made of. The latter raise
``ManagerError`` with ``Code.INVALID`` for messages that a client of another making got wrong.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import ValidationError

from p4gen.host.collectives.control import Collective
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.verbs import Peer
from p4gen.manager import incmanager_pb2 as pb
from p4gen.manager.api import (
    Code,
    GroupSpec,
    GroupState,
    GroupStatus,
    HostAddresses,
    HostInfo,
    LinkPort,
    ManagerError,
    Membership,
    RankChannel,
    RankConfig,
    RankReport,
    Status,
    SwitchInfo,
    SwitchStatus,
)
from p4gen.spec import ProgramSpec

E = TypeVar("E", bound=Enum)
Message = Any
"""A message of ``incmanager.proto``; protobuf's messages have no types of use."""

COUNTS = ("invocations", "data_bytes", "sent", "resent", "timeouts", "naks", "cnps")
"""The fields of ``RankReport`` that count."""
_TAKEN = ("contexts", "contexts_total", "slots", "slots_total", "entries")


def _number(kind: Any, value: Enum) -> int:
    return int(kind.Value(value.name))


def _named(kind: Any, names: type[E], number: int, default: E | None = None) -> E:
    """The value of an enumeration for protobuf's number; ``default`` for the one that says nothing."""
    if number == 0 and default is not None:
        return default
    name = kind.Name(number) if number in kind.values() else ""
    if name not in names.__members__:
        raise ManagerError(Code.INVALID, f"{kind.DESCRIPTOR.name}: {number} stands for nothing known")
    return names[name]


@lru_cache(maxsize=256)
def _spec_json(spec: ProgramSpec) -> str:
    return spec.model_dump_json()


@lru_cache(maxsize=256)
def _spec(text: str) -> ProgramSpec:
    try:
        return ProgramSpec.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "spec_json"
        raise ManagerError(Code.INVALID, f"the program's spec is wrong: {where}: {first['msg']}") from None


# --- who is there ---


def to_switch(switch: SwitchInfo) -> Message:
    """A switch that registers."""
    message = pb.SwitchInfo(
        name=switch.name,
        address=switch.address,
        spec_json=_spec_json(switch.spec),
        p4info=switch.p4info,
        device_config=switch.device_config,
        device_id=switch.device_id,
        cpu_port=switch.cpu_port,
    )
    for link in switch.links:
        message.links.add(port=link.port, neighbour=link.neighbour, interface=link.interface)
    return message


def from_switch(message: Message) -> SwitchInfo:
    """A switch that registers."""
    return SwitchInfo(
        message.name,
        message.address,
        _spec(message.spec_json),
        message.p4info,
        message.device_config,
        message.device_id,
        message.cpu_port,
        tuple(LinkPort(link.port, link.neighbour, link.interface) for link in message.links),
    )


def to_host(host: HostInfo) -> Message:
    """A host that registers."""
    return pb.HostInfo(name=host.name)


def from_host(message: Message) -> HostInfo:
    """A host that registers."""
    return HostInfo(message.name)


def to_addresses(addresses: HostAddresses) -> Message:
    """What a host is given."""
    return pb.HostAddresses(mac=addresses.mac, ip=addresses.ip, gateway=addresses.gateway)


def from_addresses(message: Message) -> HostAddresses:
    """What a host is given."""
    return HostAddresses(message.mac, message.ip, message.gateway)


# --- groups ---


def to_group_spec(spec: GroupSpec) -> Message:
    """InitGroup's request. Raises ``ManagerError`` for one without collectives, which means all of them here."""
    if not spec.collectives:
        raise ManagerError(Code.INVALID, f"group {spec.name} is for no collective")
    return pb.GroupSpec(
        name=spec.name,
        ranks=spec.ranks,
        root=spec.root,
        sync=_number(pb.PsnSync, spec.sync),
        collectives=sorted(_number(pb.Collective, collective) for collective in spec.collectives),
        slots=spec.slots,
    )


def from_group_spec(message: Message) -> GroupSpec:
    """InitGroup's request."""
    return GroupSpec(
        message.name,
        tuple(message.ranks),
        message.root if message.HasField("root") else None,
        _named(pb.PsnSync, PsnSync, message.sync, PsnSync.REFINED),
        frozenset(_named(pb.Collective, Collective, number) for number in message.collectives) or frozenset(Collective),
        message.slots if message.HasField("slots") else None,
    )


def to_group_status(status: GroupStatus) -> Message:
    """A group as it is."""
    message = pb.GroupStatus(
        spec=to_group_spec(status.spec),
        state=_number(pb.GroupState, status.state),
        generation=status.generation,
        reason=status.reason,
        slots=status.slots,
        contexts=status.contexts,
    )
    for name, parent in status.tree.items():
        message.tree.add(name=name, parent=parent)
    return message


def from_group_status(message: Message) -> GroupStatus:
    """A group as it is."""
    return GroupStatus(
        from_group_spec(message.spec),
        _named(pb.GroupState, GroupState, message.state),
        message.generation,
        message.reason,
        {node.name: node.parent if node.HasField("parent") else None for node in message.tree},
        dict(message.slots),
        dict(message.contexts),
    )


# --- news for hosts ---


def to_rank_config(config: RankConfig) -> Message:
    """What a rank needs to take part."""
    message = pb.RankConfig(
        group=config.group,
        generation=config.generation,
        rank=config.rank,
        size=config.size,
        addresses=to_addresses(config.addresses),
        first_psn=config.first_psn,
        slots=config.slots,
        sync=_number(pb.PsnSync, config.sync),
        spec_json=_spec_json(config.spec),
    )
    for channel in config.channels:
        collective, root = channel.key
        message.channels.add(
            collective=_number(pb.Collective, collective),
            root=root,
            qp=channel.qp,
            peer_mac=channel.peer.mac,
            peer_ip=channel.peer.ip,
            peer_qp=channel.peer.qp,
            udp_src_port=channel.peer.udp_src_port,
        )
    return message


def from_rank_config(message: Message) -> RankConfig:
    """What a rank needs to take part."""
    return RankConfig(
        message.group,
        message.generation,
        message.rank,
        message.size,
        from_addresses(message.addresses),
        tuple(
            RankChannel(
                (_named(pb.Collective, Collective, channel.collective), channel.root),
                channel.qp,
                Peer(channel.peer_mac, channel.peer_ip, channel.peer_qp, channel.udp_src_port),
            )
            for channel in message.channels
        ),
        message.first_psn,
        message.slots,
        _named(pb.PsnSync, PsnSync, message.sync),
        _spec(message.spec_json),
    )


def to_membership(news: Membership) -> Message:
    """News of a group."""
    return pb.Membership(
        group=news.group,
        state=_number(pb.GroupState, news.state),
        generation=news.generation,
        config=None if news.config is None else to_rank_config(news.config),
        reason=news.reason,
        gone=news.gone,
    )


def from_membership(message: Message) -> Membership:
    """News of a group."""
    return Membership(
        message.group,
        _named(pb.GroupState, GroupState, message.state),
        message.generation,
        from_rank_config(message.config) if message.HasField("config") else None,
        message.reason,
        message.gone,
    )


# --- status ---


def to_rank_report(report: RankReport) -> Message:
    """What a rank has counted."""
    counts = {name: getattr(report, name) for name in COUNTS}
    return pb.RankReport(group=report.group, rank=report.rank, dropped=report.dropped, **counts)


def from_rank_report(message: Message) -> RankReport:
    """What a rank has counted."""
    counts = {name: getattr(message, name) for name in COUNTS}
    return RankReport(message.group, message.rank, dropped=dict(message.dropped), **counts)


def to_switch_status(status: SwitchStatus) -> Message:
    """A switch as it is."""
    return pb.SwitchStatus(
        name=status.name,
        reachable=status.reachable,
        problem=status.problem,
        drops=status.drops,
        links_down=status.links_down,
        ticks_per_second=status.ticks_per_second,
        **{name: getattr(status, name) for name in _TAKEN},
    )


def from_switch_status(message: Message) -> SwitchStatus:
    """A switch as it is."""
    return SwitchStatus(
        message.name,
        message.reachable,
        message.problem,
        drops=dict(message.drops),
        links_down=tuple(message.links_down),
        ticks_per_second=message.ticks_per_second,
        **{name: getattr(message, name) for name in _TAKEN},
    )


def to_status(status: Status) -> Message:
    """The message of the manager's whole status."""
    return pb.Status(
        time=status.time,
        groups=[to_group_status(group) for group in status.groups],
        switches=[to_switch_status(switch) for switch in status.switches],
        ranks=[to_rank_report(rank) for rank in status.ranks],
    )


def from_status(message: Message) -> Status:
    """The manager's whole status from its message."""
    return Status(
        message.time,
        tuple(from_group_status(group) for group in message.groups),
        tuple(from_switch_status(switch) for switch in message.switches),
        tuple(from_rank_report(rank) for rank in message.ranks),
    )
