"""TopologySpec: hosts, switches and the links between them, the hosts that are ranks, and the IncTree's root.

Ports of a switch are numbered in the order in which its links are listed, from 0.
``p4gen.vocabulary.clos`` generates Clos networks.
"""

from __future__ import annotations

import difflib
import os
from collections import Counter, deque
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.inputs import quote
from p4gen.resources import resource
from p4gen.vocabulary import units
from p4gen.vocabulary.clos import FORM, FORM_3, MAX_HOSTS, MAX_LINKS, MAX_SWITCHES, clos_fields, is_clos
from p4gen.vocabulary.positions import Path_, read_yaml

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
Bandwidth = Annotated[int, BeforeValidator(units.bandwidth)]
Duration = Annotated[int, BeforeValidator(units.duration)]
Bytes = Annotated[int, BeforeValidator(units.size)]
Share = Annotated[float, BeforeValidator(units.share)]


class Ecn(BaseModel):
    """ECN marking of a queue: none below ``low`` bytes, all packets above ``high``, and between them a share that grows
    up to ``share``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: Annotated[Bytes, Field(description="bytes waiting above which packets may be marked")] = 100 << 10
    high: Annotated[Bytes, Field(description="bytes waiting above which all are marked")] = 400 << 10
    share: Annotated[Share, Field(description="share marked just below high")] = 0.2

    @model_validator(mode="after")
    def _ordered(self) -> Ecn:
        if self.low > self.high:
            raise ValueError("low exceeds high")
        return self


class LinkDefaults(BaseModel):
    """The properties of links that do not name their own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bandwidth: Annotated[Bandwidth, Field(description="bit/s in each direction")] = 100_000_000_000
    delay: Annotated[Duration, Field(description="propagation delay")] = 1_000_000
    queue: Annotated[
        Bytes, Field(description="bytes of the queue in each direction; packets beyond it are dropped")
    ] = 1 << 20
    ecn: Annotated[Ecn | None, Field(description="ECN marking of the queues; none by default")] = None


class Buffer(BaseModel):
    """A switch's memory for packets, which its output queues share.

    A queue takes a packet while it is not longer than ``alpha`` times what is free of the memory (dynamic thresholds:
    Choudhury and Hahne, 1998), and never more than its link's ``queue``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: Annotated[Bytes, Field(gt=0, description="bytes for all queues of a switch together")]
    alpha: Annotated[
        float, Field(gt=0, le=64, allow_inf_nan=False, description="longest queue, as a multiple of what is free")
    ] = 1.0


class Pfc(BaseModel):
    """Priority flow control (IEEE 802.1Qbb): a switch counts what it holds of a lossless priority by the port it came
    in by. Above ``xoff`` bytes it has the sender pause, at ``xon`` it lets it go on. A packet's priority is the upper
    three bits of its DSCP."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    xoff: Annotated[Bytes, Field(description="bytes of a port and priority above which the sender pauses")] = 100 << 10
    xon: Annotated[Bytes | None, Field(description="bytes at which it goes on; half of xoff by default")] = None
    headroom: Annotated[
        Bytes | None,
        Field(description="bytes beyond xoff for what is under way; by default what the link needs for no loss"),
    ] = None
    priorities: Annotated[
        tuple[Annotated[int, Field(ge=0, le=7)], ...], Field(description="the lossless ones; hosts' default is 0")
    ] = (0,)

    @model_validator(mode="after")
    def _ordered(self) -> Pfc:
        if self.resumes >= self.xoff:
            raise ValueError("xon is not less than xoff")
        return self

    @property
    def resumes(self) -> int:
        """``xon``, or its default."""
        return self.xoff // 2 if self.xon is None else self.xon


def _link(value: Any) -> Any:
    return {"ends": value} if isinstance(value, list) else value


