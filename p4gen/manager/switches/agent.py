"""IncAgent: controls one switch for the manager (EPIC §3.2), over P4Runtime.

It configures the switch by writing differences, and relies only on what it has read back. Its knowledge of the switch
is discarded when the connection breaks and after any error; then it reads everything again.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from queue import Empty

from typing_extensions import override

from p4gen.errors import P4genError
from p4gen.groups.connections import Tally
from p4gen.groups.family import group_entries
from p4gen.groups.group import PlacedEdge, SwitchConfig
from p4gen.groups.ticks import tick
from p4gen.manager.api import Agent, AgentError, Changes, Durations, SwitchInfo
from p4gen.manager.switches.ticks import TickSender
from p4gen.model.errors import ControlError
from p4gen.p4.info.text import parse_text
from p4gen.p4rt import encoded
from p4gen.p4rt.client import Client
from p4gen.p4rt.encoded import CLONE, MULTICAST, Held, Key
from p4gen.p4rt.schema import Schema
from p4gen.p4rt.session import GoneError, RequestError
from p4gen.p4rt.status import Code
from p4gen.protos import p4runtime as pb
from p4gen.switch.address import listens
from p4gen.switch.drops import losses

LOGGER = logging.getLogger("p4gen.manager")
BATCH = 500
"""Number of updates in a write request, and of entities in a read request. A request's time limit is for that many."""
_MOST_TOLD = 5
"""Number of failures that an error lists; the others are only counted."""
_LAST = "next_hops"
"""The table whose old entries are deleted last, if there is room: until routes are changed they are still used, and
ordinary traffic must not be disturbed. In all other tables old entries are deleted first, so that no packet reaches a
context that is being reused."""
_INSERT, _MODIFY, _DELETE = pb.Update.INSERT, pb.Update.MODIFY, pb.Update.DELETE
_VERBS = {_INSERT: "insert", _MODIFY: "modify", _DELETE: "delete"}


