"""``p4.config.v1``: P4Info and its types (p4info.proto, p4types.proto)."""

from __future__ import annotations

from typing import Any

from p4gen.protos.package import package

_PACKAGE = package("p4.config.v1")


def __getattr__(name: str) -> Any:
    return globals().setdefault(name, getattr(_PACKAGE, name))
