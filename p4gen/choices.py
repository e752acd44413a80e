"""What users choose by name from the command line: engines that run a program, targets that it runs on.

Only the names stand here, so that a verb can list them without loading an engine or a switch.
"""

from __future__ import annotations

from typing import Literal

EngineName = Literal["interp", "jit"]
ENGINES: tuple[EngineName, ...] = ("interp", "jit")
"""What can run a program: the reference interpreter, and machine code by way of LLVM. They agree on every bit."""

EMBEDDED, BMV2 = "embedded", "bmv2"
TOFINO_MODEL = "tofino-model"
"""Intel's model of Tofino, for programs for TNA and T2NA only."""
TARGETS = (EMBEDDED, BMV2)
"""What stands behind a switch's ports: p4gen's own model, or BMv2's simple_switch_grpc."""
