"""The statements of an STF file: the parser's result and the runner's input."""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.errors import Pos


@dataclass(frozen=True)
class Value:
    """A number as it stands in the file. ``mask`` has a one for every bit that a written digit covers, and
    is None for notations that say nothing about width (decimal, MAC and IPv4 addresses)."""

    value: int
    mask: int | None
    prefix: int
    """Bits covered by digits, from the most significant digit to the first wildcard."""
    text: str
    pos: Pos

    @property
    def wild(self) -> bool:
        """Whether the number has wildcards, ``*``."""
        return "*" in self.text


@dataclass(frozen=True)
class Masked:
    """``value &&& mask``: a ternary match."""

    value: Value
    mask: Value


@dataclass(frozen=True)
class Prefix:
    """``value / length``: a longest-prefix match."""

    value: Value
    length: int


@dataclass(frozen=True)
class Between:
    """``low .. high`` or ``low -> high``: a range match."""

    low: Value
    high: Value


KeyValue = Value | Masked | Prefix | Between


@dataclass(frozen=True)
class KeyMatch:
    """One ``name:value`` of an entry."""

    name: str
    value: KeyValue
    pos: Pos


@dataclass(frozen=True)
class BoundAction:
    """An action and its arguments by name."""

    name: str
    args: tuple[tuple[str, Value], ...]
    pos: Pos


@dataclass(frozen=True)
class Handle:
    """``$A``, or a bare ``A`` where only a handle can stand: what ``= A`` named."""

    name: str
    pos: Pos


@dataclass(frozen=True)
class Rate:
    """A rate of a meter, ``rate:burst``: units per microsecond, as simple_switch_CLI has it, and units."""

    per_microsecond: float
    burst: int


Argument = Value | Handle | Rate | BoundAction | str
"""An argument of a ``Command``; a string is a name."""


@dataclass(frozen=True)
class Packet:
    """``packet PORT HEX``: a packet arrives."""

    port: int
    data: bytes
    pos: Pos


@dataclass(frozen=True)
class Expect:
    """``expect PORT [NIBBLES] [$]``: the port's next packet. ``nibbles`` is upper-case with ``*`` for any, a
    prefix unless ``exact``; None: the port is not checked."""

    port: int
    nibbles: str | None
    exact: bool
    pos: Pos


@dataclass(frozen=True)
class NoPacket:
    """``no_packet``: nothing comes out of any port."""

    pos: Pos


@dataclass(frozen=True)
class Wait:
    """``wait [SECONDS]``: time passes."""

    seconds: float
    pos: Pos


@dataclass(frozen=True)
class Add:
    """``add TABLE [PRIORITY] KEY:VALUE… ACTION(…) [= HANDLE]``; ``action`` is a member's or group's number for
    ``table_indirect_add`` and ``table_indirect_add_with_group``."""

    table: str
    priority: int | None
    keys: tuple[KeyMatch, ...]
    action: BoundAction | Value | Handle
    to_group: bool
    handle: str | None
    pos: Pos


@dataclass(frozen=True)
class SetDefault:
    """``setdefault TABLE ACTION(…)``."""

    table: str
    action: BoundAction
    pos: Pos


@dataclass(frozen=True)
class Remove:
    """``remove all`` (``handle`` None) or ``remove HANDLE``."""

    handle: Handle | None
    pos: Pos


@dataclass(frozen=True)
class Check:
    """``check_counter NAME(INDEX) [packets|bytes OP N]`` and the like. Without ``op`` the cell only has to exist."""

    what: str
    name: str
    index: Value | Handle | None
    unit: str
    op: str | None
    wanted: Value | None
    pos: Pos


@dataclass(frozen=True)
class ExpectDigest:
    """``expect_digest NAME field:value…``: the next digest. Fields that are left out are not compared."""

    name: str
    fields: tuple[KeyMatch, ...]
    pos: Pos


@dataclass(frozen=True)
class CreateMember:
    """``act_prof_create_member PROFILE ACTION(…) [= HANDLE]``."""

    profile: str
    action: BoundAction
    handle: str | None
    pos: Pos


@dataclass(frozen=True)
class Command:
    """A command of simple_switch_CLI, or of an architecture: its name and arguments."""

    name: str
    args: tuple[Argument, ...]
    handle: str | None
    pos: Pos


Statement = (
    Packet | Expect | NoPacket | Wait | Add | SetDefault | Remove | Check | ExpectDigest | CreateMember | Command
)
