"""``import p4gen.torch`` on a machine without PyTorch."""

from __future__ import annotations

import subprocess
import sys


def test_the_extra_is_named() -> None:
    code = "import sys; sys.modules['torch'] = None; import p4gen.torch"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.endswith("p4gen.torch needs PyTorch: pip install 'p4gen[torch]'\n")
