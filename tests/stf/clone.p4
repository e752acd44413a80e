// Clones from ingress and from egress. Every packet says at the end what it is: instance_type, egress_port, the
// user metadata that egress saw.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
    bit<8> mark;
    bit<8> instance;
    bit<8> port;
    bit<8> kept;
    bit<8> also_kept;
    bit<8> lost;
}

struct headers_t {
    request_t request;
}

struct meta_t {
    @field_list(1, 2)
    bit<8> kept;
    @field_list(2)
    bit<8> also_kept;
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
        meta.kept = 0x11;
        meta.also_kept = 0x22;
        meta.lost = 0x33;
        if (hdr.request.op == 1) {
            clone(CloneType.I2E, 5);
        } else if (hdr.request.op == 2) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
            meta.kept = 0x44;
        } else if (hdr.request.op == 3) {
            clone_preserving_field_list(CloneType.I2E, 5, 2);
        } else if (hdr.request.op == 4) {
            clone_preserving_field_list(CloneType.I2E, 5, 2);
            clone_preserving_field_list(CloneType.I2E, 6, 1);
        } else if (hdr.request.op == 5) {
            clone(CloneType.I2E, 5);
            mark_to_drop(standard_metadata);
        }
        hdr.request.mark = 0xaa;
    }
}

control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.request.instance = (bit<8>) standard_metadata.instance_type;
        hdr.request.port = (bit<8>) standard_metadata.egress_port;
        hdr.request.kept = meta.kept;
        hdr.request.also_kept = meta.also_kept;
        hdr.request.lost = meta.lost;
        if (standard_metadata.instance_type == 0) {
            meta.kept = 0x55;
            if (hdr.request.op == 6) {
                clone(CloneType.E2E, 5);
                hdr.request.mark = 0xbb;
            } else if (hdr.request.op == 7) {
                clone_preserving_field_list(CloneType.E2E, 5, 1);
                mark_to_drop(standard_metadata);
            } else if (hdr.request.op == 8) {
                clone(CloneType.E2E, 5);
                hdr.request.setInvalid();
            }
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), Out(), COMPUTE(), EmitAll()) main;
