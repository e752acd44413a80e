"""P4 architectures, one package each, and how the rest of p4gen finds them.

Templates and flows write statements through the ``Architecture`` of a spec (``spec.architecture``).
"""

from p4gen.arch.architecture import Architecture, ArchitectureFacet, Direction, Feature, Stage
from p4gen.arch.registry import add_folder, architecture, architectures, folder_of, of_package, registry

__all__ = [
    "Architecture",
    "ArchitectureFacet",
    "Direction",
    "Feature",
    "Stage",
    "add_folder",
    "architecture",
    "architectures",
    "folder_of",
    "of_package",
    "registry",
]
