"""The processes of a lab: they are started and awaited together; failures are reported with the end of the log."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from p4gen.environment import child_environment
from p4gen.errors import FailedError
from p4gen.labs.forked import Forked
from p4gen.switch.running import story

START_S = 300.0
"""Seconds in which all processes of a lab must be ready."""


@dataclass
class Process:
    """A process of the lab. ``ready`` returns whether it can be used; it is called repeatedly until it does.

    ``causes`` maps texts that may be in the log to what they mean.
    """

    name: str
    command: Sequence[str]
    log: Path
    ready: Callable[[], bool]
    causes: Mapping[str, str] = field(default_factory=dict)
    main: Callable[[], int] | None = None
    """A function to run in a fork of this process instead of the command; standard input and output are then pipes."""
    popen: subprocess.Popen[bytes] | Forked | None = None

    def start(self) -> None:
        """Start the process. Raises ``FailedError`` when the command does not exist."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.main is not None:
            self.popen = Forked(self.main, self.log)
            return
        with self.log.open("ab") as output:
            try:
                # A separate session, because the lab handles Ctrl-C.
                self.popen = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    env=child_environment(),
                )
            except OSError as error:
                raise FailedError(f"{self.name} did not start: {error}\n  command: {' '.join(self.command)}") from None

    @property
    def running(self) -> bool:
        """Whether the process has been started and has not ended."""
        return self.popen is not None and self.popen.poll() is None

    @property
    def pid(self) -> int:
        """The process id in the lab's namespace."""
        assert self.popen is not None
        return self.popen.pid

    def failure(self, head: str) -> FailedError:
        """The error for a process that failed: command, exit status, last lines of the log, cause."""
        assert self.popen is not None
        return FailedError(story(self.popen, self.command, self.log, head, self.causes))

    def end(self, patience: float = 3.0) -> None:
        """End the process, by SIGKILL if necessary."""
        end_all([self], patience)


def wait_for(processes: Iterable[Process], timeout: float = START_S) -> None:
    """Wait until all processes are ready.

    Raises ``FailedError`` with the report of every process that has ended or is not ready within ``timeout`` seconds.
    """
    waiting = list(processes)
    deadline = time.monotonic() + timeout
    failed: list[FailedError] = []
    while waiting and not failed:
        for process in list(waiting):
            assert process.popen is not None
            if process.popen.poll() is not None:
                failed.append(process.failure(f"{process.name} did not start"))
                waiting.remove(process)
            elif process.ready():
                waiting.remove(process)
        if waiting and not failed:
            if time.monotonic() > deadline:
                late = f"was not ready after {timeout:.0f} s"
                failed += [process.failure(f"{process.name} {late}") for process in waiting]
            time.sleep(0.01)
    if failed:
        # Only one report in full; the others are often the same.
        others = [error.diagnostics[0].message.partition(":")[0] for error in failed[1:]]
        raise FailedError(*failed[0].diagnostics, *(f"{other}, too" for other in others))


def end_all(processes: Iterable[Process], patience: float = 3.0) -> None:
    """End processes at the same time, by SIGKILL if they do not react, and wait until all have ended."""
    running = [process for process in processes if process.popen is not None]
    for process in running:
        assert process.popen is not None
        process.popen.terminate()
        if process.popen.stdin is not None:
            with contextlib.suppress(OSError):
                process.popen.stdin.close()
    deadline = time.monotonic() + patience
    for process in running:
        assert process.popen is not None
        try:
            process.popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.popen.kill()
            process.popen.wait()
        if process.popen.stdout is not None:
            process.popen.stdout.close()
