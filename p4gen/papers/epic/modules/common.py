"""Sizes and conditions that several modules have."""

from __future__ import annotations

from p4gen.papers.epic.spec import EpicSpec
from p4gen.program.module import Size
from p4gen.vocabulary import Op

SLOTS = Size("pipelines", "bank_slots")
CONTEXTS = Size("pipelines", "bank_contexts")
EDGES = Size("pipelines", "bank_edges")
ENDPOINTS = Size("groups", "fan_in")
ENTRANCES = Size(2, "groups", "fan_in")
COVERED = ("hdr.aeth", "hdr.immediate", "hdr.cnp", "hdr.payload")
"""What may follow the BTH, and is covered by the ICRC."""


def sets_icrc(spec: EpicSpec) -> bool:
    """Whether what the program sends has a right ICRC."""
    return spec.icrc.right


def translated(spec: EpicSpec) -> bool:
    """Whether hosts' own ACKs are translated: in Mode II."""
    return not spec.mode.augmented


def augmented(spec: EpicSpec) -> bool:
    """Whether switches end connections: in Modes I and III."""
    return spec.mode.augmented


def stores(spec: EpicSpec) -> bool:
    """Whether switches store whole messages: in Mode I."""
    return spec.mode.stores


def ordered(spec: EpicSpec) -> bool:
    """Whether contributions are stored, and reduced in the order of ranks."""
    return spec.folds


def passes_on(spec: EpicSpec) -> bool:
    """Mode III, where what one edge sends moves the others along."""
    return spec.mode.augmented and not spec.mode.stores


def dynamic(spec: EpicSpec) -> bool:
    """Whether control messages say op and dtype."""
    return spec.op is Op.DYNAMIC


def notifies(spec: EpicSpec) -> bool:
    """Whether the program sends congestion notifications."""
    return spec.notifies
