"""Generated Clos networks: ``clos:4x2x2`` has 4 leaves, 2 spines, and 2 hosts on each leaf.

Every leaf has a link to every spine. Host number i is on leaf i // H, so that hosts k, k + H, k + 2H, ... are one of
each leaf. ``@400G`` sets the links' bandwidth; everything else is a topology's default.

``clos3:2x2x4x2x1`` has three tiers: 2 pods, each with 2 leaves and 4 aggregation switches, 2 cores for each of these,
and 1 host on each leaf. Every leaf has a link to every aggregation switch of its pod, and the k-th aggregation switches
of all pods have links to the same cores. So there are 4 x 2 paths between pods, and 4 in a pod.
"""

from __future__ import annotations

import re
from typing import Any, Final

from p4gen.errors import InputError
from p4gen.inputs import quote
from p4gen.vocabulary import units

PREFIX: Final = "clos:"
PREFIX_3: Final = "clos3:"
FORM: Final = "clos:LxSxH"
"""What a name looks like: leaves, spines, hosts on each leaf."""
FORM_3: Final = "clos3:PxLxAxCxH"
"""Pods, leaves and aggregation switches of each, cores for each of the latter, hosts on each leaf."""
MAX_SWITCHES: Final = 1024
MAX_HOSTS: Final = 4096
MAX_LINKS: Final = 8192
_NUMBER: Final = "([0-9]{1,4})"
_NAME: Final = re.compile(PREFIX + "x".join([_NUMBER] * 3) + "(?:@(.+))?$")
_NAME_3: Final = re.compile(PREFIX_3 + "x".join([_NUMBER] * 5) + "(?:@(.+))?$")


def is_clos(text: str) -> bool:
    """Whether a topology's name is one of a generated network."""
    return text.startswith((PREFIX, PREFIX_3))


def clos_fields(text: str) -> dict[str, Any]:
    """The fields of the topology with this name. Raises ``InputError`` if the name or a number in it is wrong."""
    if text.startswith(PREFIX_3):
        return _three_tiers(text)
    match = _NAME.match(text)
    if match is None:
        raise InputError(f"{quote(text)}: must be {FORM} (leaves, spines, hosts on each leaf), as in clos:4x2x2@100G")
    leaves, spines, hosts = (int(match[i]) for i in (1, 2, 3))
    if 0 in (leaves, spines, hosts):
        raise InputError(f"{quote(text)}: there must be a leaf, a spine and a host on each leaf at least")
    _check(text, leaves + spines, leaves * hosts, leaves * (spines + hosts))
    return {
        "name": f"clos-{leaves}x{spines}x{hosts}",
        "switches": [f"spine{i}" for i in range(spines)] + [f"leaf{i}" for i in range(leaves)],
        "hosts": [f"h{i}" for i in range(leaves * hosts)],
        "links": [[f"leaf{leaf}", f"spine{spine}"] for leaf in range(leaves) for spine in range(spines)]
        + [[f"h{host}", f"leaf{host // hosts}"] for host in range(leaves * hosts)],
        "defaults": _defaults(text, match[4]),
    }


def _three_tiers(text: str) -> dict[str, Any]:
    match = _NAME_3.match(text)
    if match is None:
        raise InputError(
            f"{quote(text)}: must be {FORM_3} (pods, leaves and aggregation switches of a pod, cores for each of the "
            "latter, hosts on each leaf), as in clos3:2x2x4x2x1@100G"
        )
    pods, leaves, aggs, cores, hosts = (int(match[i]) for i in range(1, 6))
    if 0 in (pods, leaves, aggs, cores, hosts):
        raise InputError(f"{quote(text)}: none of the numbers may be 0")
    _check(
        text,
        pods * (leaves + aggs) + aggs * cores,
        pods * leaves * hosts,
        pods * (leaves * (aggs + hosts) + aggs * cores),
    )
    every = [(pod, agg) for pod in range(pods) for agg in range(aggs)]
    return {
        "name": f"clos3-{pods}x{leaves}x{aggs}x{cores}x{hosts}",
        "switches": [f"core{i}" for i in range(aggs * cores)]
        + [f"agg{i}" for i in range(pods * aggs)]
        + [f"leaf{i}" for i in range(pods * leaves)],
        "hosts": [f"h{i}" for i in range(pods * leaves * hosts)],
        "links": [
            [f"agg{pod * aggs + agg}", f"core{agg * cores + core}"] for pod, agg in every for core in range(cores)
        ]
        + [[f"leaf{leaf}", f"agg{leaf // leaves * aggs + agg}"] for leaf in range(pods * leaves) for agg in range(aggs)]
        + [[f"h{host}", f"leaf{host // hosts}"] for host in range(pods * leaves * hosts)],
        "defaults": _defaults(text, match[6]),
    }


def _check(text: str, switches: int, hosts: int, links: int) -> None:
    counts = (switches, MAX_SWITCHES, "switches"), (hosts, MAX_HOSTS, "hosts"), (links, MAX_LINKS, "links")
    for count, most, what in counts:
        if count > most:
            raise InputError(f"{quote(text)}: {count:,} {what}; a topology has {most:,} at most")


def _defaults(text: str, speed: str | None) -> dict[str, int]:
    try:
        return {} if speed is None else {"bandwidth": units.bandwidth(speed)}
    except ValueError as error:
        raise InputError(f"{quote(text)}: {error}") from None
