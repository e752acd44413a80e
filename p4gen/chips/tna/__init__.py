"""TNA, the native architecture of Tofino.

``model.py`` runs its programs. Registers are accessed by actions of at most four each, so families have forms of their
modules for it (``Feature.WIDE_STATE`` is not among its features).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from p4gen.arch.architecture import Architecture, Direction, Feature, Stage
from p4gen.errors import InputError

_PARAMETERS: Mapping[Stage, tuple[tuple[str, str, str], ...]] = {
    "parser": (("out", "ingress_intrinsic_metadata_t", "ig_intr_md"),),
    "ingress": (
        ("in", "ingress_intrinsic_metadata_t", "ig_intr_md"),
        ("in", "ingress_intrinsic_metadata_from_parser_t", "ig_prsr_md"),
        ("inout", "ingress_intrinsic_metadata_for_deparser_t", "ig_dprsr_md"),
        ("inout", "ingress_intrinsic_metadata_for_tm_t", "ig_tm_md"),
    ),
    "egress": (
        ("in", "egress_intrinsic_metadata_t", "eg_intr_md"),
        ("in", "egress_intrinsic_metadata_from_parser_t", "eg_prsr_md"),
        ("inout", "egress_intrinsic_metadata_for_deparser_t", "eg_dprsr_md"),
        ("inout", "egress_intrinsic_metadata_for_output_port_t", "eg_oport_md"),
    ),
}
"""What the blocks of each stage take after headers and metadata: direction, type, name."""


PIPES = 4
"""Pipes of the largest chips."""
PIPE_SHIFT = 7
"""A port's pipe is in the bits of its number from this one on."""
PORTS_OF_A_PIPE = 64
"""The most ports for hosts in each."""


