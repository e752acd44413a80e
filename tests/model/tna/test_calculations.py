"""Hashes, checksums, meters, random numbers, action selectors, parser counters."""

from __future__ import annotations

import pytest

from p4gen.chips.tna.hashing import NAMED, XORS, Polynomial, calculation
from p4gen.errors import InputError
from p4gen.model import MeterConfig
from p4gen.model.entries import Action, Entry, Indirect, Lpm
from p4gen.model.hashes import csum16
from p4gen.model.profiles import GroupMember
from p4gen.p4 import ir
from p4gen.p4.compile import compile_text

from .programs import IG_PARSER, frame, switch, text

SEND = "tm.ucast_egress_port = 3;"
CHECK = int.from_bytes(b"123456789")


def hash_of(local: str, width: int = 32) -> ir.ExternInstance:
    """The instance of ``Hash`` among these declarations."""
    source = text(f"hdr.h.d = (bit<32>)h.get(hdr.h.d); {SEND}", local)
    return compile_text(source, "t.p4", ()).program.extern("Ig.h")


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        # The check values of the catalogue of parametrised CRC algorithms: over "123456789".
        ("8w0x07, false, false, false, 0, 0", 0xF4),
        ("8w0x39, true, false, false, 0, 0", 0x15),
        ("5w0x15, true, false, false, 0, 0", 0x07),
        ("10w0x233, false, false, false, 0, 0", 0x199),
        ("16w0x8005, true, false, false, 0, 0", 0xBB3D),
        ("16w0x1021, false, false, false, 0xFFFF, 0", 0x29B1),
        ("16w0x3D65, true, false, false, 0, 0xFFFF", 0xEA82),
        ("32w0x04C11DB7, true, false, false, 0xFFFFFFFF, 0xFFFFFFFF", 0xCBF43926),
        ("32w0x04C11DB7, false, false, false, 0xFFFFFFFF, 0", 0x0376E6E7),
        ("32w0x1EDC6F41, true, false, false, 0xFFFFFFFF, 0xFFFFFFFF", 0xE3069283),
        ("32w0xA833982B, true, false, false, 0xFFFFFFFF, 0xFFFFFFFF", 0x87315576),
    ],
)
def test_custom_polynomials(parameters: str, found: int) -> None:
    width = parameters.partition("w")[0]
    local = f"CRCPolynomial<bit<{width}>>({parameters}) p; Hash<bit<32>>(HashAlgorithm_t.CUSTOM, p) h;"
    assert calculation(hash_of(local))(CHECK, 72) == found


@pytest.mark.parametrize(
    ("algorithm", "found"),
    [("CRC8", 0xF4F4F4F4), ("CRC16", 0xBB3DBB3D), ("CRC32", 0xCBF43926), ("CRC64", 0x0B497347),
     ("IDENTITY", 0x36373839), ("XOR8", 0x31), ("XOR16", 0x3208), ("XOR32", 0x040404 << 8 ^ 0x39000000)],
)  # fmt: skip
def test_named_algorithms_are_repeated_or_cut_to_what_is_asked_for(algorithm: str, found: int) -> None:
    compute = calculation(hash_of(f"Hash<bit<32>>(HashAlgorithm_t.{algorithm}) h;"))
    if algorithm in XORS:
        size, words = XORS[algorithm] // 8, b"123456789" + bytes(-9 % (XORS[algorithm] // 8))
        found = 0
        for at in range(0, len(words), size):
            found ^= int.from_bytes(words[at : at + size])
    assert compute(CHECK, 72) == found


def test_crcs_have_zeros_in_front_of_a_byte_that_is_not_whole() -> None:
    compute = calculation(hash_of("Hash<bit<16>>(HashAlgorithm_t.CRC16) h;"))
    assert compute(0b101, 3) == compute(0b00000101, 8) != compute(0b10100000, 8)


def test_a_crc_of_no_bits_and_the_named_ones() -> None:
    assert set(NAMED) == {"CRC8", "CRC16", "CRC32", "CRC64"}
    assert NAMED["CRC16"] == Polynomial(16, 0x8005, reversed=True)


def test_random_hashes_are_linear_and_the_instances_own() -> None:
    first = calculation(hash_of("Hash<bit<16>>(HashAlgorithm_t.RANDOM) h;"))
    zero = first(0, 32)
    assert first(5, 32) ^ first(9, 32) ^ zero == first(5 ^ 9, 32)
    assert first(5, 32) != zero


def test_an_even_polynomial_is_refused() -> None:
    local = "CRCPolynomial<bit<8>>(8w0x06, false, false, false, 0, 0) p; Hash<bit<8>>(HashAlgorithm_t.CUSTOM, p) h;"
    source = text(f"hdr.h.d = (bit<32>)h.get(hdr.h.d); {SEND}", local)
    with pytest.raises(InputError, match=r"CRC polynomial Ig\.p: its last coefficient must be 1"):
        switch(source)


