// Serialisable enums, new types, tuples, booleans as keys, lists of fields in two ways.
#include <core.p4>
#include <v1model.p4>

enum bit<8> kind_t {
    FIRST  = 1,
    SECOND = 2,
    LAST   = 0xf0
}

enum colour_t {
    RED,
    GREEN
}

type bit<16> id_t;

header request_t {
    kind_t  kind;
    bit<8>  op;
    id_t    id;
    bit<16> result;
}

struct pair_t {
    bit<8> high;
    bit<8> low;
}

struct headers_t {
    request_t request;
}

struct meta_t {
    bool     flag;
    colour_t colour;
}

#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition select(hdr.request.kind) {
            kind_t.FIRST: first;
            kind_t.LAST: last;
            default: accept;
        }
    }

    state first {
        hdr.request.result = 0x1111;
        transition accept;
    }

    state last {
        hdr.request.result = 0xffff;
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    action set(bit<16> value) {
        hdr.request.result = value;
    }

    table of_flag {
        key = { meta.flag : exact; hdr.request.kind : exact; }
        actions = { set; NoAction; }
        default_action = NoAction;
    }

    table of_id {
        key = { hdr.request.id : exact; }
        actions = { set; NoAction; }
        default_action = NoAction;
    }

    apply {
        standard_metadata.egress_spec = 1;
        meta.flag = hdr.request.op == 2;
        meta.colour = hdr.request.op == 3 ? colour_t.GREEN : colour_t.RED;
        if (hdr.request.op == 1 || hdr.request.op == 2) {
            of_flag.apply();
        } else if (hdr.request.op == 3 || hdr.request.op == 4) {
            if (meta.colour == colour_t.GREEN) {
                hdr.request.result = 0x6666;
            } else {
                hdr.request.result = 0x4444;
            }
        } else if (hdr.request.op == 5) {
            pair_t pair = { low = 0x12, high = 0x34 };
            tuple<bit<8>, bit<8>> both = { pair.low, pair.high };
            hdr.request.result = both[1] ++ both[0];
        } else if (hdr.request.op == 6) {
            hdr.request.id = (id_t) ((bit<16>) hdr.request.id + 1);
        } else if (hdr.request.op == 7) {
            of_id.apply();
        } else if (hdr.request.op == 8) {
            hdr.request.kind = (kind_t) 8w0x55;
            hdr.request.result = hdr.request.kind == kind_t.SECOND ? 16w1 : 16w2;
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
