// Header stacks in controls: push, pop, indices known at run time, validity.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
    bit<8> index;
    bit<8> value;
}

header item_t {
    bit<8> value;
}

struct headers_t {
    request_t request;
    item_t[4] items;
}

struct meta_t { }

#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.request.op == 1) {
            hdr.items.push_front(1);
            hdr.items[0].setValid();
            hdr.items[0].value = hdr.request.value;
        } else if (hdr.request.op == 2) {
            hdr.items.pop_front(2);
        } else if (hdr.request.op == 3) {
            hdr.items.push_front(2);
        } else if (hdr.request.op == 4) {
            hdr.request.value = hdr.items[hdr.request.index].value;
        } else if (hdr.request.op == 5) {
            hdr.items[hdr.request.index].value = hdr.request.value;
        } else if (hdr.request.op == 6) {
            hdr.items[1].setInvalid();
        } else if (hdr.request.op == 7) {
            hdr.items[3] = hdr.items[0];
            hdr.items[0] = hdr.items[2];
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
