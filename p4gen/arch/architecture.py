"""The interface of a P4 architecture: how its statements are written, what it offers, and within which limits.

Templates of modules, and flows, contain the algorithms. Wherever a statement depends on the architecture they call a
method of ``Architecture``, which gives the P4 text. Larger parts (the controls of checksums, the pipelines, the
deparser, ``main``) are templates of the architecture, ``arch/<name>/<part>.p4.j2``. docs/architectures.md describes how
to add one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from p4gen.errors import InputError
from p4gen.plugins import F, Facet, facet
from p4gen.resources import resource

Stage = Literal["parser", "ingress", "egress"]
"""The stage in which a piece of a program runs."""
Direction = Literal["in", "inout"]
"""``in`` for code that reads how a packet arrived, ``inout`` for code that also decides where it goes."""


class Feature(StrEnum):
    """Features that an architecture may offer; messages use the values."""

    MULTICAST = "multicast"
    CLONE = "clones of arriving packets"
    EGRESS_CLONE = "clones of departing packets"
    RECIRCULATION = "recirculation"
    TICKS = "ticks"
    PACKET_CRC = "CRCs over whole packets"
    RANDOM = "random numbers"
    TRUNCATION = "truncation"
    TIME = "time stamps"
    WIDE_STATE = "register words of any width, computed by any statements"


@dataclass(frozen=True)
class ArchitectureFacet(Facet):
    """An interface to architectures, as ``Facet`` is one to families: ``Toolchain`` (``toolchain.py``), ``Behaviour``
    (``model.py``)."""


@dataclass(frozen=True)
class Architecture(ABC):
    """A P4 architecture. Methods and properties without further words give P4 text; statements end with a semicolon."""

    name: str
    title: str
    """A one-line description for reports."""
    package: str
    """The Python package with its description."""
    main: str
    """The package that a program's ``main`` instantiates. It determines a program's architecture; of several
    architectures with the same package, the first one is taken."""
    includes: tuple[str, ...]
    """The files that a program includes."""
    targets: tuple[str, ...]
    """The targets that run its programs (``p4gen.choices``)."""
    features: frozenset[Feature]
    ports: int
    """The most ports that packets of hosts may use, numbered from 0."""
    cpu_port: int
    """The port on which ticks arrive."""
    BLOCKS: ClassVar[frozenset[str]]
    """The package's parameters, by name."""
    PIPELINES: ClassVar[Mapping[str, Stage]]
    """The blocks that apply modules, and their stages. They take the headers first, then the program's metadata."""
    PROPERTIES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Properties of tables that only it has, and what they take: externs of these names, or ``bool``."""
    USES: ClassVar[Mapping[str, Feature]] = {
        "multicast": Feature.MULTICAST,
        "clone": Feature.CLONE,
        "cloned_on_arrival": Feature.CLONE,
        "clone_again": Feature.EGRESS_CLONE,
        "cloned_on_departure": Feature.EGRESS_CLONE,
        "recirculate": Feature.RECIRCULATION,
        "recirculated": Feature.RECIRCULATION,
        "tick_port": Feature.TICKS,
        "random": Feature.RANDOM,
        "truncate": Feature.TRUNCATION,
        "time_us": Feature.TIME,
    }
    """Methods and properties that only architectures with a feature have."""

    template_folder: Path | None = None
    """The folder of its templates, if not p4gen's own ``templates/arch/<name>``."""
    reserved_ports: frozenset[int] = frozenset()
    """Ports among them that packets of hosts may not use."""
    recirculation_port: int = 0
    """A port by which packets that leave arrive again, where recirculation is a matter of ports."""
    recirculation_gbps: int = 0
    """What such a port carries."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Fields of specs that have another default for its programs, and that default."""
    masks_hashes: bool = False
    """Whether a hash can be cut to bits only, not taken modulo any number, so that a route has 2^n next hops."""
    condition_bits: int = 0
    """The most bits of fields that a condition may compare; 0: any number."""
    comparisons: int = 0
    """The most comparisons in an action on a register, where registers are accessed by actions."""
    long_branches: bool = True
    """Whether the choice of a condition holds over several stages. Otherwise, what stands behind a block waits for all
    of its tables."""
    results: tuple[int, int, str] = (0, 1, "")
    """The units that actions on registers need to give numbers of 32 bits to a packet: how many units there are, how
    many numbers each gives, and what the unit is."""
    stages: int = 0
    """The stages of a pipe; 0: any number."""
    egress_bytes: int = 0
    """The most bytes of a packet that the parser of egress takes; 0: any number."""
    mains: tuple[str, ...] = ()
    """Other packages that a program's ``main`` may instantiate."""
    prelude: Path | None = None
    """The folder of the headers among ``includes`` that come with it; p4gen itself has ``core.p4``."""
    base: Architecture | None = None
    """The architecture whose templates and facets this one uses where it has none of its own."""

    def facet(self, kind: type[F]) -> F:
        """The architecture's facet, or that of the one it builds on; its module is imported only now.

        Raises ``InputError`` if there is none.
        """
        return facet(self, kind, "architecture")

    def front_ports(self, count: int) -> tuple[int, ...]:
        """The first ports that packets of hosts may use."""
        ports = (port for port in range(count + len(self.reserved_ports)) if port not in self.reserved_ports)
        return tuple(ports)[:count]

    def front_port(self, number: int) -> int:
        """The port of the link that is number ``number`` (from 0) at a switch of a topology."""
        return self.front_ports(number + 1)[-1]

    def front_number(self, port: int) -> int:
        """The number of the link at a port: the reverse of ``front_port``."""
        return port - sum(reserved < port for reserved in self.reserved_ports)

    def pipe_of(self, port: int) -> int:
        """The pipe of a port: packets that arrive in different pipes see different registers. One pipe has all ports
        unless the architecture says otherwise."""
        return 0

    @property
    def recirculation_ports(self) -> tuple[int, ...]:
        """The port of each pipe by which packets that leave arrive again, in that pipe."""
        return (self.recirculation_port,)

    def unsupported(self, feature: Feature) -> InputError:
        """The error for a text that needs a feature which the architecture does not have."""
        return InputError(f"the architecture {self.name} does not have {feature}")

    def has_blocks(self, blocks: Collection[str]) -> bool:
        """Whether a program with these blocks (``ir.Program.blocks``) is whole."""
        return set(blocks) == self.BLOCKS

    def has_parameters(self, names: Sequence[str]) -> bool:
        """Whether a package with these parameters is the one of this architecture, not another package of the same
        name."""
        return set(names) == self.BLOCKS

    # --- templates ---

    @property
    def generates(self) -> bool:
        """Whether there are templates, so that programs can be generated for it."""
        return any(folder.is_dir() for _, folder in self.template_folders)

    @property
    def template_folders(self) -> tuple[tuple[str, Path], ...]:
        """The places of its templates: the first part of their names below ``arch``, and the folder."""
        own = self.name, self.template_folder or resource("templates") / "arch" / self.name
        return (own, *(self.base.template_folders if self.base else ()))

    def template(self, part: str) -> str:
        """The name of its template for a part of programs, such as ``checksum``, ``pipelines``, ``deparser``."""
        for name, folder in self.template_folders:
            if (folder / f"{part}.p4.j2").is_file():
                return f"arch/{name}/{part}.p4.j2"
        return f"arch/{self.name}/{part}.p4.j2"

    # --- parameters and arguments of controls ---

    @abstractmethod
    def parameters(self, direction: Direction, stage: Stage = "ingress") -> str:
        """The parameters with which a control, or the parser, takes the intrinsic metadata."""

    @abstractmethod
    def arguments(self, direction: Direction, stage: Stage = "ingress") -> str:
        """The arguments for these parameters."""

    # --- expressions: how a packet arrived, and its properties ---

    @property
    @abstractmethod
    def ingress_port(self) -> str:
        """The port on which the packet arrived."""

    @property
    @abstractmethod
    def egress_port(self) -> str:
        """In egress: the port by which the packet leaves."""

    @property
    @abstractmethod
    def replication_id(self) -> str:
        """In egress: the id of a copy made by multicast; 0 for other packets."""

    @property
    @abstractmethod
    def packet_length(self) -> str:
        """In ingress: the bytes of the frame, 32 bits."""

    @property
    @abstractmethod
    def parser_failed(self) -> str:
        """Condition: the frame ended before a header that the parser extracted."""

    @property
    def time_us(self) -> str:
        """In ingress: the packet's time of arrival, in microseconds of some clock, 48 bits."""
        raise self.unsupported(Feature.TIME)

    @property
    @abstractmethod
    def checksum_failed(self) -> str:
        """Condition: the checksum that the template ``checksum`` verifies was wrong."""

    def recirculated(self, *, is_not: bool = False) -> str:
        """Condition: the packet has been recirculated; with ``is_not``: it has not."""
        raise self.unsupported(Feature.RECIRCULATION)

    @property
    def cloned_on_arrival(self) -> str:
        """Condition, in egress: the packet is a clone that ``clone`` made."""
        raise self.unsupported(Feature.CLONE)

    @property
    def cloned_on_departure(self) -> str:
        """Condition, in egress: the packet is a clone that ``clone_again`` made."""
        raise self.unsupported(Feature.EGRESS_CLONE)

    @property
    def tick_port(self) -> str:
        """Condition: the packet arrived on the port of ticks."""
        raise self.unsupported(Feature.TICKS)

    # --- statements: where a packet goes ---

    @abstractmethod
    def send(self, port: str) -> str:
        """Statement, in ingress: send the packet to ``port``."""

    def send_back(self) -> str:
        """Statement, in ingress: send the packet to the port on which it arrived."""
        return self.send(self.ingress_port)

    def multicast(self, group: str) -> str:
        """Statement, in ingress: send a copy of the packet for each replica of ``group``."""
        raise self.unsupported(Feature.MULTICAST)

    @abstractmethod
    def drop(self, stage: Stage = "ingress") -> str:
        """Statement: drop the packet, but not its clones."""

    def clone(self, session: str) -> str:
        """Statement, in ingress: send a clone of the packet, as it arrived, to the ports of ``session``, with the
        metadata that is kept."""
        raise self.unsupported(Feature.CLONE)

    def clone_again(self, session: str) -> str:
        """Statement, in egress: send a clone of the packet, as it is now, to egress by ``session``, with the metadata
        that is kept."""
        raise self.unsupported(Feature.EGRESS_CLONE)

    def recirculate(self) -> str:
        """Statement, in egress: let the packet arrive again as it leaves here, with the metadata that is kept."""
        raise self.unsupported(Feature.RECIRCULATION)

    def truncate(self, size: str) -> str:
        """Statement, in egress: cut the packet to ``size`` bytes, unless it is recirculated."""
        raise self.unsupported(Feature.TRUNCATION)

    def session_of(self, port: str) -> str:
        """The clone session of a port, from an expression for it; ``port_session`` is its number."""
        return f"(bit<32>){port} + 1"

    def port_session(self, port: int) -> int:
        """The number of the clone session of a port. Session 0 is none."""
        return port + 1

    @property
    def other_session(self) -> int:
        """The first session number after those of the ports."""
        return self.port_session(self.ports)

    # --- metadata that clones and recirculated packets keep ---

    @abstractmethod
    def constants(self, uses: frozenset[Feature]) -> tuple[str, ...]:
        """Declarations of constants that the texts above refer to, for a program that uses these features."""

    @abstractmethod
    def kept_constants(self, uses: frozenset[Feature]) -> tuple[str, ...]:
        """Declarations that the metadata which is kept needs."""

    @abstractmethod
    def kept(self, uses: frozenset[Feature]) -> str:
        """What precedes a field of metadata that is kept, in a program that uses these features."""

    # --- registers, counters, hashes ---

    @abstractmethod
    def register(self, type_: str, size: str, name: str) -> str:
        """The declaration of a register of ``size`` words."""

    @abstractmethod
    def read(self, register: str, index: str, into: str) -> str:
        """A statement that reads a word."""

    @abstractmethod
    def write(self, register: str, index: str, value: str) -> str:
        """A statement that writes a word."""

    def access(
        self,
        register: str,
        type_: str | None,
        index: str,
        word: str = "word",
        *,
        caller: Callable[[Callable[[str], str]], str],
    ) -> str:
        """The one access of a pass to a register: a word is read, and, if the block says so, written.

        For templates: ``{% call(write) arch.access("slots", "bit<32>", "index") %} ... {% endcall %}``. In the block
        the variable ``word`` holds what the register held; ``{{ write("value") }}`` writes, at most once on every path.
        It is declared with the type ``type_``, or before the block if that is None.
        An architecture whose registers are accessed by an action of their own makes it from the block.
        """
        body = caller(partial(self.write, register, index))
        indent = body[: len(body) - len(body.lstrip(" "))]
        declared = f"{indent}{type_} {word};\n" if type_ else ""
        return f"{declared}{indent}{self.read(register, index, word)}\n{body}"

    @abstractmethod
    def counter(self, size: str, name: str) -> str:
        """The declaration of ``size`` counters of packets."""

    @abstractmethod
    def entry_counter(self, name: str) -> str:
        """The declaration of a counter of packets for each entry of the table that names it as its ``counters``."""

    @abstractmethod
    def count(self, counter: str, index: str) -> str:
        """A statement that counts the packet."""

    @abstractmethod
    def hash(self, into: str, algorithm: str, fields: str, base: str = "32w0", count: str = "64w0x100000000") -> str:
        """A statement that sets ``into`` to ``base`` plus the hash of a list of fields modulo ``count``."""

    def random(self, into: str, largest: str) -> str:
        """A statement that sets ``into`` to a random number from 0 to ``largest``."""
        raise self.unsupported(Feature.RANDOM)
