"""How commands react to signals that end them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def hear() -> None:
    """Let the signals that end a command arrive, also where its starter blocked them: programs inherit that."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)


class _Told(BaseException):
    """A signal to end has arrived: passes through everything but clean-up."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """While the block runs, Ctrl-C, SIGTERM and SIGHUP end the processes it has started, then this process.

    The process dies of the signal, as its starter expects. A second signal ends it without
    waiting: processes that ours start end with their standard input, and a scratch folder with its owner.
    """
    told: list[int] = []

    def leave(number: int, _frame: object) -> None:
        told.append(number)
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        raise _Told

    # A signal that is ignored from the beginning stays ignored (nohup).
    before = {each: signal.getsignal(each) for each in ENDS if signal.getsignal(each) is not signal.SIG_IGN}
    for each in before:
        signal.signal(each, leave)
    try:
        yield
    except _Told:
        pass
    finally:
        if told:
            _die(told[0])
        for each, handler in before.items():
            signal.signal(each, handler)


def _die(number: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.write(f"p4gen: ended by {signal.Signals(number).name}\n")
        sys.stderr.flush()
    os.kill(os.getpid(), number)
