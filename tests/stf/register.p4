// One register, one operation a packet: 1 writes value, 2 reads it into value, 3 adds value to it.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8>  op;
    bit<8>  index;
    bit<32> value;
}

struct headers_t {
    request_t request;
}

struct meta_t { }

#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(4) cells;

    apply {
        bit<32> index = (bit<32>) hdr.request.index;
        bit<32> held;
        standard_metadata.egress_spec = 1;
        if (hdr.request.op == 1) {
            cells.write(index, hdr.request.value);
        } else if (hdr.request.op == 2) {
            cells.read(hdr.request.value, index);
        } else {
            cells.read(held, index);
            hdr.request.value = held + hdr.request.value;
            cells.write(index, hdr.request.value);
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
