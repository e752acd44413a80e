"""SwitchML in labs: groups with calls of CommLib's kind, whose ranks are workers."""

from __future__ import annotations

from dataclasses import replace

from p4gen.labs.arrays import COMMLIB
from p4gen.labs.calls import LabMembers
from p4gen.papers.switchml.placing import fitted
from p4gen.papers.switchml.spec import SwitchmlSpec

FACET: LabMembers[SwitchmlSpec] = replace(COMMLIB, fitted=fitted)
