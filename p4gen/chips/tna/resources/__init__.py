"""What a program takes of a Tofino: a model of it, and p4c's own reports.

``chips`` are the numbers of both chips, ``graph`` is what is placed, ``demand`` what it takes, ``schedule`` in which
stages; ``phv`` counts containers.
"""

from __future__ import annotations

from p4gen.chips.tna.resources.compiled import compiled
from p4gen.chips.tna.resources.estimate import estimate
from p4gen.p4.resources import Resources

FACET = Resources(estimate, compiled)
