// A program that BMv2 cannot run and that breaks rules of pipelines, for docs/p4.md.
#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

struct headers_t { ethernet_t ethernet; }
struct meta_t { bit<16> vlan; bit<8> hops; }

#define METADATA inout meta_t meta, inout standard_metadata_t std_meta
#include "around.p4"

control I(inout headers_t hdr, METADATA) {
    register<bit<16>>(16) seen;
    table forward {
        key = { hdr.ethernet.type : exact; }
        actions = { NoAction; }
    }
    apply {
        bit<16> n;
        bit<16> count;
        hash(n, HashAlgorithm.crc16, 16w0, meta.vlan, 16w16);
        seen.read(count, 0);
        seen.read(count, 1);
        seen.write((bit<32>)n, count + 1);
        if (forward.apply().hit) {
            forward.apply();
        }
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
