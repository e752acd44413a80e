"""The code generator's shared state: one ``Module`` a program, one ``Gen`` for each LLVM function of it.

Everything is generated inline: P4 has no recursion, so a call is its argument passing and its body, and
``exit``, ``return`` and rejections are jumps. Handlers for node types live in the modules of this package and are put
together in ``program``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.model.interp.build import children, unsupported
from p4gen.model.jit.blocks import StateLayout, TablePlace
from p4gen.model.jit.emit import Address, Function, Value, const
from p4gen.model.jit.layout import (
    ERROR,
    NoValuesError,
    Types,
    align,
    is_memory,
    is_signed,
    members,
    scalar_width,
)
from p4gen.model.jit.layout import container as container_of
from p4gen.model.values import is_composite
from p4gen.p4 import ir
from p4gen.p4 import types as t

EXCHANGE, FRAME, STATE, TEMPORARY = "%io", "%frame", "%state", "%tmp"
"""The parameters of every generated function: the batch, the packet, the switch, room for temporaries."""

MAX_INLINED = 2_000_000
"""Number of IR nodes to which one program may be expanded."""


_FEW = 16
"""Members of a value that is copied member by member, at most."""
_SMALL = 96
"""Bytes of the largest value whose parts may live in registers."""


@dataclass(frozen=True)
class Site:
    """A place in the program that reports events; ``parts`` are the types of what it reports.

    ``kind``: trap, digest, log, or abort (``FailedError``). ``text`` has ``{}`` where a trap's number goes.
    """

    kind: str
    pos: Pos
    text: str
    parts: tuple[t.Type, ...] = ()


@dataclass(frozen=True)
class Machine:
    """The additions of an architecture to the language."""

    methods: Mapping[tuple[str, str], Compiler]
    """Calls of externs' methods, by extern and name."""
    functions: Mapping[str, Compiler]
    hit: Callable[[Gen, TablePlace, str], None]
    """Generates the code for each hit of a table, before the action; gets a pointer to the entry."""
    selector: Callable[[Gen, ir.Table, list[ir.Key]], Value]
    """The hash of a table's selector keys, which chooses a member of a group."""
    memory: str = STATE
    """The base of offsets of registers, counters and meters: a parameter of the blocks' functions."""
    pads: bool = False
    """Whether a header whose fields are no whole bytes takes whole bytes of a packet."""


class Module:
    """A program being compiled."""

    def __init__(
        self, program: ir.Program, types: Types, state: StateLayout, machine: Machine, handlers: Handlers
    ) -> None:
        self.program, self.types, self.state, self.machine, self.handlers = program, types, state, machine, handlers
        self.sites: list[Site] = []
        self._site_numbers: dict[Site, int] = {}
        self.functions: list[str] = []
        self.lookups: set[ir.Table] = set()
        self.constants: list[str] = []
        self.helpers: set[str] = set()
        self._defined: set[str] = set()
        self.temporary = 0
        """Bytes of temporary memory that the functions use; each has its own range."""
        self.byte_aligned = False
        """Whether the parser's position is always byte-aligned."""
        self.byte_emits = False
        """Whether the deparser only emits whole bytes."""
        self._budget = MAX_INLINED

    def site(self, site: Site) -> int:
        """The number by which generated code reports a site's events."""
        if site not in self._site_numbers:
            self._site_numbers[site] = len(self.sites)
            self.sites.append(site)
        return self._site_numbers[site]

    def define(self, name: str, text: Callable[[], str]) -> str:
        """Add a function, or a constant, once. Returns its name."""
        if name not in self._defined:
            self._defined.add(name)
            self.functions.append(text())
        return name

    def need(self, helper: str) -> str:
        """Record that a runtime helper is used. Returns its name."""
        self.helpers.add(helper)
        return helper

    def spend(self, pos: Pos) -> None:
        """Count a node. Raises ``InputError`` when the program expands to too many."""
        self._budget -= 1
        if self._budget < 0:
            raise InputError(Diagnostic(pos, "inlined, the program is too large for the native engine; use interp"))


Compiler = Callable[["Gen", ir.ExternCall], "Value | Address | None"]
"""Compiles a call of an extern: its scalar result, the place of any other, or nothing."""
ExprHandler = Callable[["Gen", Any], Value]
AddressHandler = Callable[["Gen", Any], Address]
StmtHandler = Callable[["Gen", Any], None]


@dataclass(frozen=True)
class Handlers:
    """The compilers of each node type: to a value, to the place of a value, to effects."""

    values: Mapping[type[ir.Expr], ExprHandler]
    addresses: Mapping[type[ir.Expr], AddressHandler]
    statements: Mapping[type[ir.Stmt], StmtHandler]


@dataclass
class Jumps:
    """The jump targets of statements that leave a block; None if they cannot occur."""

    exit: str | None = None
    reject: str | None = None
    returns: str | None = None
    breaks: str | None = None
    continues: str | None = None
    result: Address | None = None


