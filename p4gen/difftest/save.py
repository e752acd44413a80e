"""A difference as files: a capture of the frames, an STF test that shows it, and an explanation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from p4gen.difftest.compare import Comparison, Difference, canonical_order
from p4gen.difftest.events import Event, Mirroring, Packet, Replication, Request
from p4gen.difftest.sides import Side
from p4gen.model.entries import Action, Entry, Exact, Lpm, Match, Range, Ternary
from p4gen.switch.pcap import write_pcap


def save(
    folder: Path,
    comparison: Comparison,
    reference: Side,
    difference: Difference,
    setup: Sequence[Event],
    events: Sequence[Event],
    note: str,
) -> list[Path]:
    """Write ``difference.pcap``, ``.stf`` and ``.txt``. The test expects the behaviour of ``reference``."""
    frames = [event.frame for event in events if isinstance(event, Packet)]
    pcap, stf, text = (folder / f"difference.{suffix}" for suffix in ("pcap", "stf", "txt"))
    write_pcap(pcap, frames)
    comparison.restart(setup)
    lines = [f"# {note}", f"# {difference.what}", f"# expected: the behaviour of {reference.name}"]
    lines += _statements(reference, setup, events)
    lines += _checks(reference, difference)
    stf.write_text("\n".join(lines) + "\n", encoding="utf-8")
    story = [note, "", difference.what, *(f"  {line}" for line in difference.details), ""]
    story += [f"configuration: {len(setup)} requests", *(f"  {event}" for event in setup), ""]
    story += [f"then {len(frames)} packets:", *(f"  {_line(event)}" for event in events)]
    text.write_text("\n".join(story) + "\n", encoding="utf-8")
    return [pcap, stf, text]


def _line(event: Event) -> str:
    return f"{event}: {event.frame.hex()}" if isinstance(event, Packet) else str(event)


def _statements(reference: Side, setup: Sequence[Event], events: Sequence[Event]) -> Iterator[str]:
    writer = _Writer()
    for event in setup:
        yield from writer.configuration(event)
    for event in events:
        if not isinstance(event, Packet):
            if reference.request(event):
                yield from writer.configuration(event)
            continue
        yield f"packet {event.port} {event.frame.hex()}"
        outputs = canonical_order(reference.exchange([event]))
        for port, sent in sorted(outputs.items()):
            yield from (f"expect {port} {frame.hex()} $" for frame in sent)


def statements(story: Iterable[tuple[Event, Sequence[tuple[int, bytes]] | None]]) -> Iterator[str]:
    """STF statements for what a switch is given, and for packets what it must send."""
    writer = _Writer()
    for event, sent in story:
        if isinstance(event, Packet):
            yield f"packet {event.port} {event.frame.hex()}"
            yield from (f"expect {port} {frame.hex()} $" for port, frame in sent or ())
        else:
            yield from writer.configuration(event)


def _checks(reference: Side, difference: Difference) -> Iterator[str]:
    """Statements that check the cells that differ."""
    state = reference.state() if difference.cells else None
    for kind, name, index in difference.cells:
        assert state is not None
        if kind == "register":
            yield f"check_register {name}({index}) == {state.registers[name][index]}"
        else:
            yield f"check_counter {name}({index}) packets == {state.counters[name][index].packets}"


class _Writer:
    """Writes requests as STF statements. STF refers to entries by handles and cannot modify them, so they are removed
    and added again."""

    def __init__(self) -> None:
        self._handles: dict[tuple[object, ...], str] = {}
        self._made = self._nodes = 0
        self._groups: set[int] = set()

    def configuration(self, event: Event) -> Iterator[str]:
        match event:
            case Replication():
                yield from self._replication(event)
            case Mirroring(session=session):
                yield from (f"mirroring_add {session.session_id} {replica.port}" for replica in session.replicas)
            case Request(verb=verb, entry=entry):
                key = (entry.table, entry.priority, frozenset(entry.match.items()))
                if verb != "insert":
                    yield f"remove ${self._handles.pop(key)}"
                if verb != "delete":
                    self._made += 1
                    self._handles[key] = f"e{self._made}"
                    yield f"{_add(entry)} = $e{self._made}"

    def _replication(self, event: Replication) -> Iterator[str]:
        number = event.group.group_id
        if number in self._groups:
            yield f"mc_mgrp_destroy {number}"
            self._groups.discard(number)
        if event.group.replicas:
            yield f"mc_mgrp_create {number}"
            self._groups.add(number)
        for replica in event.group.replicas:
            yield f"mc_node_create {replica.rid} {replica.port}"
            yield f"mc_node_associate {number} {self._nodes}"
            self._nodes += 1


def _add(entry: Entry) -> str:
    # The file's priorities count from 0, P4Runtime's from 1.
    priority = f" {entry.priority - 1}" if entry.priority else ""
    keys = "".join(f" {name}:{_match(match)}" for name, match in entry.match.items())
    return f"add {entry.table}{priority}{keys} {_call(entry.action)}"


def _call(action: Action) -> str:
    return f"{action.name}({', '.join(f'{name}:{value:#x}' for name, value in action.args.items())})"


def _match(match: Match) -> str:
    match match:
        case Exact(value=value) | int(value):
            return f"{value:#x}"
        case Lpm(value=value, prefix_len=length):
            return f"{value:#x}/{length}"
        case Ternary(value=value, mask=mask):
            return f"{value:#x}&&&{mask:#x}"
        case Range(low=low, high=high):
            return f"{low:#x}..{high:#x}"
