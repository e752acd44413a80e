"""Connections that hosts set up by RDMA CM, registered and released by the manager itself.

Switches copy the messages of their own hosts (``CopyCm``), agents pass them on, and one thread reads them. A connection
of two hosts is registered in both directions, as each end may send requests. A connection that cannot be registered
stays on ECMP. The store has the connections, so that a restarted manager releases them, too.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import Counter
from typing import Final

from p4gen.manager.api import Code, ConnectionSpec, ManagerError
from p4gen.manager.connections.connections import Connections
from p4gen.manager.connections.conversations import Begun, Conversation, Conversations, Ended, Ignored, Party
from p4gen.manager.store.ledger import Ledger
from p4gen.manager.store.store import ClosedError
from p4gen.plan.placement.placer import switch_of
from p4gen.rocev2.cm import Datagram, parse_datagram
from p4gen.rocev2.headers import HeaderError, ip_text

LOGGER = logging.getLogger("p4gen.manager")
MOST_WAITING: Final = 10_000
"""Messages that may wait for the thread; more are lost, and their connections stay on ECMP."""
_REFUSALS: Final = {Code.NO_ROOM: "no room", Code.EXISTS: "already registered"}


class Handshakes:
    """The thread that reads messages. ``counts`` has the number of outcomes, by name."""

    def __init__(self, ledger: Ledger, connections: Connections) -> None:
        self._ledger = ledger
        self._connections = connections
        self._waiting: queue.Queue[tuple[str, bytes] | None] = queue.Queue(MOST_WAITING)
        self._registered: dict[Conversation, tuple[int, ...]] = {}
        """The numbers of its directions that are registered."""
        self._counts: Counter[str] = Counter()
        self._load()
        self._conversations = Conversations(self._registered)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="inc-handshakes", daemon=True)

    def _load(self) -> None:
        """Load the store, without connections that users have released. Connections of a handshake that the last
        manager had not finished when it ended are found by their QPs."""
        there = {status.number: status.spec for status in self._connections.statuses()}
        with self._ledger.store.transaction():
            for conversation, numbers in self._ledger.handshakes:
                left = tuple(number for number in numbers if number in there)
                if not numbers and not self._ledger.moved:
                    specs = [self._spec(conversation, *ends) for ends in _directions(conversation)]
                    left = tuple(number for number, spec in there.items() if spec in specs)
                if left and not self._ledger.moved:
                    self._registered[conversation] = left
                    self._ledger.store.put_handshake(conversation, left)
                else:
                    self._ledger.store.drop_handshake(conversation)

    def start(self) -> None:
        """Start the thread that reads messages."""
        self._thread.start()

    def close(self, deadline: float) -> None:
        """End the thread, which may be waiting for a switch, and wait for it until ``deadline``."""
        self._closed.set()
        with contextlib.suppress(queue.Full):  # then it has enough to wake up for
            self._waiting.put_nowait(None)
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def hear(self, switch: str, frame: bytes) -> None:
        """Take a frame that a switch has copied. Returns at once; may be called from any thread."""
        try:
            self._waiting.put_nowait((switch, frame))
        except queue.Full:
            self._count("lost", "more messages than can be read", logging.WARNING)

    @property
    def counts(self) -> dict[str, int]:
        """The number of messages and connections by outcome."""
        with self._ledger.changed:
            return dict(sorted(self._counts.items()))

    @property
    def idle(self) -> bool:
        """Whether every message has been read and acted upon."""
        return not self._waiting.unfinished_tasks

    def _count(self, what: str, reason: str = "", level: int = logging.INFO) -> None:
        with self._ledger.changed:
            self._counts[what] += 1
        if reason:
            LOGGER.log(level, "RDMA CM: %s", "; ".join(reason.splitlines()))

    # --- the thread ---

    def _work(self) -> None:
        while (item := self._waiting.get()) is not None and not self._closed.is_set():
            try:
                self._read(*item)
            except ClosedError:  # the manager has ended meanwhile
                return
            except Exception:
                LOGGER.exception("a message of RDMA CM cannot be handled")
            finally:
                self._waiting.task_done()

    def _read(self, switch: str, frame: bytes) -> None:
        try:
            sent = parse_datagram(frame)
        except HeaderError as error:
            self._count("malformed", f"{switch}: {error.diagnostics[0].message}")
            return
        wrong = self._wrong_host(switch, sent)
        if wrong is not None:
            self._count("foreign", f"{switch}: {sent.message.kind.name} of {ip_text(sent.src)}: {wrong}")
            return
        match self._conversations.hear(sent, time.monotonic()):
            case Begun(conversation, stale):
                for old in stale:
                    self._release(old)
                self._register(conversation)
            case Ended(conversation):
                self._release(conversation)
                self._count("ended")
            case Ignored(kind, reason):
                text = f"{switch}: {ip_text(sent.src)} to {ip_text(sent.dst)}: {reason}"
                self._count(kind, text, logging.DEBUG if kind == "repeated" else logging.INFO)
            case _:
                self._count("noted")

    def _wrong_host(self, switch: str, sent: Datagram) -> str | None:
        """Why a message is not between hosts of this fabric, or does not arrive where its sender is; None if it is in
        order."""
        with self._ledger.changed:
            view = self._ledger.fabric.view
        hosts = {view.names.ip[host]: host for host in view.topology.hosts}
        if sent.src not in hosts or switch_of(view.topology, hosts[sent.src]) != switch:
            return "it is not a host of this switch"
        if sent.dst not in hosts:
            return f"there is no host {ip_text(sent.dst)}"
        return None

    def _register(self, conversation: Conversation) -> None:
        ledger = self._ledger
        with ledger.changed, ledger.store.transaction():
            ledger.store.put_handshake(conversation, ())
        found = []
        for source, destination in _directions(conversation):
            try:
                spec = self._spec(conversation, source, destination)
                found.append(self._connections.register(spec).number)
                self._count("registered")
            except ManagerError as error:
                ends = f"{ip_text(source.ip)} QP {source.qp} to {ip_text(destination.ip)} QP {destination.qp}"
                level = logging.WARNING if error.code is Code.NO_ROOM else logging.INFO
                self._count(_REFUSALS.get(error.code, "refused"), f"{ends} stays on ECMP: {error.reason}", level)
        with ledger.changed, ledger.store.transaction():
            if found:
                self._registered[conversation] = tuple(found)
                ledger.store.put_handshake(conversation, tuple(found))
            else:
                self._conversations.forget(conversation)
                ledger.store.drop_handshake(conversation)

    def _spec(self, conversation: Conversation, source: Party, destination: Party) -> ConnectionSpec:
        with self._ledger.changed:
            ip = self._ledger.fabric.view.names.ip
        names = {address: host for host, address in ip.items()}
        return ConnectionSpec(
            names[source.ip],
            names[destination.ip],
            source.qp,
            destination.qp,
            conversation.mtu,
            answer_tos=conversation.tos,
        )

    def _release(self, conversation: Conversation) -> None:
        numbers = self._registered.pop(conversation, ())
        for number in numbers:
            try:
                self._connections.release(number)
                self._count("released")
            except ManagerError as error:
                if error.code is not Code.NOT_FOUND:  # else a user has released it
                    self._count("refused", f"connection {number}: {error.reason}")
        if numbers:
            with self._ledger.changed, self._ledger.store.transaction():
                self._ledger.store.drop_handshake(conversation)


def _directions(conversation: Conversation) -> tuple[tuple[Party, Party], tuple[Party, Party]]:
    one, other = conversation.requester, conversation.responder
    return (one, other), (other, one)
