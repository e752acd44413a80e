"""The embedded switch in this process."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.model import ControlError
from p4gen.model.entries import Action, Entry
from p4gen.switch.api import ControlPlane
from p4gen.switch.embedded import EmbeddedSwitch


def test_memory_port(echo: Path) -> None:
    switch = EmbeddedSwitch.from_file(echo)
    assert switch.send(1, b"\3\0data") == [(3, b"\3\1data")]
    assert switch.register("seen", 0) == 1


def test_it_is_a_control_plane(echo: Path) -> None:
    switch: ControlPlane = EmbeddedSwitch.from_file(echo)
    switch.insert(Entry("deny", {"port": 3}, Action("drop")))
    assert [e.match for e in switch.entries("I.deny")] == [
        {"hdr.h.port": switch.entries("deny")[0].match["hdr.h.port"]}
    ]
    with pytest.raises(ControlError, match=r"table denied: no table of that name; there is I\.deny"):
        switch.entries("denied")


def test_traces_are_collected_while_tracing_is_on(echo: Path) -> None:
    switch = EmbeddedSwitch.from_file(echo)
    switch.send(1, b"\3\0")
    switch.set_tracing(True)
    switch.send(1, b"\3\0")
    trace = switch.take_trace()
    assert [e.data["register"] for e in trace.of("read")] == ["I.seen"]
    assert any(
        line.startswith(f"{echo}:") and "table I.deny [hdr.h.port=3]: miss" in line for line in str(trace).splitlines()
    )
    assert switch.take_trace().events == []


def test_a_program_that_does_not_compile_is_refused_with_its_position(tmp_path: Path) -> None:
    path = tmp_path / "wrong.p4"
    path.write_text("control c() { apply { nonsense = 1; } }\n")
    with pytest.raises(InputError, match=r"wrong\.p4:1:23"):
        EmbeddedSwitch.from_file(path)


def test_packets_and_requests_of_many_threads_do_not_disturb_each_other(echo: Path) -> None:
    switch = EmbeddedSwitch.from_file(echo)

    def work(port: int) -> None:
        for _ in range(50):
            assert switch.send(port, bytes([port, 0])) == [(port, bytes([port, 1]))]
            switch.set_default("deny", None)

    threads = [threading.Thread(target=work, args=(port,)) for port in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert switch.register("seen", 0) == 200
