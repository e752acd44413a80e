"""Where a process writes its log."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

from p4gen.errors import InputError


@contextlib.contextmanager
def logging_to(file: Path | None, logger: logging.Logger, level: int) -> Iterator[None]:
    """Within, what a logger says at ``level`` or above goes to a file; to standard error without one.

    Raises ``InputError`` if the file cannot be opened.
    """
    try:
        handler: logging.Handler = (
            logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file, encoding="utf-8")
        )
    except OSError as error:
        raise InputError(f"--log-file {file}: {error.strerror}") from None
    handler.setFormatter(logging.Formatter("[%(asctime)s.%(msecs)03d] [%(levelname)s] %(message)s", "%H:%M:%S"))
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
