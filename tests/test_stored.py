"""Caches: what is read is what was written, by this user; everything else counts as not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

from p4gen import stored
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program import compose, render
from p4gen.program import templates as templates_of

CONTENT = bytes(range(256)) * 5


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    place = tmp_path / "new" / "file"
    assert stored.read(place) is None
    stored.write(place, CONTENT)
    assert stored.read(place) == CONTENT
    assert [*place.parent.iterdir()] == [place]
    assert not place.parent.stat().st_mode & 0o077


@pytest.mark.parametrize("at", [0, 20, 60, -1])
def test_a_file_with_a_wrong_byte_is_not_read(at: int, tmp_path: Path) -> None:
    place = tmp_path / "file"
    stored.write(place, CONTENT)
    wrong = bytearray(place.read_bytes())
    wrong[at] ^= 1
    place.write_bytes(wrong)
    assert stored.read(place) is None
    place.write_bytes(wrong[:at])
    assert stored.read(place) is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_can_write_is_not_read(mode: int, tmp_path: Path) -> None:
    place = tmp_path / "file"
    stored.write(place, CONTENT)
    place.chmod(mode)
    assert stored.read(place) is None


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    stored.write(tmp_path / "file" / "below", CONTENT)
    assert stored.read(tmp_path / "file" / "below") is None


def test_names_depend_on_all_parts_and_where_they_end() -> None:
    parts = [("a", "b"), ("ab",), ("a", "b", ""), ("b", "a")]
    assert len({stored.key(each) for each in parts}) == len(parts)


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of compiled templates, empty, of a process that has rendered nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    templates_of._environment.cache_clear()
    yield tmp_path / "cache" / "p4gen" / "templates"
    templates_of._environment.cache_clear()


def again(spec: EpicSpec) -> str:
    """The spec's program, as a process renders it that has rendered nothing before."""
    templates_of._environment.cache_clear()
    return render(compose(spec)).text


def test_compiled_templates_render_the_same_text(templates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = again(EpicSpec())
    files = {file: file.stat().st_mtime_ns for file in templates.iterdir()}
    assert len(files) > 20
    monkeypatch.setattr(jinja2.Environment, "_generate", None)  # nothing is compiled again
    assert again(EpicSpec()) == first
    assert {file: file.stat().st_mtime_ns for file in templates.iterdir()} == files


def test_a_damaged_compiled_template_is_compiled_again(templates: Path) -> None:
    first = again(EpicSpec())
    for file in templates.iterdir():
        file.write_bytes(file.read_bytes()[::-1])
    assert again(EpicSpec()) == first


def test_a_template_that_changes_is_compiled_again(templates: Path, tmp_path: Path) -> None:
    source = tmp_path / "some.p4.j2"
    for content in ("// one\n", "// two\n"):
        source.write_text(content)
        templates_of._environment.cache_clear()
        environment = templates_of._environment((("own", tmp_path),), ())
        assert environment.get_template("own/some.p4.j2").render().partition("\x00")[0] == content.strip()
    assert len([*templates.iterdir()]) == 2
