// One table of each kind; each writes the data of the entry that won into its own byte of the packet.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8>  kind;
    bit<32> address;
    bit<16> port;
    bit<8>  result;
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
    action set(bit<8> value) {
        hdr.request.result = value;
    }

    action miss() {
        hdr.request.result = 0xee;
    }

    table exactly {
        key = { hdr.request.address : exact; hdr.request.port : exact; }
        actions = { set; miss; }
        default_action = miss;
        size = 4;
    }

    table longest {
        key = { hdr.request.address : lpm; }
        actions = { set; miss; }
        default_action = miss;
    }

    table longest_of_port {
        key = { hdr.request.port : exact; hdr.request.address : lpm; }
        actions = { set; miss; }
        default_action = miss;
    }

    table masked {
        key = { hdr.request.address : ternary; hdr.request.port : ternary; }
        actions = { set; miss; }
        default_action = miss;
    }

    table masked_longest {
        key = { hdr.request.address : lpm; hdr.request.port : ternary; }
        actions = { set; miss; }
        default_action = miss;
    }

    table within {
        key = { hdr.request.port : range; hdr.request.address : exact; }
        actions = { set; miss; }
        default_action = miss;
    }

    table maybe {
        key = { hdr.request.address : optional; hdr.request.port : optional; }
        actions = { set; miss; }
        default_action = miss;
    }

    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.request.kind == 0) {
            exactly.apply();
        } else if (hdr.request.kind == 1) {
            longest.apply();
        } else if (hdr.request.kind == 2) {
            longest_of_port.apply();
        } else if (hdr.request.kind == 3) {
            masked.apply();
        } else if (hdr.request.kind == 4) {
            masked_longest.apply();
        } else if (hdr.request.kind == 5) {
            within.apply();
        } else {
            maybe.apply();
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
