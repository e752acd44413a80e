"""One file about a run, for whoever can say why it failed: versions, commands, results, ends of logs, programs.

It has no secrets of the machine: home folder, user, host, and the values of variables whose names speak of secrets are
replaced wherever they occur.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from p4gen.errors import Diagnostic, FailedError, InputError, Option
from p4gen.ptf.runner import SuiteResult
from p4gen.switch.running import COMMANDS_FILE, Program

_LAST_LINES: Final = 200
_LAST_BYTES: Final = 1 << 16
_LOGS: Final = ("*.log", "*.out", "tofino/p4c.log")
_DESCRIPTIONS: Final = ("manifest.json", "tofino/manifest.json")
_SECRET: Final = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|(^|_)KEY", re.IGNORECASE)
_SHORTEST: Final = 6
"""Characters of a secret; shorter values are words of other texts."""


@dataclass(frozen=True)
class Part:
    """A program of the run: where its switch and its tests left their files, and the results, if it came to them."""

    program: Program
    folder: Path
    result: SuiteResult | None


def check_path(path: Path) -> None:
    """Raises ``InputError`` where no file can be written."""
    if path.is_dir() or not path.absolute().parent.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise InputError(Diagnostic(Option("report"), f"cannot write {path}"))


def write(path: Path, run: Mapping[str, Any], parts: Sequence[Part], problem: str = "") -> None:
    """Write the file. ``run`` is what is known of the whole run, ``problem`` what ended it early."""
    content = {
        "run": dict(run),
        "problem": problem,
        "system": {"kernel": platform.release(), "machine": platform.machine(), "python": platform.python_version()},
        "programs": [_part(part) for part in parts],
    }
    text = json.dumps(_cleaned(content, _cleaner()), indent=1)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise FailedError(f"cannot write {path}: {error.strerror}") from None


def _part(part: Part) -> dict[str, Any]:
    places = (part.program.p4.parent, part.folder)
    logs = sorted({path for place in places for pattern in _LOGS for path in place.glob(pattern) if path.is_file()})
    result = part.result
    return {
        "program": part.program.p4.stem,
        "descriptions": {name: _json(part.program.p4.parent / name) for name in _DESCRIPTIONS},
        "commands": _json(part.folder / COMMANDS_FILE),
        "files": {path.name: _json(path) for path in (*part.folder.glob("*.conf"), part.folder / "ports.json")},
        "problem": result.problem if result is not None else None,
        "tests": [asdict(test) for test in result.tests] if result is not None else [],
        "logs": {path.name: _tail(path) for path in logs},
    }


def _json(path: Path) -> Any:
    """What is in a file; None if it is not there or is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _tail(path: Path) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LAST_BYTES))
        return file.read().decode(errors="replace").splitlines()[-_LAST_LINES:]


def _cleaner() -> Callable[[str], str]:
    """A function that takes out of a text what is nobody else's business."""
    secrets = {value for name, value in os.environ.items() if _SECRET.search(name) and len(value) >= _SHORTEST}
    words = {"host": platform.node(), "user": getpass.getuser() if os.geteuid() else os.environ.get("SUDO_USER", "")}
    home = str(Path.home())

    def clean(text: str) -> str:
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "(secret)")
        if home != "/":
            text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
        text = re.sub(r"/home/[^/\s\"']+", "~", text)
        for what, word in words.items():
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", f"({what})", text) if word else text
        return text

    return clean


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _cleaned(item, clean) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item, clean) for item in value]
    return value
