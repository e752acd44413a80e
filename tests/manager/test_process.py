"""``p4gen manager`` as a process, with a switch process: its life, its death at any moment, and what is left of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.manager.api import Code, GroupSpec, GroupState, HostInfo, LinkPort, ManagerError
from p4gen.manager.remote.client import ManagerClient
from p4gen.p4rt.client import Client
from p4gen.switch.running import scratch, started
from p4gen.vocabulary.topology import load_topology

from .processes import SPEC, SwitchRig, close_rigs, config, eventually, rigs

HOSTS = ("h0", "h1", "h2", "h3")
GROUP_TABLES = {"contexts", "patterns", "flows", "endpoints", "edges", "addresses"}


@dataclass
class ManagerRig:
    """A manager process on the topology of a star, with its state in a file."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @property
    def address(self) -> str:
        return f"unix:{self.folder / 'manager.sock'}"

    def command(self, *more: str) -> list[str]:
        words = ["manager", "--listen", self.address, "--topology", "star-4", "--db", str(self.folder / "state.db")]
        return [sys.executable, "-m", "p4gen", *words, "--until-eof", *more]

    def start(self) -> None:
        log = self.folder / "manager.log"
        self.process = self._stack.enter_context(started(self.command(), self.address, log, what="manager", causes={}))

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module", autouse=True)
def processes() -> Iterator[None]:
    yield
    close_rigs()


@pytest.fixture
def switch() -> SwitchRig:
    return rigs("embedded")


@pytest.fixture
def manager() -> Iterator[ManagerRig]:
    with scratch() as folder:
        made = ManagerRig(folder)
        made.start()
        yield made
        made.close()


@pytest.fixture
def client(manager: ManagerRig) -> Iterator[ManagerClient]:
    with ManagerClient(manager.address) as made:
        yield made


def register(client: ManagerClient, switch: SwitchRig) -> None:
    ports = load_topology("star-4").ports["s0"]
    client.register_switch(switch.info(links=tuple(LinkPort(n, link.other("s0")) for n, link in enumerate(ports))))
    for host in HOSTS:
        client.register_host(HostInfo(host))


def held(switch: SwitchRig) -> dict[str, int]:
    """Entries of groups on the switch, by table, as another controller sees them."""
    with Client(switch.address, election=(0, 1)) as other:
        found = {t.name.rpartition(".")[2]: len(other.entries(t.name)) for t in other.schema.tables.values()}
    return {name: count for name, count in found.items() if count and name in GROUP_TABLES}


@pytest.mark.long
def test_a_group_s_life(manager: ManagerRig, client: ManagerClient, switch: SwitchRig) -> None:
    register(client, switch)
    watch = client.watch("h0")
    status = client.init_group(GroupSpec("g", HOSTS))
    assert (status.state, status.generation, status.tree) == (GroupState.ACTIVE, 1, {"s0": None})
    news = next(watch)
    while news.config is None:
        news = next(watch)
    assert (news.group, news.config.rank, news.config.size, news.config.spec) == ("g", 0, 4, SPEC)
    assert held(switch)["contexts"] == 1
    ticking = eventually(lambda: client.status().switches[0].ticks_per_second > 100 and client.status().switches[0])
    assert ticking.reachable
    assert ticking.contexts == 1
    assert ticking.entries == len(config(1).entries)
    with pytest.raises(ManagerError, match="g") as caught:
        client.init_group(GroupSpec("g", HOSTS[:2]))
    assert caught.value.code is Code.EXISTS
    client.destroy_group("g")
    while not news.gone:
        news = next(watch)
    assert held(switch) == {}
    assert manager.process is not None
    manager.process.terminate()
    assert manager.process.wait(PATIENCE_S) == 0
    assert not Path(manager.address.removeprefix("unix:")).exists()


