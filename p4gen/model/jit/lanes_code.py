"""Vector code for the statements of a lane: a scalar for values that are the same in all lanes, a vector for others."""

from __future__ import annotations

from typing import NamedTuple

from p4gen.model.jit.build import Gen
from p4gen.model.jit.emit import Address, Value, const
from p4gen.model.jit.expressions import PREDICATES
from p4gen.model.jit.layout import is_signed, scalar_width
from p4gen.p4 import ir
from p4gen.p4 import types as t


class Vector(NamedTuple):
    """A vector of integers of ``width`` bits."""

    ref: str
    width: int


Lanes = Value | Vector

_PLAIN = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "&&": "and", "||": "or"}


def _shifting(e: ir.Binary) -> str:
    """LLVM's instruction for a shift, by direction and sign."""
    return "shl" if e.op == "<<" else "ashr" if is_signed(e.left.type) else "lshr"


class Body:
    """One pass over a lane control's statements, for ``count`` lanes. ``dry``: without register accesses.

    Locals are vectors on the stack. An ``if`` on a scalar is a jump, on a vector a mask.
    """

    def __init__(
        self, g: Gen, count: int, values: dict[ir.Variable, Value], flags: dict[ir.Variable, Address], *, dry: bool
    ) -> None:
        self._dry = dry
        self._g, self._fn, self._count = g, g.fn, count
        self._same, self._flags = values, flags
        self._locals: dict[ir.Variable, tuple[str, int]] = {}
        self._masks: list[Vector] = []
        self.registers: dict[ir.ExternInstance, tuple[str, int]] = {}
        """Address of the first lane's cell 0, and the bytes from index to index."""

    # --- vectors ---

    def _type(self, width: int) -> str:
        return f"<{self._count} x i{width}>"

    def load(self, place: str, width: int) -> Vector:
        """Load the values of neighbouring lanes."""
        return Vector(self._fn.ins(f"load {self._type(width)}, ptr {place}, align 1"), width)

    def save(self, value: Lanes, place: str) -> None:
        """Store the values of neighbouring lanes."""
        vector = self._vector(value)
        self._fn.do(f"store {self._type(vector.width)} {vector.ref}, ptr {place}, align 1")

    def _vector(self, value: Lanes) -> Vector:
        if isinstance(value, Vector):
            return value
        if value.constant is not None:
            return Vector(f"splat (i{value.width} {value.ref})", value.width)
        kind = self._type(value.width)
        one = self._fn.ins(f"insertelement {kind} poison, i{value.width} {value.ref}, i32 0")
        zeros = f"<{self._count} x i32> zeroinitializer"
        return Vector(self._fn.ins(f"shufflevector {kind} {one}, {kind} poison, {zeros}"), value.width)

    def _select(self, mask: Vector, a: Lanes, b: Lanes) -> Vector:
        x, y = self._vector(a), self._vector(b)
        kind = self._type(x.width)
        ref = self._fn.ins(f"select <{self._count} x i1> {mask.ref}, {kind} {x.ref}, {kind} {y.ref}")
        return Vector(ref, x.width)

    # --- variables ---

    def declare(self, variable: ir.Variable, width: int, value: Lanes | None) -> None:
        """Declare a local variable; None stands for zero."""
        place = self._fn.alloca(self._type(width))
        self._locals[variable] = place, width
        start = self._vector(const(0, width) if value is None else value)
        self._fn.do(f"store {self._type(width)} {start.ref}, ptr {place}")

    def get(self, variable: ir.Variable) -> Lanes:
        """The value of a variable: a scalar, or one value for each lane."""
        if variable in self._same:
            return self._same[variable]
        place, width = self._locals[variable]
        return Vector(self._fn.ins(f"load {self._type(width)}, ptr {place}"), width)

    def _mask(self) -> Vector | None:
        if not self._masks:
            return None
        mask: Lanes = self._masks[0]
        for other in self._masks[1:]:
            mask = self._op("and", mask, other)
        return self._vector(mask)

    def _set(self, variable: ir.Variable, value: Lanes) -> None:
        mask = self._mask()
        if variable in self._flags:
            self._raise_flag(self._flags[variable], mask)
            return
        if mask is not None:
            value = self._select(mask, value, self.get(variable))
        place, width = self._locals[variable]
        self._fn.do(f"store {self._type(width)} {self._vector(value).ref}, ptr {place}")

    def _raise_flag(self, flag: Address, mask: Vector | None) -> None:
        if mask is None:
            self._fn.store(const(1, 1), flag)
            return
        bits = Value(self._fn.ins(f"bitcast <{self._count} x i1> {mask.ref} to i{self._count}"), self._count)
        some = self._fn.compare("ne", bits, const(0, self._count))
        self._fn.store(self._fn.op("or", self._fn.load(flag, 1), some), flag)

    # --- statements ---

    def stmt(self, s: ir.Stmt) -> None:
        """Generate a statement that ``lanes`` accepts."""
        match s:
            case ir.Block(body=body):
                for part in body:
                    self.stmt(part)
            case ir.Declare(variable=variable, init=init):
                self.declare(variable, scalar_width(variable.type), None if init is None else self.value(init))
            case ir.Assign(target=ir.Var(variable=variable), value=value):
                self._set(variable, self.value(value))
            case ir.If():
                self._if(s)
            case ir.Evaluate(expr=ir.ExternCall() as call):
                self._register(call)
            case _:
                raise AssertionError(type(s))

    def _if(self, s: ir.If) -> None:
        fn, condition = self._fn, self.value(s.condition)
        if isinstance(condition, Value):
            then, otherwise, after = fn.label(), fn.label(), fn.label()
            fn.branch(condition, then, otherwise)
            fn.begin(then)
            self.stmt(s.then)
            fn.br(after)
            fn.begin(otherwise)
            if s.otherwise is not None:
                self.stmt(s.otherwise)
            fn.begin(after)
            return
        self._masks.append(condition)
        self.stmt(s.then)
        self._masks.pop()
        if s.otherwise is not None:
            other = self._op("xor", condition, const(1, 1))
            self._masks.append(self._vector(other))
            self.stmt(s.otherwise)
            self._masks.pop()

    def _register(self, call: ir.ExternCall) -> None:
        if self._dry:
            return
        assert call.instance is not None
        base, step = self.registers[call.instance]
        first, second = (a.expr for a in call.args)
        assert first is not None
        assert second is not None
        reading = call.method == "read"
        index = self.value(second if reading else first)
        assert isinstance(index, Value)
        place = self._fn.offset(base, index, step)
        if reading:
            assert isinstance(first, ir.Var)
            self._set(first.variable, self.load(place, scalar_width(first.type)))
            return
        value, mask = self.value(second), self._mask()
        if mask is not None:
            value = self._select(mask, value, self.load(place, scalar_width(second.type)))
        self.save(value, place)

    # --- expressions ---

    def value(self, e: ir.Expr) -> Lanes:
        """The value of an expression that ``lanes`` accepts."""
        match e:
            case ir.Literal(value=value):
                return const(self._g.types.number(value, e.type), scalar_width(e.type))
            case ir.Var(variable=variable):
                return self.get(variable)
            case ir.Unary(op=op, operand=operand):
                inner = self.value(operand)
                ones = const(-1, inner.width)
                return self._op("sub", const(0, inner.width), inner) if op == "-" else self._op("xor", inner, ones)
            case ir.Binary():
                return self._binary(e)
            case ir.Cast(operand=operand):
                return self._cast(self.value(operand), operand.type, e.type)
            case ir.Slice(base=base, hi=hi, lo=lo):
                inner = self.value(base)
                return self._resize(self._op("lshr", inner, const(lo, inner.width)) if lo else inner, hi - lo + 1)
            case ir.FunctionCall(callee=callee, args=args):
                return self._call(callee, args)
            case ir.Mux(condition=condition, then=then, otherwise=otherwise):
                return self._mux(self.value(condition), self.value(then), self.value(otherwise))
        raise AssertionError(type(e))

    def _call(self, function: ir.Function, args: tuple[ir.Arg, ...]) -> Lanes:
        """The result of a function that only computes: it may be computed for lanes that do not need it."""
        *body, last = function.body.body
        assert isinstance(last, ir.Return)
        assert last.value is not None
        values = [self.value(arg.expr) for arg in args if arg.expr is not None]
        # Only now: an argument may call the same function.
        for param, value in zip(function.params, values, strict=True):
            self.declare(param.variable, scalar_width(param.variable.type), value)
        masks, self._masks = self._masks, []
        for s in body:
            self.stmt(s)
        result = self.value(last.value)
        self._masks = masks
        return result

    def _op(self, name: str, a: Lanes, b: Lanes) -> Lanes:
        if isinstance(a, Value) and isinstance(b, Value):
            return self._fn.op(name, a, b)
        x, y = self._vector(a), self._vector(b)
        return Vector(self._fn.ins(f"{name} {self._type(x.width)} {x.ref}, {y.ref}"), x.width)

    def _binary(self, e: ir.Binary) -> Lanes:
        if e.op in ("<<", ">>") and isinstance(e.right, ir.Literal):
            return self._shift_by(e, self.value(e.left), int(e.right.value))
        a, b = self.value(e.left), self.value(e.right)
        if e.op in _PLAIN:
            return self._op(_PLAIN[e.op], a, b)
        if e.op in PREDICATES:
            sign = "" if e.op in ("==", "!=") else "s" if is_signed(e.left.type) else "u"
            if isinstance(a, Value) and isinstance(b, Value):
                return self._fn.compare(sign + PREDICATES[e.op], a, b)
            x, y = self._vector(a), self._vector(b)
            ref = self._fn.ins(f"icmp {sign}{PREDICATES[e.op]} {self._type(x.width)} {x.ref}, {y.ref}")
            return Vector(ref, 1)
        if e.op == "++":
            width = a.width + b.width
            high = self._op("shl", self._resize(a, width), const(b.width, width))
            return self._op("or", high, self._resize(b, width))
        if e.op in ("<<", ">>"):
            return self._shift(e, a, b)
        x, y = self._vector(a), self._vector(b)
        step = f"{'s' if is_signed(e.type) else 'u'}{'add' if e.op == '|+|' else 'sub'}"
        name = f"llvm.{step}.sat.v{self._count}i{x.width}"
        kind = self._type(x.width)
        called = f"call {kind} @{self._g.module.need(name)}({kind} {x.ref}, {kind} {y.ref})"
        return Vector(self._fn.ins(called), x.width)

    def _shift_by(self, e: ir.Binary, value: Lanes, by: int) -> Lanes:
        name, width = _shifting(e), value.width
        if by >= width and name != "ashr":
            return const(0, width)
        return self._op(name, value, const(min(by, width - 1), width))

    def _shift(self, e: ir.Binary, value: Lanes, by: Lanes) -> Lanes:
        """A shift; by the value's width or more it leaves zeros, or copies of the sign."""
        name, width = _shifting(e), value.width
        # Wide enough for the limit and for every distance.
        wide = max(by.width, width.bit_length())
        last, distance = const(width - 1, wide), self._vector(self._resize(by, wide))
        far = Vector(self._fn.ins(f"icmp ugt {self._type(wide)} {distance.ref}, {self._vector(last).ref}"), 1)
        shifted = self._op(name, value, self._resize(self._select(far, last, distance), width))
        return shifted if name == "ashr" else self._select(far, const(0, width), shifted)

    def _cast(self, value: Lanes, source: t.Type, target: t.Type) -> Lanes:
        width = scalar_width(target)
        if isinstance(t.strip(target), t.Bool):
            if value.width == 1:
                return value
            zero = const(0, value.width)
            if isinstance(value, Value):
                return self._fn.compare("ne", value, zero)
            ref = self._fn.ins(f"icmp ne {self._type(value.width)} {value.ref}, {self._vector(zero).ref}")
            return Vector(ref, 1)
        return self._resize(value, width, signed=is_signed(source))

    def _resize(self, value: Lanes, width: int, *, signed: bool = False) -> Lanes:
        if isinstance(value, Value):
            return self._fn.resize(value, width, signed)
        if value.width == width:
            return value
        how = "trunc" if value.width > width else "sext" if signed else "zext"
        return Vector(self._fn.ins(f"{how} {self._type(value.width)} {value.ref} to {self._type(width)}"), width)

    def _mux(self, condition: Lanes, then: Lanes, otherwise: Lanes) -> Lanes:
        if isinstance(condition, Vector):
            return self._select(condition, then, otherwise)
        if isinstance(then, Value) and isinstance(otherwise, Value):
            return self._fn.select(condition, then, otherwise)
        x, y = self._vector(then), self._vector(otherwise)
        kind = self._type(x.width)
        return Vector(self._fn.ins(f"select i1 {condition.ref}, {kind} {x.ref}, {kind} {y.ref}"), x.width)
