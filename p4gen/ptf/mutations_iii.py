"""Faults to seed into Mode III's programs."""

from __future__ import annotations

from p4gen.ptf.mutations import Seeding

SEEDING = Seeding((), {})