class Link(BaseModel):
    """A cable; None means the default. In YAML ``[a, b]`` is short for ``{ends: [a, b]}``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ends: Annotated[tuple[Name, Name], Field(description="the nodes it connects")]
    bandwidth: Bandwidth | None = None
    delay: Duration | None = None
    queue: Bytes | None = None
    ecn: Ecn | None = None

    @property
    def name(self) -> str:
        """The name, ``a-b``: its ends, joined by a hyphen."""
        return "-".join(self.ends)

    def other(self, node: str) -> str:
        """The end that is not ``node``."""
        return self.ends[1] if self.ends[0] == node else self.ends[0]


class TopologyError(ValueError):
    """A topology whose parts do not fit together; reported at one of them."""

    def __init__(self, path: Path_, message: str) -> None:
        super().__init__(message)
        self.path = path


class TopologySpec(BaseModel):
    """A network. Raises pydantic's ``ValidationError``; ``load_topology`` turns it into diagnostics with positions."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="p4gen TopologySpec")

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9.-]{0,62}$", description="name of the network")]
    switches: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_SWITCHES, description="the switches")]
    hosts: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_HOSTS, description="the hosts, one NIC each")]
    links: Annotated[
        tuple[Annotated[Link, BeforeValidator(_link)], ...], Field(max_length=MAX_LINKS, description="the cables")
    ]
    ranks: Annotated[
        tuple[Name, ...] | None, Field(description="hosts that are ranks, in order; all hosts by default")
    ] = None
    root: Annotated[
        Name | None, Field(description="root switch of the IncTree; by default the one nearest to all ranks")
    ] = None
    switch_latency: Annotated[
        Duration, Field(description="from the arrival of a packet at a switch to its place in the output queue")
    ] = 400_000
    recirculation_delay: Annotated[
        Duration,
        Field(description="from a packet's arrival at a switch to its next arrival there, if it recirculates; 0: none"),
    ] = 0
    buffer: Annotated[
        Buffer | None, Field(description="memory that a switch's queues share; by default each has its own")
    ] = None
    pfc: Annotated[
        Pfc | None, Field(description="priority flow control on all links; none by default, and not with buffer")
    ] = None
    defaults: Annotated[LinkDefaults, Field(description="defaults of links")] = LinkDefaults()

    @model_validator(mode="after")
    def _fits(self) -> TopologySpec:
        if self.pfc is not None and self.buffer is not None:
            raise TopologyError(("pfc",), "memory for lossless priorities is counted by port: no buffer is shared")
        self._check_names()
        self._check_links()
        reached = self.distances(self.switches[0])
        for i, name in enumerate(self.ranks or ()):
            if name not in self.hosts:
                raise TopologyError(("ranks", i), f"there is no host '{name}'")
        if self.root is not None and self.root not in self.switches:
            raise TopologyError(("root",), f"there is no switch '{self.root}'")
        if self.ranks is not None and len(set(self.ranks)) != len(self.ranks):
            raise TopologyError(("ranks",), "a host can be only one rank")
        unreachable = [node for node in (*self.switches, *self.hosts) if node not in reached]
        if unreachable:
            raise TopologyError(("links",), f"nothing connects {', '.join(unreachable)} to {self.switches[0]}")
        return self

    def _check_names(self) -> None:
        seen: set[str] = set()
        for field in ("switches", "hosts"):
            for i, name in enumerate(getattr(self, field)):
                if name in seen:
                    raise TopologyError((field, i), f"'{name}' is given twice")
                seen.add(name)

    def _check_links(self) -> None:
        nodes = dict.fromkeys((*self.switches, *self.hosts))
        hosts = set(self.hosts)
        pairs: set[frozenset[str]] = set()
        for i, link in enumerate(self.links):
            for j, end in enumerate(link.ends):
                if end not in nodes:
                    near = difflib.get_close_matches(end, nodes, n=1)
                    hint = f"; did you mean '{near[0]}'?" if near else ""
                    raise TopologyError(("links", i, "ends", j), f"there is no node '{end}'{hint}")
            pair = frozenset(link.ends)
            if len(pair) == 1:
                raise TopologyError(("links", i), f"'{link.ends[0]}' cannot be connected to itself")
            if pair in pairs:
                raise TopologyError(("links", i), f"{link.name} is given twice")
            if pair <= hosts:
                raise TopologyError(("links", i), "a host connects to a switch")
            pairs.add(pair)
        links = Counter(end for link in self.links for end in link.ends)
        for i, host in enumerate(self.hosts):
            count = links[host]
            if count != 1:
                raise TopologyError(("hosts", i), f"a host has one link; {host} has {count}")

    @property
    def rank_hosts(self) -> tuple[str, ...]:
        """The hosts that are ranks, in order."""
        return self.hosts if self.ranks is None else self.ranks

    @cached_property
    def ports(self) -> Mapping[str, tuple[Link, ...]]:
        """The links of each node; a switch's port p is the p-th."""
        found: dict[str, list[Link]] = {node: [] for node in (*self.switches, *self.hosts)}
        for link in self.links:
            for end in link.ends:
                found[end].append(link)
        return {node: tuple(links) for node, links in found.items()}

    @cached_property
    def _numbers(self) -> dict[tuple[str, int], int]:
        return {(node, id(link)): port for node, links in self.ports.items() for port, link in enumerate(links)}

    def port(self, node: str, link: Link) -> int:
        """The port of a node at which one of the topology's links is."""
        return self._numbers[node, id(link)]

    @cached_property
    def _hosts(self) -> frozenset[str]:
        return frozenset(self.hosts)

    @cached_property
    def _away(self) -> dict[str, Mapping[str, int]]:
        """Distances by origin, as far as they have been asked for, when all links are up."""
        return {}

    @cached_property
    def _ways(self) -> dict[tuple[str, str], tuple[int, ...]]:
        """Ports on shortest paths from a switch to another one, as far as they have been asked for."""
        return {}

    def distances(self, origin: str, down: Collection[str] = ()) -> dict[str, int]:
        """Links from ``origin`` to each node that it reaches; hosts forward nothing. ``down`` are names of links that
        are currently down."""
        found = {origin: 0}
        todo = deque([origin])
        while todo:
            node = todo.popleft()
            if node in self._hosts and node != origin:
                continue
            for link in self.ports[node]:
                if down and link.name in down:
                    continue
                other = link.other(node)
                if other not in found:
                    found[other] = found[node] + 1
                    todo.append(other)
        return found

    def next_ports(self, switch: str, target: str, down: Collection[str] = ()) -> tuple[int, ...]:
        """The ports of ``switch`` on shortest paths to ``target``; none if every path is down."""
        if not down and target in self._hosts and len(self.ports[target]) == 1:
            (link,) = self.ports[target]
            at = link.other(target)
            # All hosts of a switch are behind it.
            if at == switch:
                return (self.port(switch, link),)
            if (switch, at) not in self._ways:
                self._ways[switch, at] = self._shortest(switch, at, ())
            return self._ways[switch, at]
        return self._shortest(switch, target, down)

    def _shortest(self, switch: str, target: str, down: Collection[str]) -> tuple[int, ...]:
        away = self.distances(target, down) if down else self._away.get(target)
        if away is None:
            away = self._away[target] = self.distances(target)
        if switch not in away:
            return ()
        return tuple(
            port
            for port, link in enumerate(self.ports[switch])
            if not (down and link.name in down) and away[link.other(switch)] < away[switch]
        )

    @cached_property
    def tiers(self) -> Mapping[str, int]:
        """Each switch's tier: the number of links to the nearest host, 1 for leaves."""
        found: dict[str, int] = {}
        switches = set(self.switches)  # a discovered topology has links to nodes that it does not have
        newest = {link.other(host) for host in self.hosts for link in self.ports[host]} & switches
        while newest:
            found |= dict.fromkeys(newest, max(found.values(), default=0) + 1)
            newest = {link.other(switch) for switch in newest for link in self.ports[switch]} & switches - set(found)
        return found

    @cached_property
    def tier_bits(self) -> Mapping[int, int]:
        """For each tier, the bits that it takes to choose among a switch's next hops to a host."""
        most = dict.fromkeys(self.tiers.values(), 1)
        for switch, tier in self.tiers.items():
            most[tier] = max(most[tier], *(len(self.next_ports(switch, host)) for host in self.hosts))
        return {tier: (count - 1).bit_length() for tier, count in most.items()}

    def setting(self, link: Link, name: str) -> Any:
        """A link's own setting, or the default."""
        own = getattr(link, name)
        return getattr(self.defaults, name) if own is None else own

    def changed(self, **fields: Any) -> TopologySpec:
        """The topology with other values of some fields. Raises ``ValidationError`` for values that cannot be."""
        known = {name: getattr(self, name) for name in TopologySpec.model_fields}
        # Times are parsed when a topology is made, so they are converted back to text.
        return TopologySpec(**known | {"switch_latency": f"{self.switch_latency}ps"} | fields)