@pytest.mark.long
def test_a_switch_that_dies_unasked_is_noticed_and_comes_back(
    manager: ManagerRig, client: ManagerClient, switch: SwitchRig
) -> None:
    register(client, switch)
    client.init_group(GroupSpec("g", HOSTS))
    switch.kill()
    eventually(lambda: not client.status().switches[0].reachable)
    eventually(lambda: client.group("g").state is GroupState.BROKEN)
    assert "s0" in client.group("g").reason
    switch.start()
    eventually(lambda: client.group("g").state is GroupState.ACTIVE)
    assert client.group("g").generation > 1
    assert held(switch)["contexts"] == 1


@pytest.mark.parametrize("end", ["terminate", "kill"])
@pytest.mark.long
def test_groups_outlive_the_manager(manager: ManagerRig, client: ManagerClient, switch: SwitchRig, end: str) -> None:
    register(client, switch)
    before = client.init_group(GroupSpec("g", HOSTS))
    there = held(switch)
    assert manager.process is not None
    getattr(manager.process, end)()
    manager.process.wait(PATIENCE_S)
    manager.start()
    client.wait(PATIENCE_S)
    eventually(lambda: client.status().switches[0].reachable)
    assert client.group("g") == before
    assert held(switch) == there
    client.destroy_group("g")
    assert held(switch) == {}


@pytest.mark.long
def test_a_manager_that_is_killed_at_any_moment_leaves_nothing_half_done(
    manager: ManagerRig, client: ManagerClient, switch: SwitchRig, seed: int
) -> None:
    chance = random.Random(seed)
    register(client, switch)
    outcomes = []
    for n in range(10):
        name = f"g{n}"
        said: list[str] = []

        def ask(name: str = name, said: list[str] = said) -> None:
            with ManagerClient(manager.address) as other:
                try:
                    other.init_group(GroupSpec(name, HOSTS))
                    said.append("done")
                except ManagerError as error:
                    said.append(error.code)

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(chance.uniform(0, 0.12))
        manager.kill()
        thread.join()
        manager.start()
        client.wait(PATIENCE_S)
        eventually(lambda: client.status().switches[0].reachable)
        states = {group.spec.name: group.state for group in client.groups()}
        if said == ["done"]:
            assert states == {name: GroupState.ACTIVE}
        outcomes.append((said[0], states.get(name)))
        if states:
            eventually(lambda name=name: client.group(name).state is GroupState.ACTIVE)  # type: ignore[misc]
            assert held(switch)["contexts"] == 1
            client.destroy_group(name)
        assert held(switch) == {}, outcomes
        status = client.status().switches[0]
        assert (status.contexts, status.slots) == (0, 0)
    client.init_group(GroupSpec("last", HOSTS))
    print(outcomes)  # noqa: T201


@pytest.mark.long
def test_what_is_wrong_is_told_at_once(manager: ManagerRig, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"this is no database" * 100)
    (tmp_path / "bad.yaml").write_text("switches: 7\n")
    for words, cause in (
        (("--listen", f"unix:{tmp_path}/m.sock", "--topology", str(tmp_path / "bad.yaml")), "bad.yaml"),
        (("--listen", f"unix:{tmp_path}/m.sock", "--topology", "no-such-topology"), "no-such-topology"),
        (("--listen", f"unix:{tmp_path}/m.sock", "--db", str(tmp_path / "bad.db")), "bad.db"),
        (("--listen", f"unix:{tmp_path}/m.sock", "--policy", "no-such-policy"), "no-such-policy"),
        (("--log-file", str(tmp_path / "none" / "log")), "--log-file"),
        (("--listen", manager.address), "it is in use"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "p4gen", "manager", *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode in (1, 2), words
        assert "p4gen: error:" in done.stderr or "error: " in done.stderr
        assert cause in done.stderr
        assert "Traceback" not in done.stderr
    assert manager.process is not None
    assert manager.process.poll() is None


@pytest.mark.long
def test_it_ends_with_whoever_started_it(manager: ManagerRig) -> None:
    assert manager.process is not None
    assert manager.process.stdin is not None
    manager.process.stdin.close()
    assert manager.process.wait(PATIENCE_S) == 0


@pytest.mark.long
def test_ctrl_c(manager: ManagerRig) -> None:
    assert manager.process is not None
    os.kill(manager.process.pid, signal.SIGINT)
    assert manager.process.wait(PATIENCE_S) == 0
