"""The communicator of a group with one rank: every call ends at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import numpy as np

from p4gen.errors import InputError
from p4gen.host.collectives.arrays import Array

T = TypeVar("T")


class Alone:
    """The part of ``p4gen.Communicator`` that process groups use."""

    rank, size = 0, 1

    def quantises(self, _dtype: Any) -> bool:
        """Nothing is added, so nothing is quantised."""
        return False

    def reduces(self, _dtype: Any, _op: str) -> bool:
        """One rank's values are their reduction."""
        return True

    def begin(self, _collective: str, values: Array | None = None, _root: int = 0, **_: Any) -> Future[Array | None]:
        """The rank's own values."""
        return _done(None if values is None else values.reshape(-1).copy())

    def begin_exchange(self, send: Sequence[Array], receive: Sequence[Array]) -> Future[None]:
        """A copy of the rank's part for itself."""
        np.copyto(receive[0], send[0])
        return _done(None)

    def begin_send(self, _values: Array, to: int, _tag: int = 0) -> Future[None]:
        """There is nobody."""
        raise InputError(f"there is no rank {to}")

    def begin_receive(self, _room: Array, source: int, _tag: int = 0) -> Future[None]:
        """There is nobody."""
        raise InputError(f"there is no rank {source}")

    def close(self) -> None:
        """Nothing is left behind."""

    def abandon(self) -> None:
        """Nothing is left behind."""


def _done(value: T) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(value)
    return future
