"""P4Info files. A file's suffix tells its form, as with p4c's ``--p4runtime-files``."""

from __future__ import annotations

from pathlib import Path

from p4gen.arch import architectures, of_package
from p4gen.errors import InputError
from p4gen.p4 import ir
from p4gen.p4.parse.source import not_too_deep

TEXT, JSON, BINARY = "text", "JSON", "binary"
FORMS = {".txtpb": TEXT, ".txt": TEXT, ".json": JSON, ".bin": BINARY, ".binpb": BINARY}
"""protobuf's text format, its JSON form, or the serialised message, by suffix."""


def check_path(path: Path) -> None:
    """Raise ``InputError`` for a path that ``write`` would refuse; nothing is written."""
    if path.suffix not in FORMS:
        raise InputError(f"{path}: P4Info is text (.txtpb, .txt), JSON (.json) or binary (.bin, .binpb) by its suffix")
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}")


def write(path: Path, program: ir.Program) -> None:
    """Write the program's P4Info to ``path``.

    Raises ``InputError`` for a program of an unknown architecture or nested too deeply, for an unknown suffix, and
    where the file cannot be written.
    """
    # protobuf takes a while to load.
    from google.protobuf import json_format  # noqa: PLC0415

    from p4gen.p4.info.generate import generate  # noqa: PLC0415
    from p4gen.p4.info.text import to_text  # noqa: PLC0415

    check_path(path)
    if of_package(program.package, program.arch, program.blocks) is None:
        known = ", ".join(sorted(architectures()))
        what = f"for {program.package}" if program.package else "without a main"
        raise InputError(f"{path}: P4Info is made of programs for {known}, and {program.source} is {what}")
    with not_too_deep(program.source):
        info = generate(program)
    match FORMS[path.suffix]:
        case "text":
            content = to_text(info).encode()
        case "JSON":
            content = (json_format.MessageToJson(info, preserving_proto_field_name=False) + "\n").encode()
        case _:
            content = info.SerializeToString(deterministic=True)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
