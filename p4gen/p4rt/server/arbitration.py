"""Arbitration between controllers by election ids: each role has one primary, which may write (section 5)."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from p4gen.p4rt.status import Code, StatusError, invalid, not_found
from p4gen.protos import p4runtime as pb

MAX_CONTROLLERS = 16
"""The most open streams of a role."""

Election = tuple[int, int] | None
"""An election id as (high, low); None if the controller gave none, so it can never be primary."""


def election(message: Any) -> Election:
    """The election id of a request or an arbitration update."""
    return (message.election_id.high, message.election_id.low) if message.HasField("election_id") else None


def role_of(message: Any) -> str:
    """The role of a request by name; the deprecated numbers have names of their own."""
    if message.role:
        return str(message.role)
    return f"#{message.role_id}" if message.role_id else ""


@dataclass(eq=False)
class Controller:
    """One stream: the messages to be sent on it, and its controller."""

    outgoing: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    role: str | None = None
    """None until its first arbitration update."""
    election: Election = None

    def send(self, message: Any) -> None:
        """Queue a StreamMessageResponse; an exception ends the stream with its status, None ends it well."""
        self.outgoing.put(message)


@dataclass(eq=False)
class _Role:
    controllers: list[Controller] = field(default_factory=list)
    highest: Election = None
    """The highest election id ever seen from a primary."""
    writes: int = 0
    """Requests of primaries that are not finished yet."""
    waiting: bool = False
    """Whether the primary has not been told yet that it is one, because earlier requests are not finished."""

    @property
    def primary(self) -> Controller | None:
        """The live controller with the highest election id ever seen, if there is one."""
        if self.highest is None:
            return None
        return next((c for c in self.controllers if c.election == self.highest), None)


class Arbiter:
    """All controllers of one device. Methods are thread-safe, and none waits for a request to be done.

    A new primary is told so when the requests of the old one are finished, the other controllers at once (section 5.3).
    """

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self._lock = threading.Lock()
        self._roles: dict[str, _Role] = {}

    def primaries(self) -> list[Controller]:
        """The primary of each role that has one."""
        with self._lock:
            roles = [role for role in self._roles.values() if not role.waiting]
            return [p for role in roles if (p := role.primary) is not None]

    def is_primary(self, controller: Controller) -> bool:
        """Whether a stream belongs to a primary."""
        with self._lock:
            role = self._roles.get(controller.role) if controller.role is not None else None
            return role is not None and role.primary is controller and not role.waiting

    @contextlib.contextmanager
    def writing(self, role: str, election_id: Election) -> Iterator[None]:
        """A request of the role's primary, from its check until it is finished. PERMISSION_DENIED unless the primary
        has that election id; NOT_FOUND for an unknown role."""
        with self._lock:
            known = self._checked(role, election_id)
            known.writes += 1
        try:
            yield
        finally:
            with self._lock:
                known.writes -= 1
                primary = known.primary
                if known.waiting and not known.writes:
                    known.waiting = False
                    if primary is not None:
                        self._notify(role, [primary])

    def _checked(self, role: str, election_id: Election) -> _Role:
        known = self._roles.get(role)
        if known is None:
            if role:
                raise not_found(f"role {role}: no controller has ever had it")
            raise StatusError(Code.PERMISSION_DENIED, "there is no primary controller: no arbitration has been done")
        primary = known.primary
        if primary is None or election_id is None or primary.election != election_id:
            raise StatusError(Code.PERMISSION_DENIED, f"election id {election_id} is not the primary controller's")
        if known.waiting:
            raise StatusError(Code.PERMISSION_DENIED, "requests of the previous primary are not finished yet")
        return known

    def update(self, controller: Controller, message: Any) -> bool:
        """Handle a MasterArbitrationUpdate. Returns whether the primary has changed.

        Raises ``StatusError`` with the code that the stream must end with.
        """
        role_name = message.role.name or (f"#{message.role.id}" if message.role.id else "")
        new = election(message)
        with self._lock:
            if controller.role is None:
                if message.device_id != self.device_id:
                    raise not_found(f"device {message.device_id}: this is device {self.device_id}")
            else:
                if message.device_id != self.device_id:
                    raise StatusError(Code.FAILED_PRECONDITION, "a stream's device cannot be changed")
                if role_name != controller.role:
                    raise StatusError(Code.FAILED_PRECONDITION, "a stream's role cannot be changed; open another")
            if message.role.HasField("config"):
                raise invalid("no scheme for role configurations has been agreed upon: leave role.config unset")
            role = self._roles.setdefault(role_name, _Role())
            others = [c for c in role.controllers if c is not controller]
            if new is not None and any(c.election == new for c in others):
                raise invalid(f"election id {new} is another live controller's")
            if controller.role is None and len(others) >= MAX_CONTROLLERS:
                raise StatusError(Code.RESOURCE_EXHAUSTED, f"role {role_name!r} has {MAX_CONTROLLERS} controllers")
            before = role.primary
            if controller.role is None:
                role.controllers.append(controller)
                controller.role = role_name
            controller.election = new
            if new is not None and (role.highest is None or new >= role.highest):
                role.highest = new
                role.waiting = role.writes > 0
                self._notify(role_name, others if role.waiting else [*others, controller])
            elif before is controller:
                role.waiting = False
                self._notify(role_name, [*others, controller])  # the primary has stepped down
            else:
                self._notify(role_name, [controller])
            return role.primary is not before

    def remove(self, controller: Controller) -> bool:
        """Remove a stream that has ended. Returns whether it was a primary's."""
        with self._lock:
            if controller.role is None:
                return False
            name, controller.role = controller.role, None
            role = self._roles[name]
            was_primary = role.primary is controller
            role.controllers.remove(controller)
            if was_primary:
                role.waiting = False
                self._notify(name, role.controllers)
            return was_primary

    def _notify(self, role_name: str, controllers: list[Controller]) -> None:
        role = self._roles[role_name]
        primary = role.primary
        for controller in controllers:
            message = pb.StreamMessageResponse()
            update = message.arbitration
            update.device_id = self.device_id
            if role_name:
                update.role.name = role_name
            if role.highest is not None:
                update.election_id.high, update.election_id.low = role.highest
            if controller is primary:
                update.status.code, update.status.message = Code.OK, "you are the primary"
            elif primary is not None:
                update.status.code, update.status.message = Code.ALREADY_EXISTS, "another controller is the primary"
            else:
                update.status.code, update.status.message = Code.NOT_FOUND, "there is no primary"
            controller.send(message)
