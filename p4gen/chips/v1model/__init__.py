"""v1model, the architecture of BMv2's simple_switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from p4gen.arch.architecture import Architecture, Direction, Feature, Stage
from p4gen.arch.ports import CPU_PORT
from p4gen.choices import TARGETS


@dataclass(frozen=True)
class V1Model(Architecture):
    """v1model: one struct of intrinsic metadata for all blocks, externs called as functions."""

    BLOCKS: ClassVar[frozenset[str]] = frozenset({"p", "vr", "ig", "eg", "ck", "dep"})
    PIPELINES: ClassVar[Mapping[str, Stage]] = {"ig": "ingress", "eg": "egress"}
    METADATA: ClassVar[str] = "std_meta"
    """The name of the struct."""

    def parameters(self, direction: Direction, stage: Stage = "ingress") -> str:
        """One struct."""
        return f"{direction} standard_metadata_t {self.METADATA}"

    def arguments(self, direction: Direction, stage: Stage = "ingress") -> str:
        """One struct."""
        return self.METADATA

    @property
    def ingress_port(self) -> str:
        """A field, 9 bits."""
        return f"{self.METADATA}.ingress_port"

    @property
    def egress_port(self) -> str:
        """A field, 9 bits."""
        return f"{self.METADATA}.egress_port"

    @property
    def replication_id(self) -> str:
        """A field, 16 bits."""
        return f"{self.METADATA}.egress_rid"

    @property
    def packet_length(self) -> str:
        """A field."""
        return f"{self.METADATA}.packet_length"

    @property
    def parser_failed(self) -> str:
        """A comparison with ``NoError``."""
        return f"{self.METADATA}.parser_error != error.NoError"

    @property
    def time_us(self) -> str:
        """A field."""
        return f"{self.METADATA}.ingress_global_timestamp"

    @property
    def checksum_failed(self) -> str:
        """A bit that ``verify_checksum`` sets."""
        return f"{self.METADATA}.checksum_error != 0"

    def recirculated(self, *, is_not: bool = False) -> str:
        """By the instance type."""
        return f"{self.METADATA}.instance_type {'!=' if is_not else '=='} RECIRCULATED"

    @property
    def cloned_on_arrival(self) -> str:
        """By the instance type."""
        return f"{self.METADATA}.instance_type == INGRESS_CLONE"

    @property
    def cloned_on_departure(self) -> str:
        """By the instance type."""
        return f"{self.METADATA}.instance_type == EGRESS_CLONE"

    @property
    def tick_port(self) -> str:
        """v1model has no timers: ticks come from the agent, by the CPU port."""
        return f"{self.METADATA}.ingress_port == CPU_PORT"

    def send(self, port: str) -> str:
        """``egress_spec``."""
        return f"{self.METADATA}.egress_spec = {port};"

    def multicast(self, group: str) -> str:
        """``mcast_grp``; group 0 is none."""
        return f"{self.METADATA}.mcast_grp = {group};"

    def drop(self, stage: Stage = "ingress") -> str:
        """Also cancels a multicast that was decided before."""
        return f"mark_to_drop({self.METADATA});"

    def clone(self, session: str) -> str:
        """From ingress to egress, with a list of fields."""
        return f"clone_preserving_field_list(CloneType.I2E, {session}, KEPT);"

    def clone_again(self, session: str) -> str:
        """From egress to egress, with a list of fields."""
        return f"clone_preserving_field_list(CloneType.E2E, {session}, KEPT);"

    def recirculate(self) -> str:
        """With a list of fields."""
        return "recirculate_preserving_field_list(KEPT);"

    def truncate(self, size: str) -> str:
        """``truncate``; of several, the smallest counts."""
        return f"truncate({size});"

    def constants(self, uses: frozenset[Feature]) -> tuple[str, ...]:
        """The CPU port, and values of ``instance_type``."""
        types = {Feature.RECIRCULATION: ("RECIRCULATED", 4), Feature.CLONE: ("INGRESS_CLONE", 1),
                 Feature.EGRESS_CLONE: ("EGRESS_CLONE", 2)}  # fmt: skip
        used = [constant for feature, constant in types.items() if feature in uses]
        lines = [f"const bit<9>  CPU_PORT            = {self.cpu_port};"] if Feature.TICKS in uses else []
        note = f"// {self.name}'s instance type{'s' if len(used) > 1 else ''}"
        for name, value in used:
            line = f"const bit<32> {name:<19} = {value};"
            lines.append(f"{line:<44}{note}" if (name, value) == used[0] else line)
        return tuple(lines)

    def kept_constants(self, uses: frozenset[Feature]) -> tuple[str, ...]:
        """The number of a list of fields."""
        clones = uses & {Feature.CLONE, Feature.EGRESS_CLONE}
        who = " and ".join((*(["clones"] if clones else []), *_recirculated(uses)))
        note = f"// list of the metadata that {who} keep"
        return (f"const bit<8>  KEPT                = 1;      {note}",) if who else ()

    def kept(self, uses: frozenset[Feature]) -> str:
        """An annotation with the number of the list."""
        return "@field_list(KEPT) " if self.kept_constants(uses) else ""

    def register(self, type_: str, size: str, name: str) -> str:
        """``register``."""
        return f"register<{type_}>({size}) {name};"

    def read(self, register: str, index: str, into: str) -> str:
        """``read`` gives the word by an ``out`` parameter."""
        return f"{register}.read({into}, {index});"

    def write(self, register: str, index: str, value: str) -> str:
        """``write``."""
        return f"{register}.write({index}, {value});"

    def counter(self, size: str, name: str) -> str:
        """``counter``, of packets."""
        return f"counter({size}, CounterType.packets) {name};"

    def entry_counter(self, name: str) -> str:
        """``direct_counter``, of packets; the table names it as its ``counters``."""
        return f"direct_counter(CounterType.packets) {name};"

    def count(self, counter: str, index: str) -> str:
        """``count``, with an index of 32 bits."""
        return f"{counter}.count({index});"

    def hash(self, into: str, algorithm: str, fields: str, base: str = "32w0", count: str = "64w0x100000000") -> str:
        """``hash``."""
        return f"hash({into}, HashAlgorithm.{algorithm}, {base}, {fields}, {count});"

    def random(self, into: str, largest: str) -> str:
        """``random``; both bounds have the type of ``into``, the lower one takes it from the other's."""
        return f"random({into}, 0, {largest});"


def _recirculated(uses: frozenset[Feature]) -> tuple[str, ...]:
    return ("recirculated packets",) if Feature.RECIRCULATION in uses else ()


ARCHITECTURE = V1Model(
    name="v1model",
    title="v1model, the architecture of BMv2's simple_switch",
    package=__name__,
    main="V1Switch",
    includes=("core.p4", "v1model.p4"),
    targets=TARGETS,
    features=frozenset(Feature),
    ports=CPU_PORT,
    cpu_port=CPU_PORT,
    prelude=Path(__file__).parent / "prelude",
)
