"""The blocks of a pipe, compiled, and the passes of a packet through its gresses.

Parser errors and the drop rule are those of p4testgen's Tofino target: a packet that ends before a header is complete
has ``PARSER_ERROR_PARTIAL_HDR``, one that no ``select`` case matches ``PARSER_ERROR_NO_MATCH``; an explicit transition
to ``reject`` ends the parser without an error, as ``accept`` does. Ingress drops a packet that has an error, unless its
control refers to ``parser_err``, and one without a matching case in any case; egress drops none. Errors that ``verify``
names have the bit of that name, if there is one. Packets are not padded, and parsers do not see the FCS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from p4gen.arch.tna import Tofino
from p4gen.arch.tna.chip import Chip
from p4gen.arch.tna.context import UNSET, Pass
from p4gen.arch.tna.externs import externs
from p4gen.arch.tna.memory import Memory, TofinoState
from p4gen.errors import Diagnostic, InputError
from p4gen.model.codec import flattener, packed, to_bytes
from p4gen.model.interp import Exec, Frame, Interpreter, Reject
from p4gen.model.interp.build import is_packet
from p4gen.model.poison import initial
from p4gen.model.values import HeaderValue, copy_value, zero
from p4gen.p4 import ir
from p4gen.p4 import types as t
from p4gen.p4.walk import used_by, walk

ERRORS = {
    "NoMatch": 0x0001, "PacketTooShort": 0x0002, "HeaderTooShort": 0x0002, "CounterRange": 0x0004, "Timeout": 0x0008,
    "ParserTimeout": 0x0008, "PhvOwner": 0x0080, "MultiWrite": 0x0100,
}  # fmt: skip
"""Bits of ``parser_err`` by P4's error."""
NO_MATCH = ERRORS["NoMatch"]

Values = dict[str, Any]
"""The arguments of a pass, by the names of ``Tofino.ROLES``; all headers are ``hdr`` and all metadata ``md``."""


def _role(block: str, position: int) -> str:
    name = Tofino.ROLES[block][position]
    return "md" if name in ("ig_md", "eg_md", "metadata") else name


@dataclass
class Leaving:
    """A packet at the end of a gress."""

    data: bytes
    values: Values
    ctx: Pass


class Pipeline:
    """One of a program's pipelines in one pipe."""

    def __init__(
        self, program: ir.Program, name: str, state: TofinoState, memory: Memory, chip: Chip, *, traced: bool
    ) -> None:
        self.chip, self.name = chip, name
        prefix = f"{name}."
        blocks = {n.removeprefix(prefix): b for n, b in program.blocks.items() if n.startswith(prefix)}
        if "ghost" in blocks:
            what = "the ghost thread is not supported by the behavioural model"
            raise InputError(Diagnostic(blocks.pop("ghost").pos, what))
        interpreter = Interpreter(program, state, traced=traced, externs=externs(memory), blocks=blocks)
        self._frame = interpreter.frame
        self.ingress = Gress("ingress", "ig", blocks, interpreter, state, program)
        self.egress = Gress("egress", "eg", blocks, interpreter, state, program)


