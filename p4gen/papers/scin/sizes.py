"""How often SCIN's programs have what a context, a rank or a slot needs."""

from __future__ import annotations

from p4gen.program.module import Size

FOLDER = "scin"
"""The folder of the modules' templates."""
CONTEXTS = Size("contexts")
EDGES = Size("contexts", "edges")
ENDPOINTS = Size("queue_pairs", "contexts", "edges")
ENTRANCES = Size(2, "queue_pairs", "contexts", "edges")
SLOTS = Size("contexts", "slots")
WAVES = Size("contexts", "waves")
SOURCES = Size("contexts", "waves", "edges")
"""Of each wave, the ranks."""
