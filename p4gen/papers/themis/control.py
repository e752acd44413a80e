"""The table entries of Themis's programs: connections, and the sets of paths that they are sprayed over.

Two switches have entries for a connection. The responder's switch (Themis-D) must get its entries before the
requester's switch (Themis-S), and lose them after it: otherwise PSNs that are sprayed in between are missing from the
PSN queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from p4gen.errors import InputError
from p4gen.groups import addresses
from p4gen.groups.connections import Tier
from p4gen.groups.family import GroupEntries
from p4gen.groups.group import GroupContext, SwitchConfig
from p4gen.model.entries import Action, CloneSession, Entry, Exact, Replica, Ternary
from p4gen.model.hashes import crc16
from p4gen.papers.themis.narrow import MADE
from p4gen.papers.themis.program import cm_session, nack_session
from p4gen.papers.themis.spec import Cm, ThemisSpec
from p4gen.rocev2 import layouts as roce

_PORT_BITS: Final = 14
"""Bits of a UDP source port that may change: dynamic ports are those from 49152 on."""
_IPV6_PADDING: Final = 4
"""Zeros that fill the last byte of what Forward hashes of an IPv6 packet: a flow label has 20 bits."""
BUCKETS: Final = 256
"""Values of the PSN's bits by which the table ``paths`` is looked up."""


@dataclass(frozen=True)
class Peer:
    """One end of a connection: IP address and QP."""

    ip: int
    qp: int


@dataclass(frozen=True)
class Connection:
    """A connection between hosts of two racks. Its requests are sprayed, its NACKs filtered."""

    requester: Peer
    responder: Peer
    answer_port: int = 49152
    """The UDP source port of the responder's answers."""
    answer_tos: int = 0
    """DSCP and ECN of the responder's answers."""
    writes_only: bool = False
    """Whether only WRITEs are sprayed: not all NICs take other requests out of order."""


@dataclass(frozen=True)
class PathSet:
    """The paths of connections, counted from the one that ECMP gives a connection.

    ``weights`` has one for each path: paths of weight 0 are not used.

    >>> PathSet(0, (1, 1, 1)).turns
    (0, 1, 2)
    >>> PathSet(0, (3, 1)).turns
    (0, 0, 1, 0)
    """

    number: int
    weights: tuple[int, ...]

    @classmethod
    def equal(cls, number: int, paths: int) -> PathSet:
        """All of ``paths`` paths alike (Eq. 1)."""
        return cls(number, (1,) * paths)

    @property
    def turns(self) -> tuple[int, ...]:
        """The paths of consecutive PSNs, until they repeat; those of one path lie apart as far as they can."""
        total, due, turns = sum(self.weights), [0] * len(self.weights), []
        for _ in range(total):
            due = [so_far + weight for so_far, weight in zip(due, self.weights, strict=True)]
            best = max(range(len(due)), key=lambda path: due[path])
            due[best] -= total
            turns.append(best)
        return tuple(turns)


def path_set_entries(spec: ThemisSpec, paths: PathSet) -> tuple[Entry, ...]:
    """A path set's entries, the same for both switches. Raises ``InputError`` for one that the program cannot take."""
    used, total = len(paths.weights), sum(paths.weights)
    if not 1 <= used <= spec.paths:
        raise InputError(f"path set {paths.number} has {used} paths; the program sprays over 1 to {spec.paths}")
    if min(paths.weights) < 0 or not 1 <= total <= BUCKETS:
        raise InputError(f"path set {paths.number}: weights are from 0 on, and add up to 1 to {BUCKETS}")
    if not 0 <= paths.number < spec.path_sets:
        raise InputError(f"path set {paths.number}: the program has {spec.path_sets}, numbered from 0")
    # With a number of turns that divides 256, a PSN's low bits choose; else there is an entry for each of 256 PSNs.
    turns = paths.turns
    buckets = total if BUCKETS % total == 0 else BUCKETS
    order = [turns[psn % total] for psn in range(buckets)]
    return tuple(
        Entry(
            "paths",
            {"path_set": Exact(paths.number)} | ({"psn": Ternary(psn, buckets - 1)} if buckets > 1 else {}),
            Action(
                "set_path",
                {"path": path}
                | ({"stride": _stride(order, psn) << (8 if spec.narrow else 0)} if spec.by_class else {}),
            ),
            priority=1,
        )
        for psn, path in enumerate(order)
    )


def _stride(order: Sequence[int], psn: int) -> int:
    """How many PSNs ago the path of ``psn`` was taken last, where the order of paths repeats.

    >>> [_stride((0, 0, 1, 0), psn) for psn in range(4)]
    [1, 1, 4, 2]
    """
    return next(back for back in range(1, len(order) + 1) if order[psn - back] == order[psn])


def spray_entry(spec: ThemisSpec, connection: Connection, path_set: int) -> Entry:
    """Themis-S: the connection's requests are sprayed."""
    arguments = {"path_set": path_set, "only_writes": int(connection.writes_only)}
    return Entry("data_flows", _toward(spec, connection.responder), Action("spray", arguments))


