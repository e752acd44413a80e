"""Options of library functions: types and bounds, checked with the option's name as the place of an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families.load import reason
from p4gen.host.transport.verbs import RECOVERIES, Recovery


def _of_nics(recovery: Recovery) -> Recovery:
    if recovery not in RECOVERIES:
        raise PydanticCustomError("enum", "", {"expected": " or ".join(RECOVERIES)})
    return recovery


Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
"""One text, or several."""
Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]
"""A text with a unit, such as ``64K``, or a number."""
NicRecovery = Annotated[Recovery, AfterValidator(_of_nics), WithJsonSchema({"enum": [str(r) for r in RECOVERIES]})]
"""How real NICs recover from losses."""
Few = Annotated[int, Field(ge=0, le=15)]
"""How often a network may commit a fault in a search."""


def option(**how: str) -> Any:
    """A field that a command line has as ``p4gen.cli.fields`` says, but with another ``flag`` than its name, with a
    ``metavar``, or with a default that is ``said`` in other words."""
    return Field(json_schema_extra=dict(how))


class Options(BaseModel):
    """The options of a function. A command line has them with the same bounds; a field's docstring is its help."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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
