"""EPIC in labs: ranks of groups, and CommLib's collectives."""

from __future__ import annotations

from p4gen.labs.arrays import COMMLIB
from p4gen.labs.calls import LabMembers
from p4gen.papers.epic.spec import EpicSpec

FACET: LabMembers[EpicSpec] = COMMLIB