class Gen:
    """One LLVM function under construction. ``phase`` is the block of the package it belongs to."""

    def __init__(self, module: Module, fn: Function, phase: str) -> None:
        self.module, self.fn, self.phase, self.types = module, fn, phase, module.types
        self.env: dict[ir.Variable, Address] = {}
        self.jumps = Jumps()
        self.loops = 0
        """Number of loops around the current statement."""
        self.entry: tuple[TablePlace, str] | None = None
        """The table and the entry (a pointer) whose action is being generated."""
        self.marks: dict[ir.Variable, Address] = {}
        """The marks of variables that stand for a place with a mark (``layout.Shape``)."""
        self._last: list[Callable[[], None]] = []

    # --- nodes ---

    def value(self, e: ir.Expr) -> Value:
        """The value of a scalar. Raises ``InputError`` for what is not supported."""
        self.module.spend(e.pos)
        handler = self.module.handlers.values.get(type(e))
        if handler is not None:
            return handler(self, e)
        if type(e) in self.module.handlers.addresses:
            return self.load(self.address(e), e.type)
        raise unsupported(e.pos, f"expression {type(e).__name__}")

    def address(self, e: ir.Expr) -> Address:
        """The address of the value of ``e``. It may be the storage itself, so it must be copied to be kept."""
        self.module.spend(e.pos)
        handlers = self.module.handlers
        handler = handlers.addresses.get(type(e))
        if handler is not None and (is_memory(e.type) or type(e) not in handlers.values):
            return handler(self, e)
        if is_memory(e.type):
            raise unsupported(e.pos, f"expression {type(e).__name__} of type {e.type}")
        value = self.value(e)
        at = self.fn.local(value.width)
        self.fn.store(value, at)
        return at

    def stmt(self, node: ir.Stmt) -> None:
        """A statement. Raises ``InputError`` for what is not supported."""
        self.module.spend(node.pos)
        handler = self.module.handlers.statements.get(type(node))
        if handler is None:
            raise unsupported(node.pos, f"statement {type(node).__name__}")
        try:
            handler(self, node)
        except NoValuesError as problem:
            raise unsupported(node.pos, str(problem)) from None

    def at_end(self, code: Callable[[], None]) -> None:
        """Generate code at the end of the block, however it is left."""
        self._last.append(code)

    def finish(self) -> None:
        """Generate what ``at_end`` was given."""
        for code in self._last:
            code()

    # --- memory ---

    def storage(self, of: t.Type) -> Address:
        """New, uninitialised storage for a value of type ``of``. A small value's parts may live in registers."""
        if not is_memory(of):
            return self.fn.local(scalar_width(of))
        shape = self.types.shape(of)
        if shape.size > _SMALL:
            return self.temporary(of)
        return Address(self.fn.alloca(f"[{shape.size} x i8]", max(shape.align, 8)))

    def temporary(self, of: t.Type) -> Address:
        """A place for a value of type ``of`` in containers."""
        shape = self.types.shape(of)
        return self.room(shape.size, max(shape.align, 8))

    def room(self, size: int, to: int = 8) -> Address:
        """``size`` bytes of memory for this place in the program only."""
        self.module.temporary = align(self.module.temporary, to)
        at = Address(TEMPORARY, self.module.temporary)
        self.module.temporary += size
        return at

    def load(self, at: Address, of: t.Type) -> Value:
        """The scalar at an address, as LLVM's integer."""
        width = scalar_width(of)
        if at.exact:
            return self.fn.load(at, width)
        return self.load_container(at, width)

    def load_container(self, at: Address | str, width: int) -> Value:
        """The integer of ``width`` bits in the container there."""
        size = container_of(width)
        return self.fn.resize(self.fn.load(at, 8 * size, min(size, 8)), width)

    def store(self, value: Value, at: Address, of: t.Type) -> None:
        """Store a scalar into the container at an address."""
        if at.exact:
            self.fn.store(value, at)
        else:
            self.store_container(value, at, scalar_width(of))

    def store_container(self, value: Value, at: Address | str, width: int) -> None:
        """Store an integer of ``width`` bits into the container there."""
        size = container_of(width)
        self.fn.store(self.fn.resize(value, 8 * size), at, min(size, 8))

    def copy(self, to: Address, source: Address, of: t.Type) -> None:
        """Copy a value from one address to another: a small one member by member, because a processor waits for what it
        has stored in parts before it loads it at once."""
        parts = self._scalars(of)
        if parts is not None:
            for offset, size in parts:
                self.fn.store(self.fn.load(source.plus(offset), 8 * size, min(size, 8)), to.plus(offset), min(size, 8))
        elif is_memory(of):
            shape = self.types.shape(of)
            self.fn.copy(self.fn.pointer(to), self.fn.pointer(source), shape.size, shape.align)
        else:
            self.store(self.load(source, of), to, of)

    def _scalars(self, of: t.Type) -> list[tuple[int, int]] | None:
        """Where the members of a header or struct are, and their sizes; None if they are many, or no scalars."""
        kind = t.strip(of)
        if not isinstance(kind, t.Fields) or len(kind.fields) > _FEW:
            return None
        shape, found = self.types.shape(of), [(0, 1)] if isinstance(kind, t.Header) else []
        for offset, member in zip(shape.parts, members(kind), strict=True):
            if is_memory(member):
                return None
            found.append((offset, container_of(scalar_width(member))))
        return None if shape.marks is not None else found

    def clear(self, at: Address, of: t.Type) -> None:
        """Store the zero value of a type: all bytes 0."""
        if is_memory(of):
            self.fn.clear(self.fn.pointer(at), self.types.shape(of).size)
        else:
            self.store(const(0, scalar_width(of)), at, of)

    def unassign(self, at: Address, of: t.Type) -> None:
        """Mark the members of a value as not assigned, where this counts."""
        marks = self.types.shape(of).marks if is_memory(of) else None
        for i, _ in enumerate(members(of) if marks is not None else ()):
            assert marks is not None
            self.fn.store(const(1, 8), at.plus(marks + i))

    def assign(self, to: Address, e: ir.Expr) -> None:
        """Evaluate ``e`` into a place that it does not depend on."""
        if is_memory(e.type):
            self.copy(to, self.address(e), e.type)
        else:
            self.store(self.value(e), to, e.type)

    def context(self, offset: int) -> Value:
        """An 8-byte number of the packet's frame."""
        return self.fn.load(Address(FRAME, offset), 64, 8)

    def set_context(self, offset: int, value: Value | int, signed: bool = False) -> None:
        """Store an 8-byte number into the packet's frame."""
        number = const(value, 64) if isinstance(value, int) else self.fn.resize(value, 64, signed)
        self.fn.store(number, Address(FRAME, offset), 8)

    # --- control ---

    @contextmanager
    def jumping(self, **changes: Any) -> Iterator[None]:
        """Change jump targets while the block runs."""
        before = self.jumps
        self.jumps = Jumps(**{**before.__dict__, **changes})
        yield
        self.jumps = before

    def reject(self, error: Value | str) -> None:
        """Leave the parser with an error. Code after it is unreachable."""
        if isinstance(error, str):
            error = const(self.types.errors.index(error), 32)
        self.set_context(ERROR, error)
        self.jump(self.jumps.reject)

    def reject_if(self, condition: Value, error: str) -> None:
        """Leave the parser if the condition holds."""
        with self.fn.when(condition, rare=True):
            self.reject(error)

    def jump(self, target: str | None) -> None:
        """Jump to a target that exists in every correct program."""
        if target is None:
            self.fn.unreachable()
        else:
            self.fn.br(target)

    # --- events ---

    def event(self, site: Site, *parts: Value | Address) -> None:
        """Generate code that reports an event to the host: scalars by value, composites by a copy of their memory."""
        number = self.module.site(site)
        sizes = [align(self.types.shape(of).size, 8) for of in site.parts]
        name = self.module.need("event")
        at = self.fn.ins(f"call ptr @{name}(ptr {EXCHANGE}, i64 {number}, i64 {sum(sizes)})")
        offset = 0
        for part, of, size in zip(parts, site.parts, sizes, strict=True):
            place = Address(at, offset)
            if isinstance(part, Value):
                self.store_container(part, place, scalar_width(of))
            else:
                self.copy(place, part, of)
            offset += size

    def trap(self, pos: Pos, text: str, value: Value | None = None, of: t.Type | None = None) -> None:
        """Count undefined behaviour. ``text`` has ``{}`` for ``value``, a number of type ``of``."""
        if value is None:
            self.event(Site("trap", pos, text))
        else:
            kind = of if of is not None and not isinstance(t.strip(of), t.Int) else t.Bits(value.width, True)
            self.event(Site("trap", pos, text, (kind,)), value)


