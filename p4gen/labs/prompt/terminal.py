"""Who types commands at a lab, what a command is, and the words that it takes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from p4gen.errors import InputError
from p4gen.host.transport.clock import SECOND
from p4gen.inputs import quote
from p4gen.labs.prompt.tracing import Tracer
from p4gen.labs.session import Lab
from p4gen.rocev2.headers import ip_text
from p4gen.vocabulary import units

_MANY: Final = 64
_DIGITS: Final = 5


class Session:
    """A lab with the tracers and reports of its prompt."""

    def __init__(self, lab: Lab, console: Console, *, attached: bool = True) -> None:
        self.lab, self.console = lab, console
        self.runs = 0
        self.latest: dict[str, Any] | None = None
        """The figures of the latest run."""
        self.attached = attached
        """Whether commands of hosts have the lab's own output."""
        self.tracers: dict[str, Tracer] = {}
        self.turn = threading.Lock()
        """Held while several lines are printed, so that traces do not interleave with a table."""

    def close(self) -> None:
        """End all traces that the prompt has begun."""
        for tracer in self.tracers.values():
            tracer.close()

    def ip_text(self, host: str) -> str:
        """The IP address that a host has reported, as text."""
        return ip_text(self.lab.hosts[host].hello.result()["ip"])

    def execute(self, command: Sequence[str]) -> int:
        """Run a command on the lab's terminal. Returns its exit status. Ctrl-C goes to the command."""
        sys.stdout.flush()
        stdin = (
            None if sys.stdin.isatty() else subprocess.DEVNULL
        )  # the next lines of a script are not input of the command
        try:
            process = subprocess.Popen(command, stdin=stdin, stdout=None if self.attached else subprocess.PIPE)
        except OSError as error:
            raise InputError(f"{command[0]}: {error.strerror}") from None
        if process.stdout is not None:
            self.console.print(process.stdout.read().decode(errors="replace"), end="", markup=False)
        while True:
            try:
                status = process.wait()
                break
            except KeyboardInterrupt:
                continue  # the terminal has sent it the signal, too
        if stdin is None:
            with contextlib.suppress(OSError, termios.error):
                os.tcsetpgrp(sys.stdin.fileno(), os.getpgrp())  # shells take the terminal for themselves
        return status


@dataclass(frozen=True)
class Command:
    """A command. ``action`` gets the words after its name, at least ``least`` and at most ``most``."""

    usage: str
    help: str
    action: Callable[[Session, list[str]], bool]
    least: int = 0
    most: int = _MANY


def read_number(text: str, what: str) -> int:
    """A number of a few digits. Raises ``InputError``, which says what it is."""
    if not (text.isdecimal() and len(text) <= _DIGITS):
        raise InputError(f"{quote(text, marks=False)}: {what} must be a number of at most {_DIGITS} digits")
    return int(text)


def read_size(text: str) -> int:
    """Bytes, as in ``4M``. Raises ``InputError``."""
    try:
        return units.size(text)
    except ValueError as error:
        raise InputError(str(error)) from None


def read_seconds(text: str) -> float:
    """A time, as in ``50ms``. Raises ``InputError``."""
    try:
        return units.duration(text) / SECOND
    except ValueError as error:
        raise InputError(str(error)) from None


def take_option(words: list[str], name: str, default: int) -> int:
    """Remove ``name`` and the number after it from the words. Returns the number."""
    if name not in words:
        return default
    at = words.index(name)
    if at + 1 == len(words):
        raise InputError(f"{name} must be followed by a number")
    number = read_number(words[at + 1], name)
    del words[at : at + 2]
    return number