def load_topology(path: Path | str | TopologySpec) -> TopologySpec:
    """The topology in a YAML file, a built-in one, by name (``star-8``), or a generated one (``clos:4x2x2``); one that
    is loaded already is returned as it is.

    >>> import p4gen
    >>> p4gen.load_topology("star-4").hosts
    ('h0', 'h1', 'h2', 'h3')

    Raises ``InputError`` with one diagnostic per wrong value, with a position if there is one.
    """
    if isinstance(path, TopologySpec):
        return path
    file = Path(path)
    if not os.path.exists(file) and is_generated(path):
        return TopologySpec.model_validate(clos_fields(str(path)))
    if not os.path.exists(file) and file.suffix == "" and len(file.parts) == 1:
        file = packaged(str(path))
    value, where, lines = read_yaml(file)
    if value is None:
        raise InputError(Diagnostic(str(file), "is empty"))
    if not isinstance(value, dict):
        raise InputError(Diagnostic(where[()], "a topology is a mapping, as in 'switches: [s0]'"))
    try:
        return TopologySpec.model_validate(value)
    except ValidationError as error:
        found = [_diagnose(e, where) for e in error.errors()]
        raise InputError(*(_with_source(d, lines) for d in found)) from error


def is_generated(path: Path | str) -> bool:
    """Whether it is the name of a network that ``load_topology`` generates."""
    return is_clos(str(path))


