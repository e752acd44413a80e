"""The limits of Tofino and Tofino 2 that the rules are about, as p4c's back end has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from p4gen.p4 import ir


@dataclass(frozen=True)
class Chip:
    """The limits of a chip. A register's words are accessed by a stateful ALU."""

    name: str
    comparisons: int
    """Different comparisons in one action on a register."""
    field_bits: int
    """Bits of each of the two fields of a word, or of a word with one."""
    word_bits: int
    """Bits of a word that is a single number and takes the place of two fields."""
    egress_parser_bytes: int | None
    """Bytes that the parser of egress may take; None where there is no limit."""
    parser_joins: bool
    """Whether a parser joins a new value of a field with the old one by *or*, and never replaces the old one."""
    actions: int = 4
    """Actions on one register."""
    constants: int = 4
    """Constants that do not fit into an instruction, and parameters, of all actions on a register."""
    operand_bits: int = 51
    """Bits of fields that an action on a register may take by a hash, wherever they stand."""
    least_constant: int = -8
    greatest_constant: int = 7
    condition_bits: int = 12
    """Bits that a condition outside of actions compares by size, or takes beyond ``condition_bytes``."""
    condition_bytes: int = 4
    """Bytes of fields that a condition takes from the crossbar."""
    range_bits: int = 20
    """Bits of a field that a range matches: five nibbles."""
    exact_key_bytes: int = 128
    ternary_key_bytes: int = 66
    """Bytes of a key that one stage takes from its crossbars."""


TOFINO: Final = Chip("Tofino", comparisons=2, field_bits=32, word_bits=64, egress_parser_bytes=160, parser_joins=True)
TOFINO2: Final = Chip(
    "Tofino 2", comparisons=4, field_bits=64, word_bits=128, egress_parser_bytes=None, parser_joins=False
)

ON_REGISTERS: Final = frozenset(
    {"RegisterAction", "RegisterAction2", "RegisterAction3", "RegisterAction4", "DirectRegisterAction"}
    | {f"DirectRegisterAction{n}" for n in (2, 3, 4)}
)
"""The externs whose instances access a register's words."""


def register_of(call: ir.ExternCall) -> ir.ExternInstance | None:
    """The register that a call accesses, by an action on it or itself; None if it accesses none."""
    instance = call.instance
    if instance is None:
        return None
    if instance.extern in ("Register", "DirectRegister"):
        return instance if call.method in ("read", "write") else None
    if instance.extern not in ON_REGISTERS or not call.method.startswith("execute"):
        return None
    register = instance.arguments.get("reg")
    return register if isinstance(register, ir.ExternInstance) else None


def controls(program: ir.Program) -> Iterator[tuple[str, str, ir.Control]]:
    """The blocks that apply tables, with the names of their pipe and their gress."""
    for name, block in program.blocks.items():
        pipe, _, gress = name.rpartition(".")
        if isinstance(block, ir.Control) and gress in ("ingress", "egress", "ghost"):
            yield pipe, gress, block


def actions_on(program: ir.Program) -> Mapping[ir.ExternInstance, list[ir.ExternInstance]]:
    """The actions of each register, in the order of declaration."""
    found: dict[ir.ExternInstance, list[ir.ExternInstance]] = {}
    for instance in program.externs:
        register = instance.arguments.get("reg") if instance.extern in ON_REGISTERS else None
        if isinstance(register, ir.ExternInstance):
            found.setdefault(register, []).append(instance)
    return found
