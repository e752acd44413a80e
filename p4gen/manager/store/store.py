"""The manager's persistent state: switches, hosts, link states, groups with their trees, resources, used epochs
(SQLite).

One file, in WAL mode, for one manager at a time. Resource rows repeat what the groups' contexts say; their UNIQUE
constraints are a second safeguard against assigning anything to two groups.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from p4gen.errors import InputError
from p4gen.host.transport.nicinfo import OUR_NIC
from p4gen.manager.api import (
    Code,
    ConnectionSpec,
    ConnectionState,
    GroupSpec,
    GroupState,
    HostInfo,
    JobSpec,
    ManagerError,
    NicInfo,
    SwitchInfo,
)
from p4gen.manager.connections.conversations import Conversation
from p4gen.manager.store.encoding import decode, encode
from p4gen.manager.store.schema import ADDED, APPLICATION, SCHEMA, TABLES
from p4gen.plan.placement.connections import PlacedConnection
from p4gen.plan.placement.numbers import HOST_QP, Ring, ring_in_a_row
from p4gen.plan.placement.placed import PlacedGroup, PlacedTrees
from p4gen.plan.placement.pools import History, Kind, held_by
from p4gen.plan.placement.spans import Spans
from p4gen.plan.placement.tree import IncTree


class StoreError(ManagerError):
    """The file cannot be read or written."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.REFUSED, message)


class ClosedError(StoreError):
    """The manager has ended: pending changes are not written."""


@dataclass(frozen=True)
class StoredRing:
    """The ring of hosts of a group that may be without switches."""

    generation: int | None = None
    """The generation whose calls run on the ring; None if switches carry them."""
    ends: Ring | None = None
    """The numbers of its queue pairs."""
    agreed: int | None = None
    """The call with which all ranks of that generation begin."""
    home: IncTree | None = None
    """The tree whose switches the group gets by leases."""


@dataclass
class StoredGroup:
    """A group as the store has it."""

    spec: GroupSpec
    state: GroupState
    generation: int
    last: int
    """The newest generation that has been tried."""
    reason: str = ""
    placements: dict[int, PlacedTrees] = field(default_factory=dict)
    agreed: dict[int, int] = field(default_factory=dict)
    """By generation: the call with which all ranks begin."""
    ring: StoredRing = StoredRing()


@dataclass
class StoredJob:
    """A job as the store has it, and the manager in memory."""

    spec: JobSpec
    hosts: tuple[str, ...]
    """In order of its ranks."""
    state: GroupState = GroupState.INSTALLING
    """``ACTIVE`` when all of its groups have been installed, ``REMOVING`` when it is to end."""


@dataclass
class StoredConnection:
    """A connection as the store has it. ``placed`` is what it holds on its switches, or is about to hold."""

    number: int
    spec: ConnectionSpec
    state: ConnectionState
    generation: int = 1
    reason: str = ""
    spray: bool = True
    """Whether users want it to be sprayed."""
    placed: PlacedConnection | None = None


@dataclass
class Stored:
    """The whole contents of a store, as ``load`` returns it."""

    switches: dict[str, tuple[int, SwitchInfo]]
    hosts: dict[str, int]
    out_of_order: set[str]
    """Hosts whose NICs take packets out of order."""
    nics: dict[str, NicInfo]
    """The NICs of hosts whose NIC is not p4gen's own."""
    ports_down: set[tuple[str, int]]
    cordoned: set[str]
    groups: dict[str, StoredGroup]
    histories: dict[str, History]
    next_tree: int
    next_qp: int
    jobs: list[StoredJob]
    connections: list[StoredConnection]
    next_connection: int
    handshakes: list[tuple[Conversation, tuple[int, ...]]]
    """Connections that hosts have set up, with the numbers of their directions."""
    topology: int | None
    """A digest of the given topology; 0 if none was given."""


