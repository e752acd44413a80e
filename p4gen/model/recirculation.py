"""Recirculation in a model, observed from outside: the number of passes, and packets that wait between two passes."""

from __future__ import annotations

from typing import Final

from p4gen.model import Model
from p4gen.model.passes import HELD, MAX_PASSES

Outputs = list[tuple[int, bytes]]

SETTLE: Final = b"fence"
HOLD: Final = b"hold"
"""Packets that recirculate wait from now on."""
ROUND: Final = b"round"
"""All packets that wait make one more pass."""
GO: Final = b"go"
"""Packets go on until none waits, and none waits from now on."""
REFUSED: Final = 0xFFFF
"""In place of a number of passes: the switch cannot hold packets."""


class Recirculation:
    """The packets of a model that wait between two passes."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._waiting: list[bytes] = []

    def hold_back(self, outputs: Outputs) -> Outputs:
        """Let packets that recirculate wait. Returns the outputs that leave the switch."""
        self._waiting += [packet for port, packet in outputs if port == HELD]
        return [output for output in outputs if output[0] != HELD]

    def answer(self, request: bytes) -> tuple[Outputs, int]:
        """Carry out a request (``HOLD``, ``ROUND``, ``GO``; nothing for ``SETTLE``). Returns the output, and the most
        passes that a packet has made without waiting since the last request, or ``REFUSED``."""
        outputs: Outputs = []
        if request in (HOLD, GO):
            try:
                self._model.hold_recirculated(held=request == HOLD)
            except ValueError:
                return outputs, REFUSED
        for _ in range({ROUND: 1, GO: MAX_PASSES}.get(request, 0)):
            packets, self._waiting = self._waiting, []
            outputs += [each for packet in packets for each in self.hold_back(self._model.process(HELD, packet))]
        return outputs, self._model.most_passes()
