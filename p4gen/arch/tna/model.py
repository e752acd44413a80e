"""What runs the programs of TNA and T2NA: the interpreter."""

from __future__ import annotations

from p4gen.arch.tna.machine import TofinoModel
from p4gen.arch.tna.memory import TofinoState
from p4gen.model.behaviour import Behaviour

FACET = Behaviour(TofinoModel, state=TofinoState)
