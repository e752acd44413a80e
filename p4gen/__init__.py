"""p4gen: P4 programs for in-network collectives, generated, compiled, run and tested.

>>> import p4gen
>>> program = p4gen.generate(mode="III", lanes=64)
>>> result = p4gen.simulate("star-4", program, size="64K", loss="1%", seed=7)
>>> result.ok
True

What ``__all__`` lists is stable; everything else is private, and may change in any release.
"""

import importlib
from typing import TYPE_CHECKING, Any

import p4gen.environment  # noqa: F401 - before gRPC is imported
from p4gen.version import __version__ as __version__

if TYPE_CHECKING:
    from p4gen.errors import FailedError, InputError, MissingToolError, P4genError
    from p4gen.library.labs import Lab, LabAnswer, lab
    from p4gen.library.programs import CompiledProgram, Program, Switch, compile, generate  # noqa: A004
    from p4gen.library.ranks import Communicator, join
    from p4gen.library.simulation import simulate
    from p4gen.library.verification import Report, verify
    from p4gen.model.entries import Action, CloneSession, Entry, Exact, Lpm, MulticastGroup, Range, Ternary
    from p4gen.vocabulary.program import ProgramSpec as Spec
    from p4gen.vocabulary.topology import TopologySpec as Topology
    from p4gen.vocabulary.topology import load_topology

__all__ = [
    "Action", "CloneSession", "Communicator", "CompiledProgram", "Entry", "Exact", "FailedError", "InputError", "Lab",
    "LabAnswer", "Lpm", "MissingToolError", "MulticastGroup", "P4genError", "Program", "Range", "Report", "Spec",
    "Switch", "Ternary", "Topology", "compile", "generate", "join", "lab", "load_topology", "simulate", "verify",
]  # fmt: skip
_HOMES = {
    "errors": ("FailedError", "InputError", "MissingToolError", "P4genError"),
    "library.labs": ("Lab", "LabAnswer", "lab"),
    "library.programs": ("CompiledProgram", "Program", "Switch", "compile", "generate"),
    "library.ranks": ("Communicator", "join"),
    "library.simulation": ("simulate",),
    "library.verification": ("Report", "verify"),
    "model.entries": ("Action", "CloneSession", "Entry", "Exact", "Lpm", "MulticastGroup", "Range", "Ternary"),
    "vocabulary.program": ("ProgramSpec",),
    "vocabulary.topology": ("TopologySpec", "load_topology"),
}
_RENAMED = {"Spec": "ProgramSpec", "Topology": "TopologySpec"}


def __getattr__(name: str) -> Any:
    """A name of ``__all__``; its module is imported only now, as most commands need few of them."""
    if name not in __all__:
        raise AttributeError(f"module 'p4gen' has no attribute {name!r}")
    attribute = _RENAMED.get(name, name)
    home = next(home for home, names in _HOMES.items() if attribute in names)
    found = globals()[name] = getattr(importlib.import_module(f"p4gen.{home}"), attribute)
    return found
