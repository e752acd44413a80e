"""The comparison of the output with what was expected, port by port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from p4gen.errors import Diagnostic, Pos
from p4gen.stf.statements import Expect, NoPacket, Packet, Statement


@dataclass(frozen=True)
class Output:
    """An output packet, and the statement whose packet caused it."""

    port: int
    data: bytes
    cause: Pos


def compare(statements: Iterable[Statement], outputs: Iterable[Output], end: Pos) -> Iterator[Diagnostic]:
    """Every difference. The packets of a port come in the order of its ``expect`` lines, one for each. A port that no
    line names stays silent; a port that is named without data is not checked. ``end`` is the file's last line."""
    listed = list(statements)
    if any(isinstance(s, NoPacket) for s in listed):
        silence = next(s.pos for s in listed if isinstance(s, NoPacket))
        for output in outputs:
            yield _unexpected(output, silence)
        return
    expected: dict[int, list[Expect]] = {}
    for statement in listed:
        if isinstance(statement, Expect):
            expected.setdefault(statement.port, []).append(statement)
    got: dict[int, list[Output]] = {}
    for output in outputs:
        got.setdefault(output.port, []).append(output)
    for port in sorted({*expected, *got}):
        wanted, sent = expected.get(port, []), got.get(port, [])
        if any(e.nibbles is None for e in wanted):
            continue
        yield from _port(wanted, sent)
        for expect in wanted[len(sent) :]:
            yield Diagnostic(expect.pos, f"port {port}: no packet came out ({_count(len(sent))} in all)")
        for output in sent[len(wanted) :]:
            yield _unexpected(output, end if not wanted else wanted[-1].pos)


def _port(wanted: list[Expect], sent: list[Output]) -> Iterator[Diagnostic]:
    for number, (expect, output) in enumerate(zip(wanted, sent, strict=False), 1):
        problem = difference(expect, output.data)
        if problem:
            shown = f"port {output.port}, packet {number}: {problem}"
            shown = f"{shown}\n  expected {_pattern(expect)}\n  got      {_hex(output)}"
            yield Diagnostic(expect.pos, shown, notes=((output.cause, "the packet that caused it"),))


def difference(expect: Expect, data: bytes) -> str | None:
    """How ``data`` differs from what is expected; None if it does not."""
    got, wanted = data.hex().upper(), expect.nibbles or ""
    for at, (want, have) in enumerate(zip(wanted, got, strict=False)):
        if want not in ("*", have):
            byte = at // 2
            return f"byte {byte} is {got[2 * byte : 2 * byte + 2]}, not {wanted[2 * byte : 2 * byte + 2]}"
    if len(got) < len(wanted):
        return f"it has {len(data)} bytes, and {(len(wanted) + 1) // 2} are expected"
    if expect.exact and len(got) > len(wanted):
        return f"it has {len(data)} bytes, and exactly {len(wanted) // 2} are expected"
    return None


def _unexpected(output: Output, where: Pos) -> Diagnostic:
    what = f"port {output.port}: a packet came out that is not expected\n  got      {_hex(output)}"
    return Diagnostic(where, what, notes=((output.cause, "the packet that caused it"),))


def _pattern(expect: Expect) -> str:
    return (expect.nibbles or "") + ("$" if expect.exact else "")


def _hex(output: Output) -> str:
    return output.data.hex().upper()


def _count(packets: int) -> str:
    return "1 packet" if packets == 1 else f"{packets} packets"


def last_line(statements: Iterable[Statement], file: str) -> Pos:
    """The position for messages that are about no statement: the last line."""
    return max((s.pos for s in statements if isinstance(s, Packet | Expect)), default=Pos(file, 1, 1))
