"""ProgramSpec: the fields of every program, whatever paper it implements.

A family adds its own fields by deriving from it (``p4gen.families``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import override

from p4gen.arch import Architecture, Feature, architecture, architectures
from p4gen.arch.ports import CPU_PORT, DROP_PORT


class Icrc(StrEnum):
    """How programs treat RoCEv2's invariant CRC."""

    RECOMPUTE = "recompute"
    """It is checked on arrival. Changed packets leave with a right one. ``check`` means the same."""
    SET = "set"
    """Changed packets leave with a right one, whatever they arrived with."""
    IGNORE = "ignore"
    """It stays as it arrived, so NICs must ignore it too."""
    PATCH = "patch"
    """It changes as the changed headers require, so a packet leaves with a right or wrong one as it arrived."""

    @classmethod
    def _missing_(cls, value: object) -> Icrc | None:
        return cls.RECOMPUTE if value == "check" else None

    @property
    def checked(self) -> bool:
        """Whether packets with a wrong one are dropped."""
        return self is Icrc.RECOMPUTE

    @property
    def right(self) -> bool:
        """Whether changed packets leave with a right one."""
        return self is not Icrc.IGNORE

    @property
    def patched(self) -> bool:
        """Whether the program corrects it for changed headers, instead of computing it anew."""
        return self is Icrc.PATCH


COMMON_ICRC: Final = (Icrc.RECOMPUTE, Icrc.SET, Icrc.IGNORE)
"""What the programs of every family can do; a family that can do more has a field of its own."""
DEFAULT_ARCH: Final = "v1model"
DEFAULT_FAMILY: Final = "epic"
"""The family of a spec that names none."""
COMMON: Final = ("arch", "pipelines", "ports", "icrc", "ip")
"""Fields that a program has once, for all families in it."""


S = TypeVar("S", bound="ProgramSpec")


