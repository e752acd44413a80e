"""Turns values of an STF file into match fields of the control plane, as p4c's runner for BMv2 does."""

from __future__ import annotations

from collections.abc import Iterable

from p4gen.errors import Diagnostic
from p4gen.model import ControlError
from p4gen.model.entries import Exact, Lpm, Match, Range, Ternary
from p4gen.model.names import alternatives, find
from p4gen.model.tables import KeySpec
from p4gen.stf.lexer import StfError
from p4gen.stf.statements import Between, KeyMatch, KeyValue, Masked, Prefix, Value


def match_fields(table: str, specs: Iterable[KeySpec], keys: tuple[KeyMatch, ...]) -> dict[str, Match]:
    """The match of an entry. A ternary, lpm, range or optional key that is left out is a wildcard, an exact one 0.

    Raises ``StfError`` for keys the table does not have and values that do not fit them.
    """
    by_name = {spec.name: spec for spec in specs}
    result: dict[str, Match] = {spec.name: 0 for spec in by_name.values() if spec.kind == "exact"}
    given: set[str] = set()
    for key in keys:
        spec = _find(table, key, by_name)
        if spec.name in given:
            raise StfError(Diagnostic(key.pos, f"table {table}: key {spec.name} is given twice"))
        given.add(spec.name)
        result[spec.name] = match_of(spec, key.value)
    return result


def _find(table: str, key: KeyMatch, by_name: dict[str, KeySpec]) -> KeySpec:
    # ``stack$0.f`` is an older way to write ``stack[0].f``, and ``h.$valid$`` BMv2's name of ``h.isValid()``.
    name = key.name
    at, dollar, rest = name.partition("$")
    if dollar and rest[:1].isdigit():
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        name = f"{at}[{digits}]{rest[len(digits) :]}"
    for written in (name, *_validity(name)):
        try:
            return find("key", written, by_name)
        except ControlError:
            continue
    # p4testgen names a key that is a slice without its bounds.
    slices = [spec for whole, spec in by_name.items() if whole.endswith("]") and whole.rpartition("[")[0] == name]
    if len(slices) == 1:
        return slices[0]
    raise StfError(Diagnostic(key.pos, f"table {table}: no key {key.name}; {alternatives(name, by_name)}"))


def _validity(name: str) -> list[str]:
    for end in ("$valid$", "$valid", "valid"):
        if name.endswith("." + end):
            return [name.removesuffix(end) + more for more in ("isValid()", "isValid", "$valid$")]
    return []


def match_of(spec: KeySpec, value: KeyValue) -> Match:
    """The match of a key of this kind and width. Raises ``StfError`` if the value does not fit it."""
    match value:
        case Masked(value=number, mask=mask) if spec.kind == "ternary":
            return Ternary(number.value & mask.value, mask.value)
        case Prefix(value=number, length=length) if spec.kind in ("lpm", "ternary"):
            return _prefix(spec, number, length)
        case Between(low=low, high=high) if spec.kind == "range":
            return Range(low.value, high.value)
        case Value() as number:
            return _number(spec, number)
    first = next(iter(vars(value).values()))
    raise StfError(Diagnostic(first.pos, f"key {spec.name} is {spec.kind}, and {type(value).__name__} does not fit it"))


def _number(spec: KeySpec, number: Value) -> Match:
    if spec.kind == "ternary" and number.mask is not None:
        # Only digits that are written are compared: 0x04 compares eight bits, however wide the key.
        mask = number.mask & spec.full_mask
        return Ternary(number.value & mask if number.value <= spec.full_mask else number.value, mask)
    if spec.kind == "lpm" and number.mask is not None:
        return _prefix(spec, number, number.prefix)
    if number.wild:
        raise StfError(Diagnostic(number.pos, f"key {spec.name} is {spec.kind}: {number.text} cannot have wildcards"))
    if spec.kind == "range":
        return Range(number.value, number.value)
    return Lpm(number.value, spec.width) if spec.kind == "lpm" else Exact(number.value)


def _prefix(spec: KeySpec, number: Value, length: int) -> Match:
    # A value may have more digits than the key has bits (0x1f for bit<5>): the key's bits count.
    length = min(length, spec.width)
    mask = spec.full_mask ^ (spec.full_mask >> length)
    value = number.value & mask if number.value <= spec.full_mask else number.value
    return Lpm(value, length) if spec.kind == "lpm" else Ternary(value, mask)
