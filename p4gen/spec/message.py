"""The control message's immediate data (EPIC 3.3.2), as programs and hosts have it: docs/wire-format.md."""

from __future__ import annotations

from typing import Final

from p4gen.layout import Field, Word
from p4gen.spec.formats import NUMBERS_LAYOUT

COLLECTIVE: Final = Field("collective", 3, "collective")
ROOT: Final = Field("root", 5, "root")
PACKETS: Final = Field("packets", 19, "packets that follow")

MESSAGE: Final = Word(COLLECTIVE, Field("numbers", NUMBERS_LAYOUT.bits, "op and dtype", NUMBERS_LAYOUT), ROOT, PACKETS)
