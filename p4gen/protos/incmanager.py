"""``p4gen.manager.v1``: the manager's calls (p4gen/manager/incmanager.proto)."""

from __future__ import annotations

from typing import Any

from p4gen.protos.package import package

_PACKAGE = package("p4gen.manager.v1")


def __getattr__(name: str) -> Any:
    return globals().setdefault(name, getattr(_PACKAGE, name))
