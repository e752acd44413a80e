"""Where a process writes its log, and how."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typing_extensions import override

from p4gen.errors import InputError


class _Json(logging.Formatter):
    """A JSON object for each line: its time in seconds since 1970, level, logger and text, and the ``fields`` that who
    logs has added."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        known: dict[str, Any] = {"time": round(record.created, 6), "level": record.levelname, "logger": record.name}
        known |= {"message": record.getMessage(), **getattr(record, "fields", {})}
        if record.exc_info:
            known["exception"] = self.formatException(record.exc_info)
        return json.dumps(known)


@contextlib.contextmanager
def logging_to(
    file: Path | None, logger: logging.Logger, level: int, form: str, option: str = "--log-file"
) -> Iterator[None]:
    """Within, what a logger says at ``level`` or above goes to a file, as text or as JSON; to standard error without a
    file.

    Raises ``InputError``, which names the option that gives the file, if that cannot be opened.
    """
    try:
        handler: logging.Handler = (
            logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file, encoding="utf-8")
        )
    except OSError as error:
        raise InputError(f"{option} {file}: {error.strerror}") from None
    text = logging.Formatter("[%(asctime)s.%(msecs)03d] [%(levelname)s] %(message)s", "%H:%M:%S")
    handler.setFormatter(_Json() if form == "json" else text)
    handler.setLevel(level)
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
