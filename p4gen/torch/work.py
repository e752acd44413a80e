"""``torch.distributed.Work``: a collective that goes on while the process computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch.distributed import Work
from torch.futures import Future as TorchFuture
from typing_extensions import override

T = TypeVar("T")


class IncWork(Work):
    """A call whose ``outputs`` are right once ``done`` has ended and ``finish`` has been called with its result, which
    happens in the thread that ends ``done``."""

    def __init__(self, done: Future[T], finish: Callable[[T], object], outputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._outputs = list(outputs)
        self._torch: Any = TorchFuture()
        self._ended: Future[None] = Future()

        def end(_: Future[T]) -> None:
            try:
                with torch.no_grad():
                    finish(done.result())
            except Exception as error:
                self._torch.set_exception(RuntimeError(str(error)))
                self._ended.set_exception(RuntimeError(str(error)))
            else:
                self._torch.set_result(self._outputs)
                self._ended.set_result(None)

        done.add_done_callback(end)

    @override
    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the end. Raises ``RuntimeError`` with the reason of a failure, ``TimeoutError``."""
        self._ended.result(timeout.total_seconds() if timeout else None)
        return True

    @override
    def synchronize(self) -> None:
        self.wait()

    @override
    def is_completed(self) -> bool:
        return self._ended.done()

    @override
    def is_success(self) -> bool:
        return self._ended.done() and self._ended.exception() is None

    @override
    def result(self) -> list[torch.Tensor]:
        return self._outputs

    @override
    def get_future(self) -> Any:
        return self._torch
