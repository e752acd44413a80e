// Left to right in the calls that the core library and the architecture define, and in a table's list of actions.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
    bit<8> a;
    bit<8> b;
    bit<8> c;
}

header option_t {
    bit<8> kind;
    varbit<32> rest;
}

struct headers_t {
    request_t request;
    option_t[3] options;
}

struct meta_t { }

#include "bench.p4h"

bit<8> next(inout bit<8> v) {
    v = v + 1;
    return v;
}

bit<32> wide_next(inout bit<8> v) {
    return (bit<32>)next(v);
}

error problem(inout bit<8> v) {
    v = v + 1;
    return error.NoMatch;
}

bool is_two(inout bit<8> v) {
    bool found = v == 2;
    v = v + 4;
    return found;
}

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition select(hdr.request.op) {
            1: header_first;
            2: size_first;
            3: check_first;
            4: error_first;
            default: accept;
        }
    }
    state header_first {
        packet.extract(hdr.options[wide_next(hdr.request.a) - 1], wide_next(hdr.request.a) << 2);
        transition accept;
    }
    state size_first {
        packet.extract(variableFieldSizeInBits = wide_next(hdr.request.a) << 3,
                       variableSizeHeader = hdr.options[wide_next(hdr.request.a) - 1]);
        transition accept;
    }
    state check_first {
        verify(is_two(hdr.request.a), problem(hdr.request.a));
        transition accept;
    }
    state error_first {
        verify(toSignal = problem(hdr.request.a), check = is_two(hdr.request.a));
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    bit<8> kept = 7;

    action both(inout bit<8> p, inout bit<8> q, in bit<8> before) {
        p = 1;
        q = 2;
        hdr.request.c = before;
    }

    table listed {
        actions = { both(q = kept, p = kept, before = kept); }
        default_action = both(q = kept, p = kept, before = kept);
    }

    apply {
        standard_metadata.egress_spec = 1;
        if (standard_metadata.parser_error != error.NoError) {
            hdr.request.c = 0xee;
        } else if (hdr.request.op == 5) {
            bit<16> called;
            bit<16> known;
            hash(called, HashAlgorithm.crc16, next(hdr.request.a), { next(hdr.request.a) }, next(hdr.request.a));
            hash(known, HashAlgorithm.crc16, 8w1, { 8w2 }, 8w3);
            hdr.request.c = called == known ? 8w1 : 8w0;
        } else if (hdr.request.op == 6) {
            listed.apply();
            hdr.request.b = kept;
        }
    }
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.options);
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), Emit()) main;
