"""Commands in a guest: ``python -m p4gen.labs.softroce.execute WORD…`` in the namespace of its host.

A command is one connection to the guest: first a line with its words; then its input, and its output in frames of a
kind, a length and data. It ends with the connection.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import tty
from collections.abc import Iterator, Sequence
from typing import IO, Final

from p4gen.labs.softroce.ports import ADDRESS, COMMANDS_PORT

EXECUTE: Final = (sys.executable, "-m", "p4gen.labs.softroce.execute")
"""The prefix of a command in the guest of the network namespace in which it is run."""
_HEAD: Final = struct.Struct("!BI")
_STATUS, _OUT, _ERROR = 0, 1, 2
"""Kinds of frames: the exit status, as text; standard output; standard error."""
_PIECE: Final = 1 << 16
_LOOK_S: Final = 1.0
_CONNECT_S: Final = 30.0


# --- in the guest ---


def serve_commands() -> None:
    """Run the commands of all connections, in threads. It never ends."""
    with socket.create_server((ADDRESS, COMMANDS_PORT)) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_run, args=(connection,), daemon=True).start()


def _run(connection: socket.socket) -> None:
    with connection:
        line = _line(connection)
        if not line:
            return
        words: list[str] = json.loads(line)
        sending = threading.Lock()

        def send(kind: int, data: bytes) -> None:
            with sending:
                connection.sendall(_HEAD.pack(kind, len(data)) + data)

        def pass_on(kind: int, pipe: IO[bytes]) -> None:
            with contextlib.suppress(OSError):
                while data := os.read(pipe.fileno(), _PIECE):
                    send(kind, data)

        try:
            process = subprocess.Popen(
                words, stdin=connection.fileno(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/tmp",  # noqa: S108
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            send(_ERROR, f"{words[0]}: {error.strerror}\n".encode())
            send(_STATUS, b"127")
            return
        assert process.stdout is not None
        assert process.stderr is not None
        pipes = ((_OUT, process.stdout), (_ERROR, process.stderr))
        threads = [threading.Thread(target=pass_on, args=pipe, daemon=True) for pipe in pipes]
        for thread in threads:
            thread.start()
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_S)
                send(_OUT, b"")  # fails if nobody is there to see it
            for thread in threads:
                thread.join(_LOOK_S)  # what the command has left running may hold its pipes
            send(_STATUS, str(process.returncode).encode())
        except OSError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _line(connection: socket.socket) -> bytes:
    """The first line, and nothing of what follows: this is the command's."""
    line = b""
    while not line.endswith(b"\n") and (byte := connection.recv(1)):
        line += byte
    return line


# --- at its host ---


def main(words: Sequence[str]) -> int:
    """Run a command in the guest, with this process's standard streams. Returns its exit status, 128 and the number of
    the signal for one that a signal has ended."""
    words = ["python3", *words[1:]] if words[0] == sys.executable else list(words)
    attached = sys.stdin.isatty()
    if attached:
        words = ["script", "--quiet", "--return", "--command", shlex.join(words), "/dev/null"]
    try:
        connection = socket.create_connection(("127.0.0.1", COMMANDS_PORT), _CONNECT_S)
        connection.settimeout(None)
        connection.sendall(json.dumps(words).encode() + b"\n")
    except OSError as error:
        sys.stderr.write(f"p4gen: error: the guest takes no commands: {error}\n")
        return 1
    threading.Thread(target=_send_input, args=(connection,), daemon=True).start()
    with _raw_terminal() if attached else contextlib.nullcontext():
        return _receive(connection)


def _send_input(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(0, _PIECE):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)


def _receive(connection: socket.socket) -> int:
    stream = connection.makefile("rb")
    outputs = {_OUT: sys.stdout.buffer, _ERROR: sys.stderr.buffer}
    while len(head := stream.read(_HEAD.size)) == _HEAD.size:
        kind, size = _HEAD.unpack(head)
        data = stream.read(size)
        if kind == _STATUS:
            status = int(data)
            return 128 - status if status < 0 else status
        outputs[kind].write(data)
        outputs[kind].flush()
    sys.stderr.write("p4gen: error: the guest has ended\n")
    return 1


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    """Have every key go to the guest."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


if __name__ == "__main__":
    _status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(_status)  # a thread may still read standard input
