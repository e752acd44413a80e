"""The ``ip`` command (iproute2): interfaces, addresses and routes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from typing import Final

from p4gen.errors import FailedError, MissingToolError
from p4gen.packages import install

_PATIENCE_S: Final = 300.0
_FAILED: Final = re.compile(r"Command failed -:(\d+)\n?")


def ip(*commands: str, before: Iterable[str] = ()) -> str:
    """Run ``ip`` commands (given without the word ``ip``) in one process, up to the first that fails.

    Returns what ``ip`` prints. ``before`` is a prefix that makes it run elsewhere, such as ``mnexec -a PID``. Raises
    ``MissingToolError`` without iproute2, and ``FailedError`` with the command that failed and the message of ``ip``.
    """
    if len(commands) == 1:
        words, text = ["ip", *commands[0].split()], ""
    else:
        words, text = ["ip", "-batch", "-"], "".join(f"{command}\n" for command in commands)
    command_line = "; ".join(commands)
    try:
        done = subprocess.run(
            [*before, *words], input=text, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except FileNotFoundError as error:
        how = f": {install('ip')}" if error.filename == "ip" else ""
        raise MissingToolError(f"ip {command_line}: {error.filename} is not on PATH{how}") from None
    except subprocess.TimeoutExpired:
        raise FailedError(f"ip {command_line}: has not ended in {_PATIENCE_S:g} s") from None
    if done.returncode:
        number = _FAILED.search(done.stderr)
        cause = _FAILED.sub("", done.stderr).strip() or f"exit status {done.returncode}"
        hint = " (CAP_NET_ADMIN is needed)" if "not permitted" in cause else ""
        raise FailedError(f"ip {commands[int(number[1]) - 1] if number else command_line}: {cause}{hint}")
    return done.stdout
