"""Random requests of a tenant, at a manager with TLS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from patience import PATIENCE_S

from p4gen.manager.access.tenants import load_tenants, tenant_of
from p4gen.manager.api import RankReport
from p4gen.manager.remote.access import OURS
from p4gen.manager.remote.service import METHODS, SERVICE
from p4gen.protos import incmanager as pb

from . import samples
from .certificates import certificates
from .rig import Rig, group, small
from .tenancy import TENANTS, Site, site


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


MESSAGES: dict[str, Any] = {name: request for name, (request, _) in METHODS.items()} | {"Watch": pb.WatchRequest}
OTHERS = (b"treasure", b"alice", b"h0", b"h1")
"""What bob must not learn."""
words = st.sampled_from(
    ["g", "alice/treasure", "treasure", "bob/x", "h0", "h1", "h2", "h3", "s0", "../x", "", "\n", "%s", "x" * 300]
) | st.text(max_size=8)


@st.composite
def messages(draw: st.DrawFn, kind: Any) -> Any:
    """Messages of a kind, with words that mean something to the manager in many places."""
    made = kind()
    for field in kind.DESCRIPTOR.fields:
        value: Any = getattr(made, field.name)
        if field.message_type is not None or draw(st.integers(0, 3)) == 0:
            continue
        drawn: st.SearchStrategy[Any] = st.none()
        if field.type == field.TYPE_STRING:
            drawn = words
        elif field.type in (field.TYPE_UINT32, field.TYPE_UINT64):
            drawn = st.integers(0, 5) | samples.small
        elif field.type == field.TYPE_BOOL:
            drawn = st.booleans()
        elif field.type == field.TYPE_DOUBLE:
            drawn = st.floats(-1, 0.01) | st.just(float("nan"))
        found = draw(drawn)
        if found is None:
            continue
        if hasattr(value, "extend"):
            value.extend([found] * draw(st.integers(1, 3)))
        else:
            setattr(made, field.name, found)
    return made


def test_what_bob_sends_harms_nobody_and_tells_him_nothing(star: Site) -> None:
    ops = star.clients["ops"]
    ops.init_group(group("alice/treasure", "h0", "h1"))
    ops.report_rank(RankReport("alice/treasure", 0, 5))
    before, folder = ops.groups(), certificates() / "bob"
    authority, chain, key = ((folder / name).read_bytes() for name in ("ca.crt", "tls.crt", "tls.key"))
    channel = grpc.secure_channel(star.server.addresses[1], grpc.ssl_channel_credentials(authority, key, chain))

    @settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
    @given(
        st.sampled_from(sorted(MESSAGES)).flatmap(
            lambda method: st.tuples(st.just(method), st.binary(max_size=60) | messages(MESSAGES[method]).map(bytes_of))
        )
    )
    def ask(request: tuple[str, bytes]) -> None:
        method, sent = request
        assert not (told := answer(channel, method, sent)) or all(w in sent or w not in told for w in OTHERS), told

    with channel:
        ask()
    assert [each for each in ops.groups() if tenant_of(each.spec.name) == "alice"] == before, "whatever bob has made"
    assert [report.invocations for report in ops.status().ranks] == [5]
    star.rig.check()


def bytes_of(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def answer(channel: Any, method: str, sent: bytes) -> bytes:
    """What a request is told: its answer, or its error, which is no defect of the manager. A watch is told nothing."""
    kind = channel.unary_stream if method == "Watch" else channel.unary_unary
    call = kind(f"/{SERVICE}/{method}", bytes, bytes)
    try:
        if method != "Watch":
            return bytes(call(sent, timeout=PATIENCE_S))
        call(sent).cancel()
    except grpc.RpcError as error:
        ours = any(tuple(item) == OURS for item in error.trailing_metadata() or ())
        # What is no message is gRPC's to refuse, everything else the manager's.
        refused = error.code() is grpc.StatusCode.INTERNAL and "deserializing" in (error.details() or "")
        if not (refused if not ours else error.code() is not grpc.StatusCode.INTERNAL):
            raise
        return str(error.details()).encode()
    return b""
