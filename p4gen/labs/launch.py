"""The launcher: starts a lab in namespaces of its own, waits for it, and tidies up, however either of them ends.

The lab is process 1 of a PID namespace: when it ends, the kernel kills every process of the lab, and with the last one
the network namespaces go, with all interfaces. Each of the two holds a pipe, and notices when the other has ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4gen.errors import FailedError
from p4gen.labs.job import JOB_FILE, LAST_WORD, RESULT_FILE, LabJob
from p4gen.labs.scratch import remove_if_ours

_PATIENCE_S = 12.0
"""Seconds in which the lab has to end by itself; after that it is killed."""
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class LabResult:
    """How a lab ended: its exit status, and the contents of its result file."""

    status: int
    result: dict[str, Any]


def launch(job: LabJob, lock: int) -> LabResult:
    """Run a lab to its end. ``lock`` is the descriptor of the scratch folder's lock.

    Raises ``FailedError`` when namespaces cannot be made, or the lab is killed.
    """
    job.save(job.scratch / JOB_FILE)
    ours, theirs = os.pipe()  # the lab reads its process id in the host's namespace, then detects the launcher's end
    alive, living = os.pipe()  # the launcher detects the lab's end
    command = ["unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child=SIGTERM"]
    command += [sys.executable, "-m", "p4gen.labs.inside", str(job.scratch), str(ours), str(living)]
    signals: list[int] = []
    try:
        with _noted(signals), _terminal():
            process = subprocess.Popen(command, pass_fds=(lock, ours, living), preexec_fn=_deaf)  # noqa: PLW1509
            os.close(ours)
            os.close(living)
            status, orderly = _wait(process, theirs, alive, signals)
    finally:
        with contextlib.suppress(OSError):
            os.close(alive)
        remove_if_ours(job.address_file, job.scratch)
    if signals:
        return LabResult(128 + signals[0], _result(job))
    if not orderly:
        raise FailedError(
            f"the lab's first process was killed, or could not start (exit status {status}); its interfaces and "
            f"processes went with its namespaces, logs are in {job.folder}"
        )
    return LabResult(status, _result(job))


def _deaf() -> None:
    """Make ``unshare`` ignore Ctrl-C and a closed terminal: it has to wait for the lab, which gets these signals
    itself."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def _noted(signals: list[int]) -> Iterator[None]:
    """While the block runs, termination signals are recorded; the loop in ``_wait`` handles them."""
    before = {number: signal.signal(number, lambda n, _: signals.append(n)) for number in _ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _terminal() -> Iterator[None]:
    """Restore the terminal's foreground process group and settings after the block, because the lab may change them."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    settings = termios.tcgetattr(descriptor)
    try:
        yield
    finally:
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with contextlib.suppress(OSError, termios.error):
            os.tcsetpgrp(descriptor, os.getpgrp())
            termios.tcsetattr(descriptor, termios.TCSADRAIN, settings)
        signal.signal(signal.SIGTTOU, before)


def _wait(process: subprocess.Popen[bytes], leash: int, alive: int, signals: list[int]) -> tuple[int, bool]:
    """Wait for the lab. On a signal, close its leash, and kill it if that does not help. Returns the exit status, and
    whether the lab sent ``LAST_WORD``."""
    child = 0
    asked: float | None = None
    with contextlib.ExitStack() as stack:
        stack.callback(process.wait)
        held = True
        try:
            while process.poll() is None:
                if not child:
                    child = _child(process.pid)
                    if child:
                        os.write(leash, f"{child}\n".encode())
                if signals and asked is None:
                    asked = time.monotonic()
                    os.close(leash)
                    held = False
                if asked is not None and time.monotonic() - asked > _PATIENCE_S:
                    _kill(child or process.pid)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.05 if child else 0.005)
        finally:
            if held:
                os.close(leash)
        # unshare may have been killed but not the lab, which ends by the signal and closes its pipe.
        deadline = time.monotonic() + _PATIENCE_S
        os.set_blocking(alive, False)
        said = b""
        while (more := _read(alive)) != b"":
            said += more or b""
            if more is None:
                if time.monotonic() > deadline:
                    _kill(child)
                time.sleep(0.02)
    return process.returncode, said == LAST_WORD


def _read(pipe: int) -> bytes | None:
    """The contents of a pipe: empty when its other end is closed, None when more may come."""
    try:
        return os.read(pipe, 16)
    except BlockingIOError:
        return None


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _child(process: int) -> int:
    """The process that ``unshare`` forked; 0 if there is none yet."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return int(children[0]) if children else 0


def _result(job: LabJob) -> dict[str, Any]:
    try:
        found = json.loads((job.scratch / RESULT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    assert isinstance(found, dict)
    return found
