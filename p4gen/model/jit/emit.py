"""LLVM IR as text: one ``Function`` at a time, its instructions in order.

Text is several times faster to generate than an object tree, and LLVM reads it directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple


class Value(NamedTuple):
    """An integer of ``width`` bits: a register, or a constant in decimal digits."""

    ref: str
    width: int

    @property
    def constant(self) -> int | None:
        """The number, if it is known at compile time; otherwise None."""
        return int(self.ref) if self.ref[0] != "%" else None


class Address(NamedTuple):
    """A place in memory: ``offset`` bytes from ``base``.

    ``exact``: a local scalar, kept as an integer of its width, or of the next one that LLVM can put into a register,
    rather than in a container of bytes.
    """

    base: str
    offset: int = 0
    exact: bool = False

    def plus(self, offset: int) -> Address:
        """The place ``offset`` bytes on."""
        return Address(self.base, self.offset + offset)


def const(value: int, width: int) -> Value:
    """``value`` modulo 2^width."""
    return Value(str(value & ((1 << width) - 1)), width)


def _stored_width(width: int) -> int:
    """The width in which a local scalar is kept: LLVM's SROA leaves integers in memory that do not fill their bytes."""
    return width if width <= 16 else -(-width // 8) * 8


TRUE, FALSE = const(1, 1), const(0, 1)


class Function:
    """A function under construction. ``params`` are (LLVM type with attributes, name) pairs."""

    def __init__(
        self, name: str, params: Sequence[tuple[str, str]], result: str = "void", attributes: str = ""
    ) -> None:
        self._head = f"define {result} @{name}({', '.join(f'{t} %{n}' for t, n in params)}) nounwind {attributes} {{"
        self._allocas: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._open = True
        self._targets: set[str] = set()

    def text(self) -> str:
        """The finished definition of the function, as LLVM IR."""
        return "\n".join([self._head, "entry:", *self._allocas, "  br label %start", "start:", *self._lines, "}", ""])

    # --- instructions ---

    def ins(self, text: str) -> str:
        """Append an instruction with a result. Returns the register."""
        if not self._open:
            self.begin(self.label())  # unreachable code; LLVM removes it
        self._count += 1
        ref = f"%v{self._count}"
        self._lines.append(f"  {ref} = {text}")
        return ref

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        if not self._open:
            self.begin(self.label())
        self._lines.append(f"  {text}")

    def op(self, name: str, a: Value, b: Value) -> Value:
        """A binary instruction on integers of one width."""
        assert a.width == b.width, (name, a, b)
        return Value(self.ins(f"{name} i{a.width} {a.ref}, {b.ref}"), a.width)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """``icmp``; the result has one bit."""
        assert a.width == b.width, (predicate, a, b)
        return Value(self.ins(f"icmp {predicate} i{a.width} {a.ref}, {b.ref}"), 1)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """``a`` if the condition holds, else ``b``."""
        assert a.width == b.width, (a, b)
        return Value(self.ins(f"select i1 {condition.ref}, i{a.width} {a.ref}, i{b.width} {b.ref}"), a.width)

    def select_pointer(self, condition: Value, a: str, b: str) -> str:
        """A choice of two pointers."""
        return self.ins(f"select i1 {condition.ref}, ptr {a}, ptr {b}")

    def resize(self, a: Value, width: int, signed: bool = False) -> Value:
        """Truncate or extend to ``width`` bits."""
        if a.width == width:
            return a
        known = a.constant
        if known is not None and not (signed and known >> (a.width - 1)):
            return const(known, width)
        how = "trunc" if a.width > width else "sext" if signed else "zext"
        return Value(self.ins(f"{how} i{a.width} {a.ref} to i{width}"), width)

    def call(self, name: str, width: int, *args: str) -> Value:
        """Call a function that returns an integer; ``args`` include their types."""
        return Value(self.ins(f"call i{width} @{name}({', '.join(args)})"), width)

    # --- memory ---

    def alloca(self, kind: str, align: int = 0) -> str:
        """Stack memory for the function's whole run, uninitialised."""
        self._count += 1
        ref = f"%v{self._count}"
        self._allocas.append(f"  {ref} = alloca {kind}" + (f", align {align}" if align else ""))
        return ref

    def local(self, width: int) -> Address:
        """A scalar of ``width`` bits on the stack."""
        return Address(self.alloca(f"i{_stored_width(width)}"), 0, True)

    def pointer(self, at: Address) -> str:
        """An address as a pointer register."""
        return at.base if at.offset == 0 else self.ins(f"getelementptr inbounds i8, ptr {at.base}, i64 {at.offset}")

    def name_pointer(self, name: str, pointer: str) -> None:
        """Give a pointer another name."""
        self.do(f"%{name} = getelementptr inbounds i8, ptr {pointer}, i64 0")

    def offset(self, base: str, by: Value, scale: int = 1) -> str:
        """``base + by * scale`` bytes."""
        by = self.resize(by, 64)
        if scale != 1:
            by = self.op("mul", by, const(scale, 64))
        return self.ins(f"getelementptr inbounds i8, ptr {base}, i64 {by.ref}")

    def load(self, at: Address | str, width: int, align: int = 1) -> Value:
        """Load an integer of exactly ``width`` bits."""
        if isinstance(at, str):
            return Value(self.ins(f"load i{width}, ptr {at}, align {align}"), width)
        kept = _stored_width(width) if at.exact else width
        return self.resize(Value(self.ins(f"load i{kept}, ptr {self.pointer(at)}, align {align}"), kept), width)

    def load_pointer(self, at: Address) -> str:
        """Load a pointer from a place in memory."""
        return self.ins(f"load ptr, ptr {self.pointer(at)}, align 8")

    def store(self, value: Value, at: Address | str, align: int = 1) -> None:
        """Store all bits of ``value``."""
        if isinstance(at, str):
            self.do(f"store i{value.width} {value.ref}, ptr {at}, align {align}")
            return
        value = self.resize(value, _stored_width(value.width) if at.exact else value.width)
        self.do(f"store i{value.width} {value.ref}, ptr {self.pointer(at)}, align {align}")

    def store_pointer(self, ref: str, at: Address) -> None:
        """Store a pointer into a place in memory."""
        self.do(f"store ptr {ref}, ptr {self.pointer(at)}, align 8")

    def copy(self, to: str, source: str, size: int | Value, align: int = 1) -> None:
        """``memcpy``; the two may be the same place, but not overlap otherwise."""
        count = size if isinstance(size, Value) else const(size, 64)
        self.do(
            "call void @llvm.memcpy.p0.p0.i64("
            f"ptr align {align} {to}, ptr align {align} {source}, i64 {count.ref}, i1 false)"
        )

    def move(self, to: str, source: str, size: int) -> None:
        """``memmove`` of ``size`` bytes; the two may overlap."""
        self.do(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def clear(self, at: str, size: int, align: int = 1) -> None:
        """Set ``size`` bytes from the address ``at`` on to 0."""
        self.do(f"call void @llvm.memset.p0.i64(ptr align {align} {at}, i8 0, i64 {size}, i1 false)")

    # --- control flow ---

    def label(self) -> str:
        """A new label, which is not used yet."""
        self._count += 1
        return f"b{self._count}"

    def begin(self, label: str) -> None:
        """Start the block of ``label``; the block before falls through to it."""
        if self._open:
            self._lines.append(f"  br label %{label}")
        self._lines.append(f"{label}:")
        self._open = True

    def br(self, label: str) -> None:
        """Jump to a label; the block ends."""
        if self._open:
            self._lines.append(f"  br label %{label}")
            self._targets.add(label)
            self._open = False

    def is_target(self, label: str) -> bool:
        """Whether something has jumped to ``label`` so far."""
        return label in self._targets

    def branch(self, condition: Value, yes: str, no: str, *, rare: bool | None = None) -> None:
        """Jump to one of two labels. ``rare`` says that ``yes`` hardly ever happens (or, if False, ``no``)."""
        weight = "" if rare is None else ", !prof !0" if rare else ", !prof !1"
        if self._open:
            self._lines.append(f"  br i1 {condition.ref}, label %{yes}, label %{no}{weight}")
            self._targets.update((yes, no))
            self._open = False

    def switch(self, value: Value, default: str, cases: Sequence[tuple[int, str]]) -> None:
        """Jump by value; each value occurs at most once."""
        if self._open:
            listed = " ".join(f"i{value.width} {number}, label %{label}" for number, label in cases)
            self._lines.append(f"  switch i{value.width} {value.ref}, label %{default} [{listed}]")
            self._targets.update((default, *(label for _, label in cases)))
            self._open = False

    def ret(self, value: Value | str | None = None) -> None:
        """Return from the function; the block ends."""
        if self._open:
            what = "void" if value is None else f"i{value.width} {value.ref}" if isinstance(value, Value) else value
            self._lines.append(f"  ret {what}")
            self._open = False

    def unreachable(self) -> None:
        """Tell LLVM that this point is unreachable."""
        if self._open:
            self._lines.append("  unreachable")
            self._open = False

    @property
    def reachable(self) -> bool:
        """Whether the block being written is still open."""
        return self._open

    @contextmanager
    def when(self, condition: Value, *, rare: bool | None = None) -> Iterator[None]:
        """Code for the case that the condition holds."""
        yes, after = self.label(), self.label()
        self.branch(condition, yes, after, rare=rare)
        self.begin(yes)
        yield
        self.begin(after)

    @contextmanager
    def loop(self) -> Iterator[tuple[str, str]]:
        """Code that repeats until it jumps to the second label; the first one is its beginning."""
        again, after = self.label(), self.label()
        self.begin(again)
        yield again, after
        self.br(again)
        self.begin(after)
