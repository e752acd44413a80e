"""PTF as a library. Importing this module raises ``MissingToolError`` where PTF is not installed."""

from __future__ import annotations

import contextlib

from p4gen import packages
from p4gen.errors import MissingToolError

try:
    with contextlib.redirect_stdout(None):  # PTF says which packet library it found
        import ptf
        import ptf.testutils
        from ptf.base_tests import BaseTest
except ModuleNotFoundError as error:
    if error.name != "ptf":
        raise
    raise MissingToolError(f"the conformance suite needs PTF: {packages.PTF}") from None

__all__ = ["BaseTest", "ptf"]
