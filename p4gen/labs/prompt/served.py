"""Commands of another program: a line each on standard input, answered by a JSON object each on standard output."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

from rich.console import Console

from p4gen.labs.prompt.console import WIDTH
from p4gen.labs.prompt.prompt import Prompt
from p4gen.labs.prompt.terminal import Session
from p4gen.labs.session import Lab


def serve(lab: Lab) -> tuple[int, dict[str, Any]]:
    """Execute commands until ``exit``, or until standard input ends; the exit status is 1 if one failed.

    The first answer says that the lab is up. Each has ``ok``, ``text`` (what a terminal would show), and ``run``: the
    figures of a ``run`` (``p4gen.labs.runs.report.to_json``), null for other commands.
    """
    text = io.StringIO()
    prompt = Prompt(Session(lab, Console(file=text, highlight=False, soft_wrap=True, width=WIDTH), attached=False))
    failed = False
    try:
        _answer(True, "", None)
        for line in sys.stdin:
            ended = prompt.onecmd("" if line.startswith("#") else line.strip())
            failed |= prompt.failed
            _answer(not prompt.failed, text.getvalue(), prompt.session.latest)
            text.seek(0)
            text.truncate()
            prompt.failed, prompt.session.latest = False, None
            if ended:
                break
    finally:
        prompt.session.close()
    return int(failed), {}


def _answer(ok: bool, text: str, run: dict[str, Any] | None) -> None:
    sys.stdout.write(json.dumps({"ok": ok, "text": text, "run": run}) + "\n")
    sys.stdout.flush()
