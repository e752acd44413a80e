"""Metrics of a manager: what they say, who may read them, and the dashboard that asks for them."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from patience import PATIENCE_S
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import p4gen.manager
from p4gen.errors import FailedError, InputError
from p4gen.manager.access.tenants import load_tenants
from p4gen.manager.api import Code, ManagerError, RankReport, Status
from p4gen.manager.durations import BOUNDS_S, Durations
from p4gen.manager.metrics import FAMILIES, UP, WRITES, ManagerMetrics
from p4gen.manager.metricserver import MetricsServer
from p4gen.manager.process import running_manager
from p4gen.manager.switches.agent import IncAgent

from . import samples
from .certificates import certificates
from .processes import SPEC, close_rigs, config, rigs
from .rig import ModelAgent, Rig, group, small
from .tenancy import TENANTS
from .test_service import FakeManager

SCRIPT = Path(__file__).parents[2] / "scripts" / "dashboard"
DASHBOARD = Path(p4gen.manager.__file__).with_name("grafana.json")
LABELS = {"tenant", "group", "switch", "module", "reason", "state", "outcome", "counter", "le"}
"""All labels that there are. None grows with calls, packets, ranks or connections."""


def text_of(manager: Any) -> str:
    registry = CollectorRegistry()
    registry.register(ManagerMetrics(manager))
    return generate_latest(registry).decode()


def parsed(text: str) -> dict[str, Metric]:
    return {metric.name: metric for metric in text_string_to_metric_families(text)}


def values(text: str, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a metric, by the values of their labels, in order of the labels' names."""
    found = [s for metric in parsed(text).values() for s in metric.samples if s.name == name]
    return {tuple(value for _, value in sorted(s.labels.items())): s.value for s in found}


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig("tree-3-2", small())
    with made.register():
        yield made


def test_what_they_say_of_groups_and_switches(rig: Rig) -> None:
    manager = rig.manager
    manager.init_group(group("alice/sum", "h0", "h2"))
    manager.init_group(group("ring", "h1", "h3", fallback=True))
    for rank in range(2):
        dropped = {"bad ICRC": 1 + rank}
        manager.report_rank(RankReport("alice/sum", rank, 3, 4096, 100, 5, 1, 2, dropped=dropped))
    text, status = text_of(manager), manager.status()
    assert values(text, UP) == {(): 1}
    none = dict.fromkeys([("installing",), ("broken",), ("removing",), ("failed",)], 0)
    assert values(text, "p4gen_groups") == {("active",): 2} | none
    mine = ("alice/sum", "alice")
    for name, value in (
        ("calls_total", 3), ("data_bytes_total", 4096), ("sent_packets_total", 200), ("resent_packets_total", 10),
        ("timeouts_total", 2), ("naks_total", 4), ("ranks", 2), ("generation", 1), ("on_ring", 0),
    ):  # fmt: skip
        assert values(text, f"p4gen_group_{name}")[mine] == value, name
    assert ("ring", "") in values(text, "p4gen_group_calls_total")
    assert values(text, "p4gen_nic_drops_total") == {("alice/sum", "bad ICRC", "alice"): 3}
    for switch in status.switches:
        for metric, field in (("contexts", "contexts"), ("contexts_limit", "contexts_total"), ("slots", "slots")):
            assert values(text, f"p4gen_switch_{metric}")[switch.name,] == getattr(switch, field)
    manager.destroy_group("alice/sum")
    assert mine not in values(text_of(manager), "p4gen_group_calls_total"), "what is gone has no metric any more"