class Store:
    """The store's file. Use it from one thread at a time. Call every method but ``load`` inside ``transaction``.

    Raises ``InputError`` for a file that is something else, damaged, of another version, or in use.
    """

    def __init__(self, path: Path | str = ":memory:") -> None:
        self.path = str(path)
        self._closed = False
        db = None
        try:
            db = sqlite3.connect(self.path, timeout=0.2, isolation_level=None, check_same_thread=False)
            self._db = db
            self._open()
        except sqlite3.Error as error:
            if db is not None:
                db.close()
            raise InputError(f"{self.path}: {_cause(error)}") from error
        except InputError:
            self._db.close()
            raise

    def _open(self) -> None:
        db = self._db
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        empty = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not empty and application != APPLICATION:
            raise InputError(f"{self.path}: an SQLite file, but not one of p4gen's manager")
        if not empty and version not in range(1, SCHEMA + 1):
            raise InputError(f"{self.path}: its schema is {version}, this p4gen's is {SCHEMA}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        if empty:
            db.executescript(
                f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA}; "
                f"{TABLES} {''.join(ADDED.values())} COMMIT;"
            )
        elif version < SCHEMA:
            added = "".join(tables for schema, tables in ADDED.items() if schema > version)
            db.executescript(f"BEGIN IMMEDIATE; PRAGMA user_version = {SCHEMA}; {added} COMMIT;")
        if not empty:
            db.execute("BEGIN IMMEDIATE")  # takes the exclusive lock
            db.execute("COMMIT")
            damage = [row[0] for row in db.execute("PRAGMA quick_check")]
            if damage != ["ok"]:
                raise InputError(f"{self.path}: damaged: {damage[0]}")

    def close(self) -> None:
        """Close the file; later transactions raise ``ClosedError``."""
        self._closed = True
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Writes everything that the block writes, or nothing. Raises ``StoreError``, and ``ClosedError`` after
        ``close``."""
        if self._closed:
            raise ClosedError(f"{self.path}: the manager has ended")
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: cannot be written: {error}") from error

    def put_meta(self, key: str, value: int) -> None:
        """Store a number of the manager."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    # --- registration ---

    def put_switch(self, number: int, info: SwitchInfo) -> None:
        """Store a switch with its number."""
        text = json.dumps(encode(info))
        self._db.execute(
            "INSERT INTO switches VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET info = excluded.info",
            (info.name, number, text),
        )

    def drop_switch(self, name: str) -> None:
        """Remove a switch by its name."""
        self._db.execute("DELETE FROM switches WHERE name = ?", (name,))

    def drop_nodes(self) -> None:
        """Remove all switches and hosts, and the state of their links."""
        for table in ("switches", "hosts", "ports_down", "cordoned"):
            self._db.execute(f"DELETE FROM {table}")  # noqa: S608

    def put_host(self, host: HostInfo, number: int) -> None:
        """Store a host with its number, new or with another NIC."""
        self._db.execute("INSERT OR IGNORE INTO hosts VALUES (?, ?)", (host.name, number))
        self._db.execute("DELETE FROM out_of_order WHERE host = ?", (host.name,))
        if host.may_be_sprayed:
            self._db.execute("INSERT INTO out_of_order VALUES (?)", (host.name,))
        self._db.execute("DELETE FROM nics WHERE host = ?", (host.name,))
        if host.nic != OUR_NIC:
            self._db.execute("INSERT INTO nics VALUES (?, ?)", (host.name, json.dumps(encode(host.nic))))

    def put_ports_down(self, ports: Iterable[tuple[str, int]]) -> None:
        """Store all ports whose link is down."""
        self._db.execute("DELETE FROM ports_down")
        self._db.executemany("INSERT INTO ports_down VALUES (?, ?)", ports)

    def put_cordoned(self, node: str, *, on: bool) -> None:
        """Store that a node is cordoned, or is so no longer."""
        change = "INSERT OR IGNORE INTO cordoned VALUES (?)" if on else "DELETE FROM cordoned WHERE node = ?"
        self._db.execute(change, (node,))

    # --- groups ---

    def put_group(self, group: StoredGroup) -> None:
        """Store a group's row, new or changed."""
        values = (group.spec.name, json.dumps(encode(group.spec)), group.state, group.generation, group.last)
        self._db.execute(
            "INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET spec = excluded.spec, "
            "state = excluded.state, generation = excluded.generation, last = excluded.last, reason = excluded.reason",
            (*values, group.reason),
        )

    def drop_group(self, name: str) -> None:
        """Remove a group with its placements."""
        self._db.execute("DELETE FROM groups WHERE name = ?", (name,))

    def put_placement(self, name: str, generation: int, placed: PlacedTrees, next_tree: int, next_qp: int) -> None:
        """Store a placement with its resources, and the numbers at which the next search begins."""
        db = self._db
        texts = [(part.number, json.dumps(encode(part), separators=(",", ":"))) for part in placed.parts]
        db.execute("INSERT INTO placements VALUES (?, ?, ?, ?, NULL)", (name, generation, *texts[0]))
        for part, rate in enumerate(placed.rates):
            row = (name, generation, part, rate, *(texts[part] if part else (None, None)))
            db.execute("INSERT INTO trees VALUES (?, ?, ?, ?, ?, ?)", row)
        for key, context in placed.contexts:
            for held in held_by(key.switch, context):
                if held.kind is Kind.CONTEXT:
                    db.execute("INSERT INTO contexts VALUES (?, ?, ?, ?)", (held.switch, held.first, name, generation))
                elif held.kind is Kind.SLOT and context.block is None:
                    row = (held.switch, held.pipeline, held.first, held.end, name, generation)
                    db.execute("INSERT INTO slots VALUES (?, ?, ?, ?, ?, ?)", row)
        self.put_meta("next_tree", next_tree)
        self.put_meta("next_qp", next_qp)

    def drop_placement(self, name: str, generation: int) -> None:
        """Remove a placement with its resources."""
        self._db.execute("DELETE FROM placements WHERE name = ? AND generation = ?", (name, generation))

    def put_agreed(self, name: str, generation: int, call: int) -> None:
        """Store the call with which all ranks of a generation begin."""
        self._db.execute("UPDATE placements SET agreed = ? WHERE name = ? AND generation = ?", (call, name, generation))

    def put_ring(self, name: str, ring: StoredRing, next_qp: int | None = None) -> None:
        """Store a group's ring, and the queue pair number at which the next search begins."""
        home = None if ring.home is None else json.dumps(encode(ring.home), separators=(",", ":"))
        first = None if ring.ends is None else ring.ends[0].right
        self.drop_ring(name)
        self._db.execute("INSERT INTO rings VALUES (?, ?, ?, ?, ?)", (name, ring.generation, first, ring.agreed, home))
        if ring.ends is not None and first is not None and ring.ends != ring_in_a_row(first, len(ring.ends)):
            self._db.execute("INSERT INTO ring_ends VALUES (?, ?)", (name, json.dumps(encode(ring.ends))))
        if next_qp is not None:
            self.put_meta("next_qp", next_qp)

    def drop_ring(self, name: str) -> None:
        """Remove the ring of the group ``name`` from the file."""
        self._db.execute("DELETE FROM rings WHERE name = ?", (name,))

    # --- jobs ---

    def put_job(self, job: StoredJob) -> None:
        """Store a job, new or in another state."""
        row = (job.spec.name, json.dumps(encode(job.spec)), json.dumps(job.hosts), job.state)
        self._db.execute("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?)", row)

    def drop_job(self, name: str) -> None:
        """Remove a job by its name; its groups stay."""
        self._db.execute("DELETE FROM jobs WHERE name = ?", (name,))

    # --- connections ---

    def put_connection(self, row: StoredConnection) -> None:
        """Store a connection, new or changed. Numbers are not used twice."""
        placed = row.placed
        held = None if placed is None else json.dumps(encode(placed), separators=(",", ":"))
        at = (None, None) if placed is None else (placed.destination_switch, placed.index)
        self._db.execute(
            "INSERT INTO connections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET "
            "state = excluded.state, generation = excluded.generation, reason = excluded.reason, "
            "spray = excluded.spray, placed = excluded.placed, switch = excluded.switch, position = excluded.position",
            (row.number, json.dumps(encode(row.spec)), row.state, row.generation, row.reason, row.spray, held, *at),
        )

    def drop_connection(self, number: int) -> None:
        """Remove a connection by its number."""
        self._db.execute("DELETE FROM connections WHERE number = ?", (number,))

    def put_handshake(self, conversation: Conversation, numbers: tuple[int, ...]) -> None:
        """Store a connection that hosts have set up, new or changed, and the numbers of its registered directions; none
        while they are being registered."""
        row = (json.dumps(encode(conversation)), json.dumps(numbers))
        self._db.execute("INSERT OR REPLACE INTO handshakes VALUES (?, ?)", row)

    def drop_handshake(self, conversation: Conversation) -> None:
        """Remove a connection that hosts have set up."""
        self._db.execute("DELETE FROM handshakes WHERE conversation = ?", (json.dumps(encode(conversation)),))

    # --- epochs ---

    def put_epochs(self, switch: str, kind: Kind, pipeline: int, epoch: int, spans: Spans) -> None:
        """Store which part of a switch's state has been used with an epoch."""
        self._db.execute(
            "INSERT OR REPLACE INTO epochs VALUES (?, ?, ?, ?, ?)", (switch, kind, pipeline, epoch, str(spans))
        )

    def drop_epochs(self, switch: str) -> None:
        """Remove the epochs of a switch whose program was loaded again."""
        self._db.execute("DELETE FROM epochs WHERE switch = ?", (switch,))

    # --- all of it ---

    def load(self) -> Stored:
        """Load everything. Raises ``InputError`` when it is inconsistent."""
        try:
            return self._load()
        except (sqlite3.Error, ValueError, TypeError, LookupError) as error:
            raise InputError(f"{self.path}: damaged: {error}") from error

    def _load(self) -> Stored:
        rows = self._db.execute
        meta: dict[str, Any] = dict(rows("SELECT key, value FROM meta").fetchall())
        groups = {
            name: StoredGroup(decode(GroupSpec, json.loads(spec)), GroupState(state), *rest)
            for name, spec, state, *rest in rows("SELECT * FROM groups ORDER BY name")
        }
        for name, generation, placed, agreed in rows("SELECT name, generation, placed, agreed FROM placements"):
            groups[name].placements[generation] = PlacedTrees((decode(PlacedGroup, json.loads(placed)),))
            if agreed is not None:
                groups[name].agreed[generation] = agreed
        for name, generation, rate, placed in rows(
            "SELECT name, generation, rate, placed FROM trees ORDER BY name, generation, part"
        ):
            placements = groups[name].placements
            known, more = placements[generation], () if placed is None else (decode(PlacedGroup, json.loads(placed)),)
            placements[generation] = PlacedTrees(known.parts + more, (*known.rates, rate))
        listed = {name: decode(Ring, json.loads(ends)) for name, ends in rows("SELECT name, ends FROM ring_ends")}
        for name, generation, qp, agreed, home in rows("SELECT * FROM rings"):
            tree = None if home is None else decode(IncTree, json.loads(home))
            in_a_row = None if qp is None else ring_in_a_row(qp, len(groups[name].spec.ranks))
            groups[name].ring = StoredRing(generation, listed.get(name, in_a_row), agreed, tree)
        histories: dict[str, History] = {}
        for switch, kind, pipeline, epoch, spans in rows("SELECT * FROM epochs"):
            seen = histories.setdefault(switch, History()).seen(Kind(kind), pipeline, epoch)
            for first, end in Spans.parse(spans):
                seen.add(first, end)
        return Stored(
            {
                name: (number, decode(SwitchInfo, json.loads(info)))
                for name, number, info in rows("SELECT * FROM switches ORDER BY number")
            },
            dict(rows("SELECT name, number FROM hosts ORDER BY number").fetchall()),
            {host for (host,) in rows("SELECT host FROM out_of_order")},
            {host: decode(NicInfo, json.loads(info)) for host, info in rows("SELECT host, info FROM nics")},
            set(rows("SELECT switch, port FROM ports_down").fetchall()),
            {node for (node,) in rows("SELECT node FROM cordoned")},
            groups,
            histories,
            meta.get("next_tree", 0),
            meta.get("next_qp", HOST_QP),
            [
                StoredJob(decode(JobSpec, json.loads(spec)), tuple(json.loads(hosts)), GroupState(state))
                for spec, hosts, state in rows("SELECT spec, hosts, state FROM jobs ORDER BY name")
            ],
            [
                StoredConnection(
                    number,
                    decode(ConnectionSpec, json.loads(spec)),
                    ConnectionState(state),
                    generation,
                    reason,
                    bool(spray),
                    None if placed is None else decode(PlacedConnection, json.loads(placed)),
                )
                for number, spec, state, generation, reason, spray, placed in rows(
                    "SELECT number, spec, state, generation, reason, spray, placed FROM connections ORDER BY number"
                )
            ],
            meta.get("next_connection", 1),
            [
                (decode(Conversation, json.loads(conversation)), tuple(json.loads(numbers)))
                for conversation, numbers in rows("SELECT conversation, numbers FROM handshakes ORDER BY conversation")
            ],
            meta.get("topology"),
        )

    def counts(self) -> dict[str, int]:
        """Number of rows by table, for tests."""
        tables = (
            "groups",
            "placements",
            "contexts",
            "slots",
            "switches",
            "hosts",
            "epochs",
            "connections",
            "handshakes",
            "rings",
            "ring_ends",
            "trees",
            "out_of_order",
            "nics",
            "jobs",
            "cordoned",
        )
        return {table: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}  # noqa: S608


def _cause(error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text:
        return "another manager is using it"
    if "not a database" in text:
        return "not an SQLite file"
    return text
