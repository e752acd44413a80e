"""Link state of interfaces, on veth pairs in a network namespace of its own; needs root, and is skipped without."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Mapping

import pytest
from patience import PATIENCE_S

from p4gen.errors import FailedError
from p4gen.manager.switches import linkstate
from p4gen.manager.switches.linkstate import LinkMonitor, link_is_up

from .processes import eventually

News = list[tuple[str, dict[int, bool]]]


class World:
    """Interfaces that a test turns on and off."""

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.news: News = []
        self.refusing = False

    def is_up(self, interface: str) -> bool:
        return interface not in self.down

    def changed(self, switch: str, ports: Mapping[int, bool]) -> None:
        if self.refusing:
            raise FailedError("not now")
        self.news.append((switch, dict(ports)))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(linkstate, "link_is_up", made.is_up)
    return made


def test_changes_are_reported_once(world: World) -> None:
    world.down = {"b"}
    monitor = LinkMonitor(world.changed, 0.005)
    monitor.watch("s0", {0: "a", 1: "b"})
    monitor.watch("s1", {7: "c"})
    eventually(lambda: world.news == [("s0", {1: False})])
    world.down = {"a", "b", "c"}
    eventually(lambda: len(world.news) == 3)
    assert sorted(world.news[1:], key=str) == [("s0", {0: False}), ("s1", {7: False})]
    world.down = set()
    eventually(lambda: sum(len(ports) for _, ports in world.news[3:]) == 3)
    time.sleep(0.03)
    back: dict[str, dict[int, bool]] = {"s0": {}, "s1": {}}
    for switch, ports in world.news[3:]:
        assert not set(back[switch]) & set(ports), "reported twice"
        back[switch] |= ports
    assert back == {"s0": {0: True, 1: True}, "s1": {7: True}}
    monitor.forget("s1")
    count = len(world.news)
    world.down = {"c"}
    time.sleep(0.03)
    assert len(world.news) == count
    monitor.close()
    world.down = {"a"}
    time.sleep(0.03)
    assert len(world.news) == count


def test_news_that_are_refused_are_reported_again(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "p4gen.manager")
    world.refusing, world.down = True, {"a"}
    monitor = LinkMonitor(world.changed, 0.005)
    monitor.watch("s0", {0: "a"})
    eventually(lambda: caplog.records)
    time.sleep(0.05)
    assert len(caplog.records) == 1
    assert "s0: its link-state report is refused" in caplog.text
    world.refusing = False
    eventually(lambda: world.news == [("s0", {0: False})])
    monitor.close()


def test_watching_anew_starts_from_up(world: World) -> None:
    world.down = {"a"}
    monitor = LinkMonitor(world.changed, 0.005)
    for _ in range(2):
        monitor.watch("s0", {0: "a"})
        eventually(lambda: world.news)
        assert world.news == [("s0", {0: False})]
        world.news.clear()
    monitor.close()


def test_no_thread_without_interfaces(world: World) -> None:
    before = threading.active_count()
    monitor = LinkMonitor(world.changed)
    monitor.watch("s0", {})
    assert threading.active_count() == before
    monitor.close()


def test_interfaces_that_are_not_there() -> None:
    assert not link_is_up("p4gen-nothing")
    assert not link_is_up("a-name-that-is-longer-than-any-interface's")


def in_namespace(script: str) -> str:
    """Run a script in a network namespace of its own. Its sysfs is the outer one's, as in a lab."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    probe = subprocess.run(
        ["unshare", "--net", "ip", "link", "add", "x0", "type", "veth", "peer", "name", "x1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if probe.returncode:
        pytest.skip(f"veth interfaces cannot be made: {probe.stderr.strip()}")
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_real_interfaces() -> None:
    said = in_namespace("""
        import subprocess, time
        from p4gen.manager.switches.linkstate import LinkMonitor, link_is_up

        def ip(*words):
            subprocess.run(["ip", "link", *words], check=True)

        ip("add", "x0", "type", "veth", "peer", "name", "x1")
        print(link_is_up("x0"))
        for end in ("x0", "x1"):
            ip("set", end, "up")
        while not (link_is_up("x0") and link_is_up("x1")):
            time.sleep(0.01)
        news = []
        monitor = LinkMonitor(lambda switch, ports: news.append((time.monotonic(), switch, dict(ports))))
        monitor.watch("s0", {3: "x0"})
        time.sleep(0.3)
        print(len(news))
        for step in ("down", "up"):
            ip("set", "x1", step)
            while not news:
                time.sleep(0.01)
            print(news[-1][1:], link_is_up("x0"))
            news.clear()
        ip("del", "x0")
        while not news:
            time.sleep(0.01)
        print(news[-1][1:])
        monitor.close()
    """)
    assert said.splitlines() == [
        "False",
        "0",
        "('s0', {3: False}) False",
        "('s0', {3: True}) True",
        "('s0', {3: False})",
    ]
