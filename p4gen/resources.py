"""Folders that come with p4gen beside its code: ``templates``, ``topologies`` and ``ptf_tests``."""

from __future__ import annotations

from pathlib import Path

from p4gen.errors import MissingToolError


def resource(name: str) -> Path:
    """The folder ``name``: at the top of a checkout, inside the package when p4gen is installed from a wheel.

    Raises ``MissingToolError`` if it is in neither place.
    """
    package = Path(__file__).parent
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise MissingToolError(f"the folder {name} is neither in the p4gen package nor beside it")
