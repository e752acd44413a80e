// Control flow: exit and return from every place, copy-out, short circuit, order of evaluation, loops.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
    bit<8> a;
    bit<8> b;
    bit<8> c;
}

struct headers_t {
    request_t request;
}

struct meta_t { }

#define EGRESS Out
#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control Inner(inout bit<8> x, in bit<8> leave) {
    apply {
        x = 0x11;
        if (leave == 1) {
            return;
        }
        if (leave == 2) {
            exit;
        }
        x = 0x22;
    }
}

bit<8> add_to(inout bit<8> x, in bit<8> y) {
    x = x + y;
    return x;
}

bool touch(inout bit<8> x, in bool result) {
    x = x + 1;
    return result;
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    Inner() inner;

    action leave(inout bit<8> x) {
        x = 0x33;
        exit;
    }

    action maybe_return() {
        hdr.request.a = 1;
        if (hdr.request.b == 7) {
            return;
        }
        hdr.request.a = 2;
    }

    action leaving() {
        hdr.request.c = 0x44;
        exit;
    }

    action swap(inout bit<8> x, inout bit<8> y) {
        x = 1;
        y = 2;
    }

    table leaver {
        key = { hdr.request.a : exact; }
        actions = { leaving; NoAction; }
        default_action = NoAction;
        const entries = {
            9 : leaving();
        }
    }

    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.request.op == 0) {
            inner.apply(hdr.request.a, hdr.request.b);
            hdr.request.c = 0x55;
        } else if (hdr.request.op == 1) {
            leave(hdr.request.a);
            hdr.request.c = 0x55;
        } else if (hdr.request.op == 2) {
            maybe_return();
            hdr.request.c = 0x55;
        } else if (hdr.request.op == 3) {
            if (leaver.apply().hit) {
                hdr.request.b = 0x66;
            }
            hdr.request.b = 0x77;
        } else if (hdr.request.op == 4) {
            bool both = touch(hdr.request.a, false) && touch(hdr.request.b, true);
            bool one = touch(hdr.request.a, true) || touch(hdr.request.b, true);
            hdr.request.c = (both ? 8w1 : 8w0) + (one ? 8w2 : 8w0);
        } else if (hdr.request.op == 5) {
            // The left operand is read before the call on the right changes it.
            hdr.request.c = hdr.request.a - add_to(hdr.request.a, hdr.request.b);
        } else if (hdr.request.op == 6) {
            swap(hdr.request.a, hdr.request.a);
        } else if (hdr.request.op == 7) {
            hdr.request.c = hdr.request.a == 0 ? hdr.request.b : add_to(hdr.request.b, 1);
        } else if (hdr.request.op == 8) {
            switch (hdr.request.a) {
                1:
                2: { hdr.request.c = 0x12; }
                3: { hdr.request.c = 0x03; }
                default: { hdr.request.c = 0xdd; }
            }
        }
    }
}

control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.request.op = hdr.request.op | 0x80;
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), Out(), COMPUTE(), EmitAll()) main;
