"""Traces of packets through the embedded switch, on demand, printed as they come."""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console

from p4gen.errors import P4genError
from p4gen.labs.session import Lab
from p4gen.labs.switches import trace_file
from p4gen.switch.observe import TRACE_END
from p4gen.vocabulary import ticks

_LOOK_S = 0.05
_INSTANCE: Final = re.compile(r"\.(?P<array>edge|lane)_(?P<number>\d+)\b")
"""Matches a step in a control that a program has once per edge or lane."""
_BECOMES: Final = re.compile(r"becomes (\S+) \(was (\S+)\)")
_STEP: Final = re.compile(r"\S*\s+(?:(?:if|switch|for) \(|[^=]+ = |\S+\.set(?:Valid|Invalid)\(\)$)")
"""Matches an assignment or a condition, which are too many for a prompt."""
_CHANGED: Final = 2
"""The number of an array's instances with a changed register that are printed."""


def _is_tick(packet: str) -> bool:
    return f" on port {ticks.PORT}\n" in packet and "opcode=TICK" in packet


KINDS: Final[Mapping[str, Callable[[str], bool]]] = {
    "": lambda packet: not _is_tick(packet),
    "data": lambda packet: "extract hdr.payload" in packet and not _is_tick(packet),
    "ticks": _is_tick,
}
"""Kinds of packets to trace, recognised by their trace; by default all but ticks, which are many on an idle switch."""


class Tracer:
    """Prints the traces of the next ``count`` packets through a switch, in a separate thread, then ends tracing.

    ``kind`` is one of ``KINDS``; ``turn`` is held while a trace is printed. The file has the complete traces of all
    packets; the printed ones are ``folded``.
    """

    def __init__(
        self, lab: Lab, switch: str, count: int, console: Console, kind: str = "", *, turn: threading.Lock
    ) -> None:
        self._lab, self._switch, self._count, self._console = lab, switch, count, console
        self._wanted, self._turn = KINDS[kind], turn
        self.file = trace_file(lab.job, switch)
        self.active = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"trace of {switch}", daemon=True)

    def start(self) -> None:
        """Start tracing. Raises ``InputError`` if the switch cannot trace."""
        self._at = self.file.stat().st_size if self.file.exists() else 0
        self._lab.set_trace(self._switch, True)
        if self.file.exists() and self.file.stat().st_size < self._at:
            self._at = 0  # the file was full and starts again
        self.active = True
        self._thread.start()

    def close(self) -> None:
        """End tracing, unless it has already ended."""
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
                if packet.startswith(TRACE_END):
                    with self._turn:
                        self._console.print(f"{self._switch}: {packet}", markup=False)
                    left = 0
                elif self._wanted(packet):
                    lines = "\n".join(folded(packet.splitlines()))
                    with self._turn:
                        self._console.print(f"{self._switch}:\n{lines}\n", markup=False)
                    left -= 1
        with contextlib.suppress(P4genError):
            self._lab.set_trace(self._switch, False)
        self.active = False


def folded(lines: Sequence[str]) -> Iterator[str]:
    """A packet's trace without assignments and conditions, and without most edges and lanes: of each series the first
    one and the first ones with changes are kept; the others are counted."""
    lines = [line for line in lines if not _STEP.match(line)]
    for array, run in itertools.groupby(lines, lambda line: _part(line, "array")):
        if not array:
            yield from run
            continue
        instances = [list(steps) for _, steps in itertools.groupby(run, lambda line: _part(line, "number"))]
        changing = [number for number, steps in enumerate(instances) if _changes(steps)]
        kept = {0, *changing[:_CHANGED]}
        for shown, some in itertools.groupby(range(len(instances)), kept.__contains__):
            numbers = list(some)
            if shown or len(numbers) == 1:
                yield from itertools.chain.from_iterable(instances[number] for number in numbers)
            else:
                column = len(re.split(r"(?<=\S)\s{2,}", instances[0][0])[0])
                indent = len(instances[0][0]) - len(instances[0][0][column:].lstrip())
                yield f"{' ' * indent}… {len(numbers)} more {array}s"


def _part(line: str, name: str) -> str:
    found = _INSTANCE.search(line)
    return found[name] if found else ""


def _changes(steps: Sequence[str]) -> bool:
    found = [_BECOMES.search(line) for line in steps]
    return any(each is not None and each[1] != each[2] for each in found)
