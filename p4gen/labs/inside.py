"""Process 1 of a lab's namespaces: ``python -m p4gen.labs.inside SCRATCH LEASH ALIVE`` (see ``launch``).

``LEASH`` is the descriptor of a pipe whose other end the launcher holds: it transmits this process's id in the host's
PID namespace, and is closed when the launcher ends. ``ALIVE`` is the descriptor of a pipe that this process keeps open
as long as it runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from p4gen.errors import P4genError, storage_trouble
from p4gen.labs.job import JOB_FILE, LAST_WORD, RESULT_FILE, LabJob
from p4gen.labs.scratch import remove, remove_if_ours

_LAST_WORDS_S = 8.0
"""Seconds in which the lab has to end its processes; after that the kernel kills them."""


class Ended(BaseException):
    """A signal asks the lab to end. The exit status depends on the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


def main(arguments: list[str]) -> int:
    """Run the lab that the scratch folder describes."""
    scratch, leash, alive = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    for descriptor in (leash, alive):
        os.set_inheritable(descriptor, False)
    job = LabJob.load(scratch / JOB_FILE)
    status = 1
    try:
        with _ending(job.wanted.what == "prompt"):
            outer = int(_first_line(leash) or 0)
            threading.Thread(target=_watch, args=(leash,), daemon=True).start()
            _take_terminal()
            _own_sysfs()
            from p4gen.labs.work import work  # noqa: PLC0415 - only now can imports be interrupted in an orderly way

            status, result = work(job, outer)
            (scratch / RESULT_FILE).write_text(json.dumps(result), encoding="utf-8")
    except Ended as end:
        status = end.status
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except P4genError as error:
        status = error.exit_code
        sys.stderr.write("".join(f"{line}\n" for line in error.lines()))
    except OSError as error:
        trouble = storage_trouble(error)
        if trouble is None:
            traceback.print_exc()
        else:
            sys.stderr.write(f"p4gen: error: {trouble}\n")
    except Exception:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        remove_if_ours(job.address_file, scratch)
        if not _launcher_lives(leash):
            remove(scratch)
        with contextlib.suppress(OSError):
            os.write(alive, LAST_WORD)
    return status


def _first_line(leash: int) -> bytes:
    """The launcher's message; empty when it has already ended."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(leash, 1)
        if not byte:
            break
        line += byte
    return line


def _watch(leash: int) -> None:
    """End the lab when the launcher closes its pipe or is killed."""
    while os.read(leash, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _launcher_lives(leash: int) -> bool:
    os.set_blocking(leash, False)
    try:
        return bool(os.read(leash, 1))
    except BlockingIOError:
        return True


@contextlib.contextmanager
def _ending(prompt: bool) -> Iterator[None]:
    """While the block runs, the first termination signal raises ``Ended``; later ones are ignored.

    At a prompt, the prompt handles Ctrl-C.
    """
    numbers = [signal.SIGTERM, signal.SIGHUP, *([] if prompt else [signal.SIGINT])]
    ending = False

    def end(number: int, _frame: Any) -> None:
        nonlocal ending
        # Processes that clean-up starts inherit the mask. SIG_IGN would not do: Python prints an exception for a signal
        # that had already arrived when its handler became SIG_IGN.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGHUP, signal.SIGINT))
        if ending:
            return
        ending = True
        timer = threading.Timer(_LAST_WORDS_S, lambda: os._exit(128 + number))
        timer.daemon = True
        timer.start()
        raise Ended(number)

    for number in numbers:
        signal.signal(number, end)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if prompt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield


def _take_terminal() -> None:
    """Become the terminal's foreground process group, so that Ctrl-C goes to this process and not to the launcher."""
    if not sys.stdin.isatty():
        return
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with contextlib.suppress(OSError, termios.error):
        os.setpgid(0, 0)
        os.tcsetpgrp(sys.stdin.fileno(), os.getpgrp())


def _own_sysfs() -> None:
    """Mount /sys again, because it shows the interfaces of the network namespace in which it was mounted."""
    done = subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(f"p4gen: warning: cannot mount /sys of the lab: {done.stderr.strip()}\n")


if __name__ == "__main__":
    _status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(_status)  # all remaining processes end with this one
