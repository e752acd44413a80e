// Packets that pass more than once: resubmitted from ingress, recirculated from egress.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
    bit<8> mark;
    bit<8> instance;
    bit<8> kept;
    bit<8> lost;
    bit<8> port;
}

header extra_t {
    bit<16> value;
}

struct headers_t {
    request_t request;
    extra_t   extra;
}

struct meta_t {
    @field_list(3)
    bit<8> kept;
    bit<8> lost;
}

#define EGRESS Out
#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        hdr.request.instance = (bit<8>) standard_metadata.instance_type;
        hdr.request.kept = meta.kept;
        hdr.request.lost = meta.lost;
        hdr.request.port = (bit<8>) standard_metadata.ingress_port;
        if (standard_metadata.instance_type == 0) {
            hdr.request.mark = 0xaa;
            meta.kept = 0x66;
            meta.lost = 0x77;
            if (hdr.request.op == 1) {
                resubmit_preserving_field_list(3);
            } else if (hdr.request.op == 2) {
                resubmit_preserving_field_list(3);
                mark_to_drop(standard_metadata);
            } else if (hdr.request.op == 3) {
                resubmit_preserving_field_list(3);
                standard_metadata.mcast_grp = 1;
            } else if (hdr.request.op == 4) {
                resubmit_preserving_field_list(9);
            } else if (hdr.request.op == 5) {
                clone(CloneType.I2E, 5);
                resubmit_preserving_field_list(3);
            }
        }
    }
}

control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == 0 && hdr.request.mark == 0xaa) {
            if (hdr.request.op == 6) {
                hdr.request.mark = 0xbb;
                hdr.extra = { 0x1234 };
                meta.kept = 0x88;
                recirculate_preserving_field_list(3);
            } else if (hdr.request.op == 7) {
                recirculate_preserving_field_list(3);
                mark_to_drop(standard_metadata);
            } else if (hdr.request.op == 8) {
                hdr.request.mark = 0xcc;
                recirculate_preserving_field_list(3);
                truncate(7);
            }
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), Out(), COMPUTE(), EmitAll()) main;
