"""The blocks of a pipe, compiled, and the passes of a packet through its gresses.

Parser errors and the drop rule are those of p4testgen's Tofino target. A packet that ends before a header is complete
has ``PARSER_ERROR_PARTIAL_HDR``, a packet that no ``select`` case matches ``PARSER_ERROR_NO_MATCH``. An explicit
transition to ``reject`` ends the parser without an error, as ``accept`` does. Ingress drops a packet that has an error,
unless its control refers to ``parser_err``, and one without a matching case in any case; egress drops none. Errors that
``verify`` names have the bit of that name, if there is one. Packets are not padded, and parsers do not see the FCS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p4gen.chips.tna.chip import Chip
from p4gen.chips.tna.context import UNSET, Pass
from p4gen.chips.tna.externs import externs
from p4gen.chips.tna.gress import ERRORS, NO_MATCH, Parts, fields_of, members_of, parts, pipelines
from p4gen.chips.tna.memory import Memory, TofinoState
from p4gen.model.codec import flattener, to_bytes
from p4gen.model.interp import Exec, Frame, Interpreter, Reject
from p4gen.model.poison import initial
from p4gen.model.values import HeaderValue, copy_value, zero
from p4gen.p4 import ir
from p4gen.p4 import types as t

Values = dict[str, Any]
"""The arguments of a pass, by the names of ``Tofino.ROLES``; all headers are ``hdr`` and all metadata ``md``."""


class Pipeline:
    """One of a program's pipelines in one pipe."""

    def __init__(
        self, program: ir.Program, name: str, state: TofinoState, memory: Memory, chip: Chip, *, traced: bool
    ) -> None:
        self.chip, self.name = chip, name
        blocks = pipelines(program)[name]
        interpreter = Interpreter(program, state, externs(memory), traced=traced, blocks=blocks)
        self.ingress = Gress(parts(program, "ingress", blocks), interpreter, state)
        self.egress = Gress(parts(program, "egress", blocks), interpreter, state)


class Gress:
    """The parser, the control and the deparser of ingress or egress."""

    def __init__(self, made: Parts, interpreter: Interpreter, state: TofinoState) -> None:
        self.name, self._made = made.name, made
        self._frame = interpreter.frame
        self._parsers = made.parsers
        self._blocks: dict[str, tuple[Exec, list[tuple[int, str]], ir.Parser | ir.Control]] = {}
        for block, arguments in made.arguments.items():
            slots = [(interpreter.slot(variable), role) for variable, role in arguments]
            self._blocks[block] = interpreter.blocks[block], slots, made.blocks[block]
        self._prototypes = {
            role: initial(of, poison=state.poison) if role in ("hdr", "md") else _intrinsic(role, of)
            for role, of in made.types.items()
        }
        self.fields = {role: fields_of(of) for role, of in made.types.items() if role not in ("hdr", "md")}
        self.intrinsic, self._encode = made.intrinsic, flattener(made.intrinsic, valid_only=False)
        self.intrinsic_fields = fields_of(made.intrinsic)
        self._kinds = [f.type for f in members_of(made.intrinsic)]
        self.extracts = made.extracts
        self._deparser_role, self._errors_role = made.role("for_dprsr"), made.role("from_prsr")

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
            ctx.types[name] = self.get(values, self._deparser_role, name)
        ctx.emitted = []
        self._block(self._made.deparser, ctx, values, label)
        return True

    def packet(self, ctx: Pass) -> bytes:
        """The bytes that the deparser has emitted, and those that no parser has extracted. Headers take whole bytes."""
        return b"".join(to_bytes(bits, width) for bits, width in ctx.emitted) + ctx.data[(ctx.at + 7) >> 3 :]

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
        dropped = bool(error & NO_MATCH) or (error != 0 and not self._made.reads_errors)
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
    """An argument of the architecture's own: fields that the program may assign are unset, all others 0."""
    value = zero(of)
    if role.endswith(("_for_tm", "_for_dprsr")):
        value.fields[:] = [UNSET for _ in value.fields]
    return value