def test_a_program_hashes_its_fields() -> None:
    local = "Hash<bit<16>>(HashAlgorithm_t.CRC16) h;"
    model = switch(text(f"hdr.h.c = h.get({{hdr.h.a, hdr.h.b, hdr.h.d}}); {SEND}", local))
    wanted = calculation(hash_of(local))(0x010200000003, 48)
    assert model.process(1, frame(1, 2, 9, 3)) == [(3, frame(1, 2, wanted, 3))]


def test_random_numbers_are_those_of_the_seed() -> None:
    source = text(f"hdr.h.d = r.get(); {SEND}", "Random<bit<32>>() r;")
    first, again, other = (switch(source, seed=seed) for seed in (1, 1, 2))
    found = [[model.process(1, frame()) for _ in range(3)] for model in (first, again, other)]
    assert found[0] == found[1] != found[2]


# --- checksums ----------------------------------------------------------------------------------


def test_verify_is_true_for_a_wrong_checksum() -> None:
    parser = IG_PARSER.replace("{\n    state", "{ Checksum() sum;\n    state", 1).replace(
        "transition accept", "sum.add(hdr.h); meta.flag = sum.verify(); transition accept"
    )
    model = switch(text(f"{SEND} if (meta.flag) {{ tm.ucast_egress_port = 4; }}", ig_parser=parser))
    right = frame(1, 2, 0, 0x12345678, b"")
    right = frame(1, 2, csum16(right), 0x12345678)
    assert model.process(1, right) == [(3, right)]
    wrong = frame(1, 2, 1, 0x12345678)
    assert model.process(1, wrong) == [(4, wrong)]


def test_deparsers_update_checksums_and_residuals_carry_the_payloads_share() -> None:
    parser = """parser IgP(packet_in pkt, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intr) {
        Checksum() sum;
        state start { pkt.extract(intr); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.h);
            sum.subtract({hdr.h.c}); sum.subtract({hdr.h.d}); meta.x = sum.get(); transition accept; } }"""
    deparser, own = "hdr.h.c = sum.update({hdr.h.d, meta.x}); pkt.emit(hdr);", "Checksum() sum;"
    body = f"{SEND} hdr.h.d = 0x00070009;"
    source = text(body, ig_parser=parser, deparser=deparser, deparser_local=own)
    payload = b"payload!"
    before = csum16(frame(0, 0, 0, 0x12345678, b"")[4:] + payload)
    after = csum16(frame(0, 0, 0, 0x00070009, b"")[4:] + payload)
    ((_, found),) = switch(source).process(1, frame(c=before, d=0x12345678, rest=payload))
    assert int.from_bytes(found[2:4]) == after


def test_all_that_is_extracted_behind_it_is_subtracted_from_a_residual() -> None:
    parser = """parser IgP(packet_in pkt, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intr) {
        Checksum() sum;
        state start { pkt.extract(intr); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.tag);
            sum.subtract({hdr.tag.f}); sum.subtract_all_and_deposit(meta.x); pkt.extract(hdr.h);
            transition accept; } }"""
    direct = parser.replace("sum.subtract_all_and_deposit(meta.x); pkt.extract(hdr.h);",
                            "pkt.extract(hdr.h); sum.subtract(hdr.h); meta.x = sum.get();")  # fmt: skip
    packet = bytes(range(1, 20))
    found = []
    for each in (parser, direct):
        source = text(f"{SEND} hdr.h.c = meta.x;", ig_parser=each, eg_parser=EG_TAGGED)
        found.append(switch(source).process(1, packet))
    assert found[0] == found[1] != [(3, packet)]


EG_TAGGED = """parser EgP(packet_in pkt, out headers hdr, out metadata meta, out egress_intrinsic_metadata_t eg_intr) {
    state start { pkt.extract(eg_intr); pkt.extract(hdr.tag); pkt.extract(hdr.h); transition accept; }
}"""


def test_zeros_become_ones_on_demand() -> None:
    deparser = "hdr.h.c = sum.update({hdr.h.d}, hdr.h.a == 1); pkt.emit(hdr);"
    model = switch(text(SEND, deparser=deparser, deparser_local="Checksum() sum;"))
    assert model.process(1, frame(0, d=0xFFFF0000)) == [(3, frame(0, c=0, d=0xFFFF0000))]
    assert model.process(1, frame(1, d=0xFFFF0000)) == [(3, frame(1, c=0xFFFF, d=0xFFFF0000))]


# --- parser counters, meters, selectors -----------------------------------------------------------


