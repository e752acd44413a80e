// One of everything that P4Runtime can address. A frame is {to_table, key, aux, payload}: to_table selects what happens.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t { bit<9> ingress_port; bit<7> pad; }
@controller_header("packet_out")
header packet_out_t { bit<9> egress_port; bit<7> pad; }
header frame_t { bit<8> what; bit<32> key; bit<16> aux; }
struct headers_t { packet_in_t packet_in; packet_out_t packet_out; frame_t frame; }
struct learn_t { bit<32> key; bit<9> port; }
struct metadata_t { bit<2> color; bit<9> member_port; }

const bit<9> CPU = 510;

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(2) special;
    state start {
        transition select(std.ingress_port) {
            CPU: from_controller;
            default: from_port;
        }
    }
    state from_controller { packet.extract(hdr.packet_out); transition from_port; }
    state from_port {
        packet.extract(hdr.frame);
        transition select(hdr.frame.aux) {
            special: found;
            default: accept;
        }
    }
    state found { meta.member_port = 1; transition accept; }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(8, CounterType.packets_and_bytes) arrivals;
    meter(4, MeterType.packets) police;
    register<bit<16>>(4) notes;
    register<int<12>>(2) balances;
    register<bit<72>>(2) wide;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) rates;
    action_selector(HashAlgorithm.crc16, 32w4, 32w14) spread;
    action_profile(32w2) plain;

    action forward(bit<9> port) { std.egress_spec = port; }
    action drop() { mark_to_drop(std); }
    action replicate(bit<16> group) { std.mcast_grp = group; }
    action mirror(bit<32> session) { clone(CloneType.I2E, session); }
    action to_cpu() { std.egress_spec = CPU; }
    action learn() { digest<learn_t>(1, { hdr.frame.key, std.ingress_port }); }
    action only_default() { std.egress_spec = 7; }
    action only_entries(bit<9> port) { std.egress_spec = port; }
    action counted(bit<9> port) { hits.count(); std.egress_spec = port; }
    action metered(bit<9> port) { rates.read(meta.color); std.egress_spec = port; }

    table exact_table {
        key = { hdr.frame.key: exact; }
        actions = { forward; drop; replicate; mirror; to_cpu; learn; @defaultonly only_default; @tableonly only_entries; }
        default_action = drop();
        size = 4;
    }
    table lpm_table { key = { hdr.frame.key: lpm; } actions = { forward; drop; } const default_action = drop(); }
    table ternary_table {
        key = { hdr.frame.key: ternary; hdr.frame.aux: optional; }
        actions = { forward; drop; }
        default_action = drop();
    }
    table range_table { key = { hdr.frame.aux: range; } actions = { forward; drop; } default_action = drop(); }
    table counted_table {
        key = { hdr.frame.key: exact; }
        actions = { counted; drop; }
        default_action = drop();
        counters = hits;
    }
    table metered_table {
        key = { hdr.frame.key: exact; }
        actions = { metered; drop; }
        default_action = drop();
        meters = rates;
    }
    table idle_table {
        key = { hdr.frame.key: exact; }
        actions = { forward; drop; }
        default_action = drop();
        support_timeout = true;
    }
    table const_table {
        key = { hdr.frame.key: exact; }
        actions = { forward; drop; }
        default_action = drop();
        const entries = { 1: forward(1); 2: forward(2); }
    }
    table initial_table {
        key = { hdr.frame.key: exact; }
        actions = { forward; drop; }
        default_action = drop();
        entries = { const 1: forward(1); 2: forward(2); }
    }
    table keyless_table { actions = { forward; drop; } default_action = drop(); }
    table group_table {
        key = { hdr.frame.key: exact; hdr.frame.aux: selector; }
        actions = { forward; drop; }
        implementation = spread;
    }
    table member_table { key = { hdr.frame.key: exact; } actions = { forward; drop; } implementation = plain; }

    apply {
        arrivals.count((bit<32>)hdr.frame.what);
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            switch (hdr.frame.what) {
                0: { exact_table.apply(); }
                1: { lpm_table.apply(); }
                2: { ternary_table.apply(); }
                3: { range_table.apply(); }
                4: { counted_table.apply(); }
                5: { metered_table.apply(); }
                6: { idle_table.apply(); }
                7: { const_table.apply(); }
                8: { initial_table.apply(); }
                9: { keyless_table.apply(); }
                10: { group_table.apply(); }
                11: { member_table.apply(); }
                12: {
                    police.execute_meter(32w0, meta.color);
                    notes.write(0, hdr.frame.aux);
                    std.egress_spec = (bit<9>)meta.color;
                }
                13: {
                    int<12> balance;
                    bit<72> number;
                    balances.read(balance, 0);
                    balances.write(1, balance - 1);
                    wide.read(number, 0);
                    wide.write(1, number + 1);
                }
                default: { std.egress_spec = meta.member_port; }
            }
        }
        if (std.egress_spec == CPU) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
            hdr.packet_in.pad = 0;
        }
    }
}

control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.packet_in); packet.emit(hdr.packet_out); packet.emit(hdr.frame); }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