class Gress:
    """The parser, the control and the deparser of ingress or egress."""

    def __init__(
        self,
        name: str,
        short: str,
        blocks: Mapping[str, ir.Parser | ir.Control],
        interpreter: Interpreter,
        state: TofinoState,
        program: ir.Program,
    ) -> None:
        self.name = name
        self._frame = interpreter.frame
        many = {int(n.rpartition("prsr")[2]): n for n in blocks if n.startswith(f"{short}_prsr.")}
        self._parsers: Mapping[int, str] = many or {0: f"{name}_parser"}
        kinds = dict.fromkeys(self._parsers.values(), f"{name}_parser")
        kinds |= {f"{name}": name, f"{name}_deparser": f"{name}_deparser"}
        self._blocks: dict[str, tuple[Exec, list[tuple[int, str]], ir.Parser | ir.Control]] = {}
        types: dict[str, t.Type] = {}
        for block, kind in kinds.items():
            params = blocks[block].params
            roles = [(p.variable, _role(kind, i)) for i, p in enumerate(params) if not is_packet(p.variable.type)]
            for variable, role in roles:
                types.setdefault(role, variable.type)
            slots = [(interpreter.slot(variable), role) for variable, role in roles]
            self._blocks[block] = interpreter.blocks[block], slots, blocks[block]
        self._prototypes = {
            role: initial(of, poison=state.poison) if role in ("hdr", "md") else _intrinsic(role, of)
            for role, of in types.items()
        }
        self.fields = {role: _fields(of) for role, of in types.items() if role not in ("hdr", "md")}
        intrinsic = f"{short}_intr_md"
        header = types.get(intrinsic) or _header(program, f"{name}_intrinsic_metadata_t")
        self.intrinsic, self._encode = header, flattener(header, valid_only=False)
        self.intrinsic_fields, self._kinds = _fields(header), [f.type for f in _members(header)]
        self.position = blocks[name].pos
        control = blocks[name]
        self.reads_errors = _refers(control, "parser_err")
        self._deparser_role = f"{short}_intr_md_for_dprsr"
        self._errors_role = f"{short}_intr_md_from_prsr"

    def fresh(self) -> Values:
        """The arguments of a new packet."""
        return {role: copy_value(value) for role, value in self._prototypes.items()}

    def front(self, numbers: Mapping[str, int]) -> bytes:
        """The intrinsic metadata in front of the packet, with these fields, cut to their widths; the others are 0."""
        header: HeaderValue = zero(self.intrinsic)
        for name, number in numbers.items():
            at = self.intrinsic_fields.get(name)
            if at is not None:
                header.fields[at] = number & (1 << t.width_of(self._kinds[at])) - 1
        return to_bytes(*self._encode(header))

    def put(self, values: Values, role: str, **numbers: int) -> None:
        """Set fields of an argument, where the program has it."""
        if role in values:
            for name, number in numbers.items():
                if name in self.fields[role]:
                    values[role].fields[self.fields[role][name]] = number

    def get(self, values: Values, role: str, name: str) -> int:
        """A field of an argument; ``UNSET`` where the program has not got it."""
        if role not in values or name not in self.fields[role]:
            return UNSET
        found: int = values[role].fields[self.fields[role][name]]
        return found

    def run(self, ctx: Pass, values: Values, port: int, label: str = "") -> bool:
        """The parser for ``port``, the control and the deparser. False: the parser has dropped the packet."""
        if not self._parse(ctx, values, port, label):
            return False
        self._block(self.name, ctx, values, label)
        for name in ("mirror_type", "resubmit_type", "digest_type"):
            ctx.types[name] = int(self.get(values, self._deparser_role, name))
        ctx.emitted = []
        self._block(f"{self.name}_deparser", ctx, values, label)
        return True

    def packet(self, ctx: Pass) -> bytes:
        """What the deparser has emitted, and what no parser has extracted."""
        return packed(ctx.emitted) + ctx.data[(ctx.at + 7) >> 3 :]

    def _parse(self, ctx: Pass, values: Values, port: int, label: str) -> bool:
        channel = (port & 0x7F) >> 2
        name = self._parsers.get(channel) or self._parsers[0]
        error = 0
        try:
            self._block(name, ctx, values, label)
        except Reject as reject:
            error = ERRORS.get(reject.error, 0)
            if ctx.trace is not None:
                ctx.trace.add("reject", f"the parser ends: {reject.error}", None, error=reject.error)
        for _, store in ctx.residuals:
            store(ctx.at)
        ctx.residuals = []
        self.put(values, self._errors_role, parser_err=error)
        dropped = bool(error & NO_MATCH) or (error != 0 and not self.reads_errors)
        return self.name == "egress" or not dropped

    def _block(self, name: str, ctx: Pass, values: Values, label: str) -> None:
        body, slots, block = self._blocks[name]
        if ctx.trace is not None:
            part = "parser" if isinstance(block, ir.Parser) else "deparser" if name.endswith("deparser") else ""
            ctx.trace.add("block", " ".join(filter(None, (self.name, part))) + label, block.pos, block=name)
        f: Frame = self._frame()
        f[0] = ctx
        for slot, role in slots:
            f[slot] = values[role]
        body(f)


def _intrinsic(role: str, of: t.Type) -> Any:
    """Arguments of the architecture's own: what the program may assign is unset, all else 0."""
    value = zero(of)
    if role.endswith(("_for_tm", "_for_dprsr")):
        value.fields[:] = [UNSET for _ in value.fields]
    return value


def _members(of: t.Type) -> tuple[t.FieldDef, ...]:
    kind = t.strip(of)
    assert isinstance(kind, t.Fields)
    return kind.fields


def _fields(of: t.Type) -> dict[str, int]:
    return {f.name: i for i, f in enumerate(_members(of))}


def _header(program: ir.Program, name: str) -> t.Type:
    """The type of intrinsic metadata where no block takes it as a parameter."""
    for header in program.headers:
        if str(header) == name:
            return header
    where = next(iter(program.blocks.values())).pos
    raise InputError(Diagnostic(where, f"no block of the program takes {name}"))


def _refers(control: ir.Parser | ir.Control, name: str) -> bool:
    """Whether a control, or what it reaches, names a field."""
    used = used_by(control)
    bodies: list[object] = [part for block in used.blocks for part in (block.locals, getattr(block, "body", ()))]
    bodies += [function.body for function in used.functions]
    bodies += [key.expr for table in used.tables for key in table.keys]
    return any(isinstance(node, ir.FieldOf) and node.name == name for body in bodies for node in walk(body))
