// A table with an action profile, whose entries share members, and one with a selector over groups of them.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8>  key;
    bit<8>  flow;
    bit<16> other;
    bit<8>  shared;
    bit<8>  selected;
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
    action share(bit<8> value) {
        hdr.request.shared = value;
    }

    action select_one(bit<8> value) {
        hdr.request.selected = value;
    }

    @name("profile") action_profile(8) profile;
    @name("selector") action_selector(HashAlgorithm.crc16, 16, 14) selector;

    table sharing {
        key = { hdr.request.key : exact; }
        actions = { share; NoAction; }
        default_action = NoAction;
        implementation = profile;
    }

    table selecting {
        key = {
            hdr.request.key   : exact;
            hdr.request.flow  : selector;
            hdr.request.other : selector;
        }
        actions = { select_one; NoAction; }
        default_action = NoAction;
        implementation = selector;
    }

    apply {
        standard_metadata.egress_spec = 1;
        sharing.apply();
        selecting.apply();
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
