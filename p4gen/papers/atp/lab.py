"""ATP in labs: groups with calls of CommLib's kind, whose ranks are workers, and the last one a server, too."""

from __future__ import annotations

from dataclasses import replace

from p4gen.labs.arrays import COMMLIB
from p4gen.labs.calls import LabMembers
from p4gen.papers.atp.placing import fitted
from p4gen.papers.atp.spec import AtpSpec

FACET: LabMembers[AtpSpec] = replace(COMMLIB, fitted=fitted)
