"""The lab's side of a host's daemon (``hostd``): requests and answers over its standard input and output."""

from __future__ import annotations

import contextlib
import subprocess
from typing import IO

from typing_extensions import override

from p4gen.errors import FailedError
from p4gen.labs.hosts.asking import Asker
from p4gen.labs.processes import Process

_ENDING_S = 5.0
"""Seconds that a daemon may take to end once its pipes are closed: the kernel closes them first, also of a process that
is killed."""


class HostClient(Asker):
    """Communicates with the daemon of ``process``, which was started with pipes."""

    def __init__(self, name: str, process: Process) -> None:
        super().__init__(name)
        self.process = process

    @override
    def out(self) -> IO[bytes]:
        assert self.process.popen is not None
        assert self.process.popen.stdin is not None
        return self.process.popen.stdin

    @override
    def answers(self) -> IO[bytes]:
        assert self.process.popen is not None
        assert self.process.popen.stdout is not None
        return self.process.popen.stdout

    @override
    def gone(self) -> FailedError:
        """The report on the daemon; waits for its end, to say its status."""
        assert self.process.popen is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.popen.wait(_ENDING_S)
        if self.process.running:
            return FailedError(f"{self.name}'s daemon is ending")
        return self.process.failure(f"{self.process.name} has ended")
