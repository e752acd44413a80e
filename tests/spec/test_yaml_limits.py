"""YAML that is no help to anybody: it is refused in a line or two, whichever file it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.families import load_spec
from p4gen.vocabulary.positions import MAX_BYTES, MAX_DEPTH, read_yaml
from p4gen.vocabulary.topology import load_topology

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(40))
CASES = {
    "deep": ("[" * 3000, "nested more than 16 deep"),
    "deep mappings": ("{a: " * 3000, "nested more than 16 deep"),
    "bomb": (BOMB, "more than"),
    "wide bomb": (
        f"a: &a [{'x, ' * 1000}]\nb: &b [{'*a, ' * 1000}]\nc: [{'*b, ' * 1000}]\n",
        "more than 50,000 values",
    ),
    "itself": ("lanes: &a [*a]\n", "nested more than 16 deep"),
    "large": ("lanes: 8 #" + "x" * MAX_BYTES, "more than 1,024 KiB"),
    "many": ("a: [" + "1," * 50_001 + "]", "more than 50,000 values"),
    "number": ("lanes: " + "9" * 5000, "not a value that YAML knows"),
    "hexadecimal": ("lanes: 0x" + "f" * 5000, "too large a number"),
    "date": ("lanes: 2001-99-99", "not a value that YAML knows"),
    "escape": ('lanes: "\\UFFFFFFFF"', "not valid YAML"),
    "control": ("lanes: \x01", "not valid YAML"),
    "key": ("? [a]\n: b\n", "a name is expected here"),
    "object": ("lanes: !!python/object:os.system x", "not valid YAML"),
    "long name": ("x" * 900 + ": 1", "x…'"),
}


@pytest.mark.parametrize("load", [load_spec, load_topology], ids=["spec", "topology"])
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_in_a_line_or_two(name: str, load: Callable[[Path], object], tmp_path: Path) -> None:
    text, cause = CASES[name]
    file = tmp_path / "f.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load(file)
    said = caught.value.lines()
    # A topology lacks all its fields besides.
    assert len("\n".join(said)) < 2500
    assert any(cause in line for line in said), said
    assert all(line.count("\n") <= 2 for line in said)


def test_a_file_without_an_end() -> None:
    with pytest.raises(InputError, match="more than 1,024 KiB"):
        load_spec(Path("/dev/zero"))


def test_what_is_just_small_enough_is_read(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("a: &a 1\nb: [*a, *a]\nc: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))
    value, where, _ = read_yaml(file)
    assert (value["a"], value["b"]) == (1, [1, 1])
    assert (where["a",].line, where["b", 1].line) == (1, 1)  # of the value itself