def packaged_folder() -> Path:
    """The folder of the built-in topologies."""
    return resource("topologies")


def packaged(name: str) -> Path:
    """The file of a built-in topology; ``InputError``, which lists them all, if there is none."""
    files = {file.stem: file for file in sorted(packaged_folder().glob("*.yaml"))}
    if name not in files:
        near = difflib.get_close_matches(name, files, n=1)
        meant = f"; did you mean '{near[0]}'?" if near else ""
        raise InputError(
            f"there is neither a file nor a topology {quote(name)}; "
            f"there are {', '.join(files)}, {FORM} and {FORM_3}{meant}"
        )
    return files[name]


def _diagnose(error: ErrorDetails, where: Mapping[Path_, Pos]) -> Diagnostic:
    cause = error.get("ctx", {}).get("error")
    path: Path_ = cause.path if isinstance(cause, TopologyError) else tuple(error["loc"])
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = f"unknown field {quote(str(path[-1]))}"
    elif error["type"] == "missing":
        message = f"'{path[-1]}' is missing" if isinstance(path[-1], str) else "a link has two ends, as in [a, b]"
    elif error["type"] == "string_pattern_mismatch":
        more = "." if path == ("name",) else "_"
        signs = f"lower-case letters, digits and {more}" + (" and -" if more == "." else "")
        message = (
            f"{quote(str(error['input']))} is not a name: it starts with a lower-case letter and continues with {signs}"
        )
        message += f" ({63 if more == '.' else 31} at most)"
    elif error["type"] == "model_type" and path[:1] == ("links",):
        message = "a link is [a, b], or a mapping with ends: [a, b]"
    elif error["type"] == "tuple_type":
        message = "must be a list, as in [s0, s1]"
    elif error["type"] == "string_type":
        message = f"{quote(str(error['input']))} is not a name"
    # '[a, b]' for a link has no 'ends' in the file: the position is that of its parent.
    candidates = (path, tuple(p for p in path if p != "ends"), *(path[:n] for n in range(len(path) - 1, -1, -1)))
    return Diagnostic(next(where[c] for c in candidates if c in where), message)


def _with_source(diagnostic: Diagnostic, lines: list[str]) -> Diagnostic:
    where = diagnostic.where
    if not isinstance(where, Pos) or not 0 < where.line <= len(lines):
        return diagnostic
    return Diagnostic(where, diagnostic.message, source_line=lines[where.line - 1])
