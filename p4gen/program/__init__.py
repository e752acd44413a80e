"""Programs: modules, how they are composed, and the P4 text and manifest that come of it."""

from p4gen.program.compose import Composition, DropReason, ProgramParts, compose
from p4gen.program.manifest import Manifest, manifest
from p4gen.program.module import Drop, Metadata, Module, Register, Size, Table
from p4gen.program.text import Rendered, render
from p4gen.program.word import Field, Word

__all__ = [
    "Composition",
    "Drop",
    "DropReason",
    "Field",
    "Manifest",
    "Metadata",
    "Module",
    "ProgramParts",
    "Register",
    "Rendered",
    "Size",
    "Table",
    "Word",
    "compose",
    "manifest",
    "render",
]
