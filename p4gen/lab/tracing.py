"""Traces of packets through the embedded switch, on demand, printed as they come."""

from __future__ import annotations

import contextlib
import threading

from rich.console import Console

from p4gen.errors import P4genError
from p4gen.lab.session import Lab
from p4gen.lab.switches import trace_file

_LOOK_S = 0.05


class Tracer:
    """Prints the next ``count`` packets' way through a switch, from a thread of its own, then ends the tracing."""

    def __init__(self, lab: Lab, switch: str, count: int, console: Console) -> None:
        self._lab, self._switch, self._count, self._console = lab, switch, count, console
        self.file = trace_file(lab.job, switch)
        self.active = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"trace of {switch}", daemon=True)

    def start(self) -> None:
        """Begin. Raises ``InputError`` where the switch cannot trace."""
        self._at = self.file.stat().st_size if self.file.exists() else 0
        self._lab.toggle_trace(self._switch)
        self.active = True
        self._thread.start()

    def close(self) -> None:
        """End it, if it has not ended by itself."""
        self._stop.set()
        if self.active:
            self._thread.join()

    def _follow(self) -> None:
        left, text = self._count, ""
        while left and not self._stop.wait(_LOOK_S):
            with contextlib.suppress(OSError), self.file.open(encoding="utf-8") as file:
                file.seek(self._at)
                text += file.read()
                self._at = file.tell()
            while left and "\n\n" in text:
                packet, _, text = text.partition("\n\n")
                self._console.print(f"{self._switch}:\n{packet}\n", markup=False)
                left -= 1
        with contextlib.suppress(P4genError):
            self._lab.toggle_trace(self._switch)
        self.active = False
