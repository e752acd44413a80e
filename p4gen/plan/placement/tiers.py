"""The tiers of a network that choose among next hops of equal cost, and the bits of their hashes by which they choose.

A switch's tier is its distance from the nearest host: 1 for leaves. All switches compute the same hash, so two tiers
that use the same bits of it do not choose independently. A program whose routes may use any bits (``slices_hash``) gets
those above the bits of all tiers further up; the others use the lowest ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from p4gen.errors import InputError
from p4gen.groups.connections import Tier, connection_limits
from p4gen.plan.placement.placer import switch_of
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec

NextPorts = Callable[[str, str], tuple[int, ...]]
"""The ports of a switch on shortest paths to a host."""
_NAMED = 4
"""The most switches of a tier that a message names."""


def hash_shift(topology: TopologySpec, spec: ProgramSpec, switch: str) -> int | None:
    """The bit of the hash from which on a switch with a program of ``spec`` chooses; None if it cannot choose where.

    It does not depend on which links are down.
    """
    tier = topology.tiers.get(switch)
    if tier is None or not spec.slices_hash:
        return None
    return sum(bits for above, bits in topology.tier_bits.items() if above > tier)


def choosing_tiers(
    topology: TopologySpec, programs: Mapping[str, ProgramSpec], next_ports: NextPorts, source: str, destination: str
) -> tuple[Tier, ...]:
    """The tiers that choose on the way from the host ``source`` to ``destination``, in order.

    Raises ``InputError`` with the name of a tier whose switches do not all choose alike, or not among 2^n next hops.
    """
    found = []
    last = switch_of(topology, destination)
    here = [switch_of(topology, source)]
    while here and here != [last]:
        ports = {switch: next_ports(switch, destination) for switch in here}
        name = f"{topology.tiers[here[0]]} ({_listed(here)})"
        unknown = [switch for switch in here if switch not in programs]
        if unknown:
            raise InputError(f"tier {name}: {unknown[0]} is not registered")
        counts = sorted({len(each) for each in ports.values()})
        shifts = sorted({hash_shift(topology, programs[switch], switch) or 0 for switch in here})
        if len(counts) > 1:
            raise InputError(f"tier {name}: its switches have {' and '.join(map(str, counts))} next hops")
        if counts[0].bit_count() != 1:
            raise InputError(f"tier {name}: {counts[0]} next hops; their number must be a power of two")
        if counts[0] > 1:
            if len(shifts) > 1:
                raise InputError(f"tier {name}: its switches choose by different bits of their hashes")
            found.append(Tier(name, counts[0].bit_length() - 1, shifts[0]))
        links = [topology.ports[switch][port].other(switch) for switch in here for port in ports[switch]]
        here = sorted(set(links), key=topology.switches.index)
    return tuple(found)


def connection_tiers(
    topology: TopologySpec, programs: Mapping[str, ProgramSpec], next_ports: NextPorts, source: str, destination: str
) -> tuple[Tier, ...]:
    """The tiers that the programs of a connection's ends must know; none if they need not know any.

    Raises ``InputError`` like ``choosing_tiers``, and if one end changes packets that the other end must restore, and
    does not.
    """
    first, last = (switch_of(topology, host) for host in (source, destination))
    here, there = (connection_limits(programs[switch]) for switch in (first, last))
    if not here.tiers:
        return ()
    if not there.restores:
        raise InputError(f"{last}: its program does not restore the UDP source ports that {first} changes (tiers)")
    return choosing_tiers(topology, programs, next_ports, source, destination)


def path_choice(paths: int, tiers: tuple[Tier, ...]) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The key of a set of paths: their number, and the bits by which they are chosen."""
    return paths, tuple((tier.bits, tier.shift) for tier in tiers)


def _listed(switches: list[str]) -> str:
    more = len(switches) - _NAMED
    return ", ".join(switches[:_NAMED]) + (f" and {more} more" if more > 0 else "")
