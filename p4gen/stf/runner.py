"""Runs an STF test on the behavioural model."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from p4gen.errors import Diagnostic, Pos
from p4gen.model import ControlError, Digest, Model, Trace
from p4gen.p4 import ir
from p4gen.stf.bench import Engine
from p4gen.stf.commands import Commander
from p4gen.stf.expectations import Output, compare, last_line
from p4gen.stf.lexer import StfError
from p4gen.stf.statements import (
    Add,
    Check,
    Command,
    CreateMember,
    ExpectDigest,
    Handle,
    Packet,
    Remove,
    SetDefault,
    Statement,
    Value,
    Wait,
)

_OPS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip


@dataclass(frozen=True)
class StfResult:
    """The result of a test. ``notes`` are the answers to ``register_read`` and its like."""

    failures: tuple[Diagnostic, ...]
    packets: int
    outputs: tuple[Output, ...]
    notes: tuple[str, ...]
    traps: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every expectation was met."""
        return not self.failures


def reference(program: ir.Program, clock: Callable[[], int]) -> Model:
    """The reference interpreter: the engine if none is named."""
    return Model(program, clock=clock)


def run(
    program: ir.Program,
    statements: Sequence[Statement],
    *,
    engine: Engine = reference,
    trace: Trace | None = None,
) -> StfResult:
    """Execute statements in order, and compare the output with the expected one.

    ``expect`` may stand before or after the packet that it is about. Raises ``StfError`` for a statement that does not
    fit the program, and ``InputError`` for a program that the model does not run.
    """
    bench = Commander(program, engine)
    outputs: list[Output] = []
    failures: list[Diagnostic] = []
    digests: list[ExpectDigest] = []
    for statement in statements:
        try:
            if isinstance(statement, Packet):
                out = bench.packet(statement.port, statement.data, trace)
                outputs.extend(Output(port, data, statement.pos) for port, data in out)
            elif isinstance(statement, Check):
                failures.extend(_check(bench, statement))
            elif isinstance(statement, ExpectDigest):
                digests.append(statement)
            else:
                configure(bench, statement)
                outputs.extend(Output(port, data, statement.pos) for port, data in bench.generated(trace))
        except ControlError as error:
            raise StfError(*(Diagnostic(statement.pos, d.message) for d in error.diagnostics)) from None
    end = last_line(statements, program.source)
    failures.extend(compare(statements, outputs, end))
    failures.extend(_compare_digests(digests, bench.digests))
    failures.sort(key=lambda d: d.where if isinstance(d.where, Pos) else end)
    packets = sum(isinstance(s, Packet) for s in statements)
    traps = tuple(str(trap) for trap in bench.model.traps())
    return StfResult(tuple(failures), packets, tuple(outputs), tuple(bench.notes), traps)


def configure(bench: Commander, statement: Statement) -> None:
    """Execute a statement that neither sends a packet nor checks anything."""
    match statement:
        case Add():
            bench.add(statement)
        case SetDefault():
            bench.set_default(statement)
        case Remove():
            bench.remove(statement)
        case CreateMember():
            bench.create_member(statement)
        case Command():
            bench.command(statement)
        case Wait(seconds=seconds):
            bench.now += round(seconds * 1_000_000)


def _check(bench: Commander, check: Check) -> list[Diagnostic]:
    have, what = _reading(bench, check)
    if check.op is None or check.wanted is None or _OPS[check.op](have, check.wanted.value):
        return []
    return [Diagnostic(check.pos, f"{what} is {have}, and {check.op} {check.wanted.text} is expected")]


def _reading(bench: Commander, check: Check) -> tuple[int, str]:
    if check.what == "traps":
        return sum(trap.count for trap in bench.model.traps()), "the number of traps"
    if check.what == "idle":
        entry = bench.entry(Handle(check.name.removeprefix("$"), check.pos))
        return bench.model.idle_time(entry) // 1_000_000, f"the idle time of {check.name} in seconds"
    assert check.index is not None
    shown = check.index.text if isinstance(check.index, Value) else check.index.name
    if check.what == "register":
        return bench.register(check.name, check.index), f"{check.name}[{shown}]"
    value = bench.counter(check.name, check.index)
    return (value.bytes if check.unit == "bytes" else value.packets), f"{check.name}({shown}) {check.unit}"


def _compare_digests(expected: list[ExpectDigest], sent: list[Digest]) -> list[Diagnostic]:
    """Compare digests, in order. A test that names none does not check them."""
    problems = []
    for number, (want, have) in enumerate(zip(expected, sent, strict=False), 1):
        fields = dict(have.fields)
        if want.name not in ("_", have.name):
            problems.append(Diagnostic(want.pos, f"digest {number} is a {have.name}, not a {want.name}"))
        for field in want.fields:
            if not isinstance(field.value, Value) or field.name not in fields:
                raise StfError(Diagnostic(field.pos, f"digest {have.name} has {', '.join(fields)}, and plain values"))
            if fields[field.name] != field.value.value:
                what = f"digest {number}: {field.name} is {fields[field.name]}, not {field.value.text}"
                problems.append(Diagnostic(field.pos, what))
    problems.extend(Diagnostic(want.pos, "no such digest was sent") for want in expected[len(sent) :])
    if expected and len(sent) > len(expected):
        more = len(sent) - len(expected)
        problems.append(
            Diagnostic(expected[-1].pos, f"{more} more digest{'s' if more > 1 else ''} came after this one")
        )
    return problems
