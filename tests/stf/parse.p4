// What parsers can do, and how they fail; the first byte chooses. A reject reaches ingress with its error.
#include <core.p4>
#include <v1model.p4>

error {
    TooOdd
}

header kind_t {
    bit<8> kind;
}

header report_t {
    bit<8> code;
    bit<8> depth;
}

header item_t {
    bit<1> last;
    bit<7> value;
}

header options_t {
    bit<8>      length;
    varbit<64>  data;
}

header small_t {
    bit<8> tag;
    bit<8> value;
}

header large_t {
    bit<8>  tag;
    bit<24> value;
}

header_union either_t {
    small_t small;
    large_t large;
}

struct headers_t {
    report_t  report;
    kind_t    kind;
    item_t[3] items;
    options_t options;
    either_t  either;
    small_t   tail;
}

struct meta_t {
    bit<8> depth;
}

#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    value_set<bit<8>>(4) known;

    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind) {
            0: items;
            1: options;
            2: either;
            3: peek;
            4: skip;
            5: check;
            6 .. 8: accept;
            0x10 &&& 0xf0: tail;
            known: tail;
        }
    }

    state items {
        packet.extract(hdr.items.next);
        meta.depth = meta.depth + 1;
        transition select(hdr.items.last.last) {
            1: accept;
            0: items;
        }
    }

    state options {
        bit<8> length = packet.lookahead<bit<8>>();
        packet.extract(hdr.options, (bit<32>) length * 8);
        transition tail;
    }

    state either {
        transition select(packet.lookahead<bit<8>>()) {
            1: small;
            2: large;
            default: accept;
        }
    }

    state small {
        packet.extract(hdr.either.small);
        transition accept;
    }

    state large {
        packet.extract(hdr.either.large);
        transition accept;
    }

    state peek {
        meta.depth = packet.lookahead<small_t>().value;
        transition accept;
    }

    state skip {
        packet.advance(16);
        transition tail;
    }

    state check {
        packet.extract(hdr.tail);
        verify(hdr.tail.tag[0:0] == 0, error.TooOdd);
        meta.depth = 0x77;
        transition accept;
    }

    state tail {
        packet.extract(hdr.tail);
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        hdr.report.setValid();
        hdr.report.depth = meta.depth;
        if (standard_metadata.parser_error == error.NoError) {
            hdr.report.code = 0;
        } else if (standard_metadata.parser_error == error.PacketTooShort) {
            hdr.report.code = 1;
        } else if (standard_metadata.parser_error == error.NoMatch) {
            hdr.report.code = 2;
        } else if (standard_metadata.parser_error == error.StackOutOfBounds) {
            hdr.report.code = 3;
        } else if (standard_metadata.parser_error == error.HeaderTooShort) {
            hdr.report.code = 4;
        } else if (standard_metadata.parser_error == error.TooOdd) {
            hdr.report.code = 5;
        } else {
            hdr.report.code = 0xff;
        }
        if (hdr.either.large.isValid()) {
            bit<24> value = hdr.either.large.value;
            hdr.either.small.setValid();
            hdr.either.small = { 9, value[7:0] };
        }
        if (hdr.options.isValid() && hdr.options.length == 0) {
            hdr.options.setInvalid();
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
