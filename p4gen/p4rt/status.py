"""Canonical status codes (google.rpc.Code), and the exception that carries one."""

from __future__ import annotations

from enum import IntEnum

VERSION = "1.4.1"
"""The version of P4Runtime that client and server speak."""


class Code(IntEnum):
    """google.rpc.Code, by the names the specification uses."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class StatusError(Exception):
    """A request is refused, with a status code and a one-line cause; it has changed nothing."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.message = message


def invalid(message: str) -> StatusError:
    """INVALID_ARGUMENT, the code of everything malformed."""
    return StatusError(Code.INVALID_ARGUMENT, message)


def not_found(message: str) -> StatusError:
    """NOT_FOUND, the code for references to objects that do not exist."""
    return StatusError(Code.NOT_FOUND, message)


def unimplemented(message: str) -> StatusError:
    """UNIMPLEMENTED, the code for optional features that this target does not have."""
    return StatusError(Code.UNIMPLEMENTED, message)
