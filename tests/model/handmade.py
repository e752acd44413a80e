"""Small v1model programs as hand-built IR, so that the model's tests need no front end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from p4gen.errors import Pos
from p4gen.model import Model
from p4gen.p4 import ir
from p4gen.p4 import types as t

POS = Pos("test.p4", 1, 1)


def bit(width: int) -> t.Bits:
    return t.Bits(width)


def lit(value: Any, of: t.Type) -> ir.Literal:
    return ir.Literal(of, POS, value)


def var(variable: ir.Variable) -> ir.Var:
    return ir.Var(variable.type, POS, variable)


def dot(base: ir.Expr, *names: str) -> ir.Expr:
    for name in names:
        kind = t.strip(base.type)
        assert isinstance(kind, t.Fields)
        member = kind.get(name)
        assert member is not None, name
        base = ir.FieldOf(member.type, POS, base, name)
    return base


def assign(target: ir.Expr, value: ir.Expr) -> ir.Assign:
    return ir.Assign(POS, target, value)


def binary(op: Any, left: ir.Expr, right: ir.Expr, of: t.Type | None = None) -> ir.Binary:
    return ir.Binary(of or left.type, POS, op, left, right)


def extern(method: str, *args: ir.Arg, instance: ir.ExternInstance | None = None) -> ir.Evaluate:
    return ir.Evaluate(POS, ir.ExternCall(t.Void(), POS, instance, method, (), args))


def arg_in(e: ir.Expr) -> ir.Arg:
    return ir.Arg("in", e)


def arg_out(e: ir.Expr) -> ir.Arg:
    return ir.Arg("out", e)


def header(name: str, *fields: tuple[str, t.Type]) -> t.Header:
    return t.Header(name, tuple(t.FieldDef(n, k) for n, k in fields))


def struct(name: str, *fields: tuple[str, t.Type]) -> t.Struct:
    return t.Struct(name, tuple(t.FieldDef(n, k) for n, k in fields))


STANDARD = struct(
    "standard_metadata_t",
    ("ingress_port", bit(9)),
    ("egress_spec", bit(9)),
    ("egress_port", bit(9)),
    ("instance_type", bit(32)),
    ("packet_length", bit(32)),
    ("enq_timestamp", bit(32)),
    ("enq_qdepth", bit(19)),
    ("deq_timedelta", bit(32)),
    ("deq_qdepth", bit(19)),
    ("ingress_global_timestamp", bit(48)),
    ("egress_global_timestamp", bit(48)),
    ("mcast_grp", bit(16)),
    ("egress_rid", bit(16)),
    ("checksum_error", bit(1)),
    ("parser_error", t.Error()),
    ("priority", bit(3)),
)


def register(name: str, size: int, of: t.Type) -> ir.ExternInstance:
    return ir.ExternInstance(name, "register", (of,), (size,), (), POS)


@dataclass
class Maker:
    """A program over one header ``h``, which is extracted and emitted; tests fill in the controls."""

    fields: tuple[tuple[str, t.Type], ...] = (("a", bit(8)), ("b", bit(8)))
    metadata: tuple[t.FieldDef, ...] = ()
    verify: list[ir.Stmt] = field(default_factory=list)
    ingress: list[ir.Stmt] = field(default_factory=list)
    egress: list[ir.Stmt] = field(default_factory=list)
    checksum: list[ir.Stmt] = field(default_factory=list)
    tables: list[ir.Table] = field(default_factory=list)
    externs: list[ir.ExternInstance] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.header = header("h_t", *self.fields)
        self.headers = struct("headers_t", ("h", self.header))
        self.meta = t.Struct("meta_t", self.metadata)
        self._blocks = {n: self._parameters() for n in ("p", "vr", "ig", "eg", "ck", "dep")}

    def _parameters(self) -> tuple[ir.Variable, ir.Variable, ir.Variable]:
        return (
            ir.Variable("hdr", self.headers, POS),
            ir.Variable("meta", self.meta, POS),
            ir.Variable("sm", STANDARD, POS),
        )

    def h(self, name: str, block: str = "ig") -> ir.Expr:
        """``hdr.h.<name>``."""
        return dot(var(self._blocks[block][0]), "h", name)

    def hdr(self, block: str = "ig") -> ir.Expr:
        """``hdr``."""
        return var(self._blocks[block][0])

    def m(self, name: str, block: str = "ig") -> ir.Expr:
        """``meta.<name>``."""
        return dot(var(self._blocks[block][1]), name)

    def sm(self, name: str, block: str = "ig") -> ir.Expr:
        """``standard_metadata.<name>``."""
        return dot(var(self._blocks[block][2]), name)

    def standard(self, block: str = "ig") -> ir.Expr:
        """``standard_metadata``."""
        return var(self._blocks[block][2])

    def send(self, port: int) -> ir.Stmt:
        """``standard_metadata.egress_spec = port``."""
        return assign(self.sm("egress_spec"), lit(port, bit(9)))

    def _params(self, block: str, count: int) -> tuple[ir.Param, ...]:
        return tuple(ir.Param(v, "inout") for v in self._blocks[block][:count])

    def _control(self, block: str, body: Iterable[ir.Stmt], count: int = 3) -> ir.Control:
        tables = tuple(self.tables) if block == "ig" else ()
        return ir.Control(block, self._params(block, count), (), tables, ir.Block(POS, tuple(body)), POS)

    def program(self) -> ir.Program:
        extract = ir.Extract(POS, dot(self.hdr("p"), "h"), None)
        accept = ir.Transition((), (ir.SelectCase((ir.AnySet(),), "accept", POS),), POS)
        start = ir.ParserState("start", (extract,), accept, POS)
        blocks: dict[str, ir.Parser | ir.Control] = {
            "p": ir.Parser("parser", self._params("p", 3), (), {"start": start}, POS),
            "vr": self._control("vr", self.verify, 2),
            "ig": self._control("ig", self.ingress),
            "eg": self._control("eg", self.egress),
            "ck": self._control("ck", self.checksum, 2),
            "dep": self._control("dep", [ir.Emit(POS, self.hdr("dep"))], 1),
        }
        return ir.Program(
            source="test.p4",
            package="V1Switch",
            type_args=(),
            blocks=blocks,
            errors=("NoError", "PacketTooShort"),
            tables=tuple(self.tables),
            actions=(),
            externs=tuple(self.externs),
            value_sets=(),
            headers=(self.header,),
        )

    def model(self, **options: Any) -> Model:
        return Model(self.program(), **options)


def action(name: str, body: Iterable[ir.Stmt], *data: ir.Variable) -> ir.Function:
    params = tuple(ir.Param(v, "none") for v in data)
    return ir.Function(name, (), params, t.Void(), ir.Block(POS, tuple(body)), True, (), POS)


def table(
    name: str,
    keys: Iterable[tuple[ir.Expr, str, str]],
    actions: Iterable[ir.Function],
    default: ir.Function,
    **options: Any,
) -> ir.Table:
    """``keys`` are (expression, match kind, name)."""
    refs = tuple(ir.ActionRef(a.name.rsplit(".", 1)[-1], a, ()) for a in actions)
    chosen = next(r for r in refs if r.action is default)
    known: dict[str, Any] = {
        "const_default": False,
        "size": None,
        "entries": (),
        "const_entries": False,
        "direct": (),
        "implementation": None,
        "support_timeout": False,
        "annotations": (),
    }
    return ir.Table(
        name=name,
        keys=tuple(ir.Key(e, kind, label, (), POS) for e, kind, label in keys),
        actions=refs,
        default_action=ir.ActionCall(chosen, ()),
        pos=POS,
        **{**known, **options},
    )
