// Entries that the program itself has, and what applying a table tells.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> kind;
    bit<8> value;
    bit<8> result;
    bit<8> hit;
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
    action a(bit<8> value) {
        hdr.request.result = value;
    }

    action b() {
        hdr.request.result = hdr.request.result + 1;
    }

    table in_order {
        key = { hdr.request.value : ternary; }
        actions = { a; }
        const entries = {
            0x10 &&& 0xf0 : a(1);
            0x18 &&& 0xf8 : a(2);
            0x80 &&& 0x80 : a(3);
            _             : a(4);
        }
    }

    table by_range {
        key = { hdr.request.value : range; }
        actions = { a; }
        const entries = {
            1 .. 8  : a(1);
            6 .. 12 : a(2);
            17      : a(4);
            _       : a(5);
        }
    }

    table by_prefix {
        key = { hdr.request.value : lpm; }
        actions = { a; NoAction; }
        const default_action = NoAction;
        const entries = {
            0x04 &&& 0xfc : a(1);
            0x04 &&& 0xff : a(3);
            0xf9          : a(4);
        }
    }

    table open {
        key = { hdr.request.value : ternary; }
        actions = { a; b; }
        default_action = b;
        largest_priority_wins = true;
        entries = {
            const priority = 30 : 0x0f &&& 0x0f : a(0x30);
            priority = 10       : 0x1f          : a(0x10);
        }
    }

    table keyless {
        actions = { a; b; }
        default_action = a(0x77);
    }

    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.request.kind == 0) {
            in_order.apply();
        } else if (hdr.request.kind == 1) {
            by_range.apply();
        } else if (hdr.request.kind == 2) {
            if (by_prefix.apply().hit) {
                hdr.request.hit = 1;
            } else {
                hdr.request.hit = 2;
            }
        } else if (hdr.request.kind == 3) {
            switch (open.apply().action_run) {
                a: { hdr.request.hit = 0x0a; }
                b: { hdr.request.hit = 0x0b; }
            }
        } else {
            keyless.apply();
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
