"""PTF as a child process: ``python -m p4gen.ptf.child PTF ARGUMENT …`` runs PTF's own script.

The process ends when standard input is closed (the runner has ended, even if it was killed), and when PTF's main thread
ends: PTF would wait for its data plane's thread, which does not end if a port cannot be opened or a platform module
fails.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
import traceback


def _end_with_standard_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


def main(script: str, arguments: list[str]) -> int:
    """Run PTF. Returns its exit status."""
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    sys.argv = [script, *arguments]
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    _status = main(sys.argv[1], sys.argv[2:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status)
