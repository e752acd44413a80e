"""Poison shows what a program reads before it has written; everything else stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.model import Model
from p4gen.model.poison import initial
from p4gen.p4 import types as t
from p4gen.p4.compile import compile_file, compile_text

CORPUS = Path(__file__).parents[1] / "stf"

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<12> wide; int<4> small; }
struct headers_t { h_t first; h_t second; }
struct meta_t { bit<8> never; bool flag; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.first); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action leaves(out bit<8> value) { }
    apply {
        bit<8> local;
        hdr.second.setValid();
        if (hdr.first.kind == 1) { hdr.second.kind = local; }
        else if (hdr.first.kind == 2) { hdr.second.kind = meta.never; }
        else if (hdr.first.kind == 3) { leaves(hdr.second.kind); }
        else if (hdr.first.kind == 4) { hdr.second.kind = (bit<8>) (bit<1>) meta.flag; }
        else if (hdr.first.kind == 5) { hdr.second.kind = (bit<8>) standard.mcast_grp; }
        else { hdr.second = { 1, 2, 3 }; }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


@pytest.mark.parametrize(
    ("kind", "clean", "poisoned"),
    [
        (1, "000000", "a55a55"),
        (2, "000000", "a55a55"),
        (3, "000000", "a55a55"),
        (4, "000000", "015a55"),
        (5, "000000", "005a55"),
        (6, "010023", "010023"),
    ],
)
def test_what_is_not_initialised_is_garbage(kind: int, clean: str, poisoned: str) -> None:
    program = compile_text(PROGRAM).program
    packet = bytes([kind, 0, 0])
    for poison, expected in ((False, clean), (True, poisoned)):
        assert Model(program, poison=poison).process(0, packet) == [(0, packet + bytes.fromhex(expected))]


def test_garbage_has_the_width_and_sign_of_its_type() -> None:
    assert initial(t.Bits(12, False), poison=True) == 0x5A5
    assert initial(t.Bits(4, True), poison=True) == 5
    assert initial(t.Bits(8, True), poison=True) == 0xA5 - 256
    assert initial(t.Bits(12, False), poison=False) == 0


def test_it_is_the_reference_interpreters() -> None:
    with pytest.raises(ValueError, match="reference interpreter"):
        Model(compile_file(CORPUS / "register.p4").program, poison=True, engine="jit")
