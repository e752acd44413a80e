"""The externs of TNA and T2NA, as the interpreter runs them.

They work on the memory of the pipe for which a program is compiled, so each is made for one.
"""

from __future__ import annotations

from p4gen.chips.tna.externs import arithmetic, checksums, filters, meters, registers, requests
from p4gen.chips.tna.memory import Memory
from p4gen.model.interp import Externs


def externs(memory: Memory) -> Externs:
    """The externs for one pipe."""
    return Externs(
        {
            **registers.methods(memory),
            **meters.methods(memory),
            **filters.methods(memory),
            **checksums.METHODS,
            **requests.METHODS,
            **arithmetic.METHODS,
        },
        {**requests.FUNCTIONS, **arithmetic.FUNCTIONS},
    )
