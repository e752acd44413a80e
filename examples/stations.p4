// A switch for v1model that forwards by Ethernet address and counts each entry's frames: for examples/compile_ones_own_p4.py.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t { }

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std_meta) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Nothing(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Forward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std_meta) {
    direct_counter(CounterType.packets) frames;
    action drop() { mark_to_drop(std_meta); }
    action send(bit<9> port) { frames.count(); std_meta.egress_spec = port; }
    table stations {
        key = { hdr.ethernet.dst : exact; }
        actions = { send; @defaultonly drop; }
        default_action = drop();
        counters = frames;
        size = 1024;
    }
    apply { stations.apply(); }
}
control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std_meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }

V1Switch(Parse(), Nothing(), Forward(), Leave(), Nothing(), Deparse()) main;
