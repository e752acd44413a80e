// Sends what arrives at port p to the port in its first byte, adds 1 to the second byte, and keeps count.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> port;
    bit<8> hops;
}

struct headers_t {
    h_t h;
}

struct metadata_t {
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std_meta) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std_meta) {
    register<bit<32>>(1) seen;

    action drop() {
        mark_to_drop(std_meta);
    }

    table deny {
        key = {
            hdr.h.port: exact;
        }
        actions = {
            drop;
            NoAction;
        }
        default_action = NoAction();
        size = 4;
    }

    apply {
        bit<32> count;
        seen.read(count, 0);
        seen.write(0, count + 1);
        hdr.h.hops = hdr.h.hops + 1;
        std_meta.egress_spec = (bit<9>)hdr.h.port;
        deny.apply();
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std_meta) {
    apply {
    }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), V(), I(), E(), V(), D()) main;