def test_drops_are_by_module_and_reason(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    drops = {"LookupTable.no_group": 3, "CheckFrame.bad_icrc": 4}
    monkeypatch.setattr(ModelAgent, "drops", lambda _: drops)
    found = values(text_of(rig.manager), "p4gen_switch_drops_total")
    assert {f"{module}.{reason}": n for (module, reason, name), n in found.items() if name == "s1"} == drops
    assert {name for _, _, name in found} == set(rig.switches)


def test_leases_are_counted() -> None:
    rig = Rig("star-4", small(groups=1), policy="time-shared", fallbacks=100)
    with rig.register() as manager:
        for name in ("one", "two"):
            manager.init_group(group(name, "h0", "h1"))
        assert not manager.begin_call("one", 1, 0)
        assert manager.begin_call("two", 1, 0)
        text = text_of(manager)
    assert values(text, "p4gen_leases") == {(): 1}
    assert values(text, "p4gen_lease_requests_total") == {("granted",): 1, ("refused",): 1, ("outside",): 0}


def test_how_long_writes_take() -> None:
    times = (0.0005, 0.001, 0.0011, 0.3, 9.0)
    durations = Durations()
    for seconds in times:
        durations = durations.plus(seconds)
    assert len(durations.counts) == len(BOUNDS_S) + 1
    assert (durations.counts[0], durations.counts[1], durations.counts[-1], sum(durations.counts)) == (2, 1, 1, 5)
    assert durations.seconds == pytest.approx(sum(times))


def test_agents_measure_their_writes() -> None:
    agent = IncAgent(rigs("embedded").info())
    try:
        assert agent.writes == Durations()
        agent.apply(config(1, SPEC))
        assert sum(agent.writes.counts) > 0
        assert agent.writes.seconds > 0
        before = agent.writes
        agent.apply(config(1, SPEC))
        assert agent.writes == before, "nothing was written"
    finally:
        agent.close()
        close_rigs()


@settings(max_examples=50)
@given(samples.statuses)
def test_any_status_has_metrics_with_few_labels(status: Status) -> None:
    manager = FakeManager()
    manager.answer = status
    text = text_of(manager)
    for metric in parsed(text).values():
        for sample in metric.samples:
            assert sample.labels.keys() <= LABELS
    found = values(text, f"{WRITES}_count")
    assert sum(found.values()) == pytest.approx(
        sum(sum(switch.writes.counts) for switch in {s.name: s for s in status.switches}.values())
    )


def test_a_manager_that_does_not_answer(rig: Rig) -> None:
    manager = FakeManager()
    manager.answer = ManagerError(Code.UNREACHABLE, "no manager answers")
    assert values(text_of(manager), UP) == {(): 0}
    assert list(parsed(text_of(manager))) == [UP]


# --- the server ---


def get(url: str, client: str | None = None) -> tuple[int, str]:
    """The status and text of a page, asked for with a client's certificate."""
    context = None
    if url.startswith("https"):
        context = ssl.create_default_context(cafile=certificates() / "ca.crt")
        if client is not None:
            context.load_cert_chain(certificates() / client / "tls.crt", certificates() / client / "tls.key")
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_pages(rig: Rig) -> None:
    with MetricsServer(rig.manager, "127.0.0.1:0") as server:
        base = server.url.removesuffix("/metrics")
        status, text = get(server.url)
        assert (status, values(text, UP)) == (200, {(): 1})
        assert get(f"{base}/healthz") == (200, "ok\n")
        assert get(f"{base}/readyz") == (200, "ready; 3 of 3 switches answer\n")
        assert get(f"{base}/")[0] == 404
        with pytest.raises(FailedError, match=r"cannot serve metrics at 127\.0\.0\.1:"):
            MetricsServer(rig.manager, base.removeprefix("http://"))
        rig.manager.close()
        assert get(f"{base}/healthz") == (200, "ok\n")
        assert get(f"{base}/readyz") == (503, "not ready: the manager has ended\n")
    with pytest.raises(InputError, match="metrics are served at HOST:PORT"):
        MetricsServer(rig.manager, "unix:/tmp/metrics")


def test_with_tls_metrics_are_for_operators(rig: Rig, tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text(TENANTS)
    with MetricsServer(rig.manager, "127.0.0.1:0", certificates() / "manager", load_tenants(file)) as server:
        port = int(server.url.split(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port)):  # one that says nothing delays nobody
            assert get(server.url, "ops")[0] == 200
            for other in ("alice", "carol", None):
                status, text = get(server.url, other)
                assert (status, text) == (403, "metrics are for operators, who show their certificates\n")
            assert get(server.url.replace("metrics", "readyz"))[0] == 200
        with pytest.raises(OSError, match=r"."):
            urllib.request.urlopen(server.url.replace("https", "http"), timeout=PATIENCE_S)


def test_a_manager_serves_its_metrics(tmp_path: Path) -> None:
    made = running_manager([f"unix:{tmp_path}/m.sock"], "star-2", metrics="0.0.0.0:0")
    with pytest.raises(InputError, match=r"0\.0\.0\.0:0: other machines can reach it"):
        made.__enter__()


# --- the dashboard ---


def names_and_labels(query: str) -> Iterator[tuple[str, set[str]]]:
    """The metrics of a query, each with the labels by which it selects, or that the query groups by."""
    grouped = {label for labels in re.findall(r"by \(([^)]*)\)", query) for label in labels.split(", ")}
    for name, selectors in re.findall(r"(p4gen_\w+)(\{[^}]*\})?", query):
        yield name, grouped | set(re.findall(r"(\w+)=~?", selectors))


def test_the_dashboard_asks_for_what_there_is() -> None:
    board = json.loads(DASHBOARD.read_text())
    known = {family.name: set(family.labels) for family in FAMILIES}
    known |= {UP: set(), f"{WRITES}_bucket": {"switch", "le"}}
    asked = set()
    for panel in board["panels"]:
        for target in panel["targets"]:
            found = [*names_and_labels(target["expr"])]
            assert found, panel["title"]
            for name, labels in found:
                assert name in known, (panel["title"], name)
                assert labels <= known[name], (panel["title"], name, labels)
                asked.add(name)
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert shown <= set.union(*(known[name] for name, _ in found)), panel["title"]
            if name.endswith(("_total", "_bucket")):
                assert "rate(" in target["expr"], panel["title"]
    for variable in board["templating"]["list"][1:]:
        name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()  # type: ignore[union-attr]
        assert label in known[name]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert len(known.keys() - asked) < 5, "nearly all are shown"


def test_the_dashboard_is_drawn_without_grafana(tmp_path: Path) -> None:
    """A server in Prometheus's place gets every query, with no variable left in it, and answers with a line or none."""
    asked = []

    class Prometheus(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            (query,) = parse_qs(urlsplit(self.path).query)["query"]
            asked.append(query)
            line = {"metric": {"group": "g"}, "values": [[0, "1"], [2, "NaN"], [4, "0.5"]]}
            found = [line] if "group" in query else []
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"data": {"result": found}}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Prometheus) as server:
        threading.Thread(target=server.serve_forever).start()
        picture = tmp_path / "dashboard.png"
        url = f"http://127.0.0.1:{server.server_port}"
        subprocess.run([sys.executable, SCRIPT, url, picture], check=True)
        server.shutdown()
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len(asked) == sum(len(panel["targets"]) for panel in panels)
    assert not [query for query in asked if "$" in query]
    assert picture.read_bytes().startswith(b"\x89PNG")
