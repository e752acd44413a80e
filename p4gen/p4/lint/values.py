"""Symbolic values for lint: which expressions are certainly equal at two points of a path.

A value is a tuple. The initial contents of a place (a variable or a field of one) are a value of their own. An
assignment gives the place the value of the right-hand side. Where paths with different values join, the place gets a
new value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from p4gen.errors import Pos
from p4gen.p4 import ir
from p4gen.p4.types import Bits, Fields, Stack

K = TypeVar("K")
V = TypeVar("V")
Value = tuple[object, ...]
Path = tuple[str, ...]
"""Field names below a variable."""
Held = Mapping[Path, Value]
"""The values of a variable: the whole at the empty path, fields assigned since at their paths. Never changed in place,
so that a parameter can share it with its argument."""


@dataclass(frozen=True)
class Fact:
    """What is known after a condition: a value is, or is not, a constant."""

    value: Value
    constant: Value
    holds: bool

    def excludes(self, other: Fact) -> bool:
        """Whether no packet can take a path with this fact and one with the other."""
        if self.value != other.value or not (self.holds or other.holds):
            return False
        return (self.constant != other.constant) if self.holds and other.holds else self.constant == other.constant


@dataclass(frozen=True)
class Access:
    """The last access to a register on a path, with the facts that hold there."""

    kind: str
    index: Value
    pos: Pos
    facts: frozenset[Fact] = frozenset()


@dataclass
class PathState:
    """What is known at a point of a path. A register missing from ``accesses`` was not accessed; several alternatives
    come from paths that joined."""

    env: dict[ir.Variable, Held] = field(default_factory=dict)
    accesses: dict[ir.ExternInstance, frozenset[Access | None]] = field(default_factory=dict)
    banks: Mapping[Value, Access] = field(default_factory=dict)
    """The banks in which registers were accessed, each with the first access. Never changed in place."""
    facts: frozenset[Fact] = frozenset()

    def copy(self) -> PathState:
        """A copy that can change without changing this state."""
        return PathState(dict(self.env), dict(self.accesses), self.banks, self.facts)

    def become(self, other: PathState) -> None:
        """Take over what ``other`` knows."""
        self.env, self.accesses, self.banks = other.env, other.accesses, other.banks
        self.facts = other.facts

    def forget(self, variables: Iterable[ir.Variable]) -> None:
        """Drop variables that are out of scope."""
        for variable in variables:
            self.env.pop(variable, None)


class Values:
    """Makes values, each fresh one different from all others."""

    def __init__(self) -> None:
        self._next = 0
        self._era = 0

    def fresh(self) -> Value:
        """A value equal to no other."""
        self._next += 1
        return ("fresh", self._next)

    def forget(self) -> None:
        """Forget what was read: a value read later is not known to equal one read before."""
        self._era = self._next = self._next + 1

    def of(self, e: ir.Expr, state: PathState) -> Value:
        """The symbolic value of ``e``: equal for two expressions only if they are certainly equal."""
        match e:
            case ir.Literal(value=value):
                return ("literal", type(value), value)
            case ir.Cast(operand=operand, type=type_):
                return ("cast", str(type_), self.of(operand, state))
            case ir.Slice(base=base, hi=hi, lo=lo):
                return ("slice", hi, lo, self.of(base, state))
            case ir.Unary(op=op, operand=operand):
                return ("unary", op, self.of(operand, state))
            case ir.Binary(op="++", left=left, right=right) if isinstance(right.type, Bits):
                return ("concat", right.type.width, self.of(left, state), self.of(right, state))
            case ir.Binary(op=op, left=left, right=right):
                return ("binary", op, self.of(left, state), self.of(right, state))
            case ir.Mux(condition=condition, then=then, otherwise=otherwise):
                return ("mux", self.of(condition, state), self.of(then, state), self.of(otherwise, state))
        place = place_of(e)
        if place is None:
            return self.fresh()
        held = self.held(place[0], state)
        if isinstance(e.type, Fields | Stack) and len(held) > 1 and _below(held, place[1]):
            return self.fresh()
        return lookup(held, place[1])

    def fact(self, condition: ir.Expr, state: PathState) -> Fact | None:
        """What is known where ``condition`` holds; None where that is no comparison with a constant."""
        if not isinstance(condition, ir.Binary) or condition.op not in ("==", "!="):
            return None
        value, constant = self.of(condition.left, state), self.of(condition.right, state)
        return Fact(value, constant, condition.op == "==") if constant[0] == "literal" else None

    def held(self, variable: ir.Variable, state: PathState) -> Held:
        """What ``variable`` holds; its value on entry if nothing else is known."""
        return state.env.get(variable) or {(): ("initial", self._era, variable)}

    def bind(self, variable: ir.Variable, e: ir.Expr | None, state: PathState) -> None:
        """Give ``variable`` the value of ``e``, including its fields; None is an unknown value."""
        place = place_of(e) if e is not None else None
        if e is None:
            state.env[variable] = {(): self.fresh()}
        elif isinstance(e, ir.Aggregate) and isinstance(e.type, Fields):
            # The elements of the aggregate, so that each field has the value it was made of.
            elements = zip(e.type.fields, e.elements, strict=True)
            made: dict[Path, Value] = {(f.name,): self.of(element, state) for f, element in elements}
            state.env[variable] = {(): self.fresh(), **made}
        elif place is None:
            state.env[variable] = {(): self.of(e, state)}
        else:
            held = self.held(place[0], state)
            size = len(place[1])
            if size:
                held = {(): lookup(held, place[1])} | {k[size:]: v for k, v in held.items() if k[:size] == place[1]}
            state.env[variable] = held

    def write(self, target: ir.Expr, value: Value | Held, state: PathState) -> None:
        """Assign to an lvalue. After an assignment to a bit slice or a stack element, the whole is unknown."""
        while (place := place_of(target)) is None:
            if not isinstance(target, ir.FieldOf | ir.Slice | ir.Index | ir.StackMember):
                return
            target, value = target.base, self.fresh()
        variable, path = place
        new: Held = value if isinstance(value, Mapping) else {(): value}
        if not path:
            state.env[variable] = new
            return
        held = dict(self.held(variable, state))
        if isinstance(target.type, Fields | Stack):
            for known in _below(held, path):
                del held[known]
        held.update((path + k, v) for k, v in new.items())
        state.env[variable] = held


@dataclass(frozen=True)
class Banked:
    """An index of the form ``(bit<N>)(bank ++ low)``, with this number of low bits."""

    cast: str
    bank: Value
    low_bits: int


def banked(index: Value) -> Banked | None:
    """The bank of an index; None if it does not have that form."""
    match index:
        case ("cast", str(cast), ("concat", int(low_bits), tuple(bank), _)):
            return Banked(cast, bank, low_bits)
    return None


def _meeting(found: Sequence[Value], values: Values) -> Value:
    """The value that joining paths have in common; else a value with the bank that they have in common; else a new
    value."""
    if all(f == found[0] for f in found):
        return found[0]
    bank = banked(found[0])
    if bank is None or any(banked(f) != bank for f in found):
        return values.fresh()
    return ("cast", bank.cast, ("concat", bank.low_bits, bank.bank, values.fresh()))


def _below(held: Held, path: Path) -> list[Path]:
    size = len(path)
    return [known for known in held if len(known) > size and known[:size] == path]


def lookup(held: Held, path: Path) -> Value:
    """The value of the field at ``path`` of a variable."""
    for length in range(len(path), 0, -1):
        found = held.get(path[:length])
        if found is not None:
            return ("field", found, *path[length:]) if length < len(path) else found
    return ("field", held[()], *path) if path else held[()]


def place_of(e: ir.Expr) -> tuple[ir.Variable, Path] | None:
    """The variable and field that ``e`` names, None where it is computed."""
    names: list[str] = []
    while isinstance(e, ir.FieldOf):
        names.append(e.name)
        e = e.base
    return (e.variable, tuple(reversed(names))) if isinstance(e, ir.Var) else None


def _shared(mappings: Sequence[Mapping[K, V]]) -> dict[K, V]:
    """What all mappings have: the same key with the same object."""
    shared = dict(mappings[0])
    for other in mappings[1:]:
        get = other.get
        shared = {key: value for key, value in shared.items() if get(key) is value}
    return shared


def join(states: Sequence[PathState], values: Values) -> PathState | None:
    """The state where these paths join; None if there is none."""
    if len(states) < 2:
        return states[0] if states else None
    first, *others = states
    # Most values of wide headers and many registers are the very same objects on all paths: they need no comparison.
    env = _shared([s.env for s in states])
    for variable in {v: None for s in states for v in s.env if v not in env}:
        held = [values.held(variable, s) for s in states]
        merged = _shared(held)
        for path in {p: None for h in held for p in h if p not in merged}:
            merged[path] = _meeting([lookup(h, path) for h in held], values)
        env[variable] = merged
    accesses = _shared([s.accesses for s in states])
    nothing: frozenset[Access | None] = frozenset((None,))
    for register in {r: None for s in states for r in s.accesses if r not in accesses}:
        accesses[register] = first.accesses.get(register, nothing).union(
            *(s.accesses.get(register, nothing) for s in others)
        )
    banks = {bank: access for s in reversed(states) for bank, access in s.banks.items()}
    return PathState(env, accesses, banks, first.facts.intersection(*(s.facts for s in others)))
