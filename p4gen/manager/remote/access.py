"""A request to the service: who asks, what that caller may see, how it ends, and the line about it in the audit log."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import grpc

from p4gen.errors import InputError, P4genError
from p4gen.inputs import quote
from p4gen.manager.access.tenants import OPERATOR, Tenants
from p4gen.manager.access.views import TenantView
from p4gen.manager.api import Code, Manager, ManagerError
from p4gen.protos import incmanager as pb
from p4gen.vocabulary.message import MAX_RANKS

LOGGER = logging.getLogger("p4gen.manager")
AUDIT = logging.getLogger("p4gen.manager.audit")
"""A line for each request when it has ended. Those that change registrations, groups or connections, and those that are
denied, have a level that the log shows; the others are at DEBUG."""
OURS: Final = ("p4gen-manager", "v1")
"""Metadata that marks errors of the manager, because gRPC itself uses some of the same codes."""
_CHANGES: Final = frozenset({
    "RegisterSwitch", "RegisterHost", "InitGroup", "DestroyGroup", "ResizeGroup", "MoveGroup", "SetRanks",
    "OfferMemory", "InitJob", "DestroyJob", "Cordon", "RegisterConnection", "ReleaseConnection", "SprayConnection",
})  # fmt: skip
AT_ONCE: Final = 2 * MAX_RANKS + 512
"""Requests of a tenant that may be under way: a watch and a ``ready`` of each host, and others. They are half of the
service's threads, so that no tenant can take them all."""
_LONGEST_CAUSE: Final = 1000
"""Characters of an error in the log."""
_SUBJECTS: Final = ("name", "group", "host", "switch", "number", "node")
"""Fields that say what a request is about; the first one counts."""


@dataclass(frozen=True)
class Caller:
    """Who asks. ``who`` is the tenant, or how an operator came in; ``manager`` is what this caller may ask."""

    who: str
    manager: Manager

    def told(self, text: str) -> str:
        """The text of an error as this caller may read it."""
        return self.manager.told(text) if isinstance(self.manager, TenantView) else text


class Access:
    """Access to ``manager`` by ``tenants``, and by operators."""

    def __init__(self, manager: Manager, tenants: Tenants) -> None:
        self._manager, self._tenants = manager, tenants
        self._under_way, self._lock = Counter[str](), threading.Lock()

    @contextlib.contextmanager
    def request(self, context: Any, method: str, message: Any) -> Iterator[Caller]:
        """A request, whose caller the block serves. Errors become gRPC statuses, and end the request."""
        began = time.monotonic()
        names, how = _names(context)
        caller, outcome, cause = None, "OK", ""
        try:
            caller = self._caller(names, how)
            with self._counted(caller):
                yield caller
        except Exception as error:
            code, cause = _status(error)
            outcome = code.name
            context.set_trailing_metadata((OURS,))
            context.abort(code, caller.told(cause) if caller is not None else cause)
        finally:
            who = caller.who if caller is not None else ", ".join(names or (how,))
            _record(method, message, who, outcome, cause, time.monotonic() - began)

    @contextlib.contextmanager
    def _counted(self, caller: Caller) -> Iterator[None]:
        """Raises ``ManagerError`` (``NO_ROOM``) if a tenant has too many requests under way."""
        if not isinstance(caller.manager, TenantView):
            yield
            return
        with self._lock:
            if self._under_way[caller.who] >= AT_ONCE:
                raise ManagerError(Code.NO_ROOM, f"tenant {caller.who} has {AT_ONCE} requests under way, the most")
            self._under_way[caller.who] += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way[caller.who] -= 1

    def _caller(self, names: Sequence[str] | None, how: str) -> Caller:
        tenant = OPERATOR if names is None else self._tenants.identify(names)
        if tenant == OPERATOR:
            return Caller(", ".join(names or (how,)), self._manager)
        return Caller(tenant, TenantView(self._manager, self._tenants, tenant))


def _names(context: Any) -> tuple[tuple[str, ...] | None, str]:
    """The names in the caller's certificate, None for a connection without TLS; and the kind of its address."""
    how = context.peer().partition(":")[0]
    if context.auth_context().get("transport_security_type") != [b"ssl"]:
        return None, how
    return tuple(name.decode(errors="replace") for name in context.peer_identities() or ()), how


def _record(method: str, message: Any, who: str, outcome: str, cause: str, seconds: float) -> None:
    if outcome != "OK":
        level = logging.WARNING if method in _CHANGES or outcome == Code.DENIED else logging.DEBUG
    else:
        level = logging.INFO if method in _CHANGES else logging.DEBUG
    subject = _subject(message)
    fields = {"tenant": who, "method": method, "object": subject, "outcome": outcome, "seconds": round(seconds, 6)}
    text = "done" if outcome == "OK" else _line(cause)
    AUDIT.log(level, "%s %s: %s", method, subject, text, extra={"fields": fields | ({"cause": text} if cause else {})})


def _line(text: str) -> str:
    """A text as a part of one line of a log, whatever a caller has written into it."""
    line = "; ".join(text.splitlines())[:_LONGEST_CAUSE]
    return "".join(c if c.isprintable() else "?" for c in line)


def _subject(message: Any) -> str:
    """The subject of a request: the name of a group, host or switch, or a connection; empty if it has none."""
    if isinstance(message, pb.ConnectionSpec):
        ends = f"{message.source} QP {message.source_qp} to {message.destination} QP {message.destination_qp}"
        return quote(ends, marks=False)
    known = message.DESCRIPTOR.fields_by_name
    name = next((name for name in _SUBJECTS if name in known), None)
    return "" if name is None else quote(str(getattr(message, name)), marks=False)


def _status(error: Exception) -> tuple[grpc.StatusCode, str]:
    """The status of an error for a client. Errors that are defects of the manager are logged."""
    if isinstance(error, ManagerError):
        code = grpc.StatusCode[error.code.value]
    elif isinstance(error, InputError):
        code = grpc.StatusCode.INVALID_ARGUMENT
    elif isinstance(error, P4genError):
        code = grpc.StatusCode.FAILED_PRECONDITION
    else:
        LOGGER.error("a request failed", exc_info=error)
        return grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}"
    return code, "\n".join(diagnostic.message for diagnostic in error.diagnostics)
