"""Folders of runs: everything that is needed to see what a run did, and to repeat it.

``<out>/runs/<time>-<verb>-<program>-<target>/`` holds ``run.json`` (the command with its seed, versions, outcome),
``junit.xml``, and for each switch its program, P4Info, log, captures, and the requests written to it.
"""

from __future__ import annotations

import json
import shutil
import stat
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from p4gen.errors import InputError
from p4gen.inputs import read_text
from p4gen.p4rt.session import read_writes
from p4gen.protos import p4runtime as pb
from p4gen.records import from_plain
from p4gen.switch.running import WRITES_FILE

RUN_FILE, JUNIT_FILE = "run.json", "junit.xml"
WRITES_TEXT = "writes.txtpb"
_MAX_WRITES = 2000
"""Requests written out as text; the rest are counted."""


@dataclass(frozen=True)
class Case:
    """A line of the JUnit report; ``problem`` is why it failed, ``skipped`` why it did not run."""

    suite: str
    name: str
    seconds: float
    problem: str = ""
    details: str = ""
    skipped: str = ""


@dataclass(frozen=True)
class RunRecord:
    """What ``run.json`` says; ``arguments`` are those of ``p4gen`` that repeat the run, its seed included."""

    verb: str
    program: str
    target: str
    arguments: tuple[str, ...]
    seed: int
    passed: bool
    versions: dict[str, str]


def new_folder(out: Path, verb: str, program: str, target: str) -> Path:
    """A folder for a run that starts now, made with its parents. Raises ``InputError`` where that cannot be done."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    base = out / "runs" / f"{stamp}-{verb}-{program}-{target}"
    for attempt in range(1, 1000):
        folder = base if attempt == 1 else base.with_name(f"{base.name}-{attempt}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as problem:
            raise InputError(f"cannot make {folder}: {problem.strerror}") from None
        return folder
    raise InputError(f"cannot make another folder like {base}")


def write_record(folder: Path, record: RunRecord, cases: Sequence[Case], extra: dict[str, Any] | None = None) -> None:
    """Write a finished run's record and its JUnit report to its folder. ``extra`` are more fields of the record."""
    content = asdict(record) | (extra or {})
    (folder / RUN_FILE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    write_junit(folder / JUNIT_FILE, cases)


def read_record(folder: Path) -> RunRecord:
    """What a run was. Raises ``InputError`` when ``folder`` is none of a run."""
    try:
        return from_plain(RunRecord, json.loads(read_text(folder / RUN_FILE)))
    except (InputError, ValueError, RecursionError) as problem:
        why = problem.reason if isinstance(problem, InputError) else str(problem)
        raise InputError(f"{folder}: not the folder of a run ({RUN_FILE}: {why})") from None


def write_junit(path: Path, cases: Sequence[Case]) -> None:
    """A JUnit report: a suite for each program, a case for each test."""
    root = ET.Element("testsuites")
    for suite in dict.fromkeys(case.suite for case in cases):
        mine = [case for case in cases if case.suite == suite]
        counts = {"tests": len(mine), "failures": sum(bool(c.problem) for c in mine)}
        counts["skipped"] = sum(bool(c.skipped) for c in mine)
        seconds = sum(c.seconds for c in mine)
        attributes = {"name": suite, "time": f"{seconds:.3f}"} | {name: str(count) for name, count in counts.items()}
        element = ET.SubElement(root, "testsuite", attributes)
        for case in mine:
            _case(element, case)
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _case(suite: ET.Element, case: Case) -> None:
    element = ET.SubElement(suite, "testcase", classname=case.suite, name=case.name, time=f"{case.seconds:.3f}")
    if case.problem:
        ET.SubElement(element, "failure", message=case.problem).text = case.details or case.problem
    if case.skipped:
        ET.SubElement(element, "skipped", message=case.skipped)


def keep(source: Path, target: Path, programs: Iterable[Path] = ()) -> None:
    """Copy what a switch and its tests left in ``source`` (sockets apart), and ``programs``, into ``target``."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    for path in programs:
        if path.is_file() and not (target / path.name).exists():
            shutil.copyfile(path, target / path.name)
    for path in target.rglob(WRITES_FILE):
        _as_text(path)
        path.unlink()


def _as_text(path: Path) -> None:
    """The write requests in ``path`` in protobuf's text format, beside it."""
    with path.with_name(WRITES_TEXT).open("w", encoding="utf-8") as out:
        out.write("# proto-file: p4/v1/p4runtime.proto\n# proto-message: p4.v1.WriteRequest, one after the other\n")
        count = 0
        for data in read_writes(path):
            count += 1
            if count <= _MAX_WRITES:
                out.write("\n" + text_format.MessageToString(pb.WriteRequest.FromString(data)))
        if count > _MAX_WRITES:
            out.write(f"\n# and {count - _MAX_WRITES} more\n")
