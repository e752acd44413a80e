"""``p4.v1``: P4Runtime, and the data of registers and digests (p4runtime.proto, p4data.proto)."""

from __future__ import annotations

from typing import Any

from p4gen.protos.package import package

_PACKAGE = package("p4.v1")


def __getattr__(name: str) -> Any:
    return globals().setdefault(name, getattr(_PACKAGE, name))
