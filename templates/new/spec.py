"""NewFamilySpec: the fields of its programs, which are EPIC's and one more."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from p4gen.papers.epic.spec import EpicSpec, Mode


class NewFamilySpec(EpicSpec):
    """A program of EPIC's Mode II that counts contributions."""

    family: Annotated[Literal["new_family"], Field(description="the family of programs")] = "new_family"  # type: ignore[assignment]
    mode: Annotated[Literal[Mode.II], Field(description="EPIC mode: II")] = Mode.II
    repeats: Annotated[
        Literal["ignore", "count"],
        Field(description="whether packets that a rank sends again are counted again"),
    ] = "ignore"

    @property
    def program(self) -> str:
        """The program's name: ``name``, or one derived from the fields that distinguish it."""
        return self.name or f"new_family_{super().program}" + ("_repeats" if self.repeats == "count" else "")

    def resolved(self) -> dict[str, Any]:
        """All fields with their defaults resolved, as the manifest records them."""
        return super().resolved() | {"name": self.program}
