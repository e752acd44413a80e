"""The native engine: the typed IR as machine code, generated with LLVM.

``p4gen.model.Model(program, engine="jit")`` is a switch that runs on it. Its state is one block of memory, which the
control plane and the interpreter (which produces the traces) can also read and change.
"""

from __future__ import annotations

from p4gen.model.jit.blocks import Item, StateLayout
from p4gen.model.jit.engine import Batch, Engine
from p4gen.model.jit.memory import Bytes
from p4gen.model.jit.native import cache_directory
from p4gen.model.jit.state import NativeState

__all__ = ["Batch", "Bytes", "Engine", "Item", "NativeState", "StateLayout", "cache_directory"]
