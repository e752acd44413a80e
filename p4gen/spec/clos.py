"""Generated two-tier Clos networks: ``clos:4x2x2`` has 4 leaves, 2 spines, and 2 hosts on each leaf.

Every leaf has a link to every spine. Host number i is on leaf i // H, so that hosts k, k + H, k + 2H, ... are one of
each leaf. ``@400G`` sets the links' bandwidth; everything else is a topology's default.
"""

from __future__ import annotations

import re
from typing import Any, Final

from p4gen.errors import InputError
from p4gen.inputs import shown
from p4gen.spec import units

PREFIX: Final = "clos:"
FORM: Final = "clos:LxSxH"
"""What a name looks like: leaves, spines, hosts on each leaf."""
MAX_SWITCHES: Final = 1024
MAX_HOSTS: Final = 1024
MAX_LINKS: Final = 8192
_NAME: Final = re.compile(r"clos:([0-9]{1,4})x([0-9]{1,4})x([0-9]{1,4})(?:@(.+))?$")


def clos_fields(text: str) -> dict[str, Any]:
    """The fields of the topology with this name. Raises ``InputError`` if the name or a number in it is wrong."""
    match = _NAME.match(text)
    if match is None:
        raise InputError(f"{shown(text)}: must be {FORM} (leaves, spines, hosts on each leaf), as in clos:4x2x2@100G")
    leaves, spines, hosts = (int(match[i]) for i in (1, 2, 3))
    limits = (
        (leaves + spines, MAX_SWITCHES, "switches"),
        (leaves * hosts, MAX_HOSTS, "hosts"),
        (leaves * (spines + hosts), MAX_LINKS, "links"),
    )
    if 0 in (leaves, spines, hosts):
        raise InputError(f"{shown(text)}: there must be a leaf, a spine and a host on each leaf at least")
    for count, most, what in limits:
        if count > most:
            raise InputError(f"{shown(text)}: {count:,} {what}; a topology has {most:,} at most")
    try:
        speed = {} if match[4] is None else {"bandwidth": units.bandwidth(match[4])}
    except ValueError as error:
        raise InputError(f"{shown(text)}: {error}") from None
    return {
        "name": f"clos-{leaves}x{spines}x{hosts}",
        "switches": [f"spine{i}" for i in range(spines)] + [f"leaf{i}" for i in range(leaves)],
        "hosts": [f"h{i}" for i in range(leaves * hosts)],
        "links": [[f"leaf{leaf}", f"spine{spine}"] for leaf in range(leaves) for spine in range(spines)]
        + [[f"h{host}", f"leaf{host // hosts}"] for host in range(leaves * hosts)],
        "defaults": speed,
    }
