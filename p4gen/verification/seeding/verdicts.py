"""Verdicts on seeded faults, and the file that stores them from run to run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from p4gen.errors import Diagnostic, InputError
from p4gen.inputs import read_text
from p4gen.verification.seeding.hunt import Found


@dataclass(frozen=True)
class Verdict:
    """The verdict of a search on a fault. ``text`` is for people; ``scope`` is the scope that shows the fault, after
    ``events`` events."""

    fault: str
    module: str
    found: bool
    missing: bool
    text: str
    scope: str = ""
    events: int = 0

    @classmethod
    def of(cls, found: Found) -> Verdict:
        """The verdict that a hunt ends with."""
        problem = found.problem
        if problem is not None:
            text = f"{found.name}: {problem.property}: {problem.text}, {len(problem.events)} events"
        else:
            text = f"not for a search: {found.why}" if found.why else "not found"
        text += f"; {found.doubt}" if found.doubt else ""
        events = 0 if problem is None else len(problem.events)
        return cls(found.fault.name, found.fault.module, problem is not None, found.missing, text, found.name, events)

    def summary(self) -> dict[str, object]:
        """The verdict as plain data, for JSON."""
        return asdict(self)


_HEAD: Final = '{"digest": "'
"""The beginning of each line."""


class VerdictFile:
    """A file of verdicts, by a digest of what was searched. Each verdict is a line, which is written at once. A line
    that was cut off when a run stopped is removed. Raises ``InputError`` for another kind of file, and for one that
    cannot be written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._verdicts: dict[str, Verdict] = {}
        try:
            path.open("a").close()
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from error
        text = read_text(path)
        whole = text[: text.rfind("\n") + 1]
        rest = text[len(whole) :]
        if rest[: len(_HEAD)] != _HEAD[: len(rest)]:
            raise InputError(Diagnostic(str(path), "is not a file of verdicts of `p4gen verify faults`"))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                digest, verdict = _read(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                raise InputError(Diagnostic(f"{path}:{number}", "is not a verdict of `p4gen verify faults`")) from error
            self._verdicts[digest] = verdict
        if whole != text:
            path.write_text(whole, encoding="utf-8")

    def get(self, digest: str) -> Verdict | None:
        """The verdict of an earlier run; None if there is none."""
        return self._verdicts.get(digest)

    def add(self, digest: str, verdict: Verdict) -> None:
        """Append a verdict to the file, by the digest of what was searched."""
        self._verdicts[digest] = verdict
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"digest": digest} | verdict.summary()) + "\n")


def _read(line: Mapping[str, object]) -> tuple[str, Verdict]:
    given = dict(line)
    digest = str(given.pop("digest"))
    return digest, Verdict(**given)  # type: ignore[arg-type] # other names are refused, by a TypeError
