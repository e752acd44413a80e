"""v1model, the architecture of BMv2's simple_switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

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

    @override
    def parameters(self, direction: Direction, stage: Stage = "ingress") -> str:
        return f"{direction} standard_metadata_t {self.METADATA}"

    @override
    def arguments(self, direction: Direction, stage: Stage = "ingress") -> str:
        return self.METADATA

    @property
    @override
    def ingress_port(self) -> str:
        return f"{self.METADATA}.ingress_port"

    @property
    @override
    def egress_port(self) -> str:
        return f"{self.METADATA}.egress_port"

    @property
    @override
    def replication_id(self) -> str:
        return f"{self.METADATA}.egress_rid"

    @property
    @override
    def packet_length(self) -> str:
        return f"{self.METADATA}.packet_length"

    @property
    @override
    def parser_failed(self) -> str:
        """A comparison with ``NoError``."""
        return f"{self.METADATA}.parser_error != error.NoError"

    @property
    @override
    def time_us(self) -> str:
        return f"{self.METADATA}.ingress_global_timestamp"

    @property
    @override
    def checksum_failed(self) -> str:
        """A bit that ``verify_checksum`` sets."""
        return f"{self.METADATA}.checksum_error != 0"

    @override
    def recirculated(self, *, is_not: bool = False) -> str:
        return f"{self.METADATA}.instance_type {'!=' if is_not else '=='} RECIRCULATED"

    @property
    @override
    def cloned_on_arrival(self) -> str:
        return f"{self.METADATA}.instance_type == INGRESS_CLONE"

    @property
    @override
    def cloned_on_departure(self) -> str:
        return f"{self.METADATA}.instance_type == EGRESS_CLONE"

    @property
    @override
    def tick_port(self) -> str:
        """v1model has no timers: ticks come from the agent, by the CPU port."""
        return f"{self.METADATA}.ingress_port == CPU_PORT"

    @override
    def send(self, port: str) -> str:
        return f"{self.METADATA}.egress_spec = {port};"

    @override
    def multicast(self, group: str) -> str:
        """``mcast_grp``; group 0 is none."""
        return f"{self.METADATA}.mcast_grp = {group};"

    @override
    def drop(self, stage: Stage = "ingress") -> str:
        """``mark_to_drop``, which also cancels an earlier ``multicast``."""
        return f"mark_to_drop({self.METADATA});"

    @override
    def clone(self, session: str) -> str:
        """A clone from ingress to egress that keeps a list of fields."""
        return f"clone_preserving_field_list(CloneType.I2E, {session}, KEPT);"

    @override
    def clone_again(self, session: str) -> str:
        """A clone from egress to egress that keeps a list of fields."""
        return f"clone_preserving_field_list(CloneType.E2E, {session}, KEPT);"

    @override
    def recirculate(self) -> str:
        return "recirculate_preserving_field_list(KEPT);"

    @override
    def truncate(self, size: str) -> str:
        """``truncate``; of several, the smallest counts."""
        return f"truncate({size});"

    @override
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

    @override
    def kept_constants(self, uses: frozenset[Feature]) -> tuple[str, ...]:
        """The number of a list of fields."""
        clones = uses & {Feature.CLONE, Feature.EGRESS_CLONE}
        who = " and ".join((*(["clones"] if clones else []), *_recirculated(uses)))
        note = f"// list of the metadata that {who} keep"
        return (f"const bit<8>  KEPT                = 1;      {note}",) if who else ()

    @override
    def kept(self, uses: frozenset[Feature]) -> str:
        """An annotation with the number of the list."""
        return "@field_list(KEPT) " if self.kept_constants(uses) else ""

    @override
    def register(self, type_: str, size: str, name: str) -> str:
        return f"register<{type_}>({size}) {name};"

    @override
    def read(self, register: str, index: str, into: str) -> str:
        """``read`` gives the word by an ``out`` parameter."""
        return f"{register}.read({into}, {index});"

    @override
    def write(self, register: str, index: str, value: str) -> str:
        return f"{register}.write({index}, {value});"

    @override
    def counter(self, size: str, name: str) -> str:
        return f"counter({size}, CounterType.packets) {name};"

    @override
    def entry_counter(self, name: str) -> str:
        """``direct_counter``, of packets; the table names it as its ``counters``."""
        return f"direct_counter(CounterType.packets) {name};"

    @override
    def count(self, counter: str, index: str) -> str:
        """``count``, with an index of 32 bits."""
        return f"{counter}.count({index});"

    @override
    def hash(self, into: str, algorithm: str, fields: str, base: str = "32w0", count: str = "64w0x100000000") -> str:
        return f"hash({into}, HashAlgorithm.{algorithm}, {base}, {fields}, {count});"

    @override
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
