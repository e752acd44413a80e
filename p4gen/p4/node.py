"""What the nodes of syntax trees and of the IR are: immutable records, compared by identity."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_C = TypeVar("_C")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def node(cls: type[_C]) -> type[_C]:
    """A dataclass that is compared by identity and that the type checker keeps anyone from changing.

    At run time it is not frozen: a frozen class takes twice as long to make, and so does each of its objects. A program
    has some ten thousand nodes, of 130 classes.
    """
    # A dataclass without a docstring gets its signature as one; computing that takes as long as all the rest.
    cls.__doc__ = cls.__doc__ or cls.__name__
    return dataclass(eq=False, slots=True)(cls)
