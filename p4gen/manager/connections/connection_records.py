"""The records of connections: each one's state and place. ``Connections`` decides what switches hold of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from p4gen.manager.api import Code, ConnectionSpec, ConnectionState, ConnectionStatus, ManagerError
from p4gen.manager.store.ledger import Ledger
from p4gen.manager.store.store import StoredConnection
from p4gen.manager.switches.switches import SwitchThread
from p4gen.manager.switches.wanted import HeldConnection, HeldConnections
from p4gen.plan.placement.connections import PlacedConnection, check_connection, place_connection, same_place
from p4gen.plan.placement.pools import Held, Kind

LOGGER = logging.getLogger("p4gen.manager")


@dataclass(eq=False)
class Record(StoredConnection):
    """A connection, with what requests and repairs know about it."""

    busy: bool = False
    """Whether a request or a change of paths is working on it."""
    lost: bool = False
    """Whether a switch has another program now, so that the connection needs another place."""
    tried: int = -1
    """The ledger's version at the last attempt to spray it."""
    failed: bool = False
    """Whether a switch failed at that attempt, so that it is repeated after ``AGAIN`` seconds."""

    @property
    def ends(self) -> tuple[str, ...]:
        """The switches of its ends."""
        return () if self.placed is None else (self.placed.source_switch, self.placed.destination_switch)


