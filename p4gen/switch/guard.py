"""Runs a command that must not outlive its parent: ``python -m p4gen.switch.guard COMMAND …``.

The command is ended when standard input is closed (the parent has ended, even if it was killed), and on SIGTERM and
SIGINT. The exit status is the command's; if a signal ended it, the guard ends with that signal, too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

_PATIENCE_S = 2.0


def stop_at_eof(stop: threading.Event) -> None:
    """Set ``stop`` when standard input is closed."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    stop.set()


def main(command: list[str]) -> int:
    """Run ``command`` until it or the guard ends."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    threading.Thread(target=stop_at_eof, args=(stop,), daemon=True).start()

    def watch() -> None:
        process.wait()
        stop.set()

    threading.Thread(target=watch, daemon=True).start()
    stop.wait()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return 0
    if process.returncode < 0:
        signal.signal(-process.returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -process.returncode)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
