"""The preprocessor: conditionals, macros, includes, and positions that survive them."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.p4.parse.preprocess import preprocess
from p4gen.p4.parse.source import P4Error


def text_of(text: str, defines: tuple[str, ...] = ()) -> list[str]:
    return [line for line in preprocess("t.p4", text, defines).text.split("\n") if line.strip()]


def test_conditionals_take_one_branch() -> None:
    text = "#if A > 1\none\n#elif defined(B)\ntwo\n#else\nthree\n#endif"
    assert text_of(text, defines=("A=2",)) == ["one"]
    assert text_of(text, defines=("B",)) == ["two"]
    assert text_of(text) == ["three"]


def test_nothing_is_live_in_a_dead_branch() -> None:
    assert text_of("#ifdef X\n#error no\n#if Y\na\n#else\nb\n#endif\n#endif\nc") == ["c"]


def test_macros_with_arguments_may_span_lines() -> None:
    assert text_of("#define ADD(a, b) a + b\nx = ADD(1,\n 2);") == ["x = 1 + 2;"]


def test_any_identifier_may_be_a_macro() -> None:
    assert text_of("#define __X__ 1\n__X__ __DATE__ __LINE__") == ["1 __DATE__ 2"]


def test_undef_ends_a_macro() -> None:
    assert text_of("#define A 1\nA\n#undef A\nA") == ["1", "A"]


def test_columns_survive_macros_and_comments() -> None:
    source = preprocess("t.p4", "#define WIDE 123456789\nbit /* a\n comment */ x = WIDE + y;")
    where = source.pos(source.text.index("y"))
    assert (where.line, where.column) == (3, 24)
    made = source.pos(source.text.index("123456789"))
    assert (made.line, made.column) == (3, 17)


def test_line_directives_are_kept_beside_the_place_in_the_file() -> None:
    source = preprocess("t.p4", 'a\n#line 7 "module.p4.j2"\nb\nc')
    at = source.text.index("c")
    assert str(source.pos(at)) == "t.p4:4:1"
    assert str(source.origin(at)) == "module.p4.j2:8:1"
    assert source.origin(source.text.index("a")) is None


def test_includes_are_found_beside_the_file_and_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "near.p4").write_text("near")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "far.p4").write_text("far")
    source = preprocess("t.p4", '#include "near.p4"\n#include <far.p4>', (), [tmp_path / "lib"], tmp_path)
    assert source.text.split() == ["near", "far"]
    assert source.pos(source.text.index("far")).file.endswith("far.p4")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a\n#error stop here", 2, "stop here"),
        ("#if 1\na", 1, "no #endif"),
        ("#endif", 1, "without #if"),
        ("#include <nowhere.p4>", 1, "nowhere.p4"),
        ("a\n  #frobnicate", 2, "frobnicate"),
        ("a\nb /* open", 2, "never closed"),
    ],
)
def test_errors_have_positions(text: str, line: int, message: str) -> None:
    with pytest.raises(P4Error, match=message) as caught:
        preprocess("t.p4", text)
    assert getattr(caught.value.diagnostics[0].where, "line", None) == line


def test_endless_inclusion_is_refused(tmp_path: Path) -> None:
    (tmp_path / "self.p4").write_text('#include "self.p4"\n')
    with pytest.raises(P4Error, match="deep"):
        preprocess("t.p4", '#include "self.p4"', (), (), tmp_path)


def test_the_target_is_told_as_by_p4c() -> None:
    assert text_of("#ifdef __TARGET_BMV2__\nbmv2\n#else\nother\n#endif") == ["bmv2"]


def test_a_string_over_several_lines_keeps_all_of_them() -> None:
    text = '@a("one // not a comment\n\n#ifdef NO\nleft out\n#endif\n  /* nor this */ two") // a comment\nbit x;'
    source = preprocess("t.p4", text)
    assert '("one // not a comment\n\n\n\n\n  /* nor this */ two")' in source.text
    assert "// a comment" not in source.text
    assert str(source.pos(source.text.index("x;"))) == "t.p4:7:5"


def test_a_name_of_a_file_that_is_too_long() -> None:
    with pytest.raises(P4Error) as caught:
        preprocess("t.p4", f'\n#include "{"a" * 5000}.p4"', includes=["."])
    (found,) = caught.value.diagnostics
    assert str(found.where) == "t.p4:2:1"
    assert found.message.startswith("cannot include aaa")
    assert len(found.message) < 200
