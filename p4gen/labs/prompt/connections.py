"""Commands of a lab's prompt about connections between hosts."""

from __future__ import annotations

from typing import Final

from p4gen.errors import InputError
from p4gen.labs.prompt.terminal import Session
from p4gen.manager.api import ConnectionState
from p4gen.manager.statistics import connection_lines, connection_statistics

SPRAY: Final = "spray on|off"


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
    titles, *rows = connection_lines([connection_statistics(status) for status in found])
    session.console.print(titles, style="bold", markup=False)
    for row in rows:
        session.console.print(row, markup=False)
    for reason in dict.fromkeys(status.reason for status in found if status.reason):
        numbers = ", ".join(str(status.number) for status in found if status.reason == reason)
        session.console.print(f"{numbers}: {reason}", markup=False)
    return True
