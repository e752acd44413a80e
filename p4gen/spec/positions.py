"""YAML with the position of every value, so that complaints about a file say where."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from p4gen.errors import Diagnostic, InputError, Pos

Path_ = tuple[str | int, ...]
"""From the root to a value: keys of mappings, indices of lists."""


def read_yaml(path: Path) -> tuple[Any, Mapping[Path_, Pos], list[str]]:
    """The file's value, where each part of it stands, and its lines.

    Raises ``InputError`` for a file that cannot be read, is not YAML, or gives a key twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(Diagnostic(str(path), f"cannot read: {error.strerror}")) from error
    except UnicodeDecodeError as error:
        raise InputError(Diagnostic(str(path), "is not UTF-8 text")) from error
    where: dict[Path_, Pos] = {}
    try:
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                raise InputError(Diagnostic(str(path), "is empty"))
            value = _value(loader, root, (), where, str(path))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        pos = Pos(str(path), mark.line + 1, mark.column + 1) if mark else None
        raise InputError(Diagnostic(pos, f"not valid YAML: {error.problem}")) from error
    except yaml.YAMLError as error:
        raise InputError(Diagnostic(str(path), f"not valid YAML: {error}")) from error
    return value, where, text.splitlines()


def _value(loader: yaml.SafeLoader, node: yaml.Node, path: Path_, where: dict[Path_, Pos], file: str) -> Any:
    where[path] = pos = Pos(file, node.start_mark.line + 1, node.start_mark.column + 1)
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(loader.construct_object(key_node, deep=True))
            if key in found:
                mark = key_node.start_mark
                raise InputError(Diagnostic(Pos(file, mark.line + 1, mark.column + 1), f"'{key}' is given twice"))
            found[key] = _value(loader, value_node, (*path, key), where, file)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item, (*path, i), where, file) for i, item in enumerate(node.value)]
    value = loader.construct_object(node, deep=True)
    if value is not None and not isinstance(value, str | int | float | bool):
        raise InputError(Diagnostic(pos, f"{value!r} is neither text nor a number"))
    return value
