"""Files of faults are read, and what is wrong in one is said with its line."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.ptf.faults import seeding
from p4gen.resources import resource

HEAD = """
[reasons]
unread = "nobody reads it"

[kinds.wide]
spec = { lanes = 8 }
takes = ["both"]

[kinds.wide.programs]
plain = {}
two = { spec = { pipelines = 2 }, scenarios = ["test_pipelines"], excuse = "unread" }

[kinds.wide.modules]
Forward = { first = ["test_forwarding"] }
Count = { excuse = "counters are no state" }

[kinds.narrow]
like = "wide"
form_of = "wide"
left_out = { Count = "counters" }

[kinds.both]
"""
FAULTS = """
[[fault]]
name = "ttl-kept"
module = "Forward"
kinds = ["both"]
find = 'hdr.ipv4.ttl - 1'
replace = 'hdr.ipv4.ttl'
scope = { wide = "a loss", "n*" = "no faults" }

[[fault]]
name = "uncounted"
module = "Count"
kinds = ["wide"]
find = '''
a();
  b();'''
replace = ''

[[fault]]
name = "in-two"
module = "Forward"
program = "two"
kinds = ["wide", "narrow"]
find = 'two'
replace = 'three'

[[fault]]
name = "wide-alone"
module = "Forward"
kinds = ["wide"]
find = 'port'
replace = '0'
left_out = { narrow = "nobody forwards there" }
"""
LINES = [number for number, line in enumerate((HEAD + FAULTS).splitlines(), 1) if line == "[[fault]]"]
LACKS = {"counters": "there are no counters"}


def read(folder: Path, text: str, kind: str = "wide") -> object:
    file = folder / "faults.toml"
    file.write_text(text, encoding="utf-8")
    return seeding([file], kind, suite=[resource("ptf_tests")], lacks=LACKS)


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "faults.toml"
    file.write_text(HEAD + FAULTS, encoding="utf-8")
    found = seeding([file], "wide", suite=[resource("ptf_tests")], spec={"arch": "t2na"})
    kept, uncounted, in_two, _ = found.mutations
    assert (kept.scope, kept.excuse) == ("a loss", "")
    assert kept.place == f"{file}:{LINES[0]}"
    assert (uncounted.find, uncounted.excuse) == ("a();\n  b();", "counters are no state")
    assert (in_two.program, in_two.excuse) == ("two", "nobody reads it")
    assert found.programs == {
        "plain": {"lanes": 8, "arch": "t2na"},
        "two": {"lanes": 8, "pipelines": 2, "arch": "t2na"},
    }
    assert found.tests == {"two": ("test_pipelines",)}
    assert found.first == {"Forward": ("test_forwarding",)}
    other = seeding([file], "narrow", suite=[resource("ptf_tests")], lacks=LACKS)
    assert [(fault.name, fault.scope) for fault in other.mutations] == [("ttl-kept", "no faults"), ("in-two", "")]
    assert other.left_out == {"uncounted": "there are no counters", "wide-alone": "nobody forwards there"}


WRONG = {
    ("", "find = 'two'", "fnid = 'two'"): f"faults.toml:{LINES[2]}:1: error: fault in-two: there is no key fnid",
    ("", "find = 'port'", "find = 'port'\nplace = 'here'"): "fault wide-alone: there is no key place",
    ("", "replace = ''", ""): f"faults.toml:{LINES[1]}:1: error: fault uncounted: replace: Field required",
    (
        "",
        'kinds = ["both"]',
        'kinds = ["boht"]',
    ): f"faults.toml:{LINES[0]}: error: fault ttl-kept: there is no kind boht",
    (
        "",
        'program = "two"',
        'program = "three"',
    ): f"faults.toml:{LINES[2]}: error: fault in-two: there is no program three",
    ("", "replace = 'three'", "replace = 'three'\nexcuse = 'time'"): "fault in-two: there is no reason time",
    ("", '"in-two"', '"ttl-kept"'): "fault ttl-kept: is also at",
    ("", '"test_pipelines"', '"test_pipes"'): "kind wide, program two: error: there are no scenarios test_pipes",
    ("", '"test_forwarding"', '"test_routing"'): "module Forward: error: there are no scenarios test_routing",
    ("", "spec = { lanes = 8 }", "specs = { lanes = 8 }"): "faults.toml: error: kinds.wide: there is no key specs",
    ("", "[reasons]", "[reasons"): "faults.toml: Expected ']'",
    (
        "narrow",
        "left_out = { Count",
        "left_out = { Other",
    ): "fault uncounted: has neither a form in programs of kind narrow",
    ("narrow", 'Count = "counters" }', 'Count = "timers" }'): "fault uncounted: there is no reason timers",
    ("narrow", 'like = "wide"', 'like = "side"'): "kind narrow: there is no kind side",
    ("", 'form_of = "wide"', 'form_of = "wild"'): "kind narrow: there is no kind wild",
    ("", 'takes = ["both"]', 'takes = ["booth"]'): "kind wide: there is no kind booth",
    ("", "[kinds.both]", '[kinds.both]\nlike = "narrow"'): "kind both: narrow is itself like another kind",
    ("deep", "", ""): "there is no kind deep of programs; there are wide, narrow, both",
}


@pytest.mark.parametrize(("change", "said"), WRONG.items(), ids=range(len(WRONG)))
def test_what_is_wrong_is_said_with_its_place(change: tuple[str, str, str], said: str, tmp_path: Path) -> None:
    kind, old, new = change
    text = HEAD + FAULTS
    assert text.count(old) == 1 or not old
    with pytest.raises(InputError) as caught:
        read(tmp_path, text.replace(old, new) if old else text, kind or "wide")
    assert said in str(caught.value)


FILES = sorted(resource("ptf_tests").glob("*/faults*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_records_are_in_the_order_of_modules(file: Path) -> None:
    modules = [fault["module"] for fault in tomllib.loads(file.read_text(encoding="utf-8"))["fault"]]
    assert [name for name, _ in itertools.groupby(modules)] == list(dict.fromkeys(modules))


@pytest.mark.parametrize("family", sorted({file.parent.name for file in FILES}))
def test_each_reason_is_used(family: str) -> None:
    files = [file.read_text(encoding="utf-8") for file in FILES if file.parent.name == family]
    for text in files:
        for name in tomllib.loads(text).get("reasons", {}):
            assert any(f'= "{name}"' in other for other in files), name
