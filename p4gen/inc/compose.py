"""How a mode composes IncEngine modules, and the checks that a composition is sound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from p4gen.errors import InputError
from p4gen.inc import modules as m
from p4gen.inc.module import Drop, Gress, Metadata, Module
from p4gen.spec import Mode, ProgramSpec

HEADERS = ("ethernet", "vlan", "arp", "ipv4", "udp", "bth", "aeth", "immediate", "cnp", "payload", "icrc")
"""Headers that the parser knows, outermost first."""

MODES: dict[Mode, tuple[Module, ...]] = {
    # EPIC Algorithm 1, in the order in which a packet meets the modules. RecycleBuffer stands
    # before CheckDuplicate because the lazy form decides, on the one access that a pass has to the
    # slot, whether what the slot holds still counts.
    Mode.II: (
        m.LOOKUP_TABLE,
        m.VALIDATE_PACKET,
        m.CHECK_ICRC,
        m.FIND_CONTEXT,
        m.TRACK_INVOCATION,
        m.CLASSIFY_TRAFFIC,
        m.FILTER_ORDER,
        m.RECYCLE_BUFFER,
        m.CHECK_DUPLICATE,
        m.AGGREGATE_DATA,
        m.REPLICATE_DATA,
        m.REFLECT_ACK,
        m.COMBINE_ACKS,
        m.ANSWER_ARP,
        m.FORWARD,
        m.TRANSLATE_HEADER,
        m.SET_ICRC,
    ),
    # EPIC Algorithms 2 and 3.
    Mode.III: (
        m.LOOKUP_TABLE,
        m.VALIDATE_PACKET,
        m.CHECK_ICRC,
        m.LEARN_TAG,
        m.FIND_CONTEXT,
        m.TRACK_INVOCATION,
        m.CLASSIFY_TRAFFIC,
        m.TRACK_SENT,
        m.CHECK_RANGE,
        m.CHECK_ORDER,
        m.COUNT_MESSAGES,
        m.RECEIVE_ACK,
        m.RELAY_NOTIFICATION,
        m.NOTIFY_CONGESTION,
        m.RECYCLE_BUFFER,
        m.CHECK_DUPLICATE,
        m.RESEND_TIMER,
        m.START_CURSOR,
        m.RETRANSMISSION,
        m.AGGREGATE_DATA,
        m.REPLICATE_DATA,
        m.SEND_ACK,
        m.ANSWER_ARP,
        m.FORWARD,
        m.ADVANCE_CURSOR,
        m.MAKE_ACK,
        m.TRANSLATE_HEADER,
        m.SET_ICRC,
    ),
}


@dataclass(frozen=True)
class DropReason:
    """A counted drop: ``index`` is its place in the program's drop counters (0 is unused)."""

    index: int
    module: Module
    drop: Drop

    @property
    def symbol(self) -> str:
        """The reason's name in the program's ``drop_t``."""
        return f"{self.module.name}_{self.drop.reason}"


@dataclass(frozen=True)
class Part:
    """A struct in metadata_t: what one module, or modules that work as one, tell the others about a packet."""

    name: str
    modules: tuple[Module, ...]
    fields: tuple[Metadata, ...]

    @property
    def type(self) -> str:
        """The struct's name in the program."""
        return f"{self.name}_info_t"

    @property
    def purpose(self) -> str:
        """A line that says whose it is."""
        names = " and ".join(module.name for module in self.modules)
        return f"What {names} {'tells' if len(self.modules) == 1 else 'tell'} the modules behind."


@dataclass(frozen=True)
class Composition:
    """The modules of one program, in order."""

    spec: ProgramSpec
    modules: tuple[Module, ...]

    def has(self, name: str) -> bool:
        """Whether a module of that name is part of it."""
        return any(module.name == name for module in self.modules)

    def of(self, gress: Gress) -> tuple[Module, ...]:
        """The modules in ingress, or in egress."""
        return tuple(module for module in self.modules if module.gress == gress)

    @cached_property
    def metadata(self) -> tuple[Part, ...]:
        """The parts of metadata_t, in the order of the modules that provide them."""
        found: dict[str, Part] = {}
        for module in self.modules:
            fields = tuple(field for field in module.provides if field.wanted(self.spec))
            if fields:
                before = found.get(module.part, Part(module.part, (), ()))
                found[module.part] = Part(module.part, (*before.modules, module), before.fields + fields)
        return tuple(found.values())

    @cached_property
    def drops(self) -> tuple[DropReason, ...]:
        """All drop reasons, numbered from 1."""
        pairs = [(module, drop) for module in self.modules for drop in module.drops if drop.wanted(self.spec)]
        return tuple(DropReason(i, module, drop) for i, (module, drop) in enumerate(pairs, start=1))

    @property
    def state_bits(self) -> int:
        """All registers together, in bits."""
        return sum(module.state_bits(self.spec) for module in self.modules)


def compose(spec: ProgramSpec) -> Composition:
    """The modules that make ``spec``'s mode, each with what it needs provided before it.

    Raises ``InputError`` if a module's needs are not met.
    """
    modules = tuple(module for module in MODES[spec.mode] if module.wanted(spec))
    known = {f"hdr.{name}" for name in HEADERS}
    for module in modules:
        missing = [need for need in module.needs if need not in known]
        if missing:
            raise InputError(
                f"mode {spec.mode}: {module.name} needs {', '.join(missing)}, which no earlier module provides"
            )
        known.update(field.name for field in module.provides if field.wanted(spec))
    return Composition(spec, modules)
