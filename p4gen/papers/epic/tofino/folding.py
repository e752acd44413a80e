"""Payloads that are wider than what a pass works on, in programs of static groups: each pipe has a part of them.

A contribution leaves the part that a pass has worked on behind, and recirculates into the next pipe, whose registers
take the next part. From the last pipe a result comes back through the others: each gives its part, in front of those
behind it. Every pass finds the packet's group and slot by itself, and checks for duplicates in its own pipe: a packet
that is lost on the way is made up for by the repetition of its sender.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from p4gen.layout import Header, HeaderField
from p4gen.papers.epic.spec import EpicSpec
from p4gen.rocev2 import layouts as roce

if TYPE_CHECKING:
    from p4gen.groups.group import Edge

CHUNK: Final = 64
"""The most bytes of a packet that a Tofino 2 keeps for the deparser in one piece."""
NEAR: Final = 256
"""The most bytes of a payload that egress of a Tofino 2 parses: it keeps pieces of a packet's first 384 bytes, and the
containers do not suffice for much more. In ingress the lanes' containers are free in this pass."""


def fold(spec: EpicSpec) -> Header:
    """The header of a packet between two of its passes."""
    summed = HeaderField("crc", 32, "what the parts so far add to the ICRC; of a copy, what changes in it")
    return Header(
        "fold",
        "In front of a packet between two of its passes; it never leaves the switch",
        (
            HeaderField("visits", 8, "pipes that it has visited, one of them again on its way back"),
            HeaderField("again", 8, "1: all pipes so far had its contribution already"),
            HeaderField("zeros", 7, "zeros"),
            HeaderField("sender", 9, "the port by which it came" + ("; of a copy, leaves" if patched(spec) else "")),
            *((summed,) if spec.icrc.right else ()),
        ),
        noted=True,
    )


def chunks(spec: EpicSpec) -> tuple[Header, ...]:
    """Pieces of a payload that is parsed for the ICRC behind it."""
    if not folded(spec) or not spec.icrc.right:
        return ()
    starts = range(0, spec.payload_bytes, CHUNK)
    return tuple(
        Header(
            f"chunk_{i}",
            "A piece of a payload that no table reads",
            (HeaderField("lanes", 8 * min(CHUNK, spec.payload_bytes - start), "elements"),),
        )
        for i, start in enumerate(starts)
    )


def patched(spec: EpicSpec) -> bool:
    """Whether a copy recirculates once more for its ICRC, which is behind what the chip's egress parses."""
    far = spec.architecture.egress_bytes > 0 or spec.payload_bytes > NEAR
    return folded(spec) and spec.icrc.right and far


def copy_visits(spec: EpicSpec) -> int:
    """What the header between passes says of such a copy in place of visits."""
    return 2 * spec.payload_pipes - 1


def folded(spec: EpicSpec) -> bool:
    """Whether a packet visits several pipes."""
    return spec.payload_pipes > 1


def recirculating(spec: EpicSpec) -> int:
    """How many multicast groups there are of each kind: those whose copies recirculate come after all others."""
    return spec.groups * (2 * spec.fan_in + 1)


def port_back(spec: EpicSpec, port: int) -> int:
    """The port by which a packet comes back to the pipe of ``port``."""
    pipe_of = spec.architecture.pipe_of
    return next(each for each in spec.recirculation_ports if pipe_of(each) == pipe_of(port))


@dataclass(frozen=True)
class Way:
    """An entry of FoldPayload's table: what becomes of a packet that a pass has done its work on."""

    visits: int
    slot_use: str
    complete: str
    pipe: int
    action: str


def ways(spec: EpicSpec) -> Iterator[Way]:
    """The ways on from each pipe, and back. What has none ends here: what waits for others, and what has come back to
    the pipe of its sender."""
    ports, last = spec.recirculation_ports, spec.payload_pipes - 1
    for number, port in enumerate(ports):
        pipe = spec.architecture.pipe_of(port)
        after, before = ports[(number + 1) % len(ports)], ports[number - 1]
        for visits in range(2 * last + 1):
            for use in ("FRESH", "MERGE", "REPEAT"):
                again = int(use == "REPEAT")
                if visits == 0:
                    action = f"set_out({after}, {again})"
                elif visits < last:
                    action = f"go_on({after}, {visits + 1}, {again})"
                elif visits > last and not again:
                    action = "lost()"  # this pipe had its contribution when it came by
                elif visits < 2 * last:
                    action = f"go_back({before}, {visits + 1}, {again})"
                else:
                    continue
                yield Way(visits, use, "1" if "back" in action else "_", pipe, action)


