"""Families of programs, one package each, and how the rest of p4gen finds them.

The rest of p4gen imports from here alone: ``family_of(spec).facet(...)`` is the way to everything a family knows.
"""

from p4gen.families.family import Family, OwnSpec
from p4gen.families.guests import answering, implied_family, text_of
from p4gen.families.load import (
    WrittenCollective,
    WrittenServing,
    WrittenSpec,
    collective,
    flag_name,
    load_collective,
    load_spec,
    parse_spec,
    serving,
)
from p4gen.families.registry import add_folder, families, family_of, folder_of
from p4gen.plugins import Facet

__all__ = [
    "Facet",
    "Family",
    "OwnSpec",
    "WrittenCollective",
    "WrittenServing",
    "WrittenSpec",
    "add_folder",
    "answering",
    "collective",
    "families",
    "family_of",
    "flag_name",
    "folder_of",
    "implied_family",
    "load_collective",
    "load_spec",
    "parse_spec",
    "serving",
    "text_of",
]
