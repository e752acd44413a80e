"""The reference interpreter: the typed IR as Python closures, following the specification literally.

``Interpreter`` compiles a program's blocks once; running one takes a frame whose slot 0 is the packet's ``Context``.
The architecture has the externs, and what happens around the blocks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from p4gen.model.interp import calls, expressions, parsers, statements
from p4gen.model.interp.build import Build, Handlers
from p4gen.model.interp.context import Context, Exec, ExitSignal, Frame, Reject
from p4gen.model.interp.extern_args import Externs
from p4gen.model.interp.parsers import parser_body
from p4gen.model.state import ModelState
from p4gen.p4 import ir

__all__ = ["Context", "Exec", "ExitSignal", "Externs", "Frame", "Interpreter", "Reject"]


class Interpreter:
    """A program ready to run on ``state``; with ``traced``, every step is reported to ``Context.trace``. ``externs``
    are those of its architecture; with ``blocks``, only these of its blocks are compiled.

    Raises ``InputError`` with a position for unsupported constructs.
    """

    def __init__(
        self,
        program: ir.Program,
        state: ModelState,
        externs: Externs,
        *,
        traced: bool = False,
        blocks: Mapping[str, ir.Parser | ir.Control] | None = None,
    ) -> None:
        handlers = Handlers(
            {**expressions.HANDLERS, **calls.EXPRESSIONS, ir.ExternCall: externs.compile},
            {**statements.HANDLERS, **calls.STATEMENTS, **parsers.HANDLERS},
        )
        self._build = Build(state, handlers, traced)
        self.blocks: dict[str, Exec] = {
            name: parser_body(self._build, block) if isinstance(block, ir.Parser) else self._control(block)
            for name, block in (program.blocks if blocks is None else blocks).items()
        }
        self.frame: Callable[[], Frame] = self._build.frame

    def _control(self, control: ir.Control) -> Exec:
        body = calls.control_body(self._build, control)

        def run(f: Frame) -> None:
            # exit ends the outermost block, not the packet (simple_switch.md).
            with contextlib.suppress(ExitSignal):
                body(f)

        return run

    def slot(self, variable: ir.Variable) -> int:
        """The slot of a parameter of a top-level block in a frame."""
        return self._build.slot(variable)
