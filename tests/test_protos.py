"""Messages made from descriptors: those of the .proto files, and nobody else's of the same names."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from p4gen.protos import incmanager, p4info, p4runtime, rpc
from p4gen.protos.package import DEFINITIONS

ROOT = DEFINITIONS.parents[1]


def test_descriptors_are_made_from_the_proto_files() -> None:
    lines = [line.split() for line in (DEFINITIONS / "descriptors.sha256").read_text().splitlines()]
    made_from = {name: digest for digest, name in lines}
    files = {str(file.relative_to(ROOT)): file for file in (ROOT / "p4gen").rglob("*.proto")}
    found = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
    assert found == made_from, "run scripts/protos"
    assert len(found) == 6


def test_a_package_has_what_its_files_define() -> None:
    assert p4runtime.TableEntry.DESCRIPTOR.file.name == "p4/v1/p4runtime.proto"
    assert p4runtime.P4Data.DESCRIPTOR.file.name == "p4/v1/p4data.proto"
    assert p4info.P4Info.DESCRIPTOR.full_name == "p4.config.v1.P4Info"
    assert p4info.P4NewTypeSpec.DESCRIPTOR.file.name == "p4/config/v1/p4types.proto"
    assert rpc.Status(code=5).SerializeToString() == b"\x08\x05"
    assert incmanager.Collective.Value("ALLREDUCE") == incmanager.Collective.ALLREDUCE == 1
    assert p4runtime.TableEntry is p4runtime.TableEntry
    with pytest.raises(AttributeError, match=r"p4\.v1 has no message and no enumeration Tabel"):
        _ = p4runtime.Tabel


OTHERS = """
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool

def others():
    for name, package, message in (
        ("p4/v1/p4runtime.proto", "p4.v1", "Error"),
        ("p4/config/v1/p4info.proto", "p4.config.v1", "P4Info"),
        ("google/rpc/status.proto", "google.rpc", "Status"),
    ):
        file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
        file.message_type.add(name=message).field.add(name="other", number=1, type=9, label=1)
        descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
"""
OURS = """
def ours():
    from p4gen.p4.info.text import parse_text, to_text
    from p4gen.protos import p4info, p4runtime, rpc

    info = p4info.P4Info(tables=[p4info.Table(size=5)])
    info.externs.add().instances.add().info.Pack(p4info.Preamble(id=7))
    assert to_text(parse_text(to_text(info))) == to_text(info)
    assert parse_text(to_text(info)).externs[0].instances[0].info.type_url.endswith("p4.config.v1.Preamble")
    status = rpc.Status(code=2, message="m")
    status.details.add().Pack(p4runtime.Error(canonical_code=6, message="why", code=-1))
    (detail,) = rpc.Status.FromString(status.SerializeToString()).details
    assert detail.type_url == "type.googleapis.com/p4.v1.Error"
    found = p4runtime.Error()
    assert detail.Unpack(found)
    assert (found.canonical_code, found.message, found.code) == (6, "why", -1)
    assert not detail.Unpack(rpc.Status())
    assert any_pb2.Any.FromString(detail.SerializeToString()).value == found.SerializeToString()
    print("agreed")
"""


@pytest.mark.parametrize("implementation", ["python", "default"])
@pytest.mark.parametrize("order", ["others(); ours()", "ours(); others(); ours()"])
def test_another_release_of_p4runtime_may_be_in_the_process(order: str, implementation: str) -> None:
    """Also with messages of the same names, and with protobuf's implementation in Python."""
    environment = {k: v for k, v in os.environ.items() if k != "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"}
    if implementation != "default":
        environment["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = implementation
    done = subprocess.run(
        [sys.executable, "-c", f"{OTHERS}{OURS}\n{order}"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.split()) == {"agreed"}
