"""Windows of groups on the command line: ``tp=0%-60%``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from p4gen.errors import InputError
from p4gen.inputs import parsed, quote
from p4gen.plan.placement.windows import Schedule
from p4gen.vocabulary import units


def schedules(option: str, texts: Sequence[str], names: Collection[str], clock: str = "") -> dict[str, Schedule]:
    """The schedules of groups, by name: each text is for the group of that name or, if there is none, for all whose
    names begin so. Raises ``InputError``."""
    found: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for text in texts:
        start, _, window = text.partition("=")
        mine = [name for name in names if (name == start if start in names else name.startswith(start))]
        if not mine:
            raise InputError(f"--{option} {quote(text)}: no group is called {quote(start)} or begins so")
        begin, sign, end = window.partition("-")
        if not sign:
            raise InputError(f"--{option} {quote(text)}: it is not NAME=FROM-TO")
        shares = parsed(option, units.share, begin), parsed(option, units.share, end)
        for name in mine:
            found[name].append(shares)
    return {name: Schedule(clock, tuple(windows)) for name, windows in found.items()}