def filter_entries(
    spec: ThemisSpec, connection: Connection, path_set: int, *, index: int, epoch: int, port: int
) -> tuple[Entry, Entry]:
    """Themis-D: the connection's PSNs are recorded, and its NACKs filtered.

    ``index`` is the index of its words of state. If another connection used it before, ``epoch`` (1 to 255) must differ
    from that connection's. ``port`` leads to the responder.
    """
    state = {"connection": index, "epoch": epoch, "path_set": path_set}
    data = {
        **state,
        "only_writes": int(connection.writes_only),
        "source": addresses.address(spec, connection.requester.ip),
        "requester": connection.requester.qp,
        "answer_port": connection.answer_port,
        "answer_tos": connection.answer_tos,
    }
    answers = {**state, "source": addresses.address(spec, connection.responder.ip), "port": port}
    return (
        Entry("answer_flows", _toward(spec, connection.requester), Action("answer", answers)),
        Entry("data_flows", _toward(spec, connection.responder), Action("deliver", data)),
    )


@lru_cache(maxsize=64)
def path_map(tiers: tuple[Tier, ...], *, ipv6: bool = False) -> tuple[int, ...]:
    """The PathMap: for each path, a change of the UDP source port that changes the tiers' choices by the path's bits.

    The first tier has the lowest bits. Path 0 has no change, and ports from 49152 on stay in that range. Packets of
    IPv4 and of IPv6 have other maps.

    Raises ``InputError`` with the name of the tier whose bits of the hash depend on those of the tiers before it.
    """
    for count, tier in enumerate(tiers, start=1):
        reached = {_path_of(change, tiers[:count]) for change in _changes(ipv6)}
        if len(reached) < 1 << sum(one.bits for one in tiers[:count]):
            raise InputError(f"tier {tier.name}: its bits of the hash depend on those of the tiers before it")
    found: dict[int, int] = {}
    for delta, change in enumerate(_changes(ipv6)):
        found.setdefault(_path_of(change, tiers), delta)
    return tuple(delta for _, delta in sorted(found.items()))


@lru_cache(maxsize=2)
def _changes(ipv6: bool) -> tuple[int, ...]:
    """For each change of the UDP source port, the change of the hash. CRC-16 is linear over GF(2): it is the hash of
    the change, whatever the other bytes are."""
    behind = 16 + (_IPV6_PADDING if ipv6 else 0)  # the other port follows
    return tuple(crc16((delta << behind).to_bytes(5)) for delta in range(1 << _PORT_BITS))


def _path_of(change: int, tiers: Sequence[Tier]) -> int:
    """The path, counted from the base, that a change of the hash leads to."""
    path = bits = 0
    for tier in tiers:
        path |= (change >> tier.shift & (1 << tier.bits) - 1) << bits
        bits += tier.bits
    return path


def path_map_entries(spec: ThemisSpec, path_set: int, deltas: Sequence[int]) -> tuple[Entry, ...]:
    """The entries of a PathMap, for Themis-S and for Themis-D, as far as the program has them."""
    tables = (*(["path_map"] if spec.sprays else []), *(["restored_ports"] if spec.filters else []))
    return tuple(
        Entry(table, {"path_set": Exact(path_set), "path": Exact(path)}, Action("change_port", {"delta": delta}))
        for table in tables
        for path, delta in enumerate(deltas)
    )


def clone_sessions(spec: ThemisSpec) -> tuple[CloneSession, ...]:
    """The clone sessions of a program: of NACKs that it makes, whose port does not matter, and of copies for the CPU
    port."""
    nacks = (nack_clones(spec),) if spec.filters else ()
    copies = (CloneSession(cm_session(spec), (Replica(spec.architecture.cpu_port),)),) if spec.cm is Cm.COPY else ()
    return nacks + copies


def nack_clones(spec: ThemisSpec) -> CloneSession:
    """The clone session of NACKs that a program makes. On a Tofino they leave by a port that recirculates, and are cut
    behind the BTH of a request with a tag."""
    if not spec.narrow:
        return CloneSession(nack_session(spec), (Replica(0),))
    kept = sum(header.size for header in (MADE, roce.ETHERNET, roce.VLAN, roce.IPV4, roce.UDP, roce.BTH))
    return CloneSession(nack_session(spec), (Replica(spec.architecture.recirculation_port),), kept)


def cm_entries(spec: ThemisSpec, hosts: Mapping[int, int]) -> tuple[Entry, ...]:
    """The RDMA CM messages of ``hosts``, IP addresses by port, are copied; those under other addresses are not."""
    if spec.cm is not Cm.COPY:
        return ()
    source = "remote" if spec.roce_ipv6 else "hdr.ipv4.src_addr"
    return tuple(
        Entry("cm_sources", {"port": Exact(port), source: Exact(addresses.address(spec, ip))}, Action("copy"))
        for port, ip in sorted(hosts.items())
    )


def _toward(spec: ThemisSpec, peer: Peer) -> Mapping[str, Exact]:
    return {**addresses.at(spec, peer.ip), "hdr.bth.dest_qp": Exact(peer.qp)}


def _configuration(spec: ThemisSpec, _groups: Sequence[GroupContext], gateways: Mapping[int, int]) -> SwitchConfig:
    return SwitchConfig(tuple(addresses.neighbours(gateways)), (), clone_sessions(spec))


def _problems(_spec: ThemisSpec, _group: GroupContext) -> Iterator[str]:
    yield "Themis's programs serve no groups"


FACET: GroupEntries[ThemisSpec] = GroupEntries(
    configuration=_configuration, last_edge_id=lambda _: 0, problems=_problems
)
