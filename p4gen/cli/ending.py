"""How verbs that start processes end when they are told to."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Told(BaseException):
    """A signal that asks us to end came: passes through everything but clean-up."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """While the block runs, Ctrl-C, SIGTERM and SIGHUP end this process at once, and first what it has started.

    The process dies of the signal, as its starter expects. A second signal waits for nothing: whatever a process of
    ours starts ends with its standard input, and a scratch folder with its owner.
    """
    told: list[int] = []

    def leave(number: int, _frame: object) -> None:
        told.append(number)
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        raise _Told

    # What is ignored from the beginning stays so (nohup).
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