class ConnectionRecords:
    """All connections, by number (``all``). Callers hold the ledger's lock."""

    def __init__(self, ledger: Ledger, threads: Mapping[str, SwitchThread]) -> None:
        self._ledger = ledger
        self._threads = threads
        self.all: dict[int, Record] = {}
        self._next = ledger.next_connection
        self._load()

    def _load(self) -> None:
        """Load the store. Operations that were not completed are undone or, if paths were changing, tried again."""
        store = self._ledger.store
        with store.transaction():
            for row in self._ledger.connections:
                if row.state in (ConnectionState.REGISTERING, ConnectionState.RELEASING):
                    store.drop_connection(row.number)
                    continue
                record = Record(**vars(row), lost=self._ledger.moved)
                if record.state is ConnectionState.CHANGING:
                    record.state, record.reason = ConnectionState.ECMP, "the manager was restarted"
                if record.lost:
                    record.state, record.placed = ConnectionState.ECMP, None
                store.put_connection(record)
                self.all[row.number] = record

    def statuses(self) -> list[ConnectionStatus]:
        """All connections, in order of number."""
        return [self.status(record) for _, record in sorted(self.all.items())]

    def held_by(self, switch: str) -> HeldConnections:
        """The connections that a switch is to hold."""
        found = {}
        for record in self.all.values():
            sprayed = record.state is ConnectionState.SPRAYED
            if record.placed is not None and (
                record.placed.destination_switch == switch or (sprayed and record.placed.source_switch == switch)
            ):
                found[record.number] = HeldConnection(record.placed, filtered=sprayed)
        return found

    def new(self, spec: ConnectionSpec) -> tuple[Record, PlacedConnection]:
        """A new connection, busy for the caller, and its place. Raises ``ManagerError``."""
        store = self._ledger.store
        self.check(spec)
        self._check_new(spec)
        self._ledger.quotas.check_connection(spec.source, [other.spec.source for other in self.all.values()])
        record = Record(self._next, spec, ConnectionState.REGISTERING, busy=True)
        placed = self.place(record, None)
        with store.transaction():
            store.put_meta("next_connection", self._next + 1)
            self.take(record, ConnectionState.REGISTERING, placed)
        self._next += 1
        self.all[record.number] = record
        return record, placed

    def moves(self, record: Record) -> bool:
        """Whether a connection that is sprayed, or is about to be, needs other paths: one of a host that has another
        NIC now may have to go over to ECMP."""
        if record.state not in (ConnectionState.SPRAYED, ConnectionState.CHANGING) or record.placed is None:
            return False
        fabric, ends = self._ledger.fabric, {record.spec.source, record.spec.destination}
        return record.lost or not ends <= fabric.out_of_order or not same_place(record.placed, fabric.view)

    def get(self, number: int) -> Record:
        """A connection. Raises ``ManagerError``."""
        if number not in self.all:
            raise ManagerError(Code.NOT_FOUND, f"there is no connection {number}")
        return self.all[number]

    def check(self, spec: ConnectionSpec) -> None:
        """Raises ``ManagerError`` for a connection that no program can serve."""
        fabric = self._ledger.fabric
        reported = {name: [link.neighbour for link in info.links] for name, info in fabric.switches.items()}
        check_connection(spec, fabric.view, reported, fabric.out_of_order)

    def place(self, record: Record, keep: PlacedConnection | None) -> PlacedConnection:
        """The place of a connection in the fabric as it is now. ``keep`` is its present place. Raises
        ``ManagerError``."""
        others = [r.placed for r in self.all.values() if r.placed is not None and r is not record]
        ledger = self._ledger
        return place_connection(record.number, record.spec, ledger.fabric.view, others, ledger.histories, keep)

    def take(self, record: Record, state: ConnectionState, placed: PlacedConnection, reason: str = "") -> None:
        """Record that a connection is about to get a place, whose epoch then counts as used."""
        ledger, switch = self._ledger, placed.destination_switch
        held = Held(switch, Kind.CONNECTION, 0, placed.index, placed.index + 1, placed.epoch)
        record.placed = placed
        self.put(record, state, reason)
        ledger.histories[switch].add(held)
        seen = ledger.histories[switch].seen(Kind.CONNECTION, 0, placed.epoch)
        ledger.store.put_epochs(switch, Kind.CONNECTION, 0, placed.epoch, seen)

    def put(self, record: Record, state: ConnectionState, reason: str = "") -> None:
        """Record the state of a connection, inside a transaction."""
        if (record.state, record.reason) != (state, reason) and reason:
            LOGGER.info("connection %d is not sprayed: %s", record.number, "; ".join(reason.splitlines()))
        record.state, record.reason = state, reason
        self._ledger.store.put_connection(record)

    def drop(self, record: Record) -> None:
        """Forget a connection, here and in the store, inside a transaction of its own."""
        with self._ledger.store.transaction():
            self._ledger.store.drop_connection(record.number)
        self.all.pop(record.number, None)
        for thread in self._threads.values():
            thread.forget(record.number)
        self._ledger.version += 1

    def status(self, record: Record) -> ConnectionStatus:
        """The status of a connection, with the counters that switches reported last."""
        placed = record.placed
        threads = [self._threads[end] for end in record.ends if end in self._threads]
        counts = tuple(count for thread in threads for count in thread.counted(record.number))
        status = ConnectionStatus(
            record.number, record.spec, record.state, record.generation, record.reason, counts=counts
        )
        if placed is None:
            return status
        links = self._ledger.fabric.view.topology.ports.get(placed.source_switch, ())
        paths = tuple(links[port].other(placed.source_switch) for port in placed.ports if port < len(links))
        return replace(
            status,
            source_switch=placed.source_switch,
            destination_switch=placed.destination_switch,
            paths=paths,
            path_set=placed.path_set,
            index=placed.index,
            epoch=placed.epoch,
        )

    def _check_new(self, spec: ConnectionSpec) -> None:
        for record in self.all.values():
            other = record.spec
            for what, mine, theirs in (
                ("requester", (spec.source, spec.source_qp), (other.source, other.source_qp)),
                ("responder", (spec.destination, spec.destination_qp), (other.destination, other.destination_qp)),
            ):
                if mine == theirs:
                    host, qp = mine
                    raise ManagerError(
                        Code.EXISTS, f"QP {qp} of {host} is already the {what} of connection {record.number}"
                    )
