"""Connections between the hosts of a running lab: queue pairs at both ends, registered with the manager."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from typing_extensions import override

from p4gen.errors import InputError, P4genError
from p4gen.host.collectives.alltoall import AllToAllConfig
from p4gen.host.collectives.plan import Connection
from p4gen.host.collectives.ring import RingConfig
from p4gen.host.transport.clock import MS
from p4gen.host.transport.verbs import Peer, QpConfig, Recovery
from p4gen.labs.calls import ALLTOALL, CallOrder
from p4gen.labs.job import JOIN_S
from p4gen.labs.nodes import Nodes, answers_of_all
from p4gen.labs.parties import Parties, Party, settled
from p4gen.manager.api import ConnectionSpec, ConnectionState, ConnectionStatus, GroupStatus, ManagerError, Status
from p4gen.plan.placement.placer import switch_of
from p4gen.records import to_plain
from p4gen.switch import targets

MTU: Final = 1024
_OUTSTANDING: Final = {targets.EMBEDDED: 64, targets.BMV2: 8}
"""Packets that a connection may have outstanding."""
_ACK_EVERY: Final = 4
_RNR_TIMER: Final = 14
"""1.28 ms: ranks do not begin a call at exactly the same time."""
_FIRST_QP: Final = 0x100
_PORTS: Final = range(0xC000, 0x10000)
_AT_ONCE: Final = 8
"""Requests to the manager at the same time."""
_SETTLE_S: Final = 0.3
"""Seconds without a change after which connections count as settled; the manager waits between the steps of one."""
_Ends = tuple[Connection, Connection]


class Connections(Parties):
    """The connections of ``lab``'s hosts: a party has an AlltoAll, or a ring. ``changes`` has a line for each kind of
    change."""

    def __init__(self, lab: Nodes) -> None:
        self._lab = lab
        self._parties: dict[str, Party] = {}
        self._spraying = lab.job.wanted.spray
        self._chance = random.Random(f"{lab.job.wanted.seed} connections")  # noqa: S311 - to be repeatable
        self._qps: Counter[str] = Counter()

    @override
    def check_run(self) -> None:
        """Calls go on without a manager."""

    @override
    def of(self, ranks: Sequence[str], call: CallOrder, named: GroupStatus | None = None) -> Party:
        self._lab.check_hosts(ranks)
        if len(set(ranks)) != len(ranks):
            raise InputError("a host can be only one rank")
        kind = call.collective if call.collective == ALLTOALL else "ring"
        name = kind if tuple(ranks) == self._lab.topology.rank_hosts else f"{kind} {' '.join(ranks)}"
        if name not in self._parties:
            if self._lab.without_manager:
                raise InputError("the manager is dead, and new connections need it: restart manager")
            self._parties[name] = self._open(name, tuple(ranks), ring=kind == "ring")
        return self._parties[name]

    @override
    def give_up(self, party: Party) -> list[str]:
        name = party.name
        try:
            self.close(party)
        except P4genError as error:
            return [f"the connections of {name} cannot be used any more, and are not all released: {error.reason}"]
        return [f"the connections of {name} are closed: their ends are out of step; the next run creates new ones"]

    def close(self, party: Party) -> None:
        """Destroy a party's queue pairs, and release its connections."""
        self._parties.pop(party.name, None)
        try:
            answers_of_all(self._lab, party.ranks, "leave", JOIN_S, group=party.name)
        finally:
            self._at_once(self._lab.manager.release_connection, party.numbers)

    def close_all(self) -> None:
        """Close all parties. Raises ``P4genError`` at the first one that cannot be closed."""
        for party in list(self._parties.values()):
            self.close(party)

    def spray(self, *, spray: bool) -> list[ConnectionStatus]:
        """Have all connections sprayed, also those that are created later; or take them back to ECMP."""
        self._spraying = spray
        numbers = [number for party in self._parties.values() for number in party.numbers]
        return self._spray(numbers)

    def _spray(self, numbers: Iterable[int]) -> list[ConnectionStatus]:
        manager = self._lab.manager
        return self._at_once(lambda number: manager.spray_connection(number, spray=self._spraying), numbers)

    @override
    def states(self) -> Sequence[ConnectionStatus]:
        return self._lab.manager.connections()

    @override
    def changes(self, before: Sequence[ConnectionStatus], noticed: Callable[[Status], bool]) -> list[str]:
        if not before:
            return []
        earlier = {status.number: (status.state, status.generation) for status in before}
        kinds: dict[str, list[int]] = {}
        for status in settled(self._lab, noticed, self._lab.manager.connections, _is_changing, _SETTLE_S):
            if earlier.get(status.number) != (status.state, status.generation):
                over = f" over {' '.join(status.paths)}" if status.state is ConnectionState.SPRAYED else ""
                why = f": {status.reason}" if status.reason else ""
                kinds.setdefault(f"{status.state}{over}, generation {status.generation}{why}", []).append(status.number)
        return [f"{len(numbers)} connections are {kind}" for kind, numbers in kinds.items()]

    # --- new connections ---

    def _open(self, name: str, ranks: tuple[str, ...], *, ring: bool) -> Party:
        count = len(ranks)
        wanted: list[ConnectionSpec] = []
        configs: list[dict[str, Any]] = []
        if ring:
            around = [self._connect(ranks[i], ranks[(i + 1) % count], wanted, both=False) for i in range(count)]
            star = [self._connect(ranks[0], other, [], both=False) for other in ranks[1:]]
            for rank in range(count):
                mine = {to: near for to, (near, _) in enumerate(star, 1)} if rank == 0 else {0: star[rank - 1][1]}
                config = RingConfig(rank, count, around[(rank - 1) % count][1], around[rank][0], mine)
                configs.append({"ring": to_plain(config)})
        else:
            ends = {
                (a, b): self._connect(ranks[a], ranks[b], wanted, both=True)
                for a in range(count)
                for b in range(a + 1, count)
            }
            for rank in range(count):
                peers = {b: near for (a, b), (near, _) in ends.items() if a == rank}
                peers |= {a: far for (a, b), (_, far) in ends.items() if b == rank}
                configs.append({"alltoall": to_plain(AllToAllConfig(rank, count, peers))})
        answers_of_all(self._lab, ranks, "enter", JOIN_S, configs, group=name)
        found = self._at_once(self._register, wanted)
        numbers = tuple(each for each in found if isinstance(each, int))
        if not self._spraying:
            self._spray(numbers)
        refused = tuple(each for each in found if isinstance(each, str))
        return Party(name, ranks, f" over {name}, {len(numbers)} connections", numbers=numbers, refused=refused)

    def _register(self, spec: ConnectionSpec) -> int | str:
        """The number of a connection, or why it is not registered: then it works, but is not sprayed."""
        try:
            return self._lab.manager.register_connection(spec).number
        except ManagerError as error:
            return f"{spec.source} to {spec.destination}: {error.reason}"

    def _connect(self, a: str, b: str, wanted: list[ConnectionSpec], *, both: bool) -> _Ends:
        """A connection; ``wanted`` gets its directions in which data goes, unless there is only one path, or a guest's
        device is an end, which goes back N."""
        psn = self._chance.randrange(1 << 24)
        (qp_a, port_a), (qp_b, port_b) = (self._qp(host) for host in (a, b))
        guests = {a, b} & self._lab.job.machines.keys()
        if switch_of(self._lab.topology, a) != switch_of(self._lab.topology, b) and not guests:
            wanted.append(ConnectionSpec(a, b, qp_a, qp_b, MTU, port_b))
            if both:
                wanted.append(ConnectionSpec(b, a, qp_b, qp_a, MTU, port_a))
        return self._end(a, qp_a, port_a, b, qp_b, psn), self._end(b, qp_b, port_b, a, qp_a, psn)

    def _qp(self, host: str) -> tuple[int, int]:
        number, own = self._qps[host], self._lab.hosts[host].hello.result().get("queue_pairs")
        self._qps[host] += 1
        return own[number % len(own)] if own else _FIRST_QP + number, self._chance.choice(_PORTS)

    def _end(self, host: str, qp: int, port: int, far: str, far_qp: int, psn: int) -> Connection:
        job = self._lab.job
        gateway, address = self._lab.hosts[host].hello.result()["gateway"], self._lab.hosts[far].hello.result()["ip"]
        config = QpConfig(
            mtu=MTU,
            initial_psn=psn,
            recovery=Recovery.GO_BACK_N if {host, far} & job.machines.keys() else Recovery.SELECTIVE_REPEAT,
            max_outstanding=_OUTSTANDING[job.pace],
            ack_every=_ACK_EVERY,
            timeout_ps=int(job.timeout_ms * MS),
            adaptive=True,
            retry_count=None,
            rnr_retry=None,
            rnr_timer=_RNR_TIMER,
        )
        return Connection(qp, Peer(gateway, address, far_qp, port), config)

    @staticmethod
    def _at_once(ask: Any, values: Iterable[Any]) -> list[Any]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(ask, values))


def _is_changing(status: ConnectionStatus) -> bool:
    return status.state is ConnectionState.CHANGING