@dataclass(frozen=True)
class Tofino(Architecture):
    """TNA and T2NA: pipes of two gresses, each with a parser and a deparser."""

    PIPE: ClassVar[frozenset[str]] = frozenset(
        {"ingress_parser", "ingress", "ingress_deparser", "egress_parser", "egress", "egress_deparser"}
    )
    """The blocks of a pipe with one parser in each gress."""
    BLOCKS: ClassVar[frozenset[str]] = frozenset(f"pipe0.{block}" for block in sorted(PIPE))
    PIPELINES: ClassVar[Mapping[str, Stage]] = {"pipe0.ingress": "ingress", "pipe0.egress": "egress"}

    ROLES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "ingress_parser": ("pkt", "hdr", "ig_md", "ig_intr_md", "ig_intr_md_for_tm", "ig_intr_md_from_prsr"),
        "ingress": ("hdr", "ig_md", "ig_intr_md", "ig_intr_md_from_prsr", "ig_intr_md_for_dprsr", "ig_intr_md_for_tm",
                    "gh_intr_md"),
        "ingress_deparser": ("pkt", "hdr", "metadata", "ig_intr_md_for_dprsr", "ig_intr_md"),
        "egress_parser": ("pkt", "hdr", "eg_md", "eg_intr_md", "eg_intr_md_from_prsr", "eg_intr_md_for_dprsr"),
        "egress": ("hdr", "eg_md", "eg_intr_md", "eg_intr_md_from_prsr", "eg_intr_md_for_dprsr",
                   "eg_intr_md_for_oport"),
        "egress_deparser": ("pkt", "hdr", "metadata", "eg_intr_md_for_dprsr", "eg_intr_md", "eg_intr_md_from_prsr"),
        "ghost": ("gh_intr_md",),
    }  # fmt: skip
    """The roles of the parameters of a pipe's blocks, by position, in the architecture's own names. A program has names
    of its own, and may leave out the last ones; only T2NA has ``gh_intr_md``."""
    PROPERTIES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "alpm": ("Alpm",),
        "atcam": ("Atcam",),
        "filters": ("DirectLpf", "DirectWred", "Lpf", "Wred"),
        "idle_timeout": ("bool", "IdleTimeout"),
        "proxy_hash": ("Hash",),
        "registers": ("DirectRegister",),
        "requires_versioning": ("bool",),
    }

    @override
    def has_blocks(self, blocks: Collection[str]) -> bool:
        """Every pipe must be whole. It may have several parsers, ``pipe0.ig_prsr.prsr0`` and so on."""
        pipes: dict[str, set[str]] = {}
        for block in blocks:
            pipe, _, name = block.partition(".")
            gress, _, parser = name.partition("_prsr.")
            whole = {"ig": "ingress_parser", "eg": "egress_parser"}.get(gress, name) if parser else name
            pipes.setdefault(pipe, set()).add(whole)
        return "pipe0" in pipes and all(found - {"ghost"} == self.PIPE for found in pipes.values())

    @override
    def has_parameters(self, names: Sequence[str]) -> bool:
        """The first parameter must be the first pipe."""
        return names[:1] == ["pipe0"]

    @override
    def front_ports(self, count: int) -> tuple[int, ...]:
        """The ports of pipe 0 come first."""
        in_each = super().front_ports(PORTS_OF_A_PIPE)
        return tuple(pipe << PIPE_SHIFT | port for pipe in range(PIPES) for port in in_each)[:count]

    @override
    def front_number(self, port: int) -> int:
        """The number of ports for hosts below this one."""
        return sum(front < port for front in self.front_ports(self.ports))

    @override
    def pipe_of(self, port: int) -> int:
        """Bits 8 and 7 of the port are the number of the pipe."""
        return port >> PIPE_SHIFT

    @property
    @override
    def recirculation_ports(self) -> tuple[int, ...]:
        """The recirculation ports: the same port within each pipe."""
        return tuple(pipe << PIPE_SHIFT | self.recirculation_port for pipe in range(PIPES))

    @override
    def parameters(self, direction: Direction, stage: Stage = "ingress") -> str:
        """All structs of a stage; code that only reads does not get those that decide where a packet goes."""
        chosen = (p for p in _PARAMETERS[stage] if direction == "inout" or p[0] == "in")
        return ", ".join(" ".join(p) for p in chosen)

    @override
    def arguments(self, direction: Direction, stage: Stage = "ingress") -> str:
        return ", ".join(p[2] for p in _PARAMETERS[stage] if direction == "inout" or p[0] == "in")

    @property
    @override
    def ingress_port(self) -> str:
        return "ig_intr_md.ingress_port"

    @property
    @override
    def egress_port(self) -> str:
        return "eg_intr_md.egress_port"

    @property
    @override
    def replication_id(self) -> str:
        return "eg_intr_md.egress_rid"

    @property
    @override
    def packet_length(self) -> str:
        """Only egress knows it, by ``pkt_length``."""
        raise InputError(f"the architecture {self.name} does not tell a frame's length in ingress")

    @property
    @override
    def parser_failed(self) -> str:
        return "(ig_prsr_md.parser_err & PARSER_ERROR_PARTIAL_HDR) != 0"

    @property
    @override
    def checksum_failed(self) -> str:
        """The parser verifies checksums; ``parser_err`` has no bit for them, so the metadata needs one."""
        return "meta.checksum_failed == 1"

    @override
    def send(self, port: str) -> str:
        return f"ig_tm_md.ucast_egress_port = {port};"

    @override
    def multicast(self, group: str) -> str:
        """``mcast_grp_a``; group 0 is none."""
        return f"ig_tm_md.mcast_grp_a = {group};"

    @override
    def drop(self, stage: Stage = "ingress") -> str:
        """Bit 0 of ``drop_ctl``: mirrored copies leave."""
        return "eg_dprsr_md.drop_ctl = 1;" if stage == "egress" else "ig_dprsr_md.drop_ctl = 1;"

    @override
    def constants(self, uses: frozenset[Feature]) -> tuple[str, ...]:
        """None: the architecture's header declares what these texts refer to."""
        return ()

    @override
    def kept_constants(self, uses: frozenset[Feature]) -> tuple[str, ...]:
        return ()

    @override
    def kept(self, uses: frozenset[Feature]) -> str:
        """Empty: a header carries the metadata that is kept."""
        return ""

    @override
    def register(self, type_: str, size: str, name: str) -> str:
        """``Register``, with an index of 32 bits."""
        return f"Register<{type_}, bit<32>>({size}) {name};"

    @override
    def read(self, register: str, index: str, into: str) -> str:
        """``read`` returns the word."""
        return f"{into} = {register}.read({index});"

    @override
    def write(self, register: str, index: str, value: str) -> str:
        return f"{register}.write({index}, {value});"

    @override
    def access(
        self,
        register: str,
        type_: str | None,
        index: str,
        word: str = "word",
        *,
        caller: Callable[[Callable[[str], str]], str],
    ) -> str:
        """An access is a ``RegisterAction``, which a statement cannot declare."""
        raise InputError(f"the architecture {self.name} accesses {register} by actions: its module needs a form")

    @override
    def counter(self, size: str, name: str) -> str:
        """``Counter``, of packets, with an index of 32 bits."""
        return f"Counter<bit<32>, bit<32>>({size}, CounterType_t.PACKETS) {name};"

    @override
    def entry_counter(self, name: str) -> str:
        """A ``DirectCounter`` counts in the table's actions, which a declaration cannot change."""
        raise InputError(f"the architecture {self.name} counts entries in actions: declare a DirectCounter for {name}")

    @override
    def count(self, counter: str, index: str) -> str:
        return f"{counter}.count({index});"

    @override
    def hash(self, into: str, algorithm: str, fields: str, base: str = "32w0", count: str = "64w0x100000000") -> str:
        """A hash is an instance of ``Hash`` in TNA, which a statement cannot declare."""
        raise InputError(f"the architecture {self.name} has no hashes as statements: declare a Hash<…>")


ARCHITECTURE = Tofino(
    name="tna",
    title="TNA, the architecture of Tofino",
    package=__name__,
    main="Switch",
    mains=("MultiParserSwitch",),
    includes=("core.p4", "tna.p4"),
    targets=("embedded", "tofino-model"),
    features=frozenset({Feature.MULTICAST}),
    defaults={"icrc": "ignore", "lanes": 16},
    masks_hashes=True,
    condition_bits=44,
    comparisons=2,
    long_branches=False,
    stages=12,
    egress_bytes=133,  # 160, of which the intrinsic metadata take 27
    results=(12, 4, "stages of stateful ALUs"),
    ports=PIPES * PORTS_OF_A_PIPE,
    cpu_port=64,
    recirculation_port=68,
    recirculation_gbps=100,
    prelude=Path(__file__).parent / "prelude",
)