def test_a_parser_counter_ends_a_loop() -> None:
    parser = """parser IgP(packet_in pkt, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intr) {
        ParserCounter() left;
        state start { pkt.extract(intr); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.h); left.set(hdr.h.a);
            transition more; }
        state more { transition select(left.is_zero()) { true: accept; false: one; } }
        state one { pkt.advance(8); left.decrement(1); meta.x = meta.x + 1; transition more; } }"""
    model = switch(text(f"{SEND} hdr.h.c = meta.x;", ig_parser=parser))
    assert model.process(1, frame(3)) == [(3, frame(3, c=3, rest=b"t"))]
    assert model.process(1, frame(0)) == [(3, frame(0))]


def test_a_parser_counter_computes_from_a_field() -> None:
    parser = IG_PARSER.replace("{\n    state", "{ ParserCounter() n;\n    state", 1).replace(
        "transition accept;",
        "n.set(hdr.h.a, 255, 1, 3, 1); transition select(n.is_zero()) { true: zero; false: accept; }",
    )
    parser = parser.rstrip().removesuffix("}") + "state zero { meta.x = 1; transition accept; } }"
    model = switch(text(f"{SEND} hdr.h.c = meta.x;", ig_parser=parser))
    assert model.process(1, frame(0x20)) == [(3, frame(0x20))]
    more = switch(text(f"{SEND} hdr.h.c = meta.x;", ig_parser=parser.replace("255, 1, 3, 1", "255, 1, 3, 0")))
    assert more.process(1, frame(0x20)) == [(3, frame(0x20, c=1))]
    assert more.process(1, frame(0x02)) == [(3, frame(0x02))]


def test_meters_tell_the_colours_of_tna() -> None:
    now = 0
    source = text(f"hdr.h.a = m.execute(1); {SEND}", "Meter<bit<8>>(2, MeterType_t.PACKETS) m;")
    model = switch(source, clock=lambda: now)
    assert model.process(1, frame()) == [(3, frame(0))]
    model.set_meter("m", 1, MeterConfig(1, 1, 1, 2))
    frozen = model.freeze()
    assert [model.process(1, frame())[0][1][0] for _ in range(3)] == [0, 1, 3]
    model.set_meter("m", 1, None)
    model.restore(frozen)
    assert model.meter("m", 1) == MeterConfig(1, 1, 1, 2)
    assert [model.process(1, frame())[0][1][0] for _ in range(3)] == [0, 1, 3]
    assert [model.process(128, frame())[0][1][0] for _ in range(3)] == [0, 1, 3]


def test_entries_meters_have_the_values_that_the_program_names() -> None:
    local = """DirectMeter(MeterType_t.PACKETS, 7, 6, 5) m; action go() { hdr.h.b = m.execute(); }
        table t { key = { hdr.h.a : exact; } actions = { go; } meters = m; }"""
    model = switch(text(f"t.apply(); {SEND}", local), clock=lambda: 0)
    entry = Entry("t", {"hdr.h.a": 1}, Action("go"))
    model.insert(entry)
    assert model.process(1, frame(1)) == [(3, frame(1, 5))]
    model.set_entry_meter(entry, MeterConfig(1, 1, 1, 2))
    assert [model.process(1, frame(1))[0][1][1] for _ in range(3)] == [5, 6, 7]


SELECTED = """Hash<bit<14>>(HashAlgorithm_t.IDENTITY) h; ActionProfile(16) ap;
    ActionSelector(ap, h, SelectorMode_t.FAIR, 8, 4) sel;
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    table t { key = { hdr.h.a : exact; hdr.h.d : selector; } actions = { send; } implementation = sel; }"""


def test_a_selector_chooses_among_the_members_of_its_profile() -> None:
    model = switch(text("t.apply();", SELECTED))
    for member, port in ((1, 5), (2, 6), (3, 7)):
        model.set_member("ap", member, Action("send", {"port": port}))
    model.set_group("sel", 9, [GroupMember(n) for n in (1, 2, 3)])
    model.insert(Entry("t", {"hdr.h.a": 1}, Indirect(group=9)), Entry("t", {"hdr.h.a": 2}, Indirect(member=3)))
    assert [model.process(1, frame(1, d=d))[0][0] for d in range(4)] == [5, 6, 7, 5]
    assert model.process(1, frame(2))[0][0] == 7
    frozen = model.freeze()
    model.set_group("sel", 9, [GroupMember(1)])
    assert model.process(1, frame(1, d=2))[0][0] == 5
    model.restore(frozen)
    assert model.process(1, frame(1, d=2))[0][0] == 7


def test_an_algorithmic_tcam_is_a_table_like_others() -> None:
    local = """Alpm(number_partitions = 1024) alpm; action send(PortId_t port) { tm.ucast_egress_port = port; }
        table t { key = { hdr.h.d : lpm; } actions = { send; } implementation = alpm; size = 512; }"""
    model = switch(text("t.apply();", local))
    model.insert(Entry("t", {"hdr.h.d": Lpm(0x0A000000, 8)}, Action("send", {"port": 5})))
    assert model.process(1, frame(d=0x0A000001))[0][0] == 5
    assert model.process(1, frame(d=0x0B000001)) == []
