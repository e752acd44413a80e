"""A program's share of a Tofino: a model of it, and p4c's own reports.

``chips`` has the numbers of both chips, ``graph`` the nodes that are placed, ``demand`` their demands, ``schedule``
their stages; ``phv`` counts containers.
"""

from __future__ import annotations

from p4gen.chips.tna.resources.compiled import compiled
from p4gen.chips.tna.resources.estimate import estimate
from p4gen.p4.resources import Resources

FACET = Resources(estimate, compiled)
