"""Processes that are forks of this one: they start quickly, because everything they need is already imported."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from p4gen.errors import FailedError

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000
_LOOK_S = 0.01


def join_network(process: int) -> None:
    """Enter the network namespace of a process (setns(2)). Raises ``FailedError``."""
    descriptor = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(descriptor, _CLONE_NEWNET):
            raise FailedError(f"cannot enter the network of process {process}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(descriptor)


def in_network(process: int, action: Callable[[], T]) -> T:
    """Do something in the network namespace of a process, in a thread of its own. Raises what it raises."""

    def act() -> T:
        join_network(process)
        return action()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(act).result()


class Forked:
    """Runs ``main`` in a fork of this process, with pipes for standard input and output and ``log`` for errors.

    Fork before there are threads that hold locks. The class has the part of ``subprocess.Popen`` that labs use.
    """

    def __init__(self, main: Callable[[], int], log: Path) -> None:
        ours_out, theirs_in = os.pipe()[::-1]
        ours_in, theirs_out = os.pipe()
        sys.stdout.flush()
        self.returncode: int | None = None
        self._lock = threading.Lock()
        """Held while waiting, because only one thread gets the status of a process."""
        self.pid = os.fork()
        if self.pid == 0:
            _become(main, theirs_in, theirs_out, log)
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin = os.fdopen(ours_out, "wb")
        self.stdout = os.fdopen(ours_in, "rb")

    def poll(self) -> int | None:
        """The exit status, or minus the signal; None while it runs."""
        with self._lock:
            if self.returncode is None:
                process, status = os.waitpid(self.pid, os.WNOHANG)
                if process:
                    self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process. Raises ``subprocess.TimeoutExpired``."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(_LOOK_S)
        return status

    def terminate(self) -> None:
        """Send SIGTERM if the process is running."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL if the process is running."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Send a signal if the process is running."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _become(main: Callable[[], int], stdin: int, stdout: int, log: Path) -> None:
    """The main function of the fork. It never returns to the parent's code."""
    status = 1
    try:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for place, descriptor in enumerate((stdin, stdout, errors)):
            os.dup2(descriptor, place)
        os.closerange(3, 4096)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, closefd=False)
        status = main()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
