"""The rate of a connection as Python sees it (``p4gen.compiled.rates``)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from p4gen.compiled import rates
from p4gen.compiled.memory import RATE
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig

RateConfig = DcqcnConfig | TimedDcqcnConfig | int
"""What limits a connection's rate: DCQCN, or a planned rate in bit/s."""
_KINDS: Final = {int: rates.PLANNED, DcqcnConfig: rates.DCQCN, TimedDcqcnConfig: rates.TIMED}


class Rate:
    """The rate of a connection. Its record is one of a world, or one of its own.

    ``rate`` and ``target`` are in bit/s, ``alpha`` is DCQCN's estimate of the congestion, from 0 to 1.
    """

    def __init__(self, config: RateConfig, records: Any = None) -> None:
        """``records`` is an array of one record."""
        self._records = np.zeros(1, RATE) if records is None else records
        self._place: int = self._records.ctypes.data
        row = self._records[0]
        row["kind"] = _KINDS[type(config)]
        if isinstance(config, int):
            row["rate"] = config
        else:
            for name in set(config.__dataclass_fields__) & set(RATE.names or ()):
                row[name] = getattr(config, name)
            row["rate"] = row["target"] = config.line_rate
            row["alpha"] = 1

    @property
    def rate(self) -> float:
        """The current rate (R_C)."""
        return float(self._records["rate"][0])

    @property
    def target(self) -> float:
        """The target rate (R_T)."""
        return float(self._records["target"][0])

    @property
    def alpha(self) -> float:
        """The estimate of the congestion."""
        return float(self._records["alpha"][0])

    def pace(self, now: int, size: int) -> int:
        """The time, in ps, for which ``size`` bytes sent now occupy the connection; 0 if the rate is not limited."""
        return rates.pace(self._place, now, size)

    def on_cnp(self, now: int) -> None:
        """Handle a CNP at the time ``now``."""
        rates.on_cnp(self._place, now)

    def on_nack(self, now: int) -> None:
        """Handle a NAK for a gap at the time ``now``."""
        rates.on_nack(self._place, now)
