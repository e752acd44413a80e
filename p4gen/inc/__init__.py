"""The IncEngine: module descriptors and how each mode composes them (EPIC 4.1)."""

from p4gen.inc.compose import HEADERS, MODES, Composition, DropReason, compose
from p4gen.inc.module import Drop, Metadata, Module, Register, Size, Table

__all__ = [
    "HEADERS",
    "MODES",
    "Composition",
    "Drop",
    "DropReason",
    "Metadata",
    "Module",
    "Register",
    "Size",
    "Table",
    "compose",
]
