"""The tools for programs of TNA and T2NA: p4gen's rules."""

from __future__ import annotations

from p4gen.p4.lint.rules import lint
from p4gen.p4.toolchain import Toolchain

FACET = Toolchain(lint)
