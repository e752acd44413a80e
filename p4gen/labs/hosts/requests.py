"""Requests to a process of a lab, one JSON object a line on its standard input, and its answers on standard output.

A request has an ``id`` and an action ``do``; its answer has the same ``id``, and a ``result`` or an ``error``. Requests
are processed concurrently, so answers come in any order. ``hosts`` has the other side.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from p4gen.errors import P4genError

Request = Mapping[str, Any]
Verb = Callable[[Request], dict[str, Any]]


def write(text: str) -> None:
    """Write an answer to standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def serve(verbs: Mapping[str, Verb], hello: Mapping[str, Any], lines: Iterable[str]) -> None:
    """Send ``hello``, then answer requests until the input ends."""
    lock = threading.Lock()

    def answer(request: Request) -> None:
        try:
            said: dict[str, Any] = {"result": verbs[request["do"]](request)}
        except P4genError as error:
            said = {"error": "; ".join(diagnostic.message for diagnostic in error.diagnostics)}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        with lock:
            write(json.dumps({"id": request["id"]} | said) + "\n")

    write(json.dumps({"id": 0, "result": hello}) + "\n")
    for line in lines:
        threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
