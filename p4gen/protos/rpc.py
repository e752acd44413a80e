"""``google.rpc``: the status of a request, with details (status.proto)."""

from __future__ import annotations

from typing import Any

from p4gen.protos.package import package

_PACKAGE = package("google.rpc")


def __getattr__(name: str) -> Any:
    return globals().setdefault(name, getattr(_PACKAGE, name))
