"""The engines that can run a test, by name."""

from __future__ import annotations

from collections.abc import Mapping

from p4gen.stf.bench import Engine
from p4gen.stf.runner import reference

ENGINES: Mapping[str, Engine] = {"interp": reference}
"""``interp`` is the reference interpreter."""
