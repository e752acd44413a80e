"""What users hand in, read with a limit: a file may be anything, /dev/zero among others."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from p4gen.errors import Diagnostic, InputError, Option

T = TypeVar("T")

MAX_TEXT: Final = 16 << 20
"""Bytes of a program, of a test, or of any other text that a user hands in."""
_SHOWN: Final = 60
"""Characters of a value in a message."""


def read_text(path: Path, limit: int = MAX_TEXT) -> str:
    """A file's text. Raises ``InputError`` for one that cannot be read, is not UTF-8, or has more than ``limit``
    bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise InputError(Diagnostic(quote(str(path), marks=False), f"cannot read: {error.strerror}")) from None
    if len(data) > limit:
        raise InputError(Diagnostic(str(path), f"has more than {limit >> 10:,} KiB, which is the limit"))
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InputError(Diagnostic(str(path), "is not UTF-8 text")) from None


def parsed(option: str, parse: Callable[[str], T], text: str) -> T:
    """The value of an option that is given as text, such as 64K or 5%. Raises ``InputError`` with the option as its
    place."""
    try:
        return parse(text)
    except ValueError as error:
        raise InputError(Diagnostic(Option(option), str(error))) from None


SEEDS: Final = 1 << 64
"""How many seeds of random number generators there are."""
MAX_BURST: Final = 1_000_000
"""The longest mean number of packets that a link may lose in a row."""


def drawn(seed: int | None) -> int:
    """The seed, or a random one if there is none."""
    return random.SystemRandom().randrange(1 << 32) if seed is None else seed


def quote(value: object, *, marks: bool = True) -> str:
    """A value that a user gave, for a message: in quotation marks, on one line, and cut where it is long."""
    text = value if isinstance(value, str) else repr(value)
    short = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in short)
    return f"'{printable}'" if marks and isinstance(value, str) else printable
