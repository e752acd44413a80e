"""Sends packets through a program without a test: the output is only printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.model import ControlError, Digest, Event, Trace
from p4gen.p4 import ir
from p4gen.stf.bench import Engine
from p4gen.stf.captures import read_capture
from p4gen.stf.commands import Commander
from p4gen.stf.lexer import StfError
from p4gen.stf.parser import LAST_PORT
from p4gen.stf.runner import configure, reference
from p4gen.stf.statements import Check, Expect, ExpectDigest, NoPacket, Packet, Statement, Wait

_OF_TESTS = (Packet, Expect, NoPacket, Wait, Check, ExpectDigest)
MAX_FRAME = 65535
_HEX = re.compile(r"[0-9a-fA-F]*")


@dataclass(frozen=True)
class Arrival:
    """A packet that is to arrive. ``after`` is in nanoseconds since the first packet of a capture; None: at once."""

    port: int
    data: bytes
    after: int | None = None


@dataclass(frozen=True)
class Passage:
    """A packet with its output by port, and the time, in nanoseconds on the switch's clock."""

    arrival: Arrival
    outputs: tuple[tuple[int, bytes], ...]
    digests: tuple[Digest, ...]
    events: tuple[Event, ...]
    time: int


class Injection:
    """A switch that runs ``program``, with the table entries that ``setup`` adds.

    Raises ``StfError`` for a statement of ``setup`` that does not fit the program or belongs in a test, and
    ``InputError`` for a program that the model does not run.
    """

    def __init__(self, program: ir.Program, setup: Sequence[Statement] = (), *, engine: Engine = reference) -> None:
        self._bench = Commander(program, engine)
        self._start = self._bench.now
        for statement in setup:
            if isinstance(statement, _OF_TESTS):
                what = "packets, waiting and what is expected belong in a test; entries are meant here"
                raise StfError(Diagnostic(statement.pos, what))
            try:
                configure(self._bench, statement)
            except ControlError as error:
                raise StfError(*(Diagnostic(statement.pos, d.message) for d in error.diagnostics)) from None

    @property
    def notes(self) -> tuple[str, ...]:
        """The answers to ``register_read`` and its like."""
        return tuple(self._bench.notes)

    @property
    def traps(self) -> tuple[str, ...]:
        """The program's undefined behaviour so far, a line each."""
        return tuple(str(trap) for trap in self._bench.model.traps())

    def process(self, arrival: Arrival, *, traced: bool = False) -> Passage:
        """Let a packet arrive. The switch's clock moves by a microsecond, or to the time of a captured packet."""
        bench, trace = self._bench, Trace() if traced else None
        if arrival.after is not None:
            bench.now = max(bench.now, self._start + arrival.after // 1000)
        known_digests = len(bench.digests)
        outputs = bench.packet(arrival.port, arrival.data, trace)
        events = tuple(trace.events) if trace is not None else ()
        return Passage(arrival, tuple(outputs), tuple(bench.digests[known_digests:]), events, bench.now * 1000)


def arrivals(packets: Iterable[str], captures: Iterable[str]) -> Iterator[Arrival]:
    """The packets of ``PORT:HEX`` texts, then those of ``PORT:FILE`` captures, in the order of their times.

    Raises ``InputError`` for what is neither, for a port that a switch does not have, and for a file that is no
    capture (``read_capture``).
    """
    yield from map(_packet, packets)
    frames = []
    for text in captures:
        port, name = _port("--pcap", text, "PORT:FILE")
        frames += [(captured.time, port, captured.frame) for captured in read_capture(Path(name))]
    frames.sort(key=lambda frame: frame[0])
    for time, port, data in frames:
        yield Arrival(port, data, time - frames[0][0])


def _packet(text: str) -> Arrival:
    port, digits = _port("--packet", text, "PORT:HEX")
    digits = "".join(digits.split())
    end = _HEX.match(digits)
    assert end is not None
    if end.end() < len(digits):
        raise InputError(Diagnostic(Option("packet"), f"{_short(text)}: {digits[end.end()]!r} is no hexadecimal digit"))
    if len(digits) % 2 or not digits:
        what = "half a byte is left over" if digits else "the packet has no bytes"
        raise InputError(Diagnostic(Option("packet"), f"{_short(text)}: {what}"))
    if len(digits) > 2 * MAX_FRAME:
        raise InputError(Diagnostic(Option("packet"), f"{_short(text)}: a packet has {MAX_FRAME:,} bytes at most"))
    return Arrival(port, bytes.fromhex(digits))


def _port(option: str, text: str, form: str) -> tuple[int, str]:
    number, colon, rest = text.partition(":")
    if not colon or not re.fullmatch(r"[0-9]{1,9}", number):
        raise InputError(Diagnostic(option, f"{_short(text)}: {form} is expected"))
    if int(number) > LAST_PORT:
        raise InputError(Diagnostic(option, f"{_short(text)}: ports are numbered from 0 to {LAST_PORT}"))
    return int(number), rest


def _short(text: str) -> str:
    return text if len(text) < 40 else f"{text[:36]}..."
