"""Loads, stores, copies and calls by address, for compiled code; and the CRC-32 that it calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic

from p4gen.model.jit import crc, native

_I64, _I32 = ir.IntType(64), ir.IntType(32)
_BYTE = ir.IntType(8).as_pointer()
PIECE = 32
"""Bytes whose order ``turn16`` and ``turn32`` change."""


def machine_code(made: Callable[..., Any]) -> Callable[..., Any]:
    """A function that compiled functions may call: ``made`` gives its signature, and what generates its code."""
    return intrinsic(made)


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


@machine_code
def load64(_typing: Any, address: Any) -> Any:
    """The eight bytes at an address, in the machine's order."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        found = builder.load(_pointer(builder, args[0], _I64))
        found.align = 1
        return found

    return types.int64(types.int64), generate


@machine_code
def load32(_typing: Any, address: Any) -> Any:
    """The four bytes at an address as a number in network order."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        found = builder.load(_pointer(builder, args[0], _I32))
        found.align = 1
        return builder.zext(builder.bswap(found), _I64)

    return types.int64(types.int64), generate


@machine_code
def load_little(_typing: Any, address: Any) -> Any:
    """The four bytes at an address as a number in the machine's order."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        found = builder.load(_pointer(builder, args[0], _I32))
        found.align = 1
        return builder.zext(found, _I64)

    return types.int64(types.int64), generate


def _store(bits: int, *, network: bool = False) -> Callable[..., Any]:
    """A function of an address and a number: it stores ``bits`` of the number, in network order or the machine's."""

    @machine_code
    def store(_typing: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            number = args[1] if bits == _I64.width else builder.trunc(args[1], kind)
            put = builder.store(builder.bswap(number) if network else number, _pointer(builder, args[0], kind))
            put.align = 1
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return store


store8, store64, store_little = _store(8), _store(64), _store(32)
store32, store64_network = _store(32, network=True), _store(64, network=True)


@machine_code
def copy(_typing: Any, to: Any, source: Any, size: Any) -> Any:
    """Copy ``size`` bytes from one address to another; the two do not overlap."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        move = builder.module.declare_intrinsic("llvm.memcpy", [_BYTE, _BYTE, _I64])
        to, source = (builder.inttoptr(args[i], _BYTE) for i in (0, 1))
        builder.call(move, [to, source, args[2], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _turned(width: int) -> Callable[..., Any]:
    """A function of two addresses: it copies 32 bytes of elements of ``width`` bytes, whose order turns around."""
    order = [i - i % width + width - 1 - i % width for i in range(PIECE)]

    @machine_code
    def turn(_typing: Any, to: Any, source: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            octets, places = ir.VectorType(ir.IntType(8), PIECE), ir.VectorType(_I32, PIECE)
            found = builder.load(_pointer(builder, args[1], octets))
            found.align = 1
            put = builder.store(
                builder.shuffle_vector(found, found, ir.Constant(places, order)), _pointer(builder, args[0], octets)
            )
            put.align = 1
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return turn


turn16, turn32 = _turned(2), _turned(4)


@machine_code
def ask_python(_typing: Any, address: Any, what: Any, one: Any, two: Any, three: Any) -> Any:
    """Call the function at ``address`` with four numbers; it returns one."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        function = ir.FunctionType(_I64, [_I64] * 4)
        return builder.call(_pointer(builder, args[0], function), args[1:])

    return types.int64(*[types.int64] * 5), generate


@machine_code
def call_c(_typing: Any, function: Any, one: Any, two: Any, three: Any, four: Any, five: Any) -> Any:
    """Call the function of the C library at an address, which returns an int. It may take fewer arguments."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_I32, [_I64] * 5)
        return builder.sext(builder.call(_pointer(builder, args[0], kind), args[1:]), _I64)

    return types.int64(*[types.int64] * 6), generate


def record_there(dtype: np.dtype[Any]) -> Callable[[int], Any]:
    """A function of an address: the record there."""
    kind = from_dtype(dtype)

    @machine_code
    def there(_typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(kind))

        return kind(types.int64), generate

    return there


@machine_code
def run_program(_typing: Any, address: Any, state: Any, exchange: Any, temporary: Any) -> Any:
    """Call a program's ``batch`` (``p4gen.model.jit.engine``)."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [_BYTE] * 3)
        builder.call(_pointer(builder, args[0], function), [builder.inttoptr(each, _BYTE) for each in args[1:]])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


@machine_code
def crc_from(_typing: Any, address: Any, crc: Any, start: Any, size: Any) -> Any:
    """The CRC-32 of bytes that others come before, as ``zlib.crc32``: ``crc`` is that of the others."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        function = ir.FunctionType(_I64, [_I64, _BYTE, _I64])
        at = builder.inttoptr(args[2], _BYTE)
        return builder.call(_pointer(builder, args[0], function), [args[1], at, args[3]])

    return types.int64(*[types.int64] * 4), generate


@functools.cache
def crc32() -> native.Code:
    """The code of ``crc32_from``, which ``crc_from`` calls."""
    text = crc.crc32(carryless=native.machine().carryless)
    return native.load(text, native.cache_directory())[0]
