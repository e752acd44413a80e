"""Tenants over mutual TLS: what each may ask for, what it sees, and what is noted of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE_S, until

from p4gen.cli.logs import logging_to
from p4gen.errors import InputError
from p4gen.groups.group import Memory
from p4gen.manager.access.tenants import load_tenants, tenant_of
from p4gen.manager.api import Code, ConnectionSpec, HostInfo, JobSpec, ManagerError, RankReport
from p4gen.manager.process import running_manager
from p4gen.manager.remote.access import AUDIT
from p4gen.manager.remote.client import ManagerClient
from p4gen.manager.remote.service import METHODS
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.values import draw
from p4gen.vocabulary.message import Collective

from .plant import plant
from .rig import Rig, group, small
from .tenancy import TENANTS, Site, outcome, site
from .test_member import begin, check


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "tenants.yaml"
    made.write_text(TENANTS)
    return made


@pytest.fixture
def star(file: Path, tmp_path: Path) -> Iterator[Site]:
    rig = Rig("star-4", small(), tenants=load_tenants(file))
    with rig.register(), site(file, rig, tmp_path) as made:
        yield made


# --- the table of requests ---

NEW = ConnectionSpec("h0", "h1", 8, 9)
REQUESTS: dict[str, tuple[Callable[[ManagerClient, Rig], Any], str, str, str]] = {
    # Outcomes for alice, whose are group g and host h0, for bob, whose is job j, for an
    # operator. Carol, who is no tenant, is denied.
    "RegisterSwitch": (lambda c, rig: c.register_switch(rig.info("s0")), "DENIED", "DENIED", "OK"),
    "GetSwitch": (lambda c, _: c.switch("s0"), "DENIED", "DENIED", "OK"),
    "ReportLinks": (lambda c, _: c.report_links("s0", {0: True}), "DENIED", "DENIED", "OK"),
    "Cordon": (lambda c, _: c.cordon("h0", on=True), "DENIED", "DENIED", "OK"),
    "ListCordoned": (lambda c, _: c.cordoned(), "DENIED", "DENIED", "OK"),
    "RegisterHost": (lambda c, _: c.register_host(HostInfo("h0")), "OK", "DENIED", "OK"),
    "RegisterHost of nobody's": (lambda c, _: c.register_host(HostInfo("h9")), "DENIED", "DENIED", "INVALID"),
    "InitGroup of own hosts": (lambda c, _: c.init_group(group("new", "h0", "h1")), "OK", "DENIED", "OK"),
    "InitGroup of others' hosts": (lambda c, _: c.init_group(group("x", "h1", "h2")), "DENIED", "DENIED", "OK"),
    "InitGroup for another": (lambda c, _: c.init_group(group("bob/x", "h0", "h1")), "INVALID", "DENIED", "OK"),
    "GetGroup": (lambda c, _: c.group("g"), "OK", "NOT_FOUND", "NOT_FOUND"),
    "GetGroup by its full name": (lambda c, _: c.group("alice/g"), "NOT_FOUND", "NOT_FOUND", "OK"),
    "ResizeGroup": (lambda c, _: c.resize_group("g", 2), "OK", "NOT_FOUND", "NOT_FOUND"),
    "MoveGroup": (lambda c, _: c.move_group("g"), "OK", "NOT_FOUND", "NOT_FOUND"),
    "SetRanks": (lambda c, _: c.set_ranks("g", ("h0", "h1"), 1), "OK", "DENIED", "NOT_FOUND"),
    "InitJob": (lambda c, _: c.init_job(JobSpec("new", 1)), "NO_ROOM", "OK", "NO_ROOM"),
    "InitJob for another": (lambda c, _: c.init_job(JobSpec("bob/x", 1)), "INVALID", "INVALID", "OK"),
    "GetJob": (lambda c, _: c.job("j"), "NOT_FOUND", "OK", "NOT_FOUND"),
    "GetJob by its full name": (lambda c, _: c.job("bob/j"), "NOT_FOUND", "NOT_FOUND", "OK"),
    "DestroyJob": (lambda c, _: c.destroy_job("j"), "NOT_FOUND", "OK", "NOT_FOUND"),
    "ListJobs": (lambda c, _: c.jobs(), "OK", "OK", "OK"),
    "Ready": (lambda c, _: c.ready("g", 99, 0, 0, 0.0), "REFUSED", "NOT_FOUND", "NOT_FOUND"),
    "OfferMemory": (lambda c, _: c.offer_memory("g", "h0", Memory(0, 0, 1)), "REFUSED", "DENIED", "NOT_FOUND"),
    "BeginCall": (lambda c, _: c.begin_call("g", 99, 0), "REFUSED", "NOT_FOUND", "NOT_FOUND"),
    "EndCall": (lambda c, _: c.end_call("g", 1, 0, 1), "OK", "NOT_FOUND", "NOT_FOUND"),
    "ReportRank": (lambda c, _: c.report_rank(RankReport("g", 0, 7)), "OK", "NOT_FOUND", "NOT_FOUND"),
    "Watch": (lambda c, _: next(c.watch("h0")), "OK", "DENIED", "OK"),
    "RegisterConnection": (lambda c, _: c.register_connection(NEW), "REFUSED", "DENIED", "REFUSED"),
    "ReleaseConnection": (lambda c, _: c.release_connection(1), "NOT_FOUND", "NOT_FOUND", "NOT_FOUND"),
    "SprayConnection": (lambda c, _: c.spray_connection(1, spray=True), "NOT_FOUND", "NOT_FOUND", "NOT_FOUND"),
    "ListGroups": (lambda c, _: c.groups(), "OK", "OK", "OK"),
    "ListConnections": (lambda c, _: c.connections(), "OK", "OK", "OK"),
    "GetStatus": (lambda c, _: c.status(), "OK", "OK", "OK"),
    "DestroyGroup": (lambda c, _: c.destroy_group("g"), "OK", "NOT_FOUND", "NOT_FOUND"),
}


@pytest.mark.parametrize("request_", REQUESTS)
def test_what_each_may_ask_for(star: Site, request_: str) -> None:
    star.clients["alice"].init_group(group("g", "h0", "h1"))
    star.clients["bob"].init_job(JobSpec("j", 1))
    ask, alice, bob, ops = REQUESTS[request_]
    for who, wanted in (("carol", "DENIED"), ("bob", bob), ("ops", ops), ("alice", alice)):
        assert outcome(lambda who=who: ask(star.clients[who], star.rig)) == wanted, who  # type: ignore[misc]


def test_the_table_has_every_request() -> None:
    assert {name.partition(" ")[0] for name in REQUESTS} == {*METHODS, "Watch"}


def test_who_comes_by_the_socket_is_an_operator(star: Site) -> None:
    local = star.clients["local"]
    local.init_group(group("alice/g", "h0", "h1"))
    assert [status.spec.name for status in local.groups()] == ["alice/g"]
    assert [status.spec.name for status in star.clients["alice"].groups()] == ["g"]


# --- what a tenant sees ---


def test_each_sees_its_own_only(star: Site) -> None:
    alice, bob, ops = (star.clients[name] for name in ("alice", "bob", "ops"))
    for client, hosts in ((alice, ("h0", "h1")), (bob, ("h2", "h3"))):
        assert client.init_group(group("g", *hosts)).spec.name == "g", "both may have a group of this name"
        client.report_rank(RankReport("g", 1, 5))
    ops.init_group(group("shared", "h0", "h2"))
    for client, host in ((alice, "h0"), (bob, "h2")):
        status = client.status()
        assert [found.spec.name for found in client.groups()] == ["g"]
        assert [found.spec.ranks[0] for found in status.groups] == [host]
        assert [(report.group, report.invocations) for report in status.ranks] == [("g", 5)]
        assert (status.switches, status.handshakes, status.connections) == ((), {}, ())
        news = next(client.watch(host))
        assert news.config is not None
        assert (news.group, news.config.group, news.config.rank) == ("g", "g", 0)
    assert [found.spec.name for found in ops.groups()] == ["alice/g", "bob/g", "shared"]
    assert [report.group for report in ops.status().ranks] == ["alice/g", "bob/g"]
    assert len(ops.status().switches) == 1
    watch = bob.watch("h2")
    next(watch)
    alice.destroy_group("g")
    ops.destroy_group("shared")
    bob.destroy_group("g")
    assert next(watch).group == "g", "the first news that bob hears is of his own group"


def test_texts_name_no_group_of_others(file: Path, tmp_path: Path) -> None:
    """The policy refuses a tree that shares links, and says with whom."""
    rig = Rig("tree-3-2", small(), tenants=load_tenants(file), policy="edge-disjoint")
    with rig.register(), site(file, rig, tmp_path) as made:
        made.clients["ops"].init_group(group("bob/secret", "h0", "h2"))
        with pytest.raises(ManagerError) as caught:
            made.clients["ops"].init_group(group("mine", "h0", "h2"))
        assert "in that of group bob/secret" in caught.value.reason
        file.write_text(TENANTS.replace("[h0, h1]", "[h0, h2]").replace("[h2, h3]", "[h1, h3]"))
        (tmp_path / "again").mkdir()
        with site(file, rig, tmp_path / "again") as later, pytest.raises(ManagerError) as caught:
            later.clients["alice"].init_group(group("mine", "h0", "h2"))
        assert "in that of group of another tenant" in caught.value.reason
        assert "secret" not in caught.value.reason


# --- the audit log ---


def test_each_request_is_a_line_of_the_audit_log(star: Site, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with logging_to(log, AUDIT, logging.DEBUG, "json", "--audit-log"):
        alice, bob = star.clients["alice"], star.clients["bob"]
        alice.init_group(group("g", "h0", "h1"))
        bob.groups()
        for ask in (
            lambda: bob.init_group(group("mine", "h0", "h2")),
            lambda: star.clients["carol"].destroy_group("g"),
            lambda: star.clients["local"].destroy_group("no\nsuch [line] " + "x" * 500),
        ):
            assert outcome(ask) in ("DENIED", "NOT_FOUND")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    found = [(each["tenant"], each["method"], each["object"], each["outcome"]) for each in lines]
    assert found[:4] == [
        ("alice", "InitGroup", "g", "OK"),
        ("bob", "ListGroups", "", "OK"),
        ("bob", "InitGroup", "mine", "PERMISSION_DENIED"),
        ("carol", "DestroyGroup", "g", "PERMISSION_DENIED"),
    ]
    tenant, method, subject, ended = found[4]
    assert (tenant, method, ended) == ("unix", "DestroyGroup", "NOT_FOUND")
    assert len(subject) < 80
    assert "\n" not in subject
    assert lines[2]["cause"] == "not among the hosts of tenant bob: h0"
    assert [each["level"] for each in lines] == ["INFO", "DEBUG", "WARNING", "WARNING", "WARNING"]
    assert all(each["time"] > 1e9 and each["seconds"] >= 0 for each in lines)


# --- two tenants at work ---


def test_two_tenants_call_at_the_same_time(file: Path, tmp_path: Path, seed: int) -> None:
    """Hosts of two tenants, each with its certificate, over the switches of one manager."""
    spec = small(window=4, message=4)
    rig = Rig("tree-3-2", spec, tenants=load_tenants(file), engine="jit")
    tenant = {"h0": "alice", "h1": "alice", "h2": "bob", "h3": "bob"}
    call, chance = Call(Collective.ALLREDUCE, 200), np.random.default_rng(seed)
    with (
        rig.register(),
        site(file, rig, tmp_path) as made,
        plant(rig, spec, manager_of=lambda host: made.clients[tenant[host]]) as (_, hosts),
    ):
        under_way = []
        for name in ("alice", "bob"):
            mine = [host for host in hosts if tenant[host] == name]
            made.clients[name].init_group(group("sum", *mine))
            ranks = [hosts[host].member("sum", PATIENCE_S) for host in mine]
            data = draw(call, spec, len(ranks), chance, overflowing=False)
            under_way.append((data, begin(ranks, call, data)))
        for data, futures in under_way:
            check(spec, call, data, futures)
        until(lambda: sum(report.invocations for report in made.clients["alice"].status().ranks) == 2)
        assert {group.spec.name for group in made.clients["ops"].groups()} == {"alice/sum", "bob/sum"}


# --- the file ---


@pytest.mark.parametrize(
    ("text", "place", "cause"),
    [
        ("[]", "1:1", "tenants are a mapping, as in 'operators: [ops]'"),
        ("tenants: {}", "1:1", "'operators' is missing"),
        ("operators: []\ntenants:\n  alice: {quota: 3}", "3:18", "unknown field 'quota'"),
        ("operators: []\ntenants:\n  alice: {groups: -1}", "3:19", "-1: input should be greater than or equal to 0"),
        ("operators: []\ntenants:\n  alice: {groups: 1.5}", "3:19", "1.5: input should be a valid integer"),
        ("operators: []\ntenants:\n  alice: {hosts: [h0, H 1]}", "3:23", "'H 1': string should match pattern"),
        ("operators: []\ntenants:\n  a/b: {}", "3:8", "'a/b': string should match pattern"),
        ("operators: [a]\ntenants: {a: {certificates: [x]}}", "1:1", "a is an operator and a tenant"),
        ("operators: [a]\ntenants: {b: {certificates: [a]}}", "1:1", "certificate a is listed 2 times; it belongs to"),
        ("operators: []\ntenants: {a: {hosts: [h0]}, b: {hosts: [h0]}}", "1:1", "host h0 is listed 2 times"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_with_its_place(tmp_path: Path, text: str, place: str, cause: str) -> None:
    made = tmp_path / "tenants.yaml"
    made.write_text(text)
    with pytest.raises(InputError) as caught:
        load_tenants(made)
    assert str(caught.value).startswith(f"{made}:{place}: error: {cause}")


def test_tenants_are_told_by_certificates(file: Path, tmp_path: Path) -> None:
    made = running_manager([f"unix:{tmp_path}/m.sock"], "star-2", tenants=file)
    with pytest.raises(InputError, match="--tenants needs --tls DIR"):
        made.__enter__()


@pytest.mark.parametrize("names", [(), ("alice", "ops"), ("alice", "alice"), ("Alice",), ("",)])
def test_a_certificate_has_one_name_of_the_file(file: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(ManagerError) as caught:
        load_tenants(file).identify(names)
    assert caught.value.code is Code.DENIED


def test_names_of_certificates_and_of_tenants(tmp_path: Path) -> None:
    made = tmp_path / "tenants.yaml"
    made.write_text("operators: [ops.example]\ntenants: {alice: {certificates: ['spiffe://lab/a', alice.example]}}")
    tenants = load_tenants(made)
    assert [tenants.identify([name]) for name in ("ops.example", "spiffe://lab/a", "alice.example")] == [
        "",
        "alice",
        "alice",
    ]
    with pytest.raises(ManagerError):
        tenants.identify(["alice"])
    assert (tenant_of("alice/g"), tenant_of("g")) == ("alice", "")
    assert (tenants.quota("alice", "groups"), tenants.quota("gone", "groups"), tenants.quota("", "groups")) == (
        None,
        0,
        None,
    )
