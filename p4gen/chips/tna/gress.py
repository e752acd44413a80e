"""The parts of a gress of a pipeline: its blocks, and the roles of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from p4gen.chips.tna import Tofino
from p4gen.errors import Diagnostic, InputError
from p4gen.model.interp.build import is_packet
from p4gen.p4 import ir
from p4gen.p4 import types as t
from p4gen.p4.walk import used_by, walk

ERRORS = {
    "NoMatch": 0x0001, "PacketTooShort": 0x0002, "HeaderTooShort": 0x0002, "CounterRange": 0x0004, "Timeout": 0x0008,
    "ParserTimeout": 0x0008, "PhvOwner": 0x0080, "MultiWrite": 0x0100,
}  # fmt: skip
"""Bits of ``parser_err`` by P4's error."""
NO_MATCH = ERRORS["NoMatch"]

Direction = Literal["ingress", "egress"]
SHORT: Mapping[Direction, str] = {"ingress": "ig", "egress": "eg"}


@dataclass(frozen=True)
class Parts:
    """The blocks of a gress, and the values that are their arguments, each known by its role (``Tofino.ROLES``): all
    headers are ``hdr``, and all metadata ``md``."""

    name: Direction
    blocks: Mapping[str, ir.Parser | ir.Control]
    """The parsers, the control and the deparser."""
    parsers: Mapping[int, str]
    """The names of the parsers by channel; the parser of channel 0 is for all other channels."""
    arguments: Mapping[str, tuple[tuple[ir.Variable, str], ...]]
    """The parameters of each block, and their roles."""
    types: Mapping[str, t.Type]
    """The type of the argument with each role."""
    intrinsic: t.Type
    """The header in front of a packet."""
    extracts: bool
    """Whether its parsers extract that header; otherwise the compiler lets them begin behind it."""
    reads_errors: bool
    """Whether the control refers to the parser's errors."""

    @property
    def control(self) -> ir.Parser | ir.Control:
        """The control between parser and deparser."""
        return self.blocks[self.name]

    @property
    def deparser(self) -> str:
        """The name of the deparser among ``blocks``."""
        return f"{self.name}_deparser"

    def role(self, what: str) -> str:
        """The role of the architecture's own argument: ``for_tm``, ``for_dprsr``, ``from_prsr``."""
        return f"{SHORT[self.name]}_intr_md_{what}"


def pipelines(program: ir.Program) -> dict[str, dict[str, ir.Parser | ir.Control]]:
    """The blocks of each pipeline, by their names in it. Raises ``InputError`` for the ghost thread."""
    found: dict[str, dict[str, ir.Parser | ir.Control]] = {}
    for name, block in program.blocks.items():
        pipe, _, inner = name.partition(".")
        if inner == "ghost":
            what = "the ghost thread is not supported by the behavioural model"
            raise InputError(Diagnostic(block.pos, what))
        found.setdefault(pipe, {})[inner] = block
    return found


def parts(program: ir.Program, name: Direction, pipeline: Mapping[str, ir.Parser | ir.Control]) -> Parts:
    """The parts of a gress of a pipeline."""
    short = SHORT[name]
    many = {int(n.rpartition("prsr")[2]): n for n in pipeline if n.startswith(f"{short}_prsr.")}
    parsers: Mapping[int, str] = many or {0: f"{name}_parser"}
    kinds = dict.fromkeys(parsers.values(), f"{name}_parser")
    kinds |= {f"{name}": name, f"{name}_deparser": f"{name}_deparser"}
    types: dict[str, t.Type] = {}
    arguments = {}
    for block, kind in kinds.items():
        found = tuple(
            (p.variable, _role(kind, i)) for i, p in enumerate(pipeline[block].params) if not is_packet(p.variable.type)
        )
        for variable, role in found:
            types.setdefault(role, variable.type)
        arguments[block] = found
    intrinsic = types.get(f"{short}_intr_md") or _header(program, f"{name}_intrinsic_metadata_t")
    blocks = {block: pipeline[block] for block in kinds}
    extracts = any(_extracts(pipeline[parser], intrinsic) for parser in parsers.values())
    return Parts(name, blocks, parsers, arguments, types, intrinsic, extracts, _refers(pipeline[name], "parser_err"))


def _role(block: str, position: int) -> str:
    name = Tofino.ROLES[block][position]
    return "md" if name in ("ig_md", "eg_md", "metadata") else name


def members_of(of: t.Type) -> tuple[t.FieldDef, ...]:
    """The fields of an argument."""
    kind = t.strip(of)
    assert isinstance(kind, t.Fields)
    return kind.fields


def fields_of(of: t.Type) -> dict[str, int]:
    """The position of each field of an argument, by name."""
    return {f.name: i for i, f in enumerate(members_of(of))}


def _header(program: ir.Program, name: str) -> t.Type:
    """The type of intrinsic metadata where no block takes it as a parameter."""
    for header in program.headers:
        if str(header) == name:
            return header
    where = next(iter(program.blocks.values())).pos
    raise InputError(Diagnostic(where, f"no block of the program takes {name}"))


def _extracts(parser: ir.Parser | ir.Control, header: t.Type) -> bool:
    """Whether a parser, or one that it calls, extracts a header of that type."""
    found = (node for block in used_by(parser).blocks for node in walk(tuple(getattr(block, "states", {}).values())))
    extracted = (node.header for node in found if isinstance(node, ir.Extract))
    return any(one is not None and t.strip(one.type) == t.strip(header) for one in extracted)


def _refers(control: ir.Parser | ir.Control, name: str) -> bool:
    """Whether a control, or a callable that it reaches, names a field."""
    used = used_by(control)
    bodies: list[object] = [part for block in used.blocks for part in (block.locals, getattr(block, "body", ()))]
    bodies += [function.body for function in used.functions]
    bodies += [key.expr for table in used.tables for key in table.keys]
    return any(isinstance(node, ir.FieldOf) and node.name == name for body in bodies for node in walk(body))