def problems(spec: EpicSpec) -> Iterator[str]:
    """Why a program cannot fold its payloads, a sentence each."""
    if folded(spec) and spec.icrc.checked:
        yield (
            f"{spec.arch}: icrc {spec.icrc} with payload-pipes {spec.payload_pipes} needs a round through all pipes "
            "before the first one touches state: use icrc set"
        )


def problems_of_group(spec: EpicSpec, edges: Sequence[Edge]) -> Iterator[str]:
    """Why a program cannot serve a group: its packets have no way back to their pipe."""
    arch = spec.architecture
    pipes = {arch.pipe_of(port) for port in spec.recirculation_ports}
    for pipe in sorted({arch.pipe_of(edge.port) for edge in edges} - pipes if folded(spec) else ()):
        yield f"its edges are in pipe {pipe}, which has none of the program's ports for recirculation"


def passes(spec: EpicSpec) -> dict[str, int]:
    """How many times a packet and its copies go through ingress at most, by the program's ``kind_t``."""
    kinds = ("ORDINARY", "DATA", "CONTROL", "ANSWER", "NOTIFICATION", "MALFORMED")
    return dict.fromkeys(kinds, 1) | {"DATA": 2 * spec.payload_pipes - 1 + (spec.fan_in if patched(spec) else 0)}


@dataclass(frozen=True)
class Recirculation:
    """What recirculates, in bytes of packets with Ethernet headers, without FCS; and what that leaves of the ports."""

    contribution: tuple[int, ...]
    """Each time that a contribution recirculates, into the second pipe, the third, and so on."""
    result: tuple[int, ...]
    """Each time that a result does, on its way back to the first pipe."""
    copy: int
    """Each copy that recirculates for its ICRC; 0 if none does."""
    gbps: int
    """Of a port."""
    payload_gbps: float
    """The most payload that all edges of one pipe can contribute, if groups in no other pipe recirculate."""


def recirculation(spec: EpicSpec) -> Recirculation:
    """What a program's packets take of the ports for recirculation."""
    around = sum(header.size for header in (fold(spec), roce.ETHERNET, roce.IPV4, roce.UDP, roce.BTH, roce.ICRC))
    part = spec.payload_bytes // spec.payload_pipes
    contribution = tuple(around + parts * part for parts in range(spec.payload_pipes - 1, 0, -1))
    result = tuple(around + parts * part for parts in range(1, spec.payload_pipes))
    copy = around + spec.payload_bytes if patched(spec) else 0
    # The most has the port of the pipe after the first (contributions, and from four pipes on results as well), or that
    # of the first one (results, and copies).
    after = spec.fan_in * contribution[0] + (result[-2] if len(result) > 1 else 0)
    most = max(after, spec.fan_in * copy + result[-1])
    gbps = spec.architecture.recirculation_gbps
    return Recirculation(contribution, result, copy, gbps, round(gbps * spec.fan_in * spec.payload_bytes / most, 1))


def report(spec: EpicSpec) -> str | None:
    """What folding costs, as sentences."""
    if not folded(spec):
        return None
    cost = recirculation(spec)
    there, back = (f"{' + '.join(map(str, some))} bytes" for some in (cost.contribution, cost.result))
    pipes = spec.payload_pipes
    copies = f", each of its copies 1 more and {cost.copy} bytes" if cost.copy else ""
    return (
        f"payload of {pipes} pipes: a contribution takes {pipes} passes and recirculates {there},"
        f" a result {pipes - 1} more and {back}{copies}.\n"
        f"A port for recirculation carries {cost.gbps} Gb/s: all edges of a pipe"
        f" together contribute at most {cost.payload_gbps} Gb/s of payload."
    )
