// The order of the call: arguments and fields are evaluated as they are written, whatever the order of declaration.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
    bit<8> a;
    bit<8> b;
    bit<8> c;
    bit<8> d;
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

struct pair_t {
    bit<8> p;
    bit<8> q;
}

struct nested_t {
    pair_t one;
    bit<8> two;
}

bit<8> next(inout bit<8> v) {
    v = v + 1;
    return v;
}

bit<8> first(in bit<8> p, in bit<8> q) {
    return p;
}

void both(out bit<8> p, out bit<8> q) {
    p = 1;
    q = 2;
}

void copied(inout bit<8> p, in bit<8> q) {
    p = q;
}

control Pair(out bit<8> p, in bit<8> q, out bit<8> r) {
    apply {
        p = q;
        r = 0x33;
        if (q == 9) {
            exit;
        }
    }
}

control Kept(register<bit<8>> kept, in bit<8> p, in bit<8> q) {
    apply {
        kept.write(0, p);
        kept.write(1, q);
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<8>>(16) cells;
    Pair() pair;
    Kept() keep;

    action store(in bit<8> p, in bit<8> q) {
        hdr.request.b = p;
        hdr.request.c = q;
    }

    action results(out bit<8> p, out bit<8> q) {
        p = 1;
        q = 2;
        exit;
    }

    apply {
        bit<8> v = hdr.request.a;
        standard_metadata.egress_spec = 1;
        if (hdr.request.op == 0) {
            hdr.request.b = first(q = next(v), p = next(v));
            hdr.request.c = first(p = next(v), q = next(v));
            // Read before the call on its right changes it, and after the one on its left has.
            hdr.request.d = first(q = next(v), p = v) + first(p = v, q = next(v));
        } else if (hdr.request.op == 1) {
            both(q = hdr.request.b, p = hdr.request.b);
            both(p = hdr.request.c, q = hdr.request.c);
        } else if (hdr.request.op == 2) {
            store(q = next(v), p = next(v));
        } else if (hdr.request.op == 3) {
            results(q = hdr.request.b, p = hdr.request.b);
        } else if (hdr.request.op == 4) {
            pair.apply(r = hdr.request.b, q = next(v), p = hdr.request.b);
        } else if (hdr.request.op == 5) {
            pair.apply(q = next(v), r = hdr.request.c, p = hdr.request.c);
        } else if (hdr.request.op == 6) {
            cells.write(value = next(v), index = (bit<32>)next(v));
            cells.read(index = (bit<32>)v, result = hdr.request.b);
            cells.write((bit<32>)next(v), next(v));
            cells.read(hdr.request.c, (bit<32>)v - 1);
        } else if (hdr.request.op == 7) {
            pair_t pair_value = { q = next(v), p = next(v) };
            hdr.request.b = pair_value.p;
            hdr.request.c = pair_value.q;
            hdr.request.d = ((pair_t){ q = next(v), p = next(v) }).p;
        } else if (hdr.request.op == 8) {
            nested_t value = { two = next(v), one = { q = next(v), p = next(v) } };
            hdr.request.b = value.two;
            hdr.request.c = value.one.q;
            hdr.request.d = value.one.p;
        } else if (hdr.request.op == 9) {
            random(hi = next(v), lo = v, result = hdr.request.b);
            hash(max = 8w0, data = { v }, base = next(v), algo = HashAlgorithm.crc16, result = hdr.request.c);
        } else if (hdr.request.op == 10) {
            keep.apply(q = next(v), kept = cells, p = next(v));
            cells.read(hdr.request.b, 0);
            cells.read(hdr.request.c, 1);
        } else if (hdr.request.op == 11) {
            copied(q = next(v), p = v);
            hdr.request.b = v;
            if (first(q = next(v), p = next(v)) == 0x13 && first(q = v, p = next(v)) == 0x14) {
                hdr.request.c = v;
            }
        } else if (hdr.request.op == 12) {
            // What is not selected is evaluated all the same.
            hdr.request.b = ((pair_t){ next(v), 7 }).q;
            hdr.request.c = ((pair_t){ p = next(v), q = v }).q;
            hdr.request.d = v;
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
