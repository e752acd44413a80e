"""EpicSpec: the fields of EPIC's programs in addition to those of every collective."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, assert_never

from pydantic import Field, model_validator

from p4gen.spec.collective import CollectiveSpec, Overflow, Reliability
from p4gen.spec.program import DEFAULT_ARCH, Icrc, SpecConflictError
from p4gen.spec.reductions import Op


class Mode(StrEnum):
    """EPIC's polymorphic realisations (section 4)."""

    II = "II"
    """Connection translated (4.3)."""
    III = "III"
    """Connection augmented (4.4)."""

    @property
    def augmented(self) -> bool:
        """Whether each switch terminates its connections and answers packets; otherwise it translates connections."""
        match self:
            case Mode.II:
                return False
            case Mode.III:
                return True
            case other:
                assert_never(other)


class Congestion(StrEnum):
    """The answer to a rank that runs ahead of a pipe's range (EPIC 4.4, rate synchronization)."""

    CNP = "cnp"
    """A congestion notification, and an RNR NAK, which asks for retransmission later."""
    NONE = "none"
    """Only a NAK."""


class Variant(StrEnum):
    """Wrong designs, which tests must detect (EPIC 5.1 and H.4). All but the last are of Mode III."""

    PSN_RECYCLING = "psn-recycling"
    """Mode II's RecycleBuffer in Mode III: a newer PSN takes its slot even if still needed (the pitfall of 5.1)."""
    ROOT_COPIES = "root-copies"
    """The root copies results directly, even over a broadcast in progress (H.4)."""
    NO_NAK = "no-nak"
    """Gaps are not reported; only timers recover from them (H.4)."""
    NAK_STORM = "nak-storm"
    """Every packet out of order is answered with a NAK (H.4)."""
    STALE_ARRIVED = "stale-arrived"
    """The arrived bits of a slot outlive its PSN (Algorithm 1 does not say who clears them)."""


class EpicSpec(CollectiveSpec):
    """A program of EPIC's Mode II or III."""

    family: Annotated[
        Literal["epic"],
        Field(description="the family of programs: a paper's system"),
    ] = "epic"
    mode: Annotated[
        Mode,
        Field(description="EPIC mode: II, connection translated (EPIC 4.3), or III, connection augmented (EPIC 4.4)"),
    ] = Mode.II
    reliability: Annotated[
        Reliability | None,
        Field(
            description="mode II: sr (the default), or gbn, which drops packets out of order; mode III: gbn (the "
            "default), sr, or sack"
        ),
    ] = None
    congestion: Annotated[
        Congestion | None,
        Field(description="mode III: how a rank ahead of the pipe's range is notified: cnp (the default) or none"),
    ] = None
    variant: Annotated[Variant | None, Field(description="a wrong design, for tests only; none by default")] = None

    @model_validator(mode="after")
    def _mode_fits(self) -> EpicSpec:
        if not self.mode.augmented:
            if self.reliability is Reliability.SACK:
                raise SpecConflictError("reliability", "sack is for mode III; in mode II the switch sends no NAKs")
            if self.congestion is not None:
                raise SpecConflictError("congestion", "is for mode III; in mode II no rank can run ahead of the others")
            if self.variant not in (None, Variant.STALE_ARRIVED):
                raise SpecConflictError("variant", f"{self.variant} is a wrong design of mode III")
        return self

    @property
    def terminates(self) -> bool:
        """True for Mode III."""
        return self.mode.augmented

    @property
    def wants_ticks(self) -> bool:
        """True for Mode III."""
        return self.mode.augmented

    @property
    def pipes(self) -> int:
        """Mode III has a pipe up and a pipe down, Mode II one pipe (EPIC 4.4)."""
        return 2 if self.mode.augmented else 1

    @property
    def loss_recovery(self) -> Reliability:
        """Mode III's default is Go-Back-N."""
        return self.reliability or (Reliability.GBN if self.mode.augmented else Reliability.SR)

    @property
    def notifies(self) -> bool:
        """Whether ranks that run ahead get congestion notifications."""
        match self.congestion:
            case None | Congestion.CNP:
                return self.mode.augmented
            case Congestion.NONE:
                return False
            case other:
                assert_never(other)

    @property
    def program(self) -> str:
        """The program's name: ``name``, or one derived from the fields that distinguish it."""
        if self.name:
            return self.name
        wrap = "wrap" if self.overflow is Overflow.WRAP else ""
        parts = [f"mode{self.mode.value.lower()}", f"{wrap}{self.op}"]
        if self.op is not Op.DYNAMIC:
            parts.append(str(self.dtype))
        parts.append(f"x{self.lanes}")
        if self.pipelines > 1:
            parts.append(f"p{self.pipelines}")
        if self.reliability is not None:
            parts.append(str(self.reliability))
        if self.congestion is Congestion.NONE:
            parts.append("nocnp")
        if self.icrc is Icrc.IGNORE:
            parts.append("noicrc")
        if self.variant is not None:
            parts.append(self.variant.replace("-", "_"))
        if self.arch != DEFAULT_ARCH:
            parts.append(self.arch)
        return "_".join((*parts, *self.company))

    @property
    def alike(self) -> dict[str, str]:
        """Includes the mode."""
        return {"mode": str(self.mode)} | super().alike

    def resolved(self) -> dict[str, Any]:
        """All fields with their defaults resolved, as the manifest records them."""
        return super().resolved() | {
            "slots": self.slots_per_group,
            "overflow": ("saturate" if self.saturating else "wrap") if self.op.overflows else None,
            "reliability": str(self.loss_recovery),
            "congestion": ("cnp" if self.notifies else "none") if self.mode.augmented else None,
        }