class IncAgent(Agent):
    """``Agent`` of a switch with a P4Runtime server at ``info.address``. The constructor does not connect.

    ``apply``, ``read`` and ``restart`` connect if necessary, as the primary controller, and load the program, unless
    the cookie of the running program shows that it is the same. ``drops`` never connects: without a connection it
    reports that the switch is unreachable, because its state is unknown until the next ``apply``. Every request ends
    after ``timeout`` seconds, those that load a program after ``load_timeout``. ``lost`` is called with the switch's
    name, in another thread, when the connection breaks; ``heard``, in that thread, with the name and a packet that the
    switch has sent to its CPU port.
    """

    def __init__(
        self,
        info: SwitchInfo,
        ticks: TickSender | None = None,
        *,
        timeout: float = 10.0,
        load_timeout: float = 60.0,
        lost: Callable[[str], None] | None = None,
        heard: Callable[[str, bytes], None] | None = None,
    ) -> None:
        self.name = info.name
        self.info = info
        self._ticks = ticks
        self._timeout, self._load_timeout = timeout, load_timeout
        self._lost = lost
        self._heard = heard
        self._p4info = parse_text(info.p4info)
        self._schema = Schema(self._p4info)
        self._encoder = encoded.Encoder(self._schema)
        self._const = [table.id for table in self._schema.tables.values() if table.is_const]
        self._rank = {table.id: rank for rank, table in enumerate(self._schema.tables.values())}
        self._late = {table.id for table in self._schema.tables.values() if table.name.rpartition(".")[2] == _LAST}
        self._cookie = cookie_of(info)
        self._client: Client | None = None
        self._held: Held | None = None
        """The known configuration of the switch; None if unknown."""
        self.writes = Durations()
        """How long requests that write took."""

    # --- Agent ---

    @override
    def apply(self, wanted: SwitchConfig, *, resync: bool = False) -> Changes:
        with self._converting_errors("apply"):
            target = self._encoded(wanted)
            client = self._connected()
            if resync or self._held is None:
                self._held = self._read(client, encoded.EVERYTHING)
            held = self._held
            deleted, modified, inserted = encoded.differences(held, target)
            if not (deleted or modified or inserted):
                return Changes()
            self._held = None  # unknown until everything is verified
            for updates in self._steps(held, target, deleted, modified, inserted):
                self._write(client, updates, target)
            self._verify(client, target, deleted, [*modified, *inserted])
            self._held = target
            LOGGER.info(
                "%s: %d inserted, %d modified, %d deleted", self.name, len(inserted), len(modified), len(deleted)
            )
            return Changes(len(inserted), len(modified), len(deleted))

    @override
    def read(self) -> SwitchConfig:
        with self._converting_errors("read"):
            client = self._connected()
            held = self._held = self._read(client, encoded.EVERYTHING)
            kinds = {kind: [(k, v) for k, v in held.items() if k[0] == kind] for kind in (MULTICAST, CLONE)}
            return SwitchConfig(
                tuple(encoded.to_entry(self._schema, key, value) for key, value in held.items() if key[0] > 0),
                tuple(encoded.to_multicast_group(key, value) for key, value in kinds[MULTICAST]),
                tuple(encoded.to_clone_session(key, value) for key, value in kinds[CLONE]),
            )

    @override
    def drops(self) -> Mapping[str, int]:
        with self._converting_errors("read drop counters"):
            if self._client is None or not self._client.session.alive:
                raise GoneError(f"no connection to {self.info.address}")
            return losses(self.info.spec, self._client.counters)

    @override
    def tallies(self, tallies: Sequence[Tally]) -> Sequence[int]:
        with self._converting_errors("read the counters of connections"):
            if self._client is None or not self._client.session.alive:
                raise GoneError(f"no connection to {self.info.address}")
            cells = {(tally.counter, index) for tally in tallies for index in tally.cells}
            held = self._held or {}
            entries = [t.entry for t in tallies if t.entry is not None and self._encoder.entry(t.entry)[0] in held]
            counted = self._client.cells(cells)
            by_entry = self._client.entry_counters(entries)
            return [
                sum(counted[tally.counter, index] for index in tally.cells)
                if tally.entry is None
                else next((value for entry, value in by_entry if entry is tally.entry), 0)
                for tally in tallies
            ]

    @override
    def given_up(self) -> Mapping[int, int]:
        with self._converting_errors("read the counters of edges given up"):
            if self._client is None or not self._client.session.alive:
                raise GoneError(f"no connection to {self.info.address}")
            cells = self._client.counters(group_entries(self.info.spec).given_up)
            return {index: cell.packets for index, cell in enumerate(cells) if cell.packets}

    @override
    def set_ticks(self, edges: Sequence[PlacedEdge]) -> None:
        """Ticks pause while there is no connection."""
        if self._ticks is not None:
            interval = self._ticks.interval_of(len(edges))
            self._ticks.set(self.name, [tick(edge, interval) for edge in edges], self._send_ticks)

    @override
    def restart(self) -> None:
        with self._converting_errors("load the program"):
            client, fresh = self._connect()
            if not fresh:
                self._load(client)

    @override
    def close(self) -> None:
        if self._ticks is not None:
            self._ticks.set(self.name, (), self._send_ticks)
        self._disconnect()

    @property
    def ticks_per_second(self) -> float:
        """Number of ticks sent to the switch in about the last second."""
        return 0.0 if self._ticks is None else self._ticks.rate(self.name)

    # --- the connection ---

    def _connected(self) -> Client:
        return self._connect()[0]

    def _connect(self) -> tuple[Client, bool]:
        """The connection, and whether the program was loaded just now."""
        if self._client is not None and self._client.session.alive:
            return self._client, False
        self._disconnect()
        address = self.info.address
        if not listens(address):
            raise GoneError(f"nothing listens at {address}")
        client = Client(
            address,
            self.info.device_id,
            timeout=self._timeout,
            limit=self._timeout,
            load_limit=self._load_timeout,
            ended=self._connection_lost,
            heard=self._packet_in,
        )
        try:
            if not client.session.is_primary:
                raise AgentError(f"{self.name}: another controller is the primary of {address}")
            client.expect(self._schema)
            fresh = client.cookie() != self._cookie
            if fresh:
                self._load(client)
        except BaseException:
            client.close()
            raise
        self._client = client
        LOGGER.info("%s: connected; its program %s", self.name, "has been loaded" if fresh else "is already running")
        return client, fresh

    def _load(self, client: Client) -> None:
        self._held = None
        client.set_pipeline(self._p4info, self.info.device_config, self._cookie)
        self._held = {}

    def _disconnect(self) -> None:
        self._held = None
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connection_lost(self) -> None:
        LOGGER.warning("%s: the connection is lost", self.name)
        if self._lost is not None:
            self._lost(self.name)

    def _packet_in(self, frame: bytes) -> None:
        if self._heard is not None:
            self._heard(self.name, frame)

    @contextlib.contextmanager
    def _converting_errors(self, what: str) -> Iterator[None]:
        """Convert errors to ``AgentError``, and discard the knowledge of the switch."""
        try:
            yield
        except AgentError:
            self._held = None
            raise
        except GoneError as error:
            self._disconnect()
            raise AgentError(f"{self.name} does not answer: {_text(error)}", unreachable=True) from None
        except RequestError as error:
            self._held = None
            if error.code is Code.PERMISSION_DENIED:
                self._disconnect()  # another controller may be the primary: become primary again next time
            raise AgentError(f"{self.name}: cannot {what}: {_text(error)}") from None
        except P4genError as error:
            self._held = None
            raise AgentError(f"{self.name}: cannot {what}: {_text(error)}") from None

    # --- reading and writing ---

    def _encoded(self, wanted: SwitchConfig) -> Held:
        """The wanted configuration as the switch would hold it. Raises ``ControlError`` if it does not fit the
        program."""
        found: Held = {}
        objects = [self._encoder.entry(entry) for entry in wanted.entries]
        objects += [encoded.multicast_group(group) for group in wanted.multicast_groups if group.replicas]
        objects += [encoded.clone_session(session) for session in wanted.clone_sessions if session.replicas]
        for key, value in objects:
            if found.setdefault(key, value) != value:
                raise ControlError(f"{encoded.describe(self._schema, key)} occurs twice, with different contents")
        return found

    def _read(self, client: Client, entities: Iterable[bytes]) -> Held:
        return dict(encoded.decode(client.session.read_encoded(entities), self._const))

    def _steps(
        self, held: Held, target: Held, deleted: Sequence[Key], modified: Sequence[Key], inserted: Sequence[Key]
    ) -> Iterator[list[tuple[int, Key, bytes]]]:
        """The updates in steps that must be separate requests, because a server may reorder updates within a request.

        The first deletions make room in tables that are full. Multicast groups and sessions are created before entries
        that refer to them, and deleted after those. Within a step, tables that are looked up first lose their entries
        first and get them last.
        """
        rank, room = self._rank, self._room(held, inserted)
        gone = sorted((key for key in deleted if key[0] > 0), key=lambda key: rank[key[0]])
        late = [key for key in gone if key[0] in self._late and key[0] in room]
        early = [key for key in gone if not (key[0] in self._late and key[0] in room)]
        changed = [(_MODIFY, key) for key in modified] + [(_INSERT, key) for key in inserted]
        entries = sorted((c for c in changed if c[1][0] > 0), key=lambda c: -rank[c[1][0]])
        steps = (
            [(_DELETE, key) for key in early],
            [c for c in changed if c[1][0] < 0],
            entries,
            [(_DELETE, key) for key in late],
            [(_DELETE, key) for key in deleted if key[0] < 0],
        )
        for step in steps:
            if step:
                yield [(kind, key, b"" if kind == _DELETE else target[key]) for kind, key in step]

    def _room(self, held: Held, inserted: Sequence[Key]) -> set[int]:
        """The tables that have room for all insertions without any deletion."""
        sizes = Counter(key[0] for key in held if key[0] > 0)
        sizes.update(key[0] for key in inserted if key[0] > 0)
        tables = self._schema.tables
        return {table for table in tables if not tables[table].size or sizes[table] <= tables[table].size}

    def _write(self, client: Client, updates: Sequence[tuple[int, Key, bytes]], target: Held) -> None:
        for batch in _batches(updates):
            began = time.monotonic()
            try:
                client.session.write_encoded((kind, encoded.entity(key, value)) for kind, key, value in batch)
            except RequestError as error:
                raise self._refused(error, batch, target) from None
            finally:
                self.writes = self.writes.plus(time.monotonic() - began)

    def _refused(self, error: RequestError, batch: Sequence[tuple[int, Key, bytes]], target: Held) -> RequestError:
        """The error, with each failing update's table and match instead of its index."""
        if not error.failures:
            return error
        wanted = Counter(key[0] for key in target)
        lines = []
        for number, code, message in error.failures:
            kind, key, _ = batch[number]
            room = self._schema.tables[key[0]].size if key[0] > 0 else 0
            # BMv2 does not report why it cannot add an entry.
            more = (
                f" (it has room for {room} entries, {wanted[key[0]]} are wanted)" if 0 < room < wanted[key[0]] else ""
            )
            lines.append(f"{_VERBS[kind]} {encoded.describe(self._schema, key)}: {code.name}: {message}{more}")
        return RequestError(*lines, code=error.code, failures=error.failures)

    def _verify(self, client: Client, target: Held, deleted: Sequence[Key], written: Sequence[Key]) -> None:
        """Read back what was written, and only that. Raises ``AgentError`` for differences."""
        for batch in _batches(written):
            found = self._read_back(client, batch)
            wrong = [key for key in batch if found.get(key) != target[key]]
            if wrong:
                what = "holds something else" if wrong[0] in found else "does not hold it"
                raise AgentError(
                    f"{self.name}: {encoded.describe(self._schema, wrong[0])}: the switch accepted the entry but {what}"
                    + _others(len(wrong) - 1)
                )
        for batch in _batches(deleted):
            found = self._read_back(client, batch)
            there = [key for key in batch if key in found]
            if there:
                raise AgentError(
                    f"{self.name}: {encoded.describe(self._schema, there[0])}: the switch still holds it"
                    f" after deleting it{_others(len(there) - 1)}"
                )

    def _read_back(self, client: Client, keys: Sequence[Key]) -> Held:
        """The objects among ``keys`` that the switch holds."""
        entries, groups = ([key for key in keys if (key[0] > 0) is wanted] for wanted in (True, False))
        found = self._read(client, [encoded.entity(key) for key in entries]) if entries else {}
        if groups:
            try:
                found |= self._read(client, [encoded.entity(key) for key in groups])
            except RequestError as error:
                if error.code is not Code.NOT_FOUND:
                    raise
                # BMv2's server gives this answer when one of the groups does not exist.
                found |= self._read(client, encoded.EVERYTHING[1:])
        return found

    # --- ticks ---

    def _send_ticks(self, frames: Sequence[bytes]) -> bool:
        client = self._client
        if client is None or not client.session.alive:
            return False
        session = client.session
        with contextlib.suppress(Empty):
            error = session.stream_in_q["error"].get_nowait()
            if error is not None and self._ticks is not None:
                LOGGER.error("%s refuses ticks, so they stop: %s", self.name, error.error.message)
                self._ticks.set(self.name, (), self._send_ticks)
                return False
        return session.packets_out(frames)


def cookie_of(info: SwitchInfo) -> int:
    """A program's cookie: 63 bits of the SHA-256 of its P4Info and device config; never 0."""
    digest = hashlib.sha256(info.p4info.encode() + b"\0" + info.device_config).digest()
    return int.from_bytes(digest[:8]) >> 1 | 1


def _batches(items: Sequence[object]) -> Iterator[list]:  # type: ignore[type-arg]
    every = iter(items)
    while batch := list(islice(every, BATCH)):
        yield batch


def _text(error: P4genError) -> str:
    messages = [diagnostic.message for diagnostic in error.diagnostics[:_MOST_TOLD]]
    return "; ".join(messages) + _others(len(error.diagnostics) - len(messages))


def _others(count: int) -> str:
    return f" (and {count} more like it)" if count > 0 else ""
