"""Commands of a lab's prompt about connections between hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from p4gen.errors import InputError
from p4gen.labs.prompt.terminal import Session, read_size, take_option
from p4gen.labs.runs.calls import room
from p4gen.labs.runs.peercalls import COLLECTIVES, PeerCall
from p4gen.labs.runs.peerruns import run as run_calls
from p4gen.labs.runs.report import progress, show, size_text, to_json
from p4gen.manager.api import ConnectionState, ConnectionStatus
from p4gen.manager.figures import connection_figures, connection_lines
from p4gen.vocabulary.message import Collective

SPRAY: Final = "spray on|off"
_RUN: Final = "run COLLECTIVE [SIZE] [HOST …] [root R] [repeat N]"


def run(session: Session, words: list[str]) -> bool:
    """Runs a collective over connections."""
    lab, name, rest = session.lab, words[0], words[1:]
    if name not in COLLECTIVES:
        raise InputError(f"'{name}' is not a collective; there are {', '.join(COLLECTIVES)}")
    if name != Collective.BARRIER and not rest:
        raise InputError(f"usage: {_RUN}")
    size = 0 if name == Collective.BARRIER else read_size(rest.pop(0))
    repeat, root = take_option(rest, "repeat", 1), take_option(rest, "root", 0)
    if not repeat:
        raise InputError("repeat must be at least 1")
    call = PeerCall(name, size, root)
    ranks = lab.topology.rank_hosts if rest in ([], ["all"]) else tuple(rest)
    lab.check_hosts(ranks)
    call.check(len(ranks))
    room(name, size, len(ranks))
    group = lab.connections.group(ranks, ring=not call.is_alltoall)
    session.runs += 1
    with progress(session.console, name) as tell:
        outcome = run_calls(
            lab,
            group,
            [call] * repeat,
            seed=lab.job.wanted.seed + session.runs,
            deadline=lab.job.wanted.deadline,
            progress=tell,
        )
    session.latest = to_json(outcome)
    with session.turn:
        what = f"{name} of {size_text(size)}" if size else name
        session.console.print(f"{what}, {len(ranks)} ranks over {group.name}, {len(group.numbers)} connections")
        for line in group.not_registered:
            session.console.print(line, markup=False)
        show(outcome, session.console)
    return outcome.ok


def spray(session: Session, words: list[str]) -> bool:
    """Has all connections sprayed, or takes them back to ECMP."""
    if words not in (["on"], ["off"]):
        raise InputError(f"usage: {SPRAY}")
    on = words == ["on"]
    changed = session.lab.connections.spray(spray=on)
    wanted = ConnectionState.SPRAYED if on else ConnectionState.ECMP
    done = [status for status in changed if status.state is wanted]
    session.console.print(f"{len(done)} connections are {'sprayed' if on else 'on the paths that ECMP gives them'}")
    for status in changed:
        if status.state is not wanted:
            session.console.print(f"connection {status.number} is {status.state}: {status.reason}", markup=False)
    return len(done) == len(changed)


def connections(session: Session, _words: list[str]) -> bool:
    """Prints all connections, with what switches have counted."""
    found = session.lab.manager.status().connections
    if not found:
        session.console.print("no connections between racks; run alltoall 1M creates some")
        return True
    titles, *rows = connection_lines([connection_figures(status) for status in found])
    session.console.print(titles, style="bold", markup=False)
    for row in rows:
        session.console.print(row, markup=False)
    for reason in dict.fromkeys(status.reason for status in found if status.reason):
        numbers = ", ".join(str(status.number) for status in found if status.reason == reason)
        session.console.print(f"{numbers}: {reason}", markup=False)
    return True


def changes(before: Sequence[ConnectionStatus], now: Sequence[ConnectionStatus]) -> list[str]:
    """What has become of connections that have changed, a line for each kind of change."""
    earlier = {status.number: (status.state, status.generation) for status in before}
    kinds: dict[str, list[int]] = {}
    for status in now:
        if earlier.get(status.number) != (status.state, status.generation):
            over = f" over {' '.join(status.paths)}" if status.state is ConnectionState.SPRAYED else ""
            why = f": {status.reason}" if status.reason else ""
            kinds.setdefault(f"{status.state}{over}, generation {status.generation}{why}", []).append(status.number)
    return [f"{len(numbers)} connections are {kind}" for kind, numbers in kinds.items()]
