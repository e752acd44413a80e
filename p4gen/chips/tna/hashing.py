"""Hashes as p4c's Tofino back end computes them (``bf-utils/dynamic_hash``), which programs the chip's hash matrix.

The input is one number, the first field in its highest bits. CRCs take it in whole bytes, with zeros in front; in words
of an ``XOR`` hash, zeros follow it. CRCs named by ``HashAlgorithm_t`` are repeated where more bits are asked for than
they have; a ``CRCPolynomial`` says so by ``extended``, and all others continue with zeros. Of more bits than are asked
for, the lowest remain. A polynomial's ``xor`` is applied before a reversed CRC is reversed, as there.

``RANDOM`` is a linear function that the instance's name determines; the compiler draws one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from p4gen.errors import Diagnostic, InputError
from p4gen.p4 import ir
from p4gen.p4 import types as t

Calculation = Callable[[int, int], int]
"""The hash of a number that has so many bits."""


@dataclass(frozen=True)
class Polynomial:
    """A CRC: its width, coefficients without the highest, and the other parameters of ``CRCPolynomial``."""

    width: int
    coefficients: int
    reversed: bool = False
    initial: int = 0
    xor: int = 0
    extended: bool = True


NAMED = {
    "CRC8": Polynomial(8, 0x07),
    "CRC16": Polynomial(16, 0x8005, reversed=True),
    "CRC32": Polynomial(32, 0x04C11DB7, reversed=True, initial=0xFFFFFFFF, xor=0xFFFFFFFF),
    "CRC64": Polynomial(64, 0x42F0E1EBA9EA3693),
}
XORS = {"XOR8": 8, "XOR16": 16, "XOR32": 32}


def calculation(instance: ir.ExternInstance) -> Calculation:
    """The function that an instance of ``Hash`` computes. Raises ``InputError`` for an algorithm without a
    definition."""
    algorithm, wanted = str(instance.arguments["algo"]), t.width_of(instance.type_args[0])
    polynomial = polynomial_of(instance)
    if polynomial is not None:
        return _crc(polynomial, wanted)
    mask = (1 << wanted) - 1
    if algorithm in XORS:
        width = XORS[algorithm]
        return lambda bits, size: _xor(bits, size, width) & mask
    if algorithm == "IDENTITY":
        return lambda bits, size: bits & mask
    if algorithm == "RANDOM":
        return _random(instance.name, wanted)
    raise InputError(Diagnostic(instance.pos, f"hash {instance.name}: the model has no algorithm {algorithm}"))


def polynomial_of(instance: ir.ExternInstance) -> Polynomial | None:
    """The CRC that an instance of ``Hash`` computes; None for another algorithm. Raises ``InputError`` if a CRC is
    missing."""
    algorithm = str(instance.arguments["algo"])
    if algorithm != "CUSTOM":
        return NAMED.get(algorithm)
    polynomial = instance.arguments.get("poly")
    if not isinstance(polynomial, ir.ExternInstance):
        raise InputError(Diagnostic(instance.pos, f"hash {instance.name}: CUSTOM needs a CRCPolynomial"))
    return _polynomial(polynomial)


def _polynomial(instance: ir.ExternInstance) -> Polynomial:
    """The parameters of an instance. Those of the constructor are ``coeff, reversed, msb, extended, init, xor``; the
    back end has no use for ``msb`` and neither has this."""
    given, width = instance.arguments, t.width_of(instance.type_args[0])
    coefficients, initial, xor = given["coeff"], given["init"], given["xor"]
    assert isinstance(coefficients, int)
    assert isinstance(initial, int)
    assert isinstance(xor, int)
    mask = (1 << width) - 1
    if not coefficients & 1:
        raise InputError(Diagnostic(instance.pos, f"CRC polynomial {instance.name}: its last coefficient must be 1"))
    return Polynomial(
        width, coefficients & mask, bool(given["reversed"]), initial & mask, xor & mask, bool(given["extended"])
    )  # fmt: skip


def _crc(polynomial: Polynomial, wanted: int) -> Calculation:
    width, mask = polynomial.width, (1 << wanted) - 1
    table = tuple(_step(polynomial, byte) for byte in range(256))

    def crc(bits: int, size: int) -> int:
        register = polynomial.initial
        for octet in bits.to_bytes((size + 7) >> 3):
            byte = REVERSED[octet] if polynomial.reversed else octet
            if width >= 8:
                register = (register << 8) & ((1 << width) - 1) ^ table[register >> (width - 8) ^ byte]
            else:
                register = table[register << (8 - width) ^ byte]
        found = register ^ polynomial.xor
        if polynomial.reversed:
            found = int(f"{found:0{width}b}"[::-1], 2)
        if polynomial.extended:
            for at in range(width, wanted, width):
                found |= (found & (1 << width) - 1) << at
        return found & mask

    return crc


REVERSED = tuple(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _step(polynomial: Polynomial, byte: int) -> int:
    """The register's content after ``byte`` has left it, if it was empty otherwise."""
    width = max(polynomial.width, 8)
    shift = width - polynomial.width
    coefficients, register = polynomial.coefficients << shift, byte << (width - 8)
    for _ in range(8):
        over = register >> (width - 1)
        register = (register << 1) & ((1 << width) - 1)
        register ^= coefficients if over else 0
    return register >> shift


def _xor(bits: int, size: int, width: int) -> int:
    bits <<= -size % width
    found = 0
    while bits:
        found ^= bits & (1 << width) - 1
        bits >>= width
    return found


def _random(name: str, wanted: int) -> Calculation:
    seed, rows = random_rows(name, wanted, 0)

    def spread(bits: int, size: int) -> int:
        nonlocal rows
        if len(rows) < size:
            _, rows = random_rows(name, wanted, size)
        found = seed
        for at in range(size):
            if bits >> at & 1:
                found ^= rows[at]
        return found

    return spread


def random_rows(name: str, wanted: int, size: int) -> tuple[int, list[int]]:
    """The hash of an input of zeros, and the bits that each bit of the input, the lowest first, changes."""
    source = random.Random(name)  # noqa: S311 - a function of the name, not a secret
    seed = source.getrandbits(wanted)
    return seed, [source.getrandbits(wanted) for _ in range(size)]
