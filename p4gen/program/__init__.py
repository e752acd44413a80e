"""Programs: modules, how they are composed, and the P4 text and manifest that come of it."""

from p4gen.program.common import Ipv4Checksum
from p4gen.program.compose import Composition, ProgramParts, compose
from p4gen.program.flow import Flow
from p4gen.program.manifest import Manifest, manifest
from p4gen.program.module import Drop, DropReason, Metadata, Module, Register, Size, Table
from p4gen.program.text import Rendered, render

__all__ = [
    "Composition",
    "Drop",
    "DropReason",
    "Flow",
    "Ipv4Checksum",
    "Manifest",
    "Metadata",
    "Module",
    "ProgramParts",
    "Register",
    "Rendered",
    "Size",
    "Table",
    "compose",
    "manifest",
    "render",
]