class SpecConflictError(ValueError):
    """Fields that are valid individually but not together; reported at one of them."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def _generated() -> list[str]:
    """The architectures that programs can be generated for."""
    return [name for name, arch in architectures().items() if arch.generates]


def _known(name: str) -> str:
    known = _generated()
    if name not in known:
        raise PydanticCustomError("enum", "", {"expected": " or ".join(f"'{one}'" for one in known)})
    return name


def _listed(schema: dict[str, Any]) -> None:
    schema["enum"] = _generated()


def _common(icrc: Icrc) -> Icrc:
    if icrc not in COMMON_ICRC:
        raise PydanticCustomError("enum", "", {"expected": "'recompute', 'set' or 'ignore'"})
    return icrc


class ProgramSpec(BaseModel):
    """A program to generate. Every field has a default, so a family's spec without arguments is a useful program.

    Raises pydantic's ``ValidationError``; ``p4gen.families.load`` turns it into diagnostics with positions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, title="p4gen ProgramSpec")

    OWN_DEFAULTS: ClassVar[frozenset[str]] = frozenset()
    """Fields whose defaults are the same for all architectures."""
    ARCH_FIELDS: ClassVar[frozenset[str]] = frozenset()
    """Fields that only say how a program is made for its architecture; its behaviour does not depend on them."""
    ROCE_OVER_IPV6: ClassVar[bool] = False
    """Whether the family's modules take RoCEv2 datagrams over IPv6, too."""

    @classmethod
    def fields_for(cls, given: Mapping[str, str]) -> Collection[str]:
        """The fields that programs with these values of other fields can have; help lists no others."""
        arch = architectures().get(given.get("arch", DEFAULT_ARCH))
        narrow = arch is not None and Feature.WIDE_STATE not in arch.features
        return [name for name in cls.model_fields if narrow or name not in cls.ARCH_FIELDS]

    family: Annotated[str, Field(description="the family of programs: a paper's system, or one of your own")] = ""
    name: Annotated[
        str | None,
        Field(
            pattern=r"^[a-z][a-z0-9_]{0,62}$",
            description="name of the program and of its folder under build/; derived from the other fields by default",
        ),
    ] = None
    arch: Annotated[
        str,
        AfterValidator(_known),
        Field(description="P4 architecture of the program", json_schema_extra=_listed),
    ] = DEFAULT_ARCH
    pipelines: Annotated[
        Literal[1, 2, 4],
        Field(description="ingress pipelines, each with its own memory; they divide the ports evenly"),
    ] = 1
    ports: Annotated[
        int,
        Field(
            ge=1,
            description="ports of the switch, numbered from 0; "
            f"v1model keeps {DROP_PORT} for drop and {CPU_PORT} for the CPU",
        ),
    ] = 32
    icrc: Annotated[
        Icrc,
        AfterValidator(_common),
        Field(
            description="RoCEv2's invariant CRC: check it and recompute it (check is another name for this), only "
            "set it in what is sent, or ignore it (then NICs must too)",
            json_schema_extra={"enum": list(COMMON_ICRC)},
        ),
    ] = Icrc.RECOMPUTE
    ip: Annotated[
        Literal["4", "6", "both"],
        Field(description="4: IPv4 and ARP; 6: IPv6 and its neighbour discovery; both: all of these"),
    ] = "4"

    beside: Annotated[
        SerializeAsAny[ProgramSpec] | None,
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}], "default": None}),
        Field(
            description="a second family in the same program, for packets that the first one only routes: its mode or "
            "name and its fields, as in themis:paths=16,queue=64"
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _one_switch(cls, values: Any) -> Any:
        """The program's common fields are also those of the family beside it."""
        guest = values.get("beside") if isinstance(values, dict) else None
        if not isinstance(guest, ProgramSpec):
            return values
        if guest.beside is not None:
            raise SpecConflictError("beside", "a program has at most two families")
        common = {name: values.get(name, cls.model_fields[name].default) for name in COMMON}
        own = guest.model_dump(exclude_unset=True, exclude=set(COMMON))
        try:
            return {**values, "beside": type(guest).model_validate({**own, **common})}
        except ValidationError as error:
            first = error.errors()[0]
            cause = first.get("ctx", {}).get("error", first["msg"])
            field = cause.field if isinstance(cause, SpecConflictError) else str(first["loc"][0])
            raise SpecConflictError(field if field in COMMON else "beside", f"{guest.family}: {cause}") from None

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_arch(cls, values: Any) -> Any:
        """An architecture may have other defaults."""
        name = values.get("arch", DEFAULT_ARCH) if isinstance(values, dict) else None
        if not isinstance(name, str) or name not in architectures():
            return values
        defaults = architecture(name).defaults
        known = cls.model_fields.keys() - cls.OWN_DEFAULTS
        return {name: value for name, value in defaults.items() if name in known} | values

    @model_validator(mode="after")
    def _two_families(self) -> ProgramSpec:
        if self.beside is not None and self.beside.family == self.family:
            raise SpecConflictError("beside", f"the program is of the family {self.family} already")
        return self

    @field_validator("pipelines", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        return whole(value)

    @field_validator("ip", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        """YAML's 4 and 6 are integers."""
        return str(value) if type(value) is int else value

    @model_validator(mode="after")
    def _ports_divide(self) -> ProgramSpec:
        if self.ports > self.architecture.ports:
            raise SpecConflictError("ports", f"must be at most {self.architecture.ports} for {self.arch}")
        if self.ipv6 and Feature.WIDE_STATE not in self.architecture.features:
            raise SpecConflictError("ip", f"programs for {self.arch} know IPv4 only")
        if self.ipv6 and not (self.ipv4 or self.roce_ipv6):
            families = " and ".join(part.family for part in self.parts if not part.ROCE_OVER_IPV6)
            raise SpecConflictError("ip", f"programs of the family {families} take RoCEv2 over IPv4 only: ip both")
        if self.ports % self.pipelines:
            raise SpecConflictError("ports", f"{self.ports} ports do not divide among {self.pipelines} pipelines")
        return self

    @override
    def model_post_init(self, _context: Any, /) -> None:
        """A family other than the default counts as given, so that a spec written without defaults is read as it is."""
        if self.family != DEFAULT_FAMILY:
            self.__pydantic_fields_set__.add("family")

    @property
    def ipv4(self) -> bool:
        """Whether the program knows IPv4."""
        return self.ip != "6"

    @property
    def ipv6(self) -> bool:
        """Whether the program knows IPv6."""
        return self.ip != "4"

    @property
    def roce_ipv6(self) -> bool:
        """Whether endpoints may have IPv6 addresses: every family of the program takes RoCEv2 over IPv6."""
        return self.ipv6 and all(part.ROCE_OVER_IPV6 for part in self.parts)

    @property
    def parts(self) -> tuple[ProgramSpec, ...]:
        """The spec itself, and the one beside it if there is one."""
        return (self,) if self.beside is None else (self, self.beside)

    @property
    def serves_groups(self) -> bool:
        """Whether switches serve groups of ranks: the manager gives each its contexts and slots (``ServingSpec``)."""
        return False

    @property
    def takes_part(self) -> bool:
        """Whether switches take part in CommLib's collectives (``CollectiveSpec``)."""
        return False

    @property
    def wants_ticks(self) -> bool:
        """Whether the program makes progress by ticks, which its agent sends for each edge."""
        return False

    @property
    def needs_order(self) -> bool:
        """Whether results are right only where no packet overtakes another one of its sender's."""
        return False

    @property
    def needs_intact(self) -> bool:
        """Whether corrupt packets count as right ones: nothing that switches or hosts check covers all of them."""
        return self.icrc.patched

    @property
    def unit_bytes(self) -> int:
        """Bytes of which the data of a rank, or its part, is a multiple: those of a number, int32 if hosts compute."""
        return 4

    @property
    def uses_memory(self) -> bool:
        """Whether switches address the memory of ranks, so that groups need to know it."""
        return False

    @property
    def architecture(self) -> Architecture:
        """The architecture that ``arch`` names."""
        return architecture(self.arch)

    @property
    def wants_queue_lengths(self) -> bool:
        """Whether the program needs the lengths of queues in its registers: whatever runs the program must keep them
        there."""
        return self.beside is not None and self.beside.wants_queue_lengths

    @property
    def company(self) -> tuple[str, ...]:
        """The part of the program's name that the family beside it adds."""
        return (
            *({"4": (), "6": ("ipv6only",), "both": ("ipv6",)}[self.ip]),
            *(("beside", self.beside.program) if self.beside is not None else ()),
        )

    @property
    def slices_hash(self) -> bool:
        """Whether routes may choose among 2^n next hops by any n adjacent bits of the hash (the action
        ``set_slice``)."""
        return False

    @property
    def program(self) -> str:
        """The program's name: ``name``, or one derived from the fields that distinguish it."""
        return self.name or "_".join((self.family, *self.company))

    def resolved(self) -> dict[str, Any]:
        """All fields with their defaults resolved, as the manifest records them."""
        beside = {"beside": self.beside.resolved()} if self.beside is not None else {}
        return self.model_dump(mode="json", exclude={"beside"}) | beside | {"name": self.program}


def part_of(spec: ProgramSpec, kind: type[S]) -> S | None:
    """The spec itself or the one beside it, whichever is of this kind."""
    return next((part for part in spec.parts if isinstance(part, kind)), None)


def whole(value: Any) -> Any:
    """``value``, for a field of type ``Literal`` that takes integers.

    ``Literal`` compares by equality, and True == 1 == 1.0: only an integer is meant. Raises ``ValueError``.
    """
    if isinstance(value, bool | float):
        raise ValueError("must be an integer")
    return value
