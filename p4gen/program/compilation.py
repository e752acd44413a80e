"""From a spec to a compiled program, in one place and only once."""

from functools import lru_cache

from p4gen.p4.compile import Compiled, compile_text
from p4gen.program.compose import compose
from p4gen.program.text import render
from p4gen.vocabulary import ProgramSpec


@lru_cache(maxsize=64)
def compile_spec(spec: ProgramSpec) -> Compiled:
    """The generated program of a spec, compiled; the last 64 are kept.

    Raises ``P4Error`` if p4gen's own front end refuses the text, which is a defect of the spec's family.
    """
    return compile_text(render(compose(spec)).text, f"{spec.program}.p4")
