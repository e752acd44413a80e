"""From a composition to P4_16 text, and to the manifest that says what is in it."""

from p4gen.render.manifest import Manifest, manifest
from p4gen.render.p4 import Rendered, render

__all__ = ["Manifest", "Rendered", "manifest", "render"]
