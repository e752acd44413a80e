// Validity of headers: assignment, comparison, reading invalid ones, unions, and what is emitted.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
    bit<8> result;
}

header part_t {
    bit<8> value;
}

struct headers_t {
    request_t request;
    part_t    first;
    part_t    second;
}

struct meta_t {
    bit<8> never_set;
}

#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        packet.extract(hdr.first);
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.request.op == 0) {
            hdr.second = hdr.first;
        } else if (hdr.request.op == 1) {
            hdr.first = hdr.second;
        } else if (hdr.request.op == 2) {
            hdr.second.value = 0x77;
        } else if (hdr.request.op == 3) {
            hdr.second = { 0x88 };
        } else if (hdr.request.op == 4) {
            hdr.request.result = meta.never_set;
        } else if (hdr.request.op == 5) {
            hdr.second.setValid();
            hdr.second.value = 0x99;
            hdr.first.setInvalid();
        } else if (hdr.request.op == 6) {
            hdr.request.result = hdr.second.isValid() ? 8w1 : 8w2;
        } else if (hdr.request.op == 7) {
            hdr.first.setInvalid();
            hdr.request.result = hdr.first == hdr.second ? 8w1 : 8w2;
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
