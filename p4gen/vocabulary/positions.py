"""YAML with the position of every value, for error messages.

All YAML from users is read here. Its size is limited, and larger files are refused: a file has at most
``MAX_BYTES``, ``MAX_DEPTH`` levels, and ``MAX_VALUES`` values with its aliases expanded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.inputs import quote, read_text

Path_ = tuple[str | int, ...]
"""From the root to a value: keys of mappings, indices of lists."""

MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 16
MAX_VALUES: Final = 50_000
MAX_NUMBER: Final = 1 << 64
_OPENS: Final = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_CLOSES: Final = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


def read_yaml(path: Path) -> tuple[Any, Mapping[Path_, Pos], list[str]]:
    """The file's value (None if it is empty), the position of each part, and its lines.

    The position of a key is that of the path to its value with ``KEY`` at its end. Raises ``InputError`` for a file
    that cannot be read, is not YAML, gives a key twice, or is too large.
    """
    text = read_text(path, MAX_BYTES)
    reader = _Reader(str(path))
    try:
        _check_shape(text, reader.file)
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            value = None if root is None else reader.value(loader, root, ())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where: Pos | str = _pos(reader.file, mark) if mark else reader.file
        raise InputError(Diagnostic(where, f"not valid YAML: {quote(error.problem, marks=False)}")) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the latter for "\\UFFFFFFFF" and the like
        reason = quote(str(error).partition("\n")[0], marks=False)
        raise InputError(Diagnostic(reader.file, f"not valid YAML: {reason}")) from None
    return value, reader.where, text.splitlines()


def diagnostics(error: ValidationError, where: Mapping[Path_, Pos], lines: list[str], file: str) -> list[Diagnostic]:
    """What is wrong with a file that ``read_yaml`` has read, a diagnostic for each value, at its position."""
    return [_diagnostic(each, where, lines, file) for each in error.errors()]


def _diagnostic(error: ErrorDetails, where: Mapping[Path_, Pos], lines: list[str], file: str) -> Diagnostic:
    path: Path_ = tuple(part for part in error["loc"] if not str(part).startswith(("function-", "constrained-")))
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = f"unknown field {quote(str(path[-1]))}"
    elif error["type"] == "missing":
        message = f"'{path[-1]}' is missing"
    elif error["type"] != "value_error" and not isinstance(error.get("input"), dict | list):
        message = f"{quote(error.get('input'))}: {message[0].lower()}{message[1:]}"
    place = next((where[path[:n]] for n in range(len(path), -1, -1) if path[:n] in where), None)
    if place is None:
        return Diagnostic(file, message)
    return Diagnostic(place, message, source_line=lines[place.line - 1] if place.line <= len(lines) else None)


KEY: Final = "\0key"


def _check_shape(text: str, file: str) -> None:
    """Raise ``InputError`` if the file is too deep or too long. This step needs no stack; later steps do."""
    depth = count = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, _CLOSES):
            depth -= 1
            continue
        if isinstance(event, _OPENS):
            depth += 1
        count += 1
        if depth > MAX_DEPTH:
            raise InputError(Diagnostic(_pos(file, event.start_mark), _TOO_DEEP))
        if count > MAX_VALUES:
            raise InputError(Diagnostic(_pos(file, event.start_mark), _TOO_MANY))


_TOO_DEEP: Final = f"values are nested more than {MAX_DEPTH} deep, which is the limit"
_TOO_MANY: Final = f"there are more than {MAX_VALUES:,} values with aliases expanded, which is the limit"


@dataclass
class _Reader:
    """Makes values of nodes. An alias is one node in several places; it counts in each of them."""

    file: str
    where: dict[Path_, Pos] = field(default_factory=dict)
    count: int = 0

    def value(self, loader: yaml.SafeLoader, node: yaml.Node, path: Path_) -> Any:
        """The value of a node. Raises ``InputError`` for a key that is given twice, or a value that YAML does not
        know."""
        self.where[path] = pos = _pos(self.file, node.start_mark)
        self.count += 1
        if self.count > MAX_VALUES:
            raise InputError(Diagnostic(pos, _TOO_MANY))
        if len(path) > MAX_DEPTH:  # of aliases, which may contain themselves
            raise InputError(Diagnostic(pos, _TOO_DEEP))
        if isinstance(node, yaml.MappingNode):
            found: dict[str, Any] = {}
            for key_node, value_node in node.value:
                place = _pos(self.file, key_node.start_mark)
                if not isinstance(key_node, yaml.ScalarNode):
                    raise InputError(Diagnostic(place, "a name is expected here, before the colon"))
                key = str(self._scalar(loader, key_node, place))
                if key in found:
                    raise InputError(Diagnostic(place, f"{quote(key)} is given twice"))
                found[key] = self.value(loader, value_node, (*path, key))
                self.where[(*path, key, KEY)] = place
            return found
        if isinstance(node, yaml.SequenceNode):
            return [self.value(loader, item, (*path, i)) for i, item in enumerate(node.value)]
        value = self._scalar(loader, node, pos)
        if value is not None and not isinstance(value, str | int | float | bool):
            raise InputError(Diagnostic(pos, f"{quote(value)} is neither text nor a number"))
        return value

    def _scalar(self, loader: yaml.SafeLoader, node: yaml.Node, pos: Pos) -> Any:
        try:
            value = loader.construct_object(node, deep=True)
        except (ValueError, OverflowError):  # 2001-99-99, 0x_, and numbers of thousands of digits
            raise InputError(Diagnostic(pos, f"{quote(node.value)} is not a value that YAML knows")) from None
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise InputError(Diagnostic(pos, f"{quote(node.value)} is too large a number"))
        return value


def _pos(file: str, mark: Any) -> Pos:
    return Pos(file, mark.line + 1, mark.column + 1)
