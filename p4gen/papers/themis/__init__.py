"""Themis: packet spraying for commodity RNICs, with support in the first and the last switch of a path."""

from p4gen.families.family import Family
from p4gen.papers.themis.spec import Mode, ThemisSpec

FAMILY = Family(
    "themis",
    "Themis: packets sprayed by PSN, and only those NACKs passed on that report a loss",
    ThemisSpec,
    __name__,
    telling=("mode",),
    modes=tuple(Mode),
)
