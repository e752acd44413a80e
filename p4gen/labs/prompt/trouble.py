"""Commands that break a lab's links, switches and manager, and mend them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Final

from p4gen.errors import InputError
from p4gen.labs.network.outages import fail_links
from p4gen.labs.prompt.terminal import Session, read_seconds
from p4gen.manager.api import GroupState, Status

FAIL: Final = "fail link A B [after TIME] [for TIME] | fail switch S | fail manager"
RESTORE: Final = "restore link A B"
RESTART: Final = "restart switch S | restart manager"
"""Usages of commands."""


def fail(session: Session, words: list[str]) -> bool:
    """Takes a link down, or kills a switch or the manager."""
    times = {"after": 0.0, "for": 0.0}
    while words[0] == "link" and len(words) > 3 and words[-2] in times:
        *words, which, text = words
        times[which] = read_seconds(text)
    if words[0] == "link" and len(words) == 3:
        session.lab.network.link(words[1], words[2])
        outage = words[1], words[2], times["after"], times["after"] + times["for"] if times["for"] else 0.0
        if not any(times.values()):
            _set_link(session, words[1], words[2], up=False)
        else:
            when = f"in {times['after']:g} s" if times["after"] else "now"
            then = f", for {times['for']:g} s" if times["for"] else ""
            session.console.print(f"{words[1]}-{words[2]} goes down {when}{then}")
            threading.Thread(target=fail_links, args=(session.lab, [outage], session.console), daemon=True).start()
    elif words[0] == "switch" and len(words) == 2:
        with _effects(session, lambda status: _unused(status, words[1])):
            session.lab.fail_switch(words[1])
            session.console.print(f"{words[1]} is dead; restart switch {words[1]} starts it again, empty")
    elif words == ["manager"]:
        session.lab.fail_manager()
        spec = session.lab.job.spec
        goes_on = f"{'groups' if session.lab.job.grouped else 'connections'} stay as they are, and run works on them"
        if spec.wants_ticks:
            goes_on = "groups stay as they are, but get no ticks, which their calls need, so run has to wait for it"
        session.console.print(f"the manager is dead: {goes_on}; restart manager starts it again, on its store")
    else:
        raise InputError(f"usage: {FAIL}")
    return True


def restore(session: Session, words: list[str]) -> bool:
    """Takes a link up again. Raises ``InputError`` if there is no such link, and for anything else."""
    if words[0] != "link":
        raise InputError(f"usage: {RESTORE}; switches are restarted: restart switch s1")
    _set_link(session, words[1], words[2], up=True)
    return True


def _set_link(session: Session, a: str, b: str, *, up: bool) -> None:
    def noticed(status: Status) -> bool:
        ends = {switch.name: switch.links_down for switch in status.switches}
        return all((other in ends[end]) is not up for end, other in ((a, b), (b, a)) if end in ends)

    with _effects(session, noticed):
        session.lab.network.set_link(a, b, up=up)
        session.console.print(f"{a}-{b} is {'up' if up else 'down'}")


def _unused(status: Status, switch: str) -> bool:
    return all(switch not in group.switches for group in status.groups if group.state is GroupState.ACTIVE)


@contextlib.contextmanager
def _effects(session: Session, noticed: Callable[[Status], bool]) -> Iterator[None]:
    """Report how groups or connections change because of the block, once the manager has ``noticed`` the event."""
    parties = session.lab.parties
    before = parties.states()
    yield
    for line in parties.changes(before, noticed):
        session.console.print(line, markup=False)


def restart(session: Session, words: list[str]) -> bool:
    """Starts a switch or the manager again."""
    if words == ["manager"]:
        session.lab.restart_manager()
        session.console.print(
            f"the manager is running again, and knows its {'groups' if session.lab.job.grouped else 'connections'}"
        )
        return True
    if words[0] != "switch" or len(words) != 2:
        raise InputError(f"usage: {RESTART}")
    with _effects(session, lambda status: all(s.reachable for s in status.switches if s.name == words[1])):
        session.lab.restart_switch(words[1])
        session.console.print(f"{words[1]} is running again, with its program")
    return True


def suffer(kind: str) -> Callable[[Session, list[str]], bool]:
    """The command that makes links lose, delay and so on."""

    def action(session: Session, words: list[str]) -> bool:
        now = session.lab.impairments.suffer(words[0], kind, words[1])
        session.console.print(f"{words[0]}: {now.text()}, each way")
        return True

    return action


def heal(session: Session, _words: list[str]) -> bool:
    """Removes all faults of links."""
    session.lab.impairments.heal()
    session.console.print("links have no faults")
    return True
