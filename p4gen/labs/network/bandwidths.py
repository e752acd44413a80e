"""Links of a lab with a bandwidth of their own: token buckets of the kernel (tc-tbf(8)) in the middle of a link.

Switches and hosts send past queueing disciplines, so a link of this kind has a bridge in its middle, whose two
interfaces limit a direction each. Rates count Ethernet frames without preamble and FCS.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any, Final

from p4gen.errors import FailedError, InputError, MissingToolError
from p4gen.net.world.faults import parse_place
from p4gen.packages import install
from p4gen.vocabulary import units
from p4gen.vocabulary.topology import Link, TopologySpec

LEAST: Final = 100_000
"""Bit/s: a packet of 9,000 bytes then takes most of a second."""
_BURST: Final = 16 << 10
"""Bytes that leave at once after a pause: more than a frame."""
QUEUE: Final = 4 << 20
"""Bytes that wait for a link at most, in each direction."""
_PATIENCE_S: Final = 60.0


def parse(texts: Iterable[str], topology: TopologySpec) -> tuple[tuple[str, int], ...]:
    """The links, by name, and bit/s of ``20M`` (all), ``20M@h0`` and ``20M@s0`` (all links of a node), ``20M@s0-s1``;
    of a link that is named several times the last one. Raises ``InputError``."""
    found: dict[str, int] = {}
    for text in texts:
        value, place = parse_place(text)
        try:
            rate = units.bandwidth(value)
            if rate < LEAST:
                raise ValueError(f"a link of a lab has at least 100K (bit/s), not {value}")
        except ValueError as error:
            raise InputError(f"--bandwidth {text}: {error}") from None
        links = [link.name for link in topology.links if not place or place in (*link.ends, *_names(link))]
        if not links:
            names = ", ".join((*topology.ports, *(link.name for link in topology.links)))
            raise InputError(f"--bandwidth {text}: there is no node or link '{place}'; there are {names}")
        found |= dict.fromkeys(links, rate)
    return tuple(found.items())


def _names(link: Link) -> tuple[str, str]:
    return link.name, "-".join(link.ends[::-1])


def limit(rates: Mapping[str, int]) -> None:
    """Limit what interfaces send, by their names, in bit/s. Raises ``FailedError`` if the kernel cannot."""
    for device, rate in rates.items():
        _tc(f"qdisc replace dev {device} root tbf rate {rate}bit burst {_BURST} limit {QUEUE}")


def lost(devices: Iterable[str]) -> int:
    """The frames that found no room in the queues of these interfaces since they have a limit."""
    return sum(sum(entry.get("drops", 0) for entry in _json(f"-s -j qdisc show dev {each}")) for each in devices)


def _json(command: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(_tc(command))
    return found


def _tc(command: str) -> str:
    try:
        done = subprocess.run(
            ["tc", *command.split()], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except FileNotFoundError:
        raise MissingToolError(f"--bandwidth needs tc, which is not on PATH: {install('ip')}") from None
    except subprocess.TimeoutExpired:
        raise FailedError(f"tc {command}: has not ended in {_PATIENCE_S:g} s") from None
    if done.returncode:
        cause = "; ".join(done.stderr.split("\n")).strip("; ") or f"exit status {done.returncode}"
        hint = " (this kernel has no token buckets, sch_tbf)" if "kind is unknown" in cause else ""
        raise FailedError(f"tc {command}: {cause}{hint}")
    return done.stdout
