"""Small programs: quick to run, but with more than one of everything."""

from __future__ import annotations

from typing import TypeVar

from p4gen.papers.epic.spec import EpicSpec

S = TypeVar("S", bound=EpicSpec)


def small(kind: type[S], **fields: object) -> S:
    """A spec of a program that is quick to run, but has more than one of everything.

    Its name is never the default one, so that building it does not overwrite what the user built.
    """
    size = {"lanes": 16, "window": 2, "message": 2, "groups": 4, "fan_in": 4, "ports": 8}
    spec = kind.model_validate(size | fields)
    return kind.model_validate(size | fields | {"name": f"variant_{spec.program}"})
