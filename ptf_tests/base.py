"""What every scenario of EPIC's suite stands on.

PTF keeps the classes that define ``runTest``; the class here must not.
"""

from __future__ import annotations

from typing import ClassVar

from p4gen.errors import MissingToolError
from p4gen.host.collectives.arrays import array_type
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.ptf.scenario import Output, SwitchTest

__all__ = ["Output", "P4genTest"]


class P4genTest(SwitchTest):
    """A test on a freshly reset switch."""

    spec: EpicSpec
    kind = EpicSpec
    modes: ClassVar[tuple[Mode, ...]] = tuple(Mode)
    """The modes of the programs that it applies to."""

    def misfit(self, spec: EpicSpec) -> str | None:
        """Why this scenario does not apply to a program; None if it does."""
        self.spec = spec
        if not self.is_about(spec.mode):
            return f"the program is of mode {spec.mode}"
        try:
            array_type(spec.dtype)
        except MissingToolError as error:
            return str(error)
        return self.unfit()

    def is_about(self, mode: Mode) -> bool:
        """Whether it applies to any program of a mode."""
        return mode in self.modes
