"""A switch's control socket: turns traces and captures on and off while it runs, and reports which are on.

A request is a line of text at a unix socket: ``trace on``, ``trace off``, ``capture on``, ``capture off``, ``status``.
The answer is a line of JSON, sent when the request has taken effect. So a request may be repeated, and an answered
request was not lost; signals would not guarantee this, because the kernel may merge two of them.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from p4gen.errors import FailedError
from p4gen.switch.observe import Observer
from p4gen.switch.unix import check_path

REQUESTS: Final = ("trace on", "trace off", "capture on", "capture off", "status")
_LONGEST: Final = 64
"""The longest request, in bytes."""
_ANSWER_S: Final = 120.0
"""Seconds to wait for an answer. A switch answers when it has handled the frames that it has received, even on a busy
machine."""


class ControlSocket:
    """Answers requests at ``path``, in separate threads, until ``close``. ``wake`` interrupts the wait of the thread
    that carries frames. Raises ``InputError`` for a path that is too long, ``OSError`` if the socket cannot be
    created."""

    def __init__(self, path: Path, observer: Observer, wake: Callable[[], None]) -> None:
        check_path(path)
        self._path, self._observer, self._wake = path, observer, wake
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen()
        threading.Thread(target=self._accept, name="control socket", daemon=True).start()

    def close(self) -> None:
        """Stop answering requests, and remove the socket."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(peer,), name="control request", daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError), peer.makefile("rwb") as stream:
            while line := stream.readline(_LONGEST):
                answer = self._answer(line.decode(errors="replace").strip())
                stream.write(json.dumps(answer).encode() + b"\n")
                stream.flush()

    def _answer(self, request: str) -> dict[str, Any]:
        if request not in REQUESTS:
            return {"error": f"say one of: {', '.join(REQUESTS)}"}
        what, _, state = request.partition(" ")
        if state:
            (self._observer.set_trace if what == "trace" else self._observer.set_capture)(state == "on")
            self._wake()
            if not self._observer.settled.wait(_ANSWER_S):
                return {"error": f"the switch did not handle it within {_ANSWER_S:g} s"}
        found = self._observer.state()
        problem = found.pop("problem")
        return {"error": problem} if state and problem else found


def ask(path: Path, request: str, timeout: float = _ANSWER_S) -> dict[str, Any]:
    """Send a request to a switch's control socket. Returns the answer. Raises ``FailedError``."""
    try:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(timeout)
            peer.connect(str(path))
            with peer.makefile("rwb") as stream:
                stream.write(f"{request}\n".encode())
                stream.flush()
                line = stream.readline()
    except OSError as error:
        raise FailedError(f"no switch answers at {path}: {error.strerror or error}") from None
    if not line:
        raise FailedError(f"the switch at {path} has ended")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise FailedError(str(answer["error"]))
    return answer
