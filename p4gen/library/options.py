"""Options of library functions: types and bounds, checked with the option's name as the place of an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families.load import reason

Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
"""One text, or several."""
Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]
"""A text with a unit, such as ``64K``, or a number."""
Few = Annotated[int, Field(ge=0, le=15)]
"""How often a network may commit a fault in a search."""


class Options(BaseModel):
    """The options of a function."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Self:
        """Options by name. Raises ``InputError`` with a diagnostic for each wrong or unknown one."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise InputError(*(Diagnostic(Option(str(e["loc"][0])), reason(e)) for e in error.errors())) from None

    @classmethod
    def among(cls, values: Mapping[str, Any]) -> Self:
        """Those of ``values`` that are options of this function."""
        return cls.checked({name: value for name, value in values.items() if name in cls.model_fields})