def is_pure(e: ir.Expr) -> bool:
    """Whether evaluating ``e`` has no side effects, traps or rejections, so that it may be done early."""
    match e:
        case ir.FunctionCall() | ir.ExternCall() | ir.ApplyTable() | ir.Lookahead():
            return False
        case ir.Binary(op="/" | "%"):
            return False
        case ir.StackMember(name="next" | "last"):
            return False
        case ir.Index(base=base, index=index):
            size = getattr(t.strip(base.type), "size", 1 << 32)
            if not (isinstance(index, ir.Literal) and isinstance(index.value, int) and 0 <= index.value < size):
                return False
    return all(is_pure(c) for c in children(e) if isinstance(c, ir.Expr))


def part_at(g: Gen, base: Address, of: t.Type, position: int) -> Address:
    """The place of a member of a composite value."""
    return base.plus(g.types.shape(of).parts[position])


def field_index(of: t.Type, name: str) -> int:
    """The position of a field in its struct, header or union."""
    of = t.strip(of)
    assert isinstance(of, t.Fields)
    return next(i for i, f in enumerate(of.fields) if f.name == name)


__all__ = [
    "Gen", "Handlers", "Jumps", "Module", "Site", "field_index", "is_composite", "is_memory", "is_pure", "is_signed",
    "members", "part_at", "unsupported",
]  # fmt: skip
